"""INT8 from an fp32 ONNX graph by ONNX Runtime's quantizer, if that gains something.

No one way to quantize is right for all models: of all operators it is fast for a network of convolutions, and breaks a
transformer. So several are tried, and the fastest graph is kept that is close enough to fp32 and faster. Which that is
depends on the processor, and so does whether there is any.
"""

import contextlib
import math
import tempfile
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

from triton_converters.claim_store.dump import Array, Arrays, Batch, read_all, read_batches, select
from triton_converters.claim_store.origins import origins
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import ConvertRequest, Entrypoint, ModelCode
from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import FORMATS
from triton_converters.contract.measurement_requests import DEFAULT_TOLERANCES
from triton_converters.contract.quantization import Quantization, Quantized, calibration
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature
from triton_converters.convert import onnx_apart, onnx_exclusion, onnx_graph
from triton_converters.gates.agreement import LEAST_SIGNAL_TO_NOISE
from triton_converters.gates.answers import Answers, Infer, collect, scales_of
from triton_converters.gates.outputs import check_outputs
from triton_converters.gates.precision import weight_data_types
from triton_converters.gates.samples import Sample, cut, join
from triton_converters.gates.scale import Scale
from triton_converters.graph.quantized import is_int8_product, is_product, is_quantized, operators
from triton_converters.load import framework
from triton_converters.load.framework import Framework
from triton_converters.load.onnx_session import ONLY_FATAL, apart, session_options
from triton_converters.model_config import shapes

OPSET = 13
"""The first operator set whose QuantizeLinear has a scale for each channel."""
PRODUCTS = ("Conv", "MatMul", "Gemm")
TOLERANCE = DEFAULT_TOLERANCES["int8"]
DYNAMIC = ("MatMul", "Gemm")
"""What the quantizer makes faster with ranges that are measured at each request; of convolutions it makes slow ones."""
JUDGED = 32
"""Most samples that the tries are compared on in the Job. The gates compare all."""
TIMED_BATCH = 8
"""Most samples in the request that is timed."""
ROUNDS, SECONDS = 30, 1.0
"""Most runs of each graph that are timed, and most time that each takes, but for MINIMUM_ROUNDS."""
MINIMUM_ROUNDS = 3
NAMED_OPERATORS = 20
"""Most types of operators that a message names."""
SPEEDUP = 1.05
"""The least gain that counts: two timings of one graph differ by some per cent."""
REFUSED_CHARACTERS = 200
"""Most of what is told of a graph that does not pass: the message has three of them."""


@dataclass(frozen=True)
class Method:
    """One way to quantize."""

    name: str
    """A value of quantization.METHODS."""
    words: str
    operators: tuple[str, ...] = ()
    """Types of operators; empty: all that the quantizer knows."""

    @property
    def is_static(self) -> bool:
        """Whether the method needs calibration."""
        return self.name != "Dynamic"


METHODS = (
    Method("Static", "static of all operators"),
    Method("StaticProducts", "static of Conv, MatMul and Gemm", PRODUCTS),
    Method("Dynamic", "dynamic of MatMul and Gemm", DYNAMIC),
)


@dataclass(frozen=True)
class _Data:
    """The samples of the reference."""

    home: Path
    signature: Signature
    calibrating: Collection[int]
    """Numbers of the samples that calibrate."""
    judged: tuple[Batch, ...]
    """Some that do not."""

    @property
    def batched(self) -> bool:
        return self.signature.max_batch_size > 0

    def calibration_inputs(self) -> Iterator[dict[str, Array]]:
        """Yield the inputs of one sample at a time: the quantizer keeps what it sees of a request in memory."""
        chosen = select(read_batches(self.home), self.batched, self.calibrating.__contains__)
        for sample in cut(chosen, self.batched):
            yield _request([sample], self.batched)


@dataclass(frozen=True)
class _Try:
    """A graph that was made, and how it does."""

    method: Method
    path: Path
    answers: Answers | None
    """What it answered; None: it does not run."""
    refused: str
    """Why the answers do not pass the gate; empty: they pass."""


