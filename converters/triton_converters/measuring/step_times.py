"""The times of an ensemble's models, from the files that perf_analyzer writes next to its report.

Written for perf_analyzer 2.60, which reads the server's statistics of each model of an ensemble, and writes them for
each point to ``<model>_v<version>.<point>.csv``, with the columns of the report up to those of the client.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from triton_converters.contract.results import Row
from triton_converters.contract.step_times import StepTimes, by_model
from triton_converters.measuring.perf_analyzer import Point
from triton_converters.measuring.settings import SETTINGS

COMPUTE = ("Server Compute Input", "Server Compute Infer", "Server Compute Output")


def step_times(directory: Path, rows: Sequence[Row]) -> tuple[StepTimes, ...]:
    """Return the times of each model in an online sweep, sorted by the models' names.

    Empty for a model that is no ensemble, if a point's files are missing, as where samples of several shapes are
    measured one after the other, and if there are more than ``most_figures``.
    """
    of_rows = [dict(_of_point(directory, Point("online", row.batch_size, row.concurrency).name)) for row in rows]
    found = by_model(of_rows)
    return found if len(found) * len(rows) <= SETTINGS.most_figures else ()


def _of_point(directory: Path, point: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield each model's name, and its times in its queue and computing, in microseconds."""
    for file in directory.glob(f"*_v*.{point}.csv"):
        with file.open(encoding="utf-8", errors="replace") as opened:
            lines = list(csv.DictReader(io.StringIO(opened.read(SETTINGS.longest_file_bytes))))
        try:
            (line,) = lines
            times = int(line["Server Queue"]), sum(int(line[column]) for column in COMPUTE)
        except (KeyError, TypeError, ValueError):
            continue
        yield file.name.removesuffix(f".{point}.csv").rpartition("_v")[0], times
