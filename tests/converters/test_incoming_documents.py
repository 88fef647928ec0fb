"""How user code ended, as it says itself: nothing in that document can harm who reads it."""

import json
import os
import re
from pathlib import Path

import pytest

import triton_converters
from triton_converters.contract.conversion_requests import SourceRequest
from triton_converters.contract.envelope import MESSAGE_LIMIT_BYTES, Outcome
from triton_converters.contract.failure import StageError
from triton_converters.contract.reason_kinds import Containers
from triton_converters.contract.reasons import FAILURES, Reason
from triton_converters.contract.stages import STAGES
from triton_converters.incoming import documents
from triton_converters.incoming.documents import END, Converted, End
from triton_operator.jobs.transient import TRANSIENT


def ended(root: Path) -> StageError | None:
    try:
        documents.check_end(root, "reference")
    except StageError as error:
        return error
    return None


def test_a_failure_keeps_its_reason_and_says_whether_another_try_helps(tmp_path: Path) -> None:
    documents.write_end(tmp_path, End())
    assert ended(tmp_path) is None
    for final in (True, False):
        documents.write_end(tmp_path, End(Reason.DATALOADER_INVALID, "no batch", final))
        error = ended(tmp_path)
        assert error is not None
        assert (error.reason, error.message, error.final) == (Reason.DATALOADER_INVALID, "no batch", final)


def test_without_an_end_another_try_may_help(tmp_path: Path) -> None:
    error = ended(tmp_path)
    assert error is not None
    assert (error.reason, error.final) == (Reason.RESULT_MISSING, False)


HOSTILE = {
    "a megabyte": json.dumps({"reason": "Crashed", "message": "x" * 2**20}),
    "NaN": '{"reason": "Crashed", "message": NaN}',
    "infinity": '{"final": Infinity}',
    "very deep": "[" * 5000,
    "deep and closed": "[" * 5000 + "]" * 5000,
    "half a surrogate pair": '{"reason": "Crashed", "message": "\\ud800"}',
    "an unknown reason": '{"reason": "Hacked", "message": ""}',
    "an unknown field": '{"image": "evil"}',
    "another type": '{"reason": "Crashed", "message": "x", "final": "yes"}',
    "a list": "[]",
    "a number of many digits": '{"final": ' + "9" * 10_000 + "}",
    "no JSON": "hello",
    "empty": "",
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_is_no_end_is_a_failure_that_fits(tmp_path: Path, case: str) -> None:
    (tmp_path / END).write_text(HOSTILE[case])
    error = ended(tmp_path)
    assert error is not None
    assert error.reason is Reason.CRASHED
    assert END in error.message
    text = Outcome("convert", "0" * 16, None, error.reason, error.message).to_json()
    assert len(text.encode()) < MESSAGE_LIMIT_BYTES


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / END).write_bytes(b"\xff\xfe{}")
    error = ended(tmp_path)
    assert error is not None
    assert error.reason is Reason.CRASHED


def test_a_terminal_obeys_nothing_of_it(tmp_path: Path) -> None:
    escapes = "\x1b[2J\x9b31m\u202e\x00 harmless"
    (tmp_path / END).write_text(json.dumps({"reason": "UserCodeFailed", "message": escapes}))
    error = ended(tmp_path)
    assert error is not None
    assert error.message.isprintable()
    assert error.message.endswith("harmless")


def test_an_end_that_is_a_link_or_a_pipe_is_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(End(Reason.CRASHED, "a secret").to_json())
    for leave in (lambda path: path.symlink_to(secret), os.mkfifo, lambda path: os.link(secret, path), Path.mkdir):
        leave(tmp_path / END)
        error = ended(tmp_path)
        assert error is not None
        assert "a secret" not in error.message
        assert "is not published" in error.message
        (tmp_path / END).rmdir() if leave is Path.mkdir else (tmp_path / END).unlink()


