"""What a URI shows of a model whose files are not on this machine."""

from pathlib import PurePosixPath

from triton_converters.contract.formats import DECLARING, SOURCE_FORMATS
from triton_converters.contract.uris import SCHEMES, split
from triton_plugin.drafting.model_folder import ModelFolder
from triton_plugin.errors import FolderError
from triton_plugin.reading.found_models import Model

SUFFIXES = {suffix: name for name in DECLARING for suffix in SOURCE_FORMATS[name].suffixes}
"""The formats that a file's name shows, and whose graph declares the inputs."""


def is_uri(text: str) -> bool:
    """Whether a command's argument names files of the cluster or elsewhere, and none of this machine."""
    return "://" in text


def read(uri: str, path: str = "", form: str = "") -> ModelFolder:
    """Return what a first object needs: the model at ``path`` below the URI, of format ``form`` if it is not empty.

    Raises FolderError if the URI is none that a source may have, or if neither it nor the options name a model whose
    graph declares its inputs: for the others somebody has to look into the files.
    """
    try:
        parts = split(uri)
    except ValueError as error:
        # The URI itself is not quoted: it may hold credentials.
        raise FolderError(str(error)) from None
    last = PurePosixPath(parts.path or parts.host)
    if not path and SCHEMES[parts.scheme].may_be_file and last.suffix in SUFFIXES:
        path = last.name
    if not path:
        raise FolderError(
            f"{uri} does not show which of its files is the model; name it by its path below the URI: --model PATH"
        )
    form = form or SUFFIXES.get(PurePosixPath(path).suffix, "")
    if not form:
        choices = " or ".join(f"--format {each}" for each in sorted(DECLARING))
        raise FolderError(f"the name {path} does not show the model's format; choose {choices}")
    if form not in DECLARING:
        raise FolderError(
            f"a model of format {form} needs user files, which are not read from a URI; download the files, and pass"
            " their folder, or write the object yourself (docs/source.md)"
        )
    name = last.name.partition(":")[0].partition("@")[0]
    return ModelFolder(
        name=PurePosixPath(name).stem if PurePosixPath(name).suffix in SUFFIXES else name,
        model=Model(path, form, (form,)),
        dataloaders=(),
        metrics=(),
        checkpoints=(),
        suffixes=(),
    )
