"""The process of a container: dispatch, replay, termination message, exit code."""

import errno
import getpass
import json
import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha512
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from triton_converters import __main__ as program
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode, ReferenceRequest, SourceRequest
from triton_converters.contract.envelope import EXIT_FINAL, MESSAGE_LIMIT_BYTES, Outcome
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ReferenceResult, Signature, SourceResult
from triton_converters.contract.stages import STAGES

KEY = "0123456789abcdef"
RESULT = ReferenceResult(Signature((), (), 1), samples=3, batches=1, seconds=0.5)
REQUEST = ReferenceRequest(KEY, "d" * 64, ModelCode("pyt", Entrypoint("m.py", {}), 1), Entrypoint("d.py", {}), 8, False)
Answer = Callable[[], ReferenceResult]


@pytest.fixture
def run(mount: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, Outcome]]:
    """Runs the last container of the reference stage with a body of the test's own."""
    log = tmp_path / "termination-log"
    monkeypatch.setenv("TERMINATION_LOG", str(log))

    def execute(
        answer: Answer, arguments: tuple[str, ...] = ("publish", "reference", REQUEST.to_json())
    ) -> tuple[int, Outcome]:
        module = ModuleType("triton_converters.stages.reference.publish")
        module.run = lambda request, incoming: answer()
        monkeypatch.setitem(sys.modules, "triton_converters.stages.reference.publish", module)
        code = program.main(arguments)
        text = log.read_text()
        assert len(text.encode()) <= MESSAGE_LIMIT_BYTES
        return code, Outcome.from_json(text)

    return execute


def raising(error: BaseException) -> Answer:
    def answer() -> ReferenceResult:
        raise error

    return answer


@pytest.mark.parametrize("name", STAGES)
def test_every_stage_has_a_module_of_its_name_and_a_boxed_one_its_three_parts(name: str) -> None:
    parts = {"prepare", "produce", "publish"}
    spec = find_spec(f"triton_converters.stages.{name}")
    assert spec is not None
    found = {part for part in parts if spec.submodule_search_locations and find_spec(f"{spec.name}.{part}")}
    assert found == (parts if STAGES[name].boxed else set())


Run = Callable[..., tuple[int, Outcome]]


def test_a_result_is_the_message_and_lies_on_the_claim(run: Run) -> None:
    assert run(lambda: RESULT) == (0, Outcome("reference", KEY, RESULT))
    stored = (layout.reference_directory(KEY) / "result.json").read_text()
    assert Outcome.from_json(stored) == Outcome("reference", KEY, RESULT)


def test_a_valid_result_of_the_key_is_replayed(run: Run) -> None:
    run(lambda: RESULT)
    assert run(raising(AssertionError("it ran again"))) == (0, Outcome("reference", KEY, RESULT))


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        '{"stage":"reference","key":"another","result":{}}',
        Outcome("reference", "f" * 16, RESULT).to_json(),
        Outcome("reference", KEY, None, Reason.CRASHED, "failed").to_json(),
    ],
)
def test_anything_else_under_the_key_is_not_replayed(run: Run, content: str) -> None:
    directory = layout.reference_directory(KEY)
    directory.mkdir(parents=True)
    (directory / "result.json").write_text(content)
    assert run(lambda: RESULT) == (0, Outcome("reference", KEY, RESULT))
    assert Outcome.from_json((directory / "result.json").read_text()).result == RESULT


@pytest.mark.parametrize(
    ("error", "reason", "code", "words"),
    [
        (StageError(Reason.DATALOADER_INVALID, "no batch"), Reason.DATALOADER_INVALID, EXIT_FINAL, "no batch"),
        (StageError(Reason.RESULT_MISSING, "gone", final=False), Reason.RESULT_MISSING, 1, "gone"),
        (SystemExit(0), Reason.USER_CODE_FAILED, EXIT_FINAL, "ended the process with 0"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), Reason.STORAGE_FULL, 1, "No space left"),
        (OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)), Reason.STORAGE_FULL, 1, "uota exceeded"),
        (OSError(errno.EIO, os.strerror(errno.EIO)), Reason.CRASHED, 1, "Input/output error at"),
        (
            ModuleNotFoundError("No", name="onnx"),
            Reason.CRASHED,
            EXIT_FINAL,
            "the image lacks the Python module onnx; add the package that has it, which often has the same name, to the"
            " file of spec.conversion.requirements",
        ),
        (
            OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), "/claim/" + "a" * 300),
            Reason.CRASHED,
            EXIT_FINAL,
            "File name too long",
        ),
        (RecursionError("maximum recursion depth exceeded"), Reason.CRASHED, EXIT_FINAL, "RecursionError: maximum"),
        (ZeroDivisionError("division by zero"), Reason.CRASHED, 1, "ZeroDivisionError: division by zero at"),
    ],
)
def test_every_failure_has_a_reason(run: Run, error: BaseException, reason: Reason, code: int, words: str) -> None:
    got, outcome = run(raising(error))
    assert (got, outcome.result, outcome.reason) == (code, None, reason)
    assert words in outcome.message
    assert not layout.reference_directory(KEY).exists()


