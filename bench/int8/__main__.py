"""`python3 -m bench.int8`: INT8 next to fp32, by throughput, latency and the metric of four models with their data.

Each model goes through the operator's stages in their images: the reference, the conversions to fp32 and INT8, and, in
five rounds, the gates and a sweep of each candidate by turns, next to its real tritonserver. Then its metric is
computed of what both answered, and judged by a threshold. Needs the images, and no cluster; the machine should do
nothing else.

A server has one thread and gets eight requests of a sample at a time. A round takes 30 seconds of a model, all of it
12 minutes; the networks are trained once, in 3 minutes.
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.int8.stages import PRECISIONS, Claim
from bench.int8.subjects import CHOICE, Subject
from bench.machine import cpu_model
from hack.deploy.command import ROOT
from triton_converters.contract.accuracy import judge
from triton_converters.contract.failure import StageError
from triton_converters.contract.quantization import Quantized
from triton_converters.contract.reasons import Reason, known_reason
from triton_converters.contract.results import Row

ROUNDS = 5
OUTPUT = ROOT / "bench/results/int8.json"


@dataclass(frozen=True)
class Line:
    """What was found for one model."""

    model: str
    told: str
    metric: str
    framework: float
    threshold: str
    rows: Mapping[str, tuple[Row, ...]]
    """The measurement of each round, by precision."""
    metrics: Mapping[str, float]
    """The metric of what each precision served."""
    output: str
    """The output whose signal-to-noise ratio the figures of INT8 tell; the models have one."""
    quantized: Quantized
    reason: str
    """Passed, or why INT8 fails."""
    message: str

    @property
    def ratios(self) -> list[float]:
        """Throughput of INT8 as a multiple of that of fp32, of each round."""
        fp32, int8 = (self.rows[precision] for precision in PRECISIONS)
        return [after.throughput / before.throughput for before, after in zip(fp32, int8, strict=True)]


def main() -> int:
    """Measure, print one table and write the raw figures; return the exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m bench.int8", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"a model of {', '.join(CHOICE)}; default: all")
    parser.add_argument("--output", type=Path, metavar="FILE", default=OUTPUT, help="default: bench/results/int8.json")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help=f"default: {ROUNDS}")
    options = parser.parse_args()
    if unknown := set(options.names) - set(CHOICE):
        parser.error(f"there is no model {', '.join(sorted(unknown))}: choose of {', '.join(CHOICE)}")
    lines, failed = [], {}
    for name in options.names or CHOICE:
        try:
            lines.append(measured(CHOICE[name], options.rounds))
        except StageError as error:
            failed[name] = f"{error.reason}: {error.message}"
            print(f"{name}: {failed[name]}", flush=True)
    Console(highlight=False, width=220).print(table(lines))
    for line in lines:
        print(f"{line.model}: {line.told}\n  {verdict(line)}")
    document = {
        "cpu": cpu_model(),
        "time": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "lines": [asdict(line) for line in lines],
        "failed": failed,
    }
    options.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 1 if failed else 0


def measured(subject: Subject, rounds: int) -> Line:
    """Take a model through all stages. Raises StageError for a stage or a gate that fails."""
    with tempfile.TemporaryDirectory() as folder:
        claim = Claim.filled(Path(folder), subject)
        claim.refer()
        quantized = {precision: claim.convert(precision).quantized for precision in PRECISIONS}["int8"]
        assert quantized is not None
        print(f"{subject.name}: {quantized.words()}", flush=True)
        rows: dict[str, list[Row]] = {precision: [] for precision in PRECISIONS}
        # Both run all the time: what is idle takes no core.
        with claim.serve("fp32") as fp32, claim.serve("int8") as int8:
            for number in range(rounds):
                for precision, pod in zip(PRECISIONS, (fp32, int8), strict=True):
                    profile = claim.profile(pod, precision, number)
                    if not profile.passed:
                        reason = known_reason(profile.reason) or Reason.MEASUREMENT_FAILED
                        raise StageError(reason, f"{precision}: {profile.message}")
                    (row,) = profile.online
                    rows[precision].append(row)
                    print(f"{subject.name}: round {number}: {precision} {figures([row])}", flush=True)
        return judged(claim, rounds - 1, rows, quantized)


def judged(claim: Claim, number: int, rows: Mapping[str, Sequence[Row]], quantized: Quantized) -> Line:
    """Judge what the candidates answered in a round, as the operator does."""
    subject, found = claim.subject, claim.measure(number)
    verdicts = {
        precision: judge(found, each.profile, [subject.threshold])
        for precision, each in zip(PRECISIONS, found.candidates, strict=True)
    }
    of_metric = {
        precision: next(each for each in verdict.accuracy if each.metric == subject.metric)
        for precision, verdict in verdicts.items()
    }
    int8 = verdicts["int8"]
    return Line(
        model=subject.name,
        told=subject.told,
        metric=subject.metric,
        framework=of_metric["int8"].framework,
        threshold=of_metric["int8"].threshold_words,
        rows={precision: tuple(each) for precision, each in rows.items()},
        metrics={precision: each.served for precision, each in of_metric.items()},
        output=subject.output,
        quantized=quantized,
        reason=str(int8.reason),
        message=int8.message,
    )


def figures(rows: Sequence[Row]) -> str:
    """Return the medians of throughput and latency in words."""
    throughput, p99 = (
        statistics.median(each) for each in zip(*((row.throughput, row.p99) for row in rows), strict=True)
    )
    return f"{throughput:.0f}/s, p99 {p99 / 1000:.1f} ms"


def verdict(line: Line) -> str:
    """Return in words what the operator makes of the INT8 candidate."""
    return "passes" if line.reason == Reason.PASSED else f"refused: {line.reason}: {line.message}"


def table(lines: Sequence[Line]) -> Table:
    """Return a table of medians, one line for each model."""
    shown = Table(title="INT8 next to fp32: one thread, 8 requests of a sample at a time", title_justify="left")
    for heading in ("model", "fp32", "INT8"):
        shown.add_column(heading)
    for heading in ("times", "range", "metric", "framework", "fp32", "INT8", "threshold", "dB", "in INT8", "method"):
        shown.add_column(heading, justify="right")
    shown.add_column("verdict")
    for each in lines:
        ratio, quantized = each.quantized.signal_to_noise, each.quantized
        shown.add_row(
            each.model,
            figures(each.rows["fp32"]),
            figures(each.rows["int8"]),
            f"{statistics.median(each.ratios):.2f}",
            f"{min(each.ratios):.2f} to {max(each.ratios):.2f}",
            each.metric,
            f"{each.framework:.4f}",
            f"{each.metrics['fp32']:.4f}",
            f"{each.metrics['int8']:.4f}",
            each.threshold,
            "" if ratio is None else f"{each.output}: {ratio:.1f}",
            f"{quantized.int8_operators} of {quantized.operators}",
            quantized.method,
            each.reason,
        )
    return shown


if __name__ == "__main__":
    sys.exit(main())