def quantize(request: ConvertRequest, signature: Signature, directory: Path) -> Quantized:
    """Replace model.onnx in ``directory`` by the fastest INT8 graph that is close enough to it and faster.

    Raises StageError: ConversionUnsupported (no fp32 graph, an operator set that cannot be raised, too large for the
    quantizer, or too few samples), GainsNothing.
    """
    assert request.quantization is not None
    path = directory / FORMATS["onnx"].file
    _check(path, request.quantization)
    data = _data(request, request.quantization, signature)
    with tempfile.TemporaryDirectory(prefix="int8-") as folder, contextlib.chdir(folder):
        prepared = _prepared(path, Path(folder))
        kept = _name_kept(path, prepared, request.quantization)
        names = _apart(prepared)
        scales = scales_of(read_all(data.home), data.batched, TOLERANCE, "int8")
        tries, failed = [], []
        for method in METHODS:
            try:
                made = _made(method, request.quantization, prepared, kept, data, names)
            except Exception as error:
                traceback.print_exc()
                failed.append(f"{method.words}: the quantizer failed: {type(error).__name__}: {error!s:.100}")
            else:
                tries += [_judged(method, made, data, scales)] if made is not None else []
        return _best(path, tries, failed, data, request.quantization)


def _check(path: Path, asked: Quantization) -> None:
    """Refuse what is no fp32 graph, or too large, and operators that there are not."""
    model = onnx_graph.load(path)
    if misspelt := onnx_exclusion.unknown(model, asked.excluded_operators):
        raise _unsupported(
            f"quantization.excludedOperators has {', '.join(misspelt)}, which is no operator of ONNX: correct it; the"
            f" graph has {', '.join(sorted({*operators(model)})[:NAMED_OPERATORS])}"
        )
    if found := sorted({each for each in operators(model) if is_quantized(each)}):
        raise _unsupported(
            f"the graph is quantized already ({', '.join(found[:3])}): set precision to fp32, to serve it as it is"
        )
    types = weight_data_types(path, "onnx")
    if types and types[0] != "FP32":
        raise _unsupported(f"most weights of the graph are {types[0]}, and INT8 is made of fp32: use a graph in fp32")
    if onnx_graph.weight_bytes(model) > onnx_graph.INLINE_BYTES:
        raise _unsupported("the graph has more than 1.5 GiB of weights, which the quantizer does not take")


def _data(request: ConvertRequest, asked: Quantization, signature: Signature) -> _Data:
    home = layout.reference_directory(request.reference)
    batched = signature.max_batch_size > 0
    samples, made_of = origins(request.reference, batched)
    left_out = calibration(samples, asked.calibration_samples)
    if not left_out:
        raise _unsupported("the dataloader yields one sample, and calibration needs another: let it yield more")
    own = [number for number, those in enumerate(made_of) if left_out.issuperset(those)]
    others = [number for number, those in enumerate(made_of) if left_out.isdisjoint(those)]
    if not own or not others:
        raise _unsupported(
            f"of the {len(made_of)} samples that the reference keeps of a model of an ensemble, {len(own)} calibrate"
            f" and {len(others)} judge, and both are needed: raise quantization.calibrationSamples, or let the"
            " dataloader yield more batches, or larger ones"
        )
    calibrating = frozenset(own[:: math.ceil(len(own) / asked.calibration_samples)])
    chosen = set(others[:: math.ceil(len(others) / JUDGED)])
    judged = tuple(select(read_batches(home), batched, chosen.__contains__))
    return _Data(home, signature, calibrating, judged)


def _prepared(path: Path, folder: Path) -> Path:
    """Return the graph with its shapes inferred and its nodes fused, as the quantizer needs it.

    Symbolic inference of shapes raises for some graphs that run, and the image for TensorFlow lacks what it imports.
    Without it, fewer operators are quantized.
    """
    raised = folder / "raised.onnx"
    model = onnx_graph.load(path)
    onnx_graph.save(model, raised)
    if onnx_graph.opset_of(model) < OPSET:
        onnx_graph.convert_file(raised, OPSET, f"INT8 needs opset {OPSET}, and the graph has")
    prepared = folder / "prepared.onnx"
    for skip in (False, True):
        try:
            from onnxruntime.quantization.shape_inference import quant_pre_process

            quant_pre_process(str(raised), str(prepared), skip_symbolic_shape=skip)
        except Exception:
            traceback.print_exc()
        else:
            return prepared
    onnx_graph.optimise(raised)
    return raised


