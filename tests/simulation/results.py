"""What Jobs answer in the simulation, by stage; a candidate's figures depend on its name alone."""

from triton_converters.reasons import Reason
from triton_converters.result import (
    Accuracy,
    ConvertResult,
    Environment,
    MeasureResult,
    Outcome,
    ProfileResult,
    ReferenceResult,
    Row,
    Signature,
    SourceResult,
    Tensor,
)

THROUGHPUT = {"trace-fp32": 1000.0, "script-fp32": 900.0, "onnx-fp32": 2000.0, "onnx-fp16": 1500.0}
ENVIRONMENT = Environment("2.51.0", "cpu", "", "", "a CPU x2", ("perf_analyzer -m digits",))


def row(throughput: float, concurrency: int = 1, p99: int = 5000) -> Row:
    """A row of that throughput."""
    return Row(1, concurrency, throughput, 1, 1, 1, 1, 1, 1, 1, 100, 200, 300, p99, 100, True)


def answer(stage: str, key: str, candidate: str) -> str:
    """The termination message of a Job that succeeds."""
    throughput = THROUGHPUT.get(candidate, 500.0)
    results = {
        "source": SourceResult("d" * 64, 3, 1000),
        "reference": ReferenceResult(
            Signature((Tensor("INPUT__0", "FP32", (1, 8, 8)),), (Tensor("OUTPUT__0", "FP32", (10,)),), 32), 100, 4, 1.0
        ),
        "convert": ConvertResult("e" * 64, 1000, ("FP32",), 1.0, ()),
        "profile": ProfileResult(
            True,
            "Passed",
            "",
            1e-6,
            (Accuracy("accuracy", 0.98, 0.98, "minimum 0.95", True),),
            100,
            (row(throughput),),
            (row(throughput), row(throughput * 1.5, 2, 9000)),
            ENVIRONMENT,
        ),
        "measure": MeasureResult((row(throughput), row(throughput * 1.5, 2, 9000)), ENVIRONMENT),
    }
    return Outcome(stage, key, results[stage]).to_json()


def failure(stage: str, key: str, reason: Reason = Reason.USER_CODE_FAILED) -> str:
    """The termination message of a Job whose stage gave a reason."""
    return Outcome(stage, key, None, reason, f"{stage} failed as told").to_json()
