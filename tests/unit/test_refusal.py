"""What tritonserver says when it refuses a model, found in the end of its log as the kubelet keeps it."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triton_converters.contract.reasons import Reason
from triton_operator.observed.refusal import LONGEST_SENTENCE, refusal

KEPT_BYTES = 2048
"""What the kubelet keeps of a log."""
END = "error: creating server: Internal - failed to load all models\n"
DIMENSIONS = (
    "Invalid argument: model 'yolo', tensor 'output0': the model expects 3 dimensions (shape [-1,22,-1]) but the model"
    " configuration specifies 2 dimensions (shape [22,2100])"
)
YOLO = f"failed to load 'yolo' version 1: {DIMENSIONS}"
BACKEND = (
    "failed to load 'm' version 1: Invalid argument: unable to find backend library for backend 'tensorflow', try"
    " specifying runtime on the model configuration."
)
MISSING = "failed to load 'm' version 1: Internal: ModuleNotFoundError: No module named 'torchvision'"
FRAMES = (
    "\n\nAt:\n  /models/m/1/model.py(8): <module>\n"
    "  <frozen importlib._bootstrap>(241): _call_with_frames_removed\n"
    "  <frozen importlib._bootstrap_external>(883): exec_module\n"
)
ENGINE = (
    "IRuntime::deserializeCudaEngine: Error Code 1: Serialization (Serialization assertion failed.The engine plan file"
    " is not compatible with this version of TensorRT, expecting library version 10.8.0.43 got 10.9.0.34, please"
    " rebuild.)"
)
PLAN = "failed to load 'm' version 1: Internal: unable to load plan file to auto complete config: /models/m/model.plan"


def logged(message: str, file: str = "model_lifecycle.cc:654", level: str = "E") -> str:
    """The line of a server before 24.04."""
    return f"{level}1122 16:02:42.123456 1 {file}] {message}\n"


def escaped(message: str, level: str = "E") -> str:
    """The line of a newer server."""
    words = message.replace('"', '\\"').replace("\n", "\\n")
    return logged(f'"{words}"', level=level)


def table(model: str, status: str, width: int) -> str:
    """The models as the info log lists them: a cell's lines are broken at a width, in the middle of words."""
    pieces = [line[at : at + width] for line in status.split("\n") for at in range(0, max(len(line), 1), width)]
    border = f"+------+---------+{'-' * (width + 2)}+\n"
    rows = [
        f"| {model if number == 0 else '':4} | {1 if number == 0 else '':7} | {piece:{width}} |\n"
        for number, piece in enumerate(pieces)
    ]
    heading = f"| {'Model':4} | Version | {'Status':{width}} |\n"
    ready = f"| good | 1       | {'READY':{width}} |\n"
    return f"\n{border}{heading}{border}{ready}{''.join(rows)}{border}\n"


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        (logged(YOLO) + END, YOLO),
        (escaped(YOLO) + END, YOLO),
        (f'2026-11-22T16:02:42Z E 1 model_lifecycle.cc:654] "{YOLO}"\n{END}', YOLO),
        (logged(MISSING + FRAMES) + logged("failed to load 'm'", level="I") + END, MISSING),
        (escaped(MISSING + FRAMES) + END, MISSING),
        (logged(BACKEND) + END, BACKEND),
        (logged(ENGINE, "logging.cc:40") + logged(PLAN) + END, ENGINE),
        (logged(PLAN) + END, PLAN),
        (
            logged("Poll failed for model directory 'm': output 'y' must specify 'dims'") + END,
            "Poll failed for model directory 'm': output 'y' must specify 'dims'",
        ),
    ],
)
def test_the_line_of_the_error_log_decides(log: str, sentence: str) -> None:
    found = refusal("I1122 16:02:41.0 1 pinned_memory_manager.cc:277] Pinned memory pool is created\n" + log)
    assert found is not None
    assert found.sentence == sentence


def test_a_server_with_too_little_shared_memory_names_the_field() -> None:
    """As a table of embeddings with requests of 65,536 keys had it."""
    words = "failed to load 'sparse' version 1: Internal: Failed to increase the shared memory pool size for key 'x'"
    found = refusal(logged(words) + END)
    assert found is not None
    assert found.advice == "; raise spec.serving.sharedMemorySize"


