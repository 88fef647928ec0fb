"""Runs the quick search of NVIDIA's Model Analyzer in the tritonserver-cpu image, whose server it starts.

Model Analyzer is not a dependency of the project: it is installed from PyPI into the cache when this runs.
"""

import csv
import json
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

from bench.search.candidate import MAX_BATCH_SIZE, Candidate
from hack.devcluster.paths import cache_home
from hack.imagebuild.pod import IN_IMAGE, ROOT, free_ports
from triton_converters.contract import layout
from triton_converters.contract.measurement_requests import Measurement, Sweep
from triton_converters.contract.results import Tuning
from triton_converters.search.space import MAXIMUM_INSTANCES

VERSION = "1.58.0"
HOME, PACKAGES = "/analyzer", "/packages"
"""Where the container sees its files and packages."""
START = "from model_analyzer.entrypoint import main; main()"


@dataclass(frozen=True)
class Found:
    """Its measurements and its result."""

    measurements: int
    configurations: int
    seconds: float
    """Seconds from its start to its end, reports included."""
    meets: bool
    """Whether the result keeps the constraint; otherwise it is the closest."""
    tuning: Tuning
    concurrency: int
    throughput: float
    p99_microseconds: float
    rows: list[dict[str, str]]
    """Its metrics-model-inference.csv."""


def search(
    candidate: Candidate, measurement: Measurement, online: Sweep, budget_milliseconds: int, home: Path
) -> Found:
    """Run its quick search over instances, largest batch and concurrency.

    Raises subprocess.CalledProcessError.
    """
    packages = installed()
    home.mkdir()
    shutil.copytree(candidate.repository, home / "models")
    config = configuration(candidate, measurement, online, budget_milliseconds)
    (home / "config.yaml").write_text(json.dumps(config, indent=1), encoding="utf-8")
    tool = shutil.which("perf_analyzer")
    assert tool, "perf_analyzer comes with the development environment"
    mounts = (
        f"{home}:{HOME}",
        f"{packages}:{PACKAGES}:ro",
        f"{candidate.root}:{layout.ROOT}:ro",
        f"{tool}:/tmp/pa:ro",
    )
    argv = [
        *IN_IMAGE, "tritonserver-cpu", *(word for mount in mounts for word in ("--mount", mount)),
        "--env", f"PYTHONPATH={PACKAGES}", "--env", f"MPLCONFIGDIR={HOME}",
        "--", "python3", "-c", START, "profile", "-f", f"{HOME}/config.yaml",
    ]  # fmt: skip
    started = time.monotonic()
    with (home / "log.txt").open("w") as log:
        subprocess.run(argv, cwd=ROOT, check=True, stdout=log, stderr=subprocess.STDOUT)
    seconds = time.monotonic() - started
    return _best(home, seconds)


def configuration(
    candidate: Candidate, measurement: Measurement, online: Sweep, budget_milliseconds: int
) -> dict[str, object]:
    """Return its configuration file, with the search's model, load, windows and constraint."""
    http, grpc, metrics = free_ports()
    by_count = measurement.mode == "CountWindows"
    flags = {
        "input-data": f"{layout.reference_directory(candidate.kind)}/perf.json",
        "measurement-mode": "count_windows" if by_count else "time_windows",
        "stability-percentage": measurement.stability_percentage,
    }
    flags |= (
        {"measurement-request-count": measurement.request_count}
        if by_count
        else {"measurement-interval": measurement.interval_milliseconds}
    )
    return {
        "model_repository": f"{HOME}/models",
        "output_model_repository_path": f"{HOME}/variants",
        "override_output_model_repository": True,
        "export_path": f"{HOME}/results",
        "checkpoint_directory": f"{HOME}/checkpoints",
        "profile_models": {
            candidate.kind: {
                "cpu_only": True,
                "objectives": ["perf_throughput"],
                "constraints": {"perf_latency_p99": {"max": budget_milliseconds}},
                "perf_analyzer_flags": flags,
            }
        },
        "run_config_search_mode": "quick",
        "run_config_search_max_instance_count": MAXIMUM_INSTANCES,
        "run_config_search_max_model_batch_size": MAX_BATCH_SIZE,
        "run_config_search_min_concurrency": min(online.concurrencies),
        "run_config_search_max_concurrency": max(online.concurrencies),
        "triton_launch_mode": "local",
        "triton_server_flags": {"backend-directory": "/opt/tritonserver/backends"},
        "triton_http_endpoint": f"localhost:{http}",
        "triton_grpc_endpoint": f"localhost:{grpc}",
        "triton_metrics_url": f"http://localhost:{metrics}/metrics",
        "triton_output_path": f"{HOME}/tritonserver.log",
        "client_protocol": "grpc",
        "gpus": [],
        "perf_analyzer_path": "/tmp/pa",  # noqa: S108 - inside the image
        # Its limit of 80 % is of one core; the client has as many threads as requests.
        "perf_analyzer_cpu_util": 10000,
    }


def installed() -> Path:
    """Return the folder of its packages for the image's Python; pip installs it if it is missing."""
    packages: Path = cache_home() / f"model-analyzer-{VERSION}"
    if not packages.is_dir():
        platforms = ("manylinux_2_40_x86_64", "manylinux_2_28_x86_64", "manylinux2014_x86_64", "any")
        temporary = packages.with_suffix(".partial")
        shutil.rmtree(temporary, ignore_errors=True)
        argv = [
            sys.executable, "-m", "pip", "install", "--quiet", "--target", str(temporary), "--python-version", "3.13",
            "--only-binary=:all:", *(word for platform in platforms for word in ("--platform", platform)),
            f"triton-model-analyzer=={VERSION}",
        ]  # fmt: skip
        subprocess.run(argv, check=True)
        temporary.rename(packages)
    return packages


def _best(home: Path, seconds: float) -> Found:
    with (home / "results/results/metrics-model-inference.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    passing = [row for row in rows if row["Satisfies Constraints"] == "Yes"]
    closest = min(rows, key=lambda row: float(row["p99 Latency (ms)"]))
    best = max(passing, key=lambda row: float(row["Throughput (infer/sec)"]), default=closest)
    return Found(
        meets=bool(passing),
        measurements=len(rows),
        configurations=len({row["Model Config Path"] for row in rows}),
        seconds=round(seconds, 1),
        tuning=_tuning(home / "variants" / best["Model Config Path"] / "config.pbtxt"),
        concurrency=int(best["Concurrency"]),
        throughput=float(best["Throughput (infer/sec)"]),
        p99_microseconds=1000 * float(best["p99 Latency (ms)"]),
        rows=rows,
    )


def _tuning(path: Path) -> Tuning:
    config = text_format.Parse(path.read_text(encoding="utf-8"), model_config_pb2.ModelConfig())
    return Tuning(
        max_batch_size=config.max_batch_size,
        instances=sum(group.count for group in config.instance_group) or 1,
        dynamic_batching=config.HasField("dynamic_batching"),
        preferred_batch_sizes=tuple(config.dynamic_batching.preferred_batch_size),
        max_queue_delay_microseconds=config.dynamic_batching.max_queue_delay_microseconds,
        cuda_graphs=False,
    )


def as_record(found: Found) -> dict[str, object]:
    """Return the result for the file of raw figures."""
    return asdict(found)
