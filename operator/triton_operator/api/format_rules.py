"""CEL rules from the registry of formats, so that the API server accepts exactly what the converters can do.

Each rule is a pair of expression and message; the message names what works.
"""

from collections.abc import Iterable, Mapping

from triton_converters.contract.backend_parameters import THREADS
from triton_converters.contract.formats import (
    AS_GIVEN,
    DECLARING,
    ENSEMBLE,
    FORMATS,
    HPS,
    REPOSITORY,
    SOURCE_FORMATS,
    TRITON_PYTHON,
)
from triton_converters.contract.layout import UNPUBLISHED
from triton_operator.api.schema import cel_list

CelRule = tuple[str, str]
MODELS = {name: source for name, source in SOURCE_FORMATS.items() if name != ENSEMBLE}
"""The values of spec.models[].format."""
NEEDING_GPU = tuple(name for name, form in FORMATS.items() if form.needs_gpu)
"""Formats that are built for one GPU product and served only on it."""
HAS_GPU = "(has(self.gpu) && (!has(self.gpu.count) || self.gpu.count > 0))"
"""CEL expression on a spec: whether it asks for GPUs."""


def _or(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


NO_INPUTS = (
    f"inputs can be generated only for a single model of format {_or(DECLARING)}, which declares them:"
    " set spec.dataloader"
)
"""Said of a spec without a dataloader."""
MIXED = "one image converts all models of an ensemble: use TensorFlow for all of them or for none"
"""Said of an ensemble."""

NOT_ONNX = "precision int8 is made by ONNX Runtime's quantizer: set format onnx"
UNJUDGED = "precision int8 is judged by your metric: set spec.metrics and at least one of accuracy.thresholds"
ON_GPU = "precision int8 gains nothing on a GPU: remove the candidate, or spec.gpu"
"""Said of candidates that cannot be quantized."""


MOUNTS = ("$(DATASET)", "$(WEIGHTS)")
"""What stands for a mount in arguments."""


OF_TRITON = ("EXECUTION_ENV_PATH", "FORCE_CPU_ONLY_INPUT_TENSORS", "TRITON_BATCH_STRATEGY_PATH", *THREADS["python"])
"""Parameters of config.pbtxt that are no argument of a Python step: its interpreter, its devices, a library that the
server itself would load, and its threads."""
NO_MOUNTS = (
    f"arguments of format {TRITON_PYTHON} are read inside the server, which has neither $(DATASET) nor $(WEIGHTS): put"
    " what the step reads into the folder of its file"
)
NOT_OF_TRITON = (
    f"arguments of format {TRITON_PYTHON} must not have {_or(OF_TRITON)}, which Triton or the operator reads: rename"
    " the argument"
)
NO_BYTECODE = (
    f"the file of format {TRITON_PYTHON} is in a folder {UNPUBLISHED}, of which no server gets anything: move the file"
)
"""Said of Python steps."""


def accelerator_rules() -> list[CelRule]:
    """Return the rules of a candidate: its format takes its accelerator."""
    return [
        (
            f"self.format != '{name}' || !has(self.accelerator) || self.accelerator in {cel_list(form.accelerators)}",
            f"format {name} does not support this accelerator: set {_or(form.accelerators)}",
        )
        for name, form in FORMATS.items()
        if name not in AS_GIVEN
    ]


def int8_rules() -> list[CelRule]:
    """Return the rules of a candidate: only an ONNX graph is quantized, and for the CPU."""
    return [
        (
            "self.precision != 'int8' || self.format == 'onnx'",
            NOT_ONNX,
        ),
        (
            "self.precision != 'int8' || !has(self.accelerator) || self.accelerator == 'none'",
            "precision int8 runs on the CPU: remove accelerator",
        ),
        (
            "self.precision == 'int8' || !has(self.quantization)",
            "quantization applies only to precision int8: remove it, or set precision int8",
        ),
    ]


def quantized_rules() -> list[CelRule]:
    """Return the rules of a spec whose candidates are quantized: a metric judges them, and servers have no GPU."""
    none = "!self.models.exists(m, has(m.candidates) && m.candidates.exists(c, c.precision == 'int8'))"
    return [
        (
            f"(has(self.accuracy) && has(self.accuracy.thresholds) && self.accuracy.thresholds.size() > 0) || {none}",
            UNJUDGED,
        ),
        (f"!{HAS_GPU} || {none}", ON_GPU),
    ]


def conversion_rules() -> list[CelRule]:
    """Return the rules of a model: every candidate's format can be made from the model's format.

    What the file of a repository can become is judged once its format is found.
    """
    return [
        (
            f"!has(self.format) || self.format != '{name}' || !has(self.candidates)"
            f" || self.candidates.all(c, c.format in {cel_list(source.converters)})",
            f"a model of format {name} can be converted only to {_or(source.converters)}:"
            " correct its candidates' format",
        )
        for name, source in MODELS.items()
        if name not in (*AS_GIVEN, REPOSITORY)
    ]


def hps_rules() -> list[CelRule]:
    """Return the rules of a model: only embedding tables have options of HPS, and they take no candidates."""
    return [
        _no_candidates_rule(HPS),
        (
            f"(has(self.format) && self.format == '{HPS}') || !has(self.hps)",
            f"the options hps apply only to format {HPS}: remove hps",
        ),
    ]


def step_rules() -> list[CelRule]:
    """Return the rules of a model: only a Python step declares its tensors, and it takes no candidates.

    A server mounts neither the dataset nor the weights, so the step's arguments name neither.
    """
    is_step = f"(has(self.format) && self.format == '{TRITON_PYTHON}')"
    return [
        _no_candidates_rule(TRITON_PYTHON),
        (
            f"{is_step} || (!has(self.inputs) && !has(self.outputs))",
            f"inputs and outputs are declared only for format {TRITON_PYTHON}: remove them",
        ),
        (
            "has(self.inputs) == has(self.outputs)",
            "inputs and outputs are declared together: set both, or none",
        ),
        (
            f"!{is_step} || !has(self.arguments)"
            f" || self.arguments.all(k, !{cel_list(MOUNTS)}.exists(p, self.arguments[k].contains(p)))",
            NO_MOUNTS,
        ),
        (
            f"!{is_step} || !has(self.arguments) || self.arguments.all(k, !(k in {cel_list(OF_TRITON)}))",
            NOT_OF_TRITON,
        ),
        (
            f"!{is_step} || !has(self.entrypoint) || !self.entrypoint.matches('(^|/){UNPUBLISHED}/')",
            NO_BYTECODE,
        ),
        (
            f"{is_step} || !has(self.calls) || self.calls.size() == 0",
            f"calls are of code of format {TRITON_PYTHON}, which can ask other models: remove calls",
        ),
        (
            f"{is_step} || !has(self.requirements) || self.requirements == ''",
            f"requirements of a model are only for format {TRITON_PYTHON}: set conversion.requirements, and remove it",
        ),
        (
            f"{is_step} || (!has(self.mountPath) && !has(self.scratchPaths))",
            f"mountPath and scratchPaths are for code of format {TRITON_PYTHON}: remove them",
        ),
    ]


def requirements_rules() -> list[CelRule]:
    """Return the rules of a spec: the packages of steps fit the server of the installation, and an index serves some.

    pip reaches the network, so it runs in images of the installation alone.
    """
    some = "self.models.exists(m, has(m.requirements) && m.requirements != '')"
    return [
        (
            f"!has(self.serving) || !has(self.serving.image) || self.serving.image == '' || !{some}",
            "requirements of a model are installed for the installation's own server image: remove serving.image, or"
            " put Python modules into the folder of the step's file, and remove requirements",
        ),
        (
            "!has(self.conversion) || !has(self.conversion.indexSecretRef) || has(self.conversion.requirements)"
            f" || {some}",
            "indexSecretRef is only for the packages of requirements: set requirements, or remove it",
        ),
    ]


def step_faults(entrypoint: str, arguments: Mapping[str, str]) -> list[str]:
    """Return what ``step_rules`` say of a step's file and arguments, for objects that no API server has seen."""
    broken = {
        NO_MOUNTS: any(mount in value for value in arguments.values() for mount in MOUNTS),
        NOT_OF_TRITON: any(name in OF_TRITON for name in arguments),
        NO_BYTECODE: UNPUBLISHED in entrypoint.split("/")[:-1],
    }
    return [words for words, is_broken in broken.items() if is_broken]


def _no_candidates_rule(form: str) -> CelRule:
    return (
        f"!has(self.format) || self.format != '{form}' || !has(self.candidates) || self.candidates.size() == 0",
        f"format {form} takes no candidates: remove them",
    )


def image_rule() -> CelRule:
    """Return the rule of a spec that one image can run all models of an ensemble."""
    tensorflow = cel_list(name for name, source in MODELS.items() if source.is_tensorflow)
    others = cel_list((*AS_GIVEN, REPOSITORY))
    return (
        f"self.models.all(m, !has(m.format) || m.format in {tensorflow} || m.format in {others})"
        f" || !self.models.exists(m, has(m.format) && m.format in {tensorflow})",
        MIXED,
    )


def inputs_rule() -> CelRule:
    """Return the rule of a spec that inputs are known: a dataloader yields them, or the model's graph declares them."""
    return (
        "has(self.dataloader) || (!has(self.ensemble)"
        f" && self.models.all(m, !has(m.format) || m.format in {cel_list(DECLARING)}))",
        NO_INPUTS,
    )


def entrypoint_rules() -> list[CelRule]:
    """Return the rules of a model: it is a Python file with arguments, or a path."""
    code = [name for name, source in MODELS.items() if not source.is_file]
    files = [name for name, source in MODELS.items() if source.is_file]
    return [
        (
            "has(self.format) || (has(self.path) && !has(self.entrypoint) && !has(self.arguments))",
            "the format may be left out only for a file or directory in the source: set format, or set path alone",
        ),
        (
            f"!has(self.format) || !(self.format in {cel_list(code)}) || (has(self.entrypoint) && !has(self.path))",
            f"a model of format {_or(code)} is a Python file: set entrypoint, and remove path",
        ),
        (
            f"!has(self.format) || !(self.format in {cel_list(files)})"
            " || (has(self.path) && !has(self.entrypoint) && !has(self.arguments))",
            f"a model of format {_or(files)} is a file or directory in the source:"
            " set path, and remove entrypoint and arguments",
        ),
    ]


def product_rule() -> CelRule:
    """Return the rule of a spec with GPUs: whatever is built for one product needs its name."""
    bound = f"c.format in {cel_list(NEEDING_GPU)} || (has(c.accelerator) && c.accelerator == 'trt')"
    return (
        f"!{HAS_GPU} || (has(self.gpu.product) && self.gpu.product != '')"
        f" || !self.models.exists(m, has(m.candidates) && m.candidates.exists(c, {bound}))",
        f"formats {' and '.join(NEEDING_GPU)} and accelerator trt need engines for one GPU product:"
        " set spec.gpu.product",
    )