def _name_kept(path: Path, prepared: Path, asked: Quantization) -> list[str]:
    """Return the names of what stays in fp32 in the prepared graph, whose nodes get names; ``path``: the fp32 graph."""
    model = onnx_graph.load(prepared)
    kept = onnx_exclusion.name_kept(onnx_graph.load(path), model, asked.excluded_operators)
    onnx_graph.save(model, prepared)
    return kept


def _apart(prepared: Path) -> dict[str, str]:
    """Give tensors other names where the quantizer would make theirs; returns the new names by the old."""
    model = onnx_graph.load(prepared)
    if changed := onnx_apart.apart(model):
        onnx_graph.save(model, prepared)
    return changed


def _made(
    method: Method,
    asked: Quantization,
    prepared: Path,
    kept: Sequence[str],
    data: _Data,
    names: Mapping[str, str],
) -> Path | None:
    """Return the path of the quantized graph, but for the nodes ``kept``; None: the method quantizes nothing in it.

    ``names``: those of the prepared graph's tensors by those that the graph had; empty: they are its own.
    """
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_dynamic, quantize_static
    from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry

    known = method.operators or sorted({*QDQRegistry, *QLinearOpsRegistry})
    types = onnx_exclusion.types(known, asked.excluded_operators)
    if not {*types} & {*operators(onnx_graph.load(prepared))}:
        return None
    path = prepared.with_name(f"{method.name}.onnx")
    common = {"op_types_to_quantize": types, "nodes_to_exclude": list(kept), "per_channel": True}
    common |= {"weight_type": QuantType.QInt8}
    if method.is_static:
        quantize_static(
            str(prepared),
            str(path),
            _Reader(data.calibration_inputs, names),
            quant_format=QuantFormat.QDQ,
            # With signed activations, ONNX Runtime's kernels of x86 are slower than fp32.
            activation_type=QuantType.QUInt8,
            **common,
        )
    else:
        quantize_dynamic(str(prepared), str(path), **common)
    made = onnx_graph.load(path)
    if names:
        onnx_apart.restore(made, names)
        onnx_graph.save(made, path)
    return path if any(map(is_quantized, operators(made))) else None


class _Reader:
    """ONNX Runtime's CalibrationDataReader: the next sample's inputs by name, and None after the last."""

    def __init__(self, inputs: Callable[[], Iterator[dict[str, Array]]], names: Mapping[str, str]) -> None:
        self._inputs = inputs()
        self._names = names

    def get_next(self) -> dict[str, Array] | None:
        """Return the next sample's inputs by name; None: there is no more."""
        found = next(self._inputs, None)
        return found and {self._names.get(name, name): array for name, array in found.items()}


def _judged(method: Method, path: Path, data: _Data, scales: Mapping[str, Scale]) -> _Try:
    """Ask the graph for what the framework answered, and judge it as the gate will; ``scales``: the reference's."""
    answers = None
    try:
        runtime = _opened(path, data.signature)
        answers = collect(_infer(runtime, data.signature), data.judged, data.signature, TOLERANCE, scales)
        check_outputs(answers, "int8", TOLERANCE)
    except StageError as error:
        return _Try(method, path, answers, error.message)
    return _Try(method, path, answers, "")


def _opened(path: Path, signature: Signature) -> Framework:
    code = ModelCode("onnx", Entrypoint(path.name, {}), signature.max_batch_size)
    return framework.load(path.parent, code, "onnx")


def _infer(runtime: Framework, signature: Signature) -> Infer:
    """Return what asks the graph: its tensors have the model's own shapes."""
    skipped = 1 if signature.max_batch_size else 0

    def infer(inputs: Arrays, outputs: tuple[str, ...]) -> dict[str, Array]:
        given = {}
        for tensor in signature.inputs:
            array = inputs[tensor.name]
            given[tensor.name] = array.reshape(array.shape[:skipped] + shapes.own(tensor, array.shape[skipped:]))
        return {name: array for name, array in runtime(given).items() if name in outputs}

    return infer


