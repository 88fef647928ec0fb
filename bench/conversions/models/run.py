"""`python -m bench.conversions.models.run MODULE FOLDER NAME...`: convert, compare, and print a line of JSON each.

With a folder that is not empty, each model is saved in it, as its library does it and as what the converter makes.
"""

import importlib
import json
import multiprocessing
import resource
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy

from bench.conversions.models.case import Answers, Case, by_onnx, save

TOLERANCE = 1e-4
"""Share of an answer, and of the largest one, by which numbers may differ: the gates' default for fp32."""
LONGEST = 60
"""Seconds of processor time after which a report's process is ended: most take one, and a converter may never end."""
ENDINGS = {"xgboost": ".json", "lightgbm": ".txt", "sklearn": ".skops"}


def main() -> None:
    """Rebuild each report in a process of its own, which has the libraries already."""
    warnings.filterwarnings("ignore")
    library, folder, *names = sys.argv[1:]
    module = importlib.import_module(f"bench.conversions.models.{library}_reports")
    for name in names:
        place = Path(folder, name + ENDINGS[library]) if folder else None
        child = multiprocessing.get_context("fork").Process(target=_tell, args=(module, name, place))
        child.start()
        child.join()
        if child.exitcode:
            print(json.dumps({"name": name, "outcome": "does not convert", "why": f"ended with {child.exitcode}"}))


def _tell(module: ModuleType, name: str, file: Path | None) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (LONGEST, LONGEST))
    case: Case = getattr(module, name)()
    if file is not None:
        save(case.model, file)
    try:
        found = _compared(case, file)
    except Exception as error:  # noqa: BLE001 - a converter or a runtime raises anything, and the line says which it was
        found = {"outcome": "does not convert", "why": _words(error)}
    print(json.dumps({"name": name, **found}), flush=True)


def _compared(case: Case, file: Path | None) -> dict[str, Any]:
    """Return the share of rows that differ, of each kind of rows, and the largest difference of two numbers."""
    converted = case.convert()
    if file is not None and not callable(converted):
        file.with_suffix(".onnx").write_bytes(converted.SerializeToString())
    answer = converted if callable(converted) else by_onnx(converted)
    found = {kind: differing(case.library(rows), answer(rows)) for kind, rows in case.rows.items()}
    shares = {kind: float(numpy.mean(wrong)) for kind, (wrong, _) in found.items()}
    outcome = "still wrong" if any(shares.values()) else "mended upstream"
    return {"outcome": outcome, "shares": shares, "largest": max(largest for _, largest in found.values())}


def _words(error: BaseException) -> str:
    """Return what was raised first, in one line."""
    cause = error.__cause__ or error
    return f"{type(cause).__name__}: {str(cause).strip().partition(chr(10))[0][:200]}"


def differing(library: Answers, converted: Answers) -> tuple[Any, float]:
    """Return which rows differ in any output, bool [rows], and the largest difference of two numbers.

    Raises ValueError for answers of another form.
    """
    wrong, largest = numpy.zeros(len(library[0]), bool), 0.0
    for expected, found in zip(library, converted, strict=True):
        ours, theirs = (numpy.asarray(each).reshape(len(wrong), -1) for each in (expected, found))
        if ours.shape != theirs.shape:
            raise ValueError(f"{theirs.shape[1]} values a row instead of {ours.shape[1]}")
        if ours.dtype.kind != "f":
            wrong |= (ours.astype(str) != theirs.astype(str)).any(1)
            continue
        difference = numpy.abs(ours - theirs)
        allowed = TOLERANCE * (numpy.abs(ours) + numpy.nanmax(numpy.abs(ours)))
        alike = (difference <= allowed) | (numpy.isnan(ours) & numpy.isnan(theirs))
        wrong |= ~alike.all(1)
        largest = max(largest, float(numpy.nan_to_num(difference).max()))
    return wrong, largest


if __name__ == "__main__":
    main()
