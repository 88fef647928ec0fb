"""What people push is served, or its owner is told what it is and what to do, by the source Job and the plugin."""

from pathlib import Path

import pytest

from tests.converters.pushed import FOLDERS, REFUSED, SERVED, Files
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import SourceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.found.kinds import FileKind
from triton_converters.stages import source
from triton_plugin.drafting.model_folder import read
from triton_plugin.errors import FolderError

READ_BY_NAME = {"an ONNX graph under another name"}
"""The plugin looks for models of a folder by their names, so that it need not read a whole dataset; a
file that is named itself is looked into."""


def push(files: Files) -> None:
    """Put the files where the source Job finds them."""
    for name, content in files.items():
        place = layout.SOURCE_MOUNT / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def refused(path: str) -> StageError:
    """Return why the source Job refuses the model."""
    with pytest.raises(StageError) as caught:
        source.run(SourceRequest("0" * 16, "pvc://models", "", "", (path,)))
    return caught.value


def test_each_kind_is_among_them() -> None:
    assert {FileKind[kind] for _, kind, _ in REFUSED.values()} == {kind for kind in FileKind if not kind.format}
    assert {form for _, _, form in SERVED.values()} == {kind.format for kind in FileKind if kind.format}
    assert len(SERVED) + len(REFUSED) + len(FOLDERS) >= 60


@pytest.mark.parametrize("name", SERVED)
def test_what_is_served_is_found(mount: Path, name: str) -> None:
    files, path, form = SERVED[name]
    push(files)
    assert source.run(SourceRequest("0" * 16, "pvc://models", "", "", (path,))).formats == (form,)
    assert read(layout.SOURCE_MOUNT / path if name in READ_BY_NAME else layout.SOURCE_MOUNT).model.path == path


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_served_is_named_with_what_to_do(mount: Path, name: str) -> None:
    files, kind, advice = REFUSED[name]
    push(files)
    path = next(iter(files)).partition("/")[0]
    found = refused(path)
    assert f"{path} is {FileKind[kind].words}" in found.message
    assert advice in found.message
    assert found.reason is Reason.FORMAT_NOT_FOUND
    with pytest.raises(FolderError) as caught:
        read(layout.SOURCE_MOUNT / path)
    assert FileKind[kind].words in str(caught.value)
    assert FileKind[kind].is_weights or advice in str(caught.value)


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_that_is_no_model_says_where_one_is(mount: Path, name: str) -> None:
    files, words = FOLDERS[name]
    push(files)
    assert words in refused("m").message


def test_the_page_names_every_kind() -> None:
    page = (Path(__file__).parents[2] / "docs/files.md").read_text()
    assert all(kind.words in page for kind in FileKind)