@pytest.mark.parametrize("names", [("references/x",), ("/source/model.py", None, "sources/.tmp-x/model.py"), ()])
def test_a_full_claim_is_named(run: Run, mount: Path, names: tuple[str | None, ...]) -> None:
    files = [name and str(mount / name) for name in names]
    _, outcome = run(raising(OSError(errno.ENOSPC, "No space left on device", *files)))
    assert f"no space is left on {mount.parent} (" in outcome.message


def test_another_full_file_system_is_not_called_the_claim(run: Run, mount: Path, tmp_path: Path) -> None:
    _, outcome = run(raising(OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "scratch"))))
    assert f"no space is left on {tmp_path} (" in outcome.message


def test_a_claim_that_another_user_has_begun_names_both_users(
    run: Run, mount: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout.ROOT.mkdir(parents=True, exist_ok=True)
    os.chown(layout.ROOT, 1000, 1000)
    monkeypatch.setattr(os, "getuid", lambda: 2000)
    _, outcome = run(raising(PermissionError(errno.EACCES, "Permission denied", str(mount / "references"))))
    assert outcome.reason is Reason.CLAIM_UNUSABLE
    assert outcome.message.startswith(f"uid 2000 cannot write to the claim, where {layout.ROOT} belongs to uid 1000: ")
    assert outcome.message.endswith("the same spec.pod.runAsUser, or give this one its own claim")


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_claim_that_cannot_be_written_to_is_named(run: Run, mount: Path, tmp_path: Path, number: int) -> None:
    refused = OSError(number, os.strerror(number), str(mount / "references/.tmp-x"))
    code, outcome = run(raising(refused))
    assert (code, outcome.reason) == (EXIT_FINAL, Reason.CLAIM_UNUSABLE)
    assert str(refused) in outcome.message
    _, outcome = run(raising(OSError(number, os.strerror(number), str(tmp_path / "scratch"))))
    assert outcome.reason is Reason.CRASHED, "not the claim"


def test_a_crash_names_file_and_line(run: Run) -> None:
    _, outcome = run(raising(ValueError("odd")))
    assert Path(__file__).name in outcome.message


def test_a_message_of_100_kilobytes_keeps_its_ends(run: Run) -> None:
    error = StageError(Reason.USER_CODE_FAILED, 'model.py:3: ValueError: "' + "\\x\n\x1b" * 25_000 + " the end")
    code, outcome = run(raising(error))
    assert code == EXIT_FINAL
    assert outcome.message.startswith("model.py:3: ValueError")
    assert outcome.message.endswith("the end")


def test_a_result_that_does_not_fit_is_a_failure(run: Run) -> None:
    # 64 is the most that a status shows; random digits, as a long result is deflated.
    names = tuple(f"_{sha512(bytes([number])).hexdigest()}"[:128] for number in range(64))
    from triton_converters.contract.results import Tensor

    wide = Signature((), tuple(Tensor(name, "FP32", (1,)) for name in names), 1)
    code, outcome = run(lambda: ReferenceResult(wide, 1, 1, 0.0))
    assert (code, outcome.reason) == (EXIT_FINAL, Reason.CRASHED)
    assert "does not fit into a termination message" in outcome.message
    assert "give the model fewer inputs and outputs" in outcome.message


def test_a_result_that_is_nowhere_else_and_does_not_fit_is_a_failure(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source has no result.json, and a config.pbtxt of many tensors is a part of its result."""
    names = tuple(f"{sha512(bytes([number])).hexdigest()}"[:128] for number in range(128))
    monkeypatch.setattr(program, "_run", lambda *_: SourceResult("d" * 64, 1, 1, formats=names))
    code, outcome = run(lambda: RESULT)
    assert (code, outcome.reason) == (EXIT_FINAL, Reason.CRASHED)
    assert "give the model fewer inputs and outputs" in outcome.message


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("publish", "reference"),
        ("publish", "unknown", "{}"),
        ("publish", "reference", "{}"),
        ("publish", "reference", "not json"),
        ("publish", "reference", '{"key": 1}'),
        ("publish", "profile", "{}"),
        ("reference", REQUEST.to_json()),
    ],
)
def test_a_wrong_request_is_final(run: Run, arguments: tuple[str, ...]) -> None:
    code, outcome = run(lambda: RESULT, arguments)
    assert (code, outcome.reason) == (EXIT_FINAL, Reason.CRASHED)


def test_no_stage_imports_torch_before_it_is_asked_for() -> None:
    heavy = {"torch", "numpy", "onnx", "grpc"}
    text = f"import sys, triton_converters.__main__; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, env=environment())
    assert done.stdout.strip() == "[]"


def test_what_runs_user_code_needs_no_triton_client() -> None:
    """Images of users need not have it, and its protobuf is another one than some frameworks'."""
    modules = ", ".join(f"triton_converters.stages.{stage}.produce" for stage in ("reference", "convert", "metrics"))
    text = f"import sys, {modules}; print(sorted({{'tritonclient', 'google.protobuf', 'grpc'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, env=environment())
    assert done.stdout.strip() == "[]"


def environment(**more: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)} | more


PROCESS = """
import os, sys
from pathlib import Path
from types import ModuleType
from triton_converters.contract import layout
layout.MOUNT = Path({claim!r})
layout.ROOT = layout.MOUNT / layout.ROOT.name
layout.reference_directory.__defaults__ = (layout.ROOT,)
module = ModuleType("triton_converters.stages.reference.publish")
exec({body!r}, vars(module))
sys.modules["triton_converters.stages.reference.publish"] = module
sys.argv = ["triton_converters", "publish", "reference", {request!r}]
import runpy
runpy.run_module("triton_converters", run_name="__main__")
"""


def start(tmp_path: Path, body: str) -> subprocess.Popen[str]:
    """The real process, with a stage's body of the test's own."""
    claim = tmp_path / "repository"
    claim.mkdir()
    text = PROCESS.format(claim=str(claim), body=body, request=REQUEST.to_json())
    log = str(tmp_path / "termination-log")
    return subprocess.Popen(
        [sys.executable, "-c", text],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(TERMINATION_LOG=log),
    )


def message(tmp_path: Path) -> Outcome:
    return Outcome.from_json((tmp_path / "termination-log").read_text())


def test_a_user_without_an_entry_in_passwd_has_a_name(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def lookup(uid: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    def answer() -> ReferenceResult:
        assert getpass.getuser()
        return RESULT

    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", lookup)
    assert run(answer)[0] == 0


def test_a_flood_on_stdout_is_harmless(tmp_path: Path) -> None:
    body = "def run(request, incoming):\n    print('x' * 100_000)\n    raise SystemExit(0)"
    process = start(tmp_path, body)
    stdout, _ = process.communicate(timeout=60)
    assert process.returncode == EXIT_FINAL
    assert len(stdout) > 100_000
    assert message(tmp_path).reason is Reason.USER_CODE_FAILED


def test_threads_and_exit_handlers_of_user_code_change_nothing(tmp_path: Path) -> None:
    body = """
import atexit, os, threading, time
from triton_converters.contract.results import ReferenceResult, Signature
from triton_converters.contract.stages import STAGES
def run(request, incoming):
    threading.Thread(target=time.sleep, args=(600,)).start()
    atexit.register(os._exit, 7)
    return ReferenceResult(Signature((), (), 1), 3, 1, 0.5)
"""
    process = start(tmp_path, body)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert message(tmp_path).result == RESULT


def test_a_process_that_user_code_ends_leaves_no_message(tmp_path: Path) -> None:
    process = start(tmp_path, "import os\ndef run(request, incoming):\n    os._exit(0)")
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert not (tmp_path / "termination-log").exists()
    assert not (tmp_path / "repository" / layout.ROOT.name / "references").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_promptly_and_cleans_up(tmp_path: Path, number: signal.Signals) -> None:
    body = """
import time
from triton_converters.contract import layout
from triton_converters.claim_store.publish import temporary_directory
def run(request, incoming):
    with temporary_directory(layout.reference_directory(request.key)):
        print("working", flush=True)
        try:
            time.sleep(600)
        except Exception:
            time.sleep(600)
"""
    process = start(tmp_path, body)
    assert process.stdout is not None
    assert process.stdout.readline() == "working\n"
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert list((tmp_path / "repository" / layout.ROOT.name / "references").iterdir()) == []
    assert not (tmp_path / "termination-log").exists()


def test_the_source_stage_looks_again_every_time(mount: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERMINATION_LOG", str(tmp_path / "log"))
    layout.SOURCE_MOUNT.mkdir()
    digests = []
    for text in ("one", "two"):
        (layout.SOURCE_MOUNT / "model.py").write_text(text)
        assert program.main(["source", SourceRequest(KEY, "pvc://models", "", "").to_json()]) == 0
        digests.append(json.loads((tmp_path / "log").read_text())["result"]["digest"])
    assert len(set(digests)) == 2
    assert sorted(path.name for path in (mount / "sources").iterdir()) == sorted(digests)
