"""The process that watches over user code: however that ends, the publisher finds out how."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import onnx
import onnxruntime
import pytest

from tests.converters.test_generated_inputs import identity
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.incoming import current, documents, wrapper
from triton_converters.incoming.documents import END, End, Order

WATCH = """
import sys
from pathlib import Path
from triton_converters.incoming import wrapper
wrapper.CGROUP = Path({cgroup!r})
wrapper.kills_for_memory.__defaults__ = (wrapper.CGROUP,)
sys.exit(wrapper.run([sys.executable, "-c", {code!r}], Path({incoming!r})))
"""


@pytest.fixture
def incoming(tmp_path: Path) -> Path:
    """An INCOMING_MOUNT with something to do."""
    folder = tmp_path / "incoming"
    folder.mkdir()
    documents.write(folder, documents.ORDER, Order({}, ("key",)))
    return folder


def start(incoming: Path, code: str) -> subprocess.Popen[str]:
    """A wrapper around user code."""
    text = WATCH.format(code=code, incoming=str(incoming), cgroup=str(incoming.parent / "cgroup"))
    paths = os.pathsep.join(path for path in sys.path if path)
    return subprocess.Popen(
        [sys.executable, "-c", text],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=incoming,
        env=os.environ | {"PYTHONPATH": paths},
    )


def watch(incoming: Path, code: str, exit_code: int = 0) -> str:
    """Run to the end; returns what was printed."""
    process = start(incoming, code)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == exit_code, output
    return output


def end(incoming: Path) -> StageError:
    with pytest.raises(StageError) as caught:
        documents.check_end(incoming, "reference")
    return caught.value


def test_an_end_that_user_code_reached_stays(incoming: Path) -> None:
    given = End(Reason.DATALOADER_INVALID, "no batch").to_json()
    output = watch(incoming, f"print('to be seen'); open({END!r}, 'w').write({given!r})")
    assert "to be seen" in output
    assert end(incoming).reason is Reason.DATALOADER_INVALID


def test_nothing_runs_if_nothing_is_missing(incoming: Path) -> None:
    documents.write(incoming, documents.ORDER, Order({}, ()))
    watch(incoming, "open('ran', 'w')")
    assert not (incoming / "ran").exists()


def test_without_an_order_nothing_runs(incoming: Path) -> None:
    (incoming / documents.ORDER).unlink()
    watch(incoming, "open('ran', 'w')")
    assert not (incoming / "ran").exists()


def test_a_process_that_ends_itself_with_0_gives_no_result(incoming: Path) -> None:
    watch(incoming, "import os; os._exit(0)")
    error = end(incoming)
    assert (error.reason, error.final) == (Reason.RESULT_MISSING, True)
    assert "its program ended before the stage was done" in error.message


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os; os._exit(7)", "exit code 7 and left no message; see its log"),
        ("import os; print('one'); print('two', flush=True); os._exit(7)", "exit code 7: one | two"),
        ("import os; os.abort()", "exit code 134"),
        ("import os; os.kill(os.getpid(), 11)", "exit code 139"),
        ("import os; os.kill(os.getpid(), 9)", "exit code 137"),
        ("import os; print('\\x1b[2J', flush=True); os._exit(1)", "exit code 1"),
    ],
)
def test_another_end_is_told_as_of_any_container(incoming: Path, code: str, words: str) -> None:
    watch(incoming, code)
    error = end(incoming)
    assert (error.reason, error.final) == (Reason.CRASHED, False)
    assert words in error.message
    assert f"pod {os.uname().nodename}, container run ended with" in error.message
    assert error.message.isprintable()


RUNNING = "from triton_converters.incoming import current; import os; c = current.running({!r}); c.__enter__(); "


@pytest.mark.parametrize(
    ("code", "reason", "words"),
    [
        ("os._exit(7)", Reason.CRASHED, "ended with exit code 7 while 'steps/label.py' ran and left no message"),
        ("os.kill(os.getpid(), 9)", Reason.CRASHED, "ended with exit code 137 while 'steps/label.py' ran"),
        ("os._exit(0)", Reason.RESULT_MISSING, "its program ended while 'steps/label.py' ran"),
        ("c.__exit__(None, None, None); os._exit(7)", Reason.CRASHED, "ended with exit code 7 and left no message"),
    ],
)
def test_the_file_whose_code_ran_is_named(incoming: Path, code: str, reason: Reason, words: str) -> None:
    watch(incoming, RUNNING.format("steps/label.py") + code)
    error = end(incoming)
    assert error.reason is reason
    assert words in error.message


@pytest.mark.parametrize("verb", ["opened", "ran"])
@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE])
def test_a_library_that_crashes_at_a_graph_is_named_and_not_tried_again(incoming: Path, verb: str, number: int) -> None:
    """ONNX Runtime 1.31.1 does so where it optimises an fp16 LSTM with a linear layer behind it."""
    onnx.save(identity(onnx.TensorProto.FLOAT, ["n", 4]), str(incoming / "odd.onnx"))
    dies = f"lambda *_, **__: os.kill(os.getpid(), {number})"
    name = "InferenceSession" if verb == "opened" else "InferenceSession.run"
    code = f"""
