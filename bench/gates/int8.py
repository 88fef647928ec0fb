"""Which signal-to-noise ratio an INT8 graph needs: `python3 -m bench.gates.int8 NAME...` prints a row of JSON for each.

The quantizer's graphs of a model, and its wrong variants, are put before the gate of INT8 with floors from 14 to 30 dB.
What each is worth, hidden samples decide.
"""

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import onnx

from bench.gates import right, run, subjects
from bench.gates.right import Run
from bench.gates.run import Case
from bench.gates.trial import FILE, Reference
from triton_converters.claim_store.dump import Array, Arrays, read_all, read_batches, select
from triton_converters.contract.failure import StageError
from triton_converters.contract.quantization import Quantization, calibration
from triton_converters.convert import onnx_int8
from triton_converters.gates.agreement import ERROR_SHARES
from triton_converters.gates.answers import collect, scales_of
from triton_converters.gates.outputs import check_outputs
from triton_converters.model_config.data_types import strings

FLOORS = (14, 16, 18, 20, 22, 24, 26, 28, 30)
"""In dB."""
CALIBRATING = 32
"""Samples of the dataloader's 64."""


def rows(case: Case, made: Reference) -> Iterator[dict[str, Any]]:
    """Yield the INT8 graphs and then the wrong variants of a subject; ``made``: the reference with a dataloader."""
    chosen = calibration(made.samples, CALIBRATING)
    judged = tuple(select(read_batches(made.directory), made.batched, lambda number: number not in chosen))
    data = onnx_int8._Data(made.directory, made.signature, chosen, judged)
    names = tuple(case.framework)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        prepared = onnx_int8._prepared(case.folder / "source" / FILE, Path(folder))
        changed = onnx_int8._apart(prepared)
        for method in onnx_int8.METHODS:
            try:
                path = onnx_int8._made(method, Quantization(CALIBRATING), prepared, [], data, changed)
            except Exception as error:
                yield {"kind": method.name, "failed": str(error)[:200]}
                continue
            if path is not None:
                yield {"kind": method.name, "int8": True, **_judged(case, data, right.PLAIN(onnx.load(path), names))}
    for variant in run.variants(case, lambda told: None):
        if variant.rule not in right.RIGHT:
            found = _judged(case, data, variant.open(variant.graph, names))
            yield {"kind": variant.rule, "place": variant.place, "int8": False, **found}


def _judged(case: Case, data: onnx_int8._Data, ask: Run) -> dict[str, Any]:
    """Return what the gate says, the highest floor that passes (0: none), and what the hidden samples say."""

    def infer(inputs: Arrays, outputs: tuple[str, ...]) -> dict[str, Array]:
        found = {name: numpy.asarray(array) for name, array in ask(inputs).items()}
        return {name: strings(array) if array.dtype.hasobject else array for name, array in found.items()}

    worth = run._truth(case, run._answers(ask, case.hidden, case.size))
    row = {"decibels": str(round(worth.decibels, 1)), "changed": round(worth.changed, 4), "wrong": worth.is_wrong}
    scales = scales_of(read_all(data.home), data.batched, onnx_int8.TOLERANCE, "int8")
    try:
        answers = collect(infer, data.judged, data.signature, onnx_int8.TOLERANCE, scales)
    except StageError as error:
        return {**row, "highest_floor": 0, "message": error.message[:200]}
    highest, message = 0, ""
    for floor in FLOORS:
        ERROR_SHARES["int8"] = 10 ** (-floor / 20)
        try:
            check_outputs(answers, "int8", onnx_int8.TOLERANCE)
            highest = floor
        except StageError as error:
            message = message or error.message[:200]
    return {**row, "signal_to_noise": answers.signal_to_noise, "highest_floor": highest, "message": message}


def main(names: list[str]) -> None:
    """Print the rows of the subjects, each in a process."""
    if len(names) != 1:
        for name in names:
            subprocess.run([sys.executable, "-W", "ignore", "-m", "bench.gates.int8", name], check=False)
        return
    answers = sys.stdout
    # The reference prints how far it is.
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        case = run.prepare(subjects.BY_NAME[names[0]], Path(folder))
        made = case.references[True]
        if isinstance(made, StageError):
            raise made
        for row in rows(case, made):
            print(json.dumps({"subject": names[0], **row}), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