def test_an_end_replaces_whatever_user_code_left_in_its_place(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("kept")
    for leave in (lambda path: path.symlink_to(secret), os.mkfifo, lambda path: os.link(secret, path), Path.mkdir):
        leave(tmp_path / END)
        if leave is Path.mkdir:
            (tmp_path / END / "file").touch()
        documents.write_end(tmp_path, End(Reason.CRASHED, "the true end"))
        error = ended(tmp_path)
        assert error is not None
        assert error.message == "the true end"
        (tmp_path / END).unlink()
    assert secret.read_text() == "kept"


def test_the_longest_message_fits_however_it_is_written(tmp_path: Path) -> None:
    for character in ("x", "\\", '"', "ä", "\n", "\U0001f600"):
        documents.write_end(tmp_path, End(Reason.USER_CODE_FAILED, "start" + character * 100_000 + "end"))
        error = ended(tmp_path)
        assert error is not None
        assert error.reason is Reason.USER_CODE_FAILED
        assert error.message.startswith("start")
        assert error.message.endswith("end")


def test_an_order_holds_the_request_as_it_was(tmp_path: Path) -> None:
    request = SourceRequest("k", "pvc://models", "", "")
    documents.write(tmp_path, documents.ORDER, documents.order_for(request, ("a", "b")))
    order = documents.read(tmp_path, documents.ORDER, documents.Order)
    assert SourceRequest.from_value(order.request) == request
    assert order.missing == ("a", "b")


BOXED = [name for name, stage in STAGES.items() if stage.boxed]


@pytest.mark.parametrize("stage", BOXED)
@pytest.mark.parametrize("reason", list(Reason))
def test_reasons_that_a_stage_cannot_find_out_are_crashes(tmp_path: Path, stage: str, reason: Reason) -> None:
    documents.write_end(tmp_path, End(reason, "said by user code", True))
    with pytest.raises(StageError) as error:
        documents.check_end(tmp_path, stage)
    if reason in STAGES[stage].run_reasons:
        assert (error.value.reason, error.value.message) == (reason, "said by user code")
    else:
        assert (error.value.reason, error.value.final) == (Reason.CRASHED, False)
        assert f"{reason}, which is not for it to say: said by user code" in error.value.message


ASKING = {
    Reason.SOURCE_UNREACHABLE: {"packages"},
    Reason.SOURCE_ACCESS_DENIED: {"packages"},
    Reason.SERVER_UNREACHABLE: {"profile", "search", "measure"},
    Reason.STORAGE_FULL: set(BOXED),
}
"""The stages that can find out what passes by itself."""


def test_no_other_stage_ends_with_what_passes_by_itself() -> None:
    """The Job runs again as long as it does so; user code could make it do so for ever."""
    told = {reason: {name for name in BOXED if reason in STAGES[name].run_reasons} for reason in TRANSIENT}
    assert {reason: names for reason, names in told.items() if names} == ASKING


ROOMS = {
    "packages": ("packages",),
    "reference": ("load", "user", "found", "stages/reference"),
    "convert": ("convert", "load", "user", "found"),
    "metrics": ("user",),
    "comparison": ("user",),
    "profile": ("gates", "measuring", "model_config"),
    "search": ("search", "measuring", "model_config"),
    "measure": ("gates", "measuring"),
}
"""Where the code of a stage's container `run` is, besides its own module."""


@pytest.mark.parametrize("stage", BOXED)
def test_no_code_of_a_stage_has_a_reason_that_it_may_not_give(stage: str) -> None:
    package = Path(triton_converters.__file__).parent
    files = [path for room in ROOMS[stage] for path in (package / room).rglob("*.py")]
    files += [package / "stages" / stage / "produce.py", package / "failures.py"]
    said = {Reason[name] for path in files for name in re.findall(r"Reason\.([A-Z_]+)\b", path.read_text())}
    # Said of the claim, where the stage writes to it.
    others = {Reason.PASSED, Reason.CLAIM_UNUSABLE}
    assert said - STAGES[stage].run_reasons <= others, "add its container to the row in contract/reasons.py"


def test_only_a_stage_with_a_container_run_is_told_of_by_it() -> None:
    assert [name for name, stage in STAGES.items() if stage.run_reasons] == BOXED
    in_any = {each for each in Reason if Containers.RUN in each.found_by}
    assert all(STAGES[name].run_reasons > in_any for name in BOXED)


def test_the_jobs_have_all_failures_that_they_may_tell_of_and_no_other() -> None:
    package = Path(triton_converters.__file__).parent
    files = [path for path in package.rglob("*.py") if path.parent.name != "contract"]
    said = {Reason[name] for path in files for name in re.findall(r"Reason\.([A-Z_]+)\b", path.read_text())}
    assert said - {Reason.PASSED} == FAILURES, "add its containers to the row in contract/reasons.py"


def test_warnings_of_any_number_and_length_fit_into_a_document(tmp_path: Path) -> None:
    warnings = documents.first_warnings(f"{number} " + "x" * 2**20 for number in range(10**9))
    documents.write(tmp_path, "converted.json", Converted(warnings, 1.0, None))
    found = documents.read(tmp_path, "converted.json", Converted)
    assert [each[:3] for each in found.warnings] == ["0 x", "1 x", "2 x", "3 x"]
