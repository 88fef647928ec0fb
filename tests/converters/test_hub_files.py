"""What Python steps load from the Hugging Face hub: the folder next to their file, in the reference and on a server."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.converters import test_python_ensemble, test_triton_python
from triton_converters.claim_store import python_step
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.load import hub_files
from triton_converters.python_backend import user_step

source, clean, step = test_python_ensemble.source, test_triton_python.clean, test_triton_python.step
SNAPSHOT = "snapshots/" + "0123456789" * 4
VARIABLES = (*user_step.HUB_PLACES, *user_step.OFFLINE)
READ = """
import os
from pathlib import Path
assert (os.environ["HF_HUB_OFFLINE"], os.environ["TRANSFORMERS_OFFLINE"]) == ("1", "1")
HUB = Path(os.environ["HF_HUB_CACHE"])
assert str(HUB) == os.environ["HUGGINGFACE_HUB_CACHE"]
FOUND = {each.relative_to(HUB).as_posix(): each.read_text() for each in HUB.rglob("*") if each.is_file()}
"""


@pytest.fixture(autouse=True)
def untouched() -> Iterator[None]:
    """No variable of the hub is left for another test."""
    before = {name: os.environ.pop(name, None) for name in VARIABLES}
    yield
    left = [name for name in VARIABLES if os.environ.pop(name, None) is not None]
    os.environ.update({name: value for name, value in before.items() if value is not None})
    assert not left


def cache(folder: Path, name: str, text: str, commit: str = "0123456789" * 4) -> None:
    """A model with one file, as published."""
    for path, content in {f"snapshots/{commit}/words.txt": text, "refs/main": commit}.items():
        file = folder / user_step.HUB / f"models--{name}" / path
        file.parent.mkdir(parents=True)
        file.write_text(content)


def given(*paths: str) -> list[ModelCode]:
    return [ModelCode("triton-python", Entrypoint(path, {}), 0) for path in paths]


def test_one_step_reads_its_own_folder(tmp_path: Path) -> None:
    cache(tmp_path / "a", "me--net", "words")
    with hub_files.offered(tmp_path, given("a/step.py", "b/step.py")):
        assert {name: os.environ[name] for name in VARIABLES} == {
            **dict.fromkeys(user_step.HUB_PLACES, str(tmp_path / "a/huggingface")),
            **user_step.OFFLINE,
        }


def test_a_step_without_a_folder_asks_nobody_either(tmp_path: Path) -> None:
    with hub_files.offered(tmp_path, given("a/step.py")):
        assert {name: os.environ[name] for name in VARIABLES if name in os.environ} == user_step.OFFLINE


def test_without_a_step_nothing_changes(tmp_path: Path) -> None:
    with hub_files.offered(tmp_path, [ModelCode("pyt", Entrypoint("model.py", {}), 0)]):
        assert not [name for name in VARIABLES if name in os.environ]


def test_what_was_set_is_set_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    with pytest.raises(KeyError), hub_files.offered(tmp_path, given("a/step.py")):
        raise KeyError
    assert os.environ.pop("HF_HUB_OFFLINE") == "0"


def test_two_commits_of_one_model_are_refused(tmp_path: Path) -> None:
    cache(tmp_path / "a", "me--net", "words")
    cache(tmp_path / "b", "me--net", "words", "f" * 40)
    with pytest.raises(StageError) as error, hub_files.offered(tmp_path, given("a/step.py", "b/step.py")):
        pass
    assert error.value.reason is Reason.CONVERSION_UNSUPPORTED
    assert error.value.message.startswith(
        "'a/huggingface/models--me--net/refs/main' and 'b/huggingface/models--me--net/refs/main' name different"
    )


def test_the_reference_and_the_conversion_read_the_folders_of_all_steps(source: Path) -> None:
    """Both steps look before anything is loaded, as the hub's libraries do where they are imported."""
    for name, text in (("count", test_python_ensemble.COUNT), ("label", test_python_ensemble.LABEL)):
        cache(source / name, f"me--{name}", name)
        cache(source / name, "me--both", "both")
        looks = f"{READ}assert {{'count', 'label', 'both'}} < set(FOUND.values()), FOUND\n"
        (source / name / "step.py").write_text(looks + text)
    assert test_python_ensemble.refer().samples == 6
    test_python_ensemble.convert()
    files = layout.model_repository("f" * 16) / "count" / "1" / "source" / "count" / "huggingface"
    assert (files / "models--me--count" / SNAPSHOT / "words.txt").read_text() == "count"


def test_files_that_the_snapshots_linked_to_are_not_served_twice(tmp_path: Path) -> None:
    place, version = tmp_path / "source", tmp_path / "1"
    version.mkdir()
    cache(place / "steps", "me--net", "words")
    blobs = [f"steps/huggingface/{each}" for each in ("models--me--net/blobs/aa", "blobs/bb/bbcc")]
    for name in ("steps/step.py", "steps/blobs/a.txt", *blobs):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(name)
    assert python_step.write(place, "steps/step.py", version)[len(python_step.PROGRAMS) :] == (
        "source/steps/blobs/a.txt",
        "source/steps/huggingface/models--me--net/refs/main",
        f"source/steps/huggingface/models--me--net/{SNAPSHOT}/words.txt",
        "source/steps/step.py",
    )


RAISING = """
    def initialize(self, args):
        class LocalEntryNotFoundError(FileNotFoundError): pass
        def hf_hub_download(repo_id):
            raise LocalEntryNotFoundError("cannot find the requested files in the disk cache")
        try:
            hf_hub_download("me/net")
        except LocalEntryNotFoundError as error:
            raise OSError("We couldn't connect to 'https://huggingface.co' to load the files") from error
"""


def test_a_step_that_still_downloads_is_told_what_to_type(step: test_triton_python.Load) -> None:
    reason, message = test_triton_python.failure(step, RAISING + test_triton_python.LENGTHS)
    assert reason is Reason.USER_CODE_FAILED
    assert message == (
        "step lengths: steps/lengths.py:14: no server reaches the Hugging Face hub: type `hf download NAME --cache-dir"
        " steps/huggingface` in the source's folder, with the name of what this line loads"
    )


def test_causes_that_lead_in_a_circle_end(step: test_triton_python.Load) -> None:
    body = """
    def initialize(self, args):
        one, two = ValueError("one"), ValueError("two")
        one.__cause__, two.__cause__ = two, one
        raise one
"""
    reason, message = test_triton_python.failure(step, body + test_triton_python.LENGTHS)
    assert (reason, message[-15:]) == (Reason.USER_CODE_FAILED, "ValueError: one")


def test_the_message_has_the_folder_as_a_shell_reads_it() -> None:
    class OfflineModeIsEnabled(ConnectionError):  # noqa: N818 - the library's own name
        pass

    place = user_step.StepFiles(Path("/source"), "a folder/step.py", Path("/packages"))
    assert "--cache-dir 'a folder/huggingface'` in" in user_step._absent(OfflineModeIsEnabled(), place)