def _best(path: Path, tries: Sequence[_Try], failed: Sequence[str], data: _Data, asked: Quantization) -> Quantized:
    """Keep the fastest graph that passes and is faster; raises StageError(GainsNothing) if none does."""
    passing = [each for each in tries if not each.refused]
    single, *times = _milliseconds([path, *(each.path for each in passing)], data) if passing else (0.0,)
    speedups = {each.method: single / took for each, took in zip(passing, times, strict=True)}
    best = max(passing, key=lambda each: speedups[each.method], default=None)
    if best is None or speedups[best.method] < SPEEDUP:
        words = [f"{each.method.words}: {_verdict(each, speedups.get(each.method))}" for each in tries]
        but = " and that quantization.excludedOperators leaves" if asked.excluded_operators else ""
        told = "; ".join([*words, *failed]) or f"the graph has no operator that the quantizer knows{but}"
        raise StageError(
            Reason.GAINS_NOTHING,
            f"INT8 gains nothing for this model on this processor: {told}. Remove the candidate, or leave out"
            " operators by quantization.excludedOperators",
        )
    assert best.answers is not None
    int8, others = _products(best.path)
    onnx_graph.save(onnx_graph.load(best.path), path)
    onnx_graph.declare_output_sizes(path)
    onnx_graph.check_signature(onnx.load(str(path), load_external_data=False), data.signature, 0)
    return Quantized(
        method=best.method.name,
        operators=int8 + others,
        int8_operators=int8,
        signal_to_noise=best.answers.signal_to_noise,
        speedup=round(speedups[best.method], 2),
        calibration_samples=len(data.calibrating) if best.method.is_static else 0,
    )


def _verdict(one: _Try, speedup: float | None) -> str:
    if speedup is not None:
        return f"{speedup:.2f} times as fast as fp32"
    ratio = one.answers.signal_to_noise if one.answers else None
    # An output may be close enough as a whole and fail all the same, such as one that no longer varies.
    is_noisy = ratio is not None and ratio < LEAST_SIGNAL_TO_NOISE
    return f"{ratio:.0f} dB, and {LEAST_SIGNAL_TO_NOISE:g} are needed" if is_noisy else one.refused[:REFUSED_CHARACTERS]


def _milliseconds(paths: Sequence[Path], data: _Data) -> list[float]:
    """Return the least time of each graph for one request. They take turns, so that what disturbs one disturbs all."""
    runtimes = [_opened(path, data.signature) for path in paths]
    first, *others = cut(data.judged, data.batched)
    group = [first, *(each for each in others if each.shapes == first.shapes)]
    largest = min(TIMED_BATCH, max(1, data.signature.max_batch_size))
    inputs = _request(group[:largest], data.batched)
    for runtime in runtimes:
        runtime(inputs)
    least = [math.inf] * len(runtimes)
    spent = 0.0
    for number in range(ROUNDS):
        if number >= MINIMUM_ROUNDS and spent > SECONDS * len(runtimes):
            break
        for index, runtime in enumerate(runtimes):
            started = time.perf_counter()
            runtime(inputs)
            took = time.perf_counter() - started
            least[index] = min(least[index], took)
            spent += took
    return [1000 * each for each in least]


def _request(samples: Sequence[Sample], batched: bool) -> dict[str, Array]:
    """Return the inputs of one request."""
    return {name: join([each.inputs[name] for each in samples], batched) for name in samples[0].inputs}


def _products(path: Path) -> tuple[int, int]:
    """Return how many convolutions and matrix products run in INT8, and how many do not, in ONNX Runtime's own graph.

    The file alone does not tell: a pair of QuantizeLinear and DequantizeLinear that nothing fuses computes in fp32.
    """
    optimised = path.with_name("optimised.onnx")
    apart(_write_own, path, optimised)
    found = list(operators(onnx.load(str(optimised), load_external_data=False)))
    return sum(map(is_int8_product, found)), sum(map(is_product, found))


def _write_own(path: Path, optimised: Path) -> None:
    import onnxruntime

    options = session_options(ONLY_FATAL)
    options.optimized_model_filepath = str(optimised)
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _unsupported(message: str) -> StageError:
    return StageError(Reason.CONVERSION_UNSUPPORTED, message)