@pytest.mark.parametrize("width", [20, 61, 470])
@pytest.mark.parametrize("end", ["", FRAMES])
def test_a_broken_cell_of_the_table_is_put_together(width: int, end: str) -> None:
    found = refusal(table("yolo", f"UNAVAILABLE: {DIMENSIONS}{end}", width) + END)
    assert found is not None
    assert (found.reason, found.sentence) == (Reason.MODEL_LOAD_FAILED, YOLO)


def test_a_cell_broken_inside_of_the_decisive_words_still_names_the_reason() -> None:
    words = BACKEND.removeprefix("failed to load 'm' version 1: ")
    found = refusal(table("m", f"UNAVAILABLE: {words}", 30) + END)
    assert found is not None
    assert (found.reason, found.sentence) == (Reason.FORMAT_NOT_SERVED, BACKEND)


def test_a_traceback_is_passed_over() -> None:
    raised = (
        "failed to load 'm' version 1: Internal: Traceback (most recent call last):\n"
        '  File "/models/m/1/model.py", line 8, in initialize\n    import torchvision\n'
        "ModuleNotFoundError: No module named 'torchvision'\n"
    )
    found = refusal(escaped(raised) + END)
    assert found is not None
    assert found.sentence == MISSING


def test_words_that_follow_on_the_next_line_belong_to_the_sentence() -> None:
    raised = "failed to load 'm' version 1: Internal: RuntimeError: \nUnknown builtin op: torchvision::nms.\n"
    found = refusal(logged(raised) + END)
    assert found is not None
    assert found.sentence == (
        "failed to load 'm' version 1: Internal: RuntimeError: Unknown builtin op: torchvision::nms."
    )


def test_a_log_whose_line_is_cut_off_still_has_the_table() -> None:
    log = logged(YOLO + "\n" + "frame\n" * 200) + table("yolo", f"UNAVAILABLE: {DIMENSIONS}", 100) + END
    found = refusal(log[-KEPT_BYTES:])
    assert "version 1" not in log[-KEPT_BYTES:]
    assert found is not None
    assert found.sentence == YOLO


@pytest.mark.parametrize("log", [END, (escaped("failed to load 'm' version 1: " + "x" * 3000) + END)[-KEPT_BYTES:]])
def test_a_log_that_lost_the_sentence_gives_the_reason_alone(log: str) -> None:
    found = refusal(log)
    assert found is not None
    assert (found.reason, found.sentence) == (Reason.MODEL_LOAD_FAILED, "")


@pytest.mark.parametrize("log", ["", "\n", "Signal (11) received.\n 0# 0x000055A9\n", logged("out of memory")])
def test_a_log_that_says_nothing_of_a_model_is_no_refusal(log: str) -> None:
    assert refusal(log) is None


def test_a_hostile_log_is_read_quickly_and_gives_one_short_printable_line() -> None:
    names = "\\u001b[2J" + "\x1b]0;owned\x07" + "y" * 5000
    lines = logged("x] " * 20) + "| " * 2000 + "\n" + "|" * 5000 + "\n" + "E1122 " * 3000 + "\n"
    log = (lines * 50) + escaped("").replace('""', f"\"failed to load 'm' version 1: {names}\"") + "|\n" * 20000 + END
    begin = time.process_time()
    found = refusal(log)
    assert time.process_time() - begin < 5
    assert found is not None
    assert found.sentence.startswith("failed to load 'm' version 1: ")
    assert found.sentence.isprintable()
    assert len(found.sentence) <= LONGEST_SENTENCE


@given(st.text(alphabet='|+-" \\\n]E1:x\x1b') | st.text())
def test_any_text_is_read(text: str) -> None:
    for log in (text, f"failed to load{text}", logged(f'"failed to load {text}'), f"| m | 1 | UNAVAILABLE: {text} |"):
        found = refusal(log)
        assert found is None or found.sentence == "" or found.sentence.isprintable()