import os, numpy, onnxruntime
from pathlib import Path
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode
from triton_converters.load import framework
onnxruntime.{name} = {dies}
model = framework.load(Path({str(incoming)!r}), ModelCode("onnx", Entrypoint("odd.onnx", {{}}), 4), "onnx")
model({{"x": numpy.zeros((1, 4), "f4")}})
"""
    watch(incoming, code)
    error = end(incoming)
    assert (error.reason, error.final) == (Reason.FRAMEWORK_FAILED, True)
    words = f"onnxruntime {onnxruntime.__version__} ended by signal {number:d} as it {verb} 'odd.onnx'"
    assert error.message == f"{words}; use another precision, format or opset"


@pytest.mark.parametrize("made", ["open(f, 'w').write('x' * 10**6)", "os.mkdir(f)", "os.symlink('/etc/hostname', f)"])
def test_a_forged_name_is_no_harm(incoming: Path, made: str) -> None:
    watch(incoming, f"import os; f = os.environ['{current.VARIABLE}']; {made}; os._exit(7)")
    assert "ended with exit code 7 and left no message" in end(incoming).message


@pytest.mark.parametrize("code", [1, 9])
def test_an_end_that_was_forged_before_a_crash_does_not_count(incoming: Path, code: int) -> None:
    forged = f"open({END!r}, 'w').write('{{}}'); import os; os._exit({code})"
    watch(incoming, forged)
    assert end(incoming).reason is Reason.CRASHED


@pytest.mark.parametrize("version", ["memory.events", "memory/memory.oom_control"])
def test_a_kill_for_memory_is_told_from_others(incoming: Path, version: str) -> None:
    counters = incoming.parent / "cgroup" / version
    counters.parent.mkdir(parents=True)
    counters.write_text("oom 1\noom_kill 3\n")
    written = f"open({str(counters)!r}, 'w').write('oom 2\\noom_kill 4\\n')"
    watch(incoming, f"{written}; import os; os.kill(os.getpid(), 9)", wrapper.EXIT_KILLED)
    # A kill of before, and a kill by somebody else, are none for memory.
    watch(incoming, "import os; os.kill(os.getpid(), 9)")
    assert end(incoming).reason is Reason.CRASHED


def test_a_kill_of_any_process_of_the_container_counts(incoming: Path) -> None:
    counters = incoming.parent / "cgroup" / "memory.events"
    counters.parent.mkdir()
    counters.write_text("oom_kill 0\n")
    # The kubelet looks at the container's events too, and would let the pod hang.
    watch(incoming, f"open({str(counters)!r}, 'w').write('oom_kill 1\\n')", wrapper.EXIT_KILLED)


def test_what_user_code_leaves_running_keeps_nothing(incoming: Path) -> None:
    daemon = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open("daemon", "w").write(str(os.getpid()))
        time.sleep(60)
    os._exit(0)
while not os.path.exists("daemon") or not open("daemon").read():
    time.sleep(0.01)
open("outcome.json", "w").write("{}")
"""
    began = time.monotonic()
    watch_daemon(incoming, daemon)
    assert time.monotonic() - began < 30
    documents.check_end(incoming, "reference")


def watch_daemon(incoming: Path, code: str) -> None:
    """Run to the end of the wrapper: the daemon holds its output, which nobody may wait for."""
    process = start(incoming, code)
    assert process.wait(30) == 0
    # In a pod, the end of the container's first process ends it.
    os.kill(int((incoming / "daemon").read_text()), signal.SIGKILL)
    process.communicate(timeout=30)


def test_the_process_group_of_user_code_ends_with_it(incoming: Path) -> None:
    code = """
import os, time
child = os.fork()
if child == 0:
    time.sleep(600)
open("left", "w").write(str(child))
"""
    watch(incoming, code)
    state = Path("/proc", (incoming / "left").read_text(), "stat")
    for _ in range(200):
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.05)
    pytest.fail("it still runs")


def test_a_flood_is_passed_on_and_of_no_harm(incoming: Path) -> None:
    output = watch(incoming, "import os; print('x' * 3_000_000 + '\\n' + 'y' * 10, flush=True); os._exit(3)")
    assert len(output) > 3_000_000
    assert "exit code 3" in end(incoming).message
    assert len((incoming / END).read_text()) < 2000


def test_user_code_cannot_end_its_wrapper_with_a_result(incoming: Path) -> None:
    """In a pod the wrapper is its container's first process, which no signal of its own container kills."""
    process = start(incoming, "import os, time; os.kill(os.getppid(), 9); time.sleep(1)")
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert end(incoming).reason is Reason.RESULT_MISSING


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_who_is_asked_to_stop_asks_its_child_and_stops(incoming: Path, number: signal.Signals) -> None:
    code = """
import signal, sys, time
def stop(number, frame):
    open("asked", "w").write(str(number))
    sys.exit(143)
for each in (signal.SIGTERM, signal.SIGINT):
    signal.signal(each, stop)
print("working", flush=True)
time.sleep(600)
"""
    process = start(incoming, code)
    assert process.stdout is not None
    assert process.stdout.readline() == "working\n"
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert (incoming / "asked").read_text() == str(int(number))
    assert not (incoming / END).exists()


def test_user_code_has_no_standard_input(incoming: Path) -> None:
    assert "b''" in watch(incoming, "import sys; print(sys.stdin.buffer.read())")


def test_only_the_standard_library_is_imported() -> None:
    heavy = {"torch", "numpy", "onnx", "grpc"}
    text = f"import sys, triton_converters.incoming.wrapper; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
