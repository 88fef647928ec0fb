"""What a Python step's code loads from the network, and how its author puts that next to the step's file. Pure."""

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from triton_converters.contract.text import quoted
from triton_plugin.drafting.triton_repository.files import ModelFiles
from triton_plugin.drafting.triton_repository.notes import NAMED, names, place
from triton_plugin.reading.hub_names import HUB, Download
from triton_plugin.reading.python_files import Modules, used_names

OTHERS = ("urlretrieve", "urlopen")
"""Functions that read from the network, if they are not given files that lie there."""
PLAIN = re.compile(r"[A-Za-z0-9_./-]+")
"""Matches what a shell and a sentence take as it is."""


def downloads(model: ModelFiles, file: str, own: Iterable[str], modules: Modules) -> Iterator[str]:
    """Yield a sentence for each model of the Hugging Face hub that is not in the step's folder, and for other calls.

    ``file``: path of the step's file below the source; ``own``: that and the files next to it that it imports.
    """
    hub = PurePosixPath(file).parent / HUB
    found: dict[tuple[str, str], tuple[str, Download]] = {}
    other: list[str] = []
    for path in own:
        other += [each for each in OTHERS if each in used_names(modules[path])]
        for each in modules[path].downloads:
            if not each.name or _is_path(model, each.name):
                other.append(each.call)
            elif not _has(model, hub, each):
                found.setdefault((each.name, each.revision), (path, each))
    for path, each in list(found.values())[:NAMED]:
        revision = f" --revision {each.revision}" if each.revision else ""
        where = str(hub) if PLAIN.fullmatch(str(hub)) else quoted(str(hub))
        yield (
            f"it loads {quoted(each.name)} from the Hugging Face hub ({place(path, each.line)}), which no"
            f" server reaches: type `hf download {each.name}{revision} --cache-dir {where}` in this folder"
        )
    if other:
        yield (
            f"it calls {names(dict.fromkeys(other))}: a server reaches nothing, so the files have to lie in the step's"
            f" folder, named from Path(__file__).parent, or in {quoted(str(hub))} if they are of the Hugging Face hub"
        )


def _is_path(model: ModelFiles, name: str) -> bool:
    """Whether a name is that of a folder of the model's, and so hardly one of the hub's."""
    return any(each == name or each.endswith(f"/{name}") for each in model.files or ())


def _has(model: ModelFiles, hub: PurePosixPath, download: Download) -> bool:
    """Whether the hub's folder has the commit; true also if the model's folder has too many files to tell."""
    if model.files is None:
        return True
    folder = hub.relative_to(model.path) / download.folder
    revision = download.revision or "main"
    return any(str(folder / each / revision) in model.files for each in ("refs", "snapshots"))
