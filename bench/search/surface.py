"""`python3 -m bench.search.surface KIND`: measure every point of a small space with the search's stage.

The measurements go to tests/search/surfaces/KIND.csv.gz, where tests replay searches on them. It takes a quarter of an
hour on a quiet machine.
"""

import csv
import gzip
import io
import json
import sys
import tempfile
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from bench.machine import cpu_model
from bench.search.candidate import BASE, prepare
from hack.imagebuild.pod import ROOT, explicit, serving
from triton_converters.contract.measurement_requests import Measurement, Sweep
from triton_converters.contract.results import Row, SearchPoint

SURFACES = ROOT / "tests/search/surfaces"
MEASUREMENT = Measurement("TimeWindows", 50, 300, 50)
"""Three windows of a third of a second: hundreds of points in minutes."""
INSTANCES = 2
CONCURRENCIES = {"pictures": (1, 4, 16), "table": (4, 16), "sentences": (1, 4, 16)}


def main(kind: str) -> int:
    """Record one surface; return the exit status."""
    online = Sweep((1,), CONCURRENCIES[kind], False)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        candidate = prepare(root, kind)
        with serving(root, kind, explicit(kind)) as pod:
            profile = candidate.profile(pod, MEASUREMENT, online)
            results = candidate.search(
                pod, MEASUREMENT, online, mode="Exhaustive", maximum_instances=INSTANCES, objectives=(),
                constraints=(), measurements=10**6, seconds=10**6,
            )  # fmt: skip
    points = [SearchPoint(BASE, row) for row in profile.online] + [point for part in results for point in part.points]
    about = {
        "measuredAt": datetime.now(UTC).isoformat(timespec="seconds"),
        "model": kind,
        "measurement": asdict(MEASUREMENT),
        "maximumInstances": INSTANCES,
        "seconds": round(results[-1].seconds),
        "environment": asdict(results[-1].environment) | {"cpu": cpu_model()},
    }
    SURFACES.mkdir(exist_ok=True)
    (SURFACES / f"{kind}.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    # Without a time stamp, so that the same measurements give the same file.
    (SURFACES / f"{kind}.csv.gz").write_bytes(gzip.compress(table(points).encode(), mtime=0))
    print(f"{len(points)} points in {results[-1].seconds:.0f} s")
    return 0


def table(points: list[SearchPoint]) -> str:
    """Return one line for each point: the configuration, then the measurement."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*asdict(BASE), *Row.__dataclass_fields__])
    for point in points:
        if point.row is not None:
            tuning = asdict(point.tuning) | {
                "preferred_batch_sizes": " ".join(map(str, point.tuning.preferred_batch_sizes))
            }
            writer.writerow([*tuning.values(), *asdict(point.row).values()])
    return text.getvalue()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
