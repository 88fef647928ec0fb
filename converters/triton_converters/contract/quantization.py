"""How an INT8 graph is asked for, by which samples it is calibrated, and what it is like. Standard library only."""

from dataclasses import dataclass

GOLDEN_RATIO = 0.6180339887498949
"""Numbers whose products with it have the smallest fractions are spread evenly (the three-distance theorem)."""
METHODS = ("Static", "StaticProducts", "Dynamic")
"""Static: all operators that have INT8, calibrated. StaticProducts: Conv, MatMul and Gemm, calibrated. Dynamic: MatMul
and Gemm, whose inputs are measured at each request."""


@dataclass(frozen=True)
class Quantization:
    """How ONNX Runtime's quantizer makes an INT8 graph."""

    calibration_samples: int
    """Samples of the reference to calibrate by (``calibration``)."""
    excluded_operators: tuple[str, ...] = ()
    """Types of operators that stay in fp32, such as ``Softmax``."""


@dataclass(frozen=True)
class Quantized:
    """What an INT8 graph is like, on the processor of the Job that made it."""

    method: str
    """One of METHODS."""
    operators: int
    """Convolutions and matrix products in the graph that ONNX Runtime runs, after its own optimisation."""
    int8_operators: int
    """How many of these compute in INT8."""
    signal_to_noise: float | None
    """Ratio of the worst floating point output, over samples that did not calibrate the graph, in dB; None: there is no
    such output."""
    speedup: float
    """Time of the fp32 graph, divided by its own."""
    calibration_samples: int
    """Samples that calibrated it; 0: the method needs none."""

    def words(self) -> str:
        """Return all of it in one line."""
        ratio = "" if self.signal_to_noise is None else f", {self.signal_to_noise:.1f} dB"
        return (
            f"{self.int8_operators} of {self.operators} convolutions and matrix products run in INT8 ({self.method},"
            f" {self.calibration_samples} calibration samples), {self.speedup:.2f} times as fast as fp32{ratio}"
        )


def calibration(samples: int, asked: int) -> frozenset[int]:
    """Return the numbers of the samples, from 0, by which an INT8 candidate is calibrated.

    Those of a smaller number are among those of a larger. ``samples``: how many the reference holds; without a batch
    dimension, requests. ``asked``: how many are to calibrate; half of them at most do, because metrics are computed of
    the others. Empty: none was asked for, or there is one.
    """
    order = sorted(range(samples), key=lambda number: number * GOLDEN_RATIO % 1.0)
    return frozenset(order[: min(asked, samples // 2)])


def judged_samples(samples: int, asked: int) -> int:
    """Return how many samples metrics are computed of. ``asked``: as of `calibration`; 0: nothing is calibrated."""
    return samples - len(calibration(samples, asked))
