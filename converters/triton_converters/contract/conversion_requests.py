"""The requests to the Jobs that lead from the user's files to a revision: source, packages, reference, convert.

A request is one JSON document, the container's only argument after the stage's name. Shared by the Jobs and the
controller; standard library only. ``key`` names the result: it is a hash of everything that can change the result, so a
Job that finds a valid result with its key on the claim replays it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from triton_converters.contract.document import Document
from triton_converters.contract.formats import SOURCE_FORMATS
from triton_converters.contract.quantization import Quantization
from triton_converters.contract.results import Signature, Tensor

DEFAULT_OPSET = 17
"""The ONNX operator set of candidates that name none: ONNX Runtime 1.12, TensorRT 8.6 and later versions support it."""


@dataclass(frozen=True)
class Entrypoint:
    """A user's Python file and the arguments of its function or class; or a model's own file, without arguments.

    ``path`` is relative to the source's directory; ``$(DATASET)`` and ``$(WEIGHTS)`` in a value are
    already replaced by the mount paths.
    """

    path: str
    arguments: Mapping[str, str]


@dataclass(frozen=True)
class SourceRequest(Document):
    """Publish ``path`` below SOURCE_MOUNT (empty: all of it), or what is downloaded, as ``sources/<digest>/``."""

    key: str
    uri: str
    path: str
    sha256: str
    """Expected digest, 64 hexadecimal digits, or empty."""
    models: tuple[str, ...] = ()
    """Paths below the source of models whose format the spec leaves out; it is found by their content."""
    revision: str = ""
    """Branch, tag or commit of a repository, or alias or number of a registered model's version; empty: the main
    branch, or the scheme has none."""
    version: str = ""
    """The ``LookResult.version`` that alone is published; empty: whatever the server has."""
    include: tuple[str, ...] = ()
    """Patterns of the files' paths, of which one must match (``fnmatch``); empty: all files."""
    paths: tuple[str, ...] = ()
    """Paths of models whose folders alone are taken, of a file the folder that it lies in; empty, or if one of
    them lies at the root: all that is included."""
    graphs: tuple[str, ...] = ()
    """Paths below the source of models whose largest batch the spec leaves out; their content shows whether they have a
    batch dimension."""
    requirements: str = ""
    """Path below the source of the requirements file, whose SHA-256 is answered; empty: the spec names none."""
    step_requirements: tuple[str, ...] = ()
    """Paths below the source of the other requirements files, of Python steps; their SHA-256 are answered too."""
    field: str = "spec.source"
    """The field of the spec with the URI, which messages name."""
    files_key: str = ""
    """A hash of what decides the files, and of nothing that is only asked about them."""
    published: str = ""
    """Digest under which an earlier Job of the same files has published them: no URI is read; empty: none has."""
    resolved: str = ""
    """What that Job answered as ``resolved``."""

    @property
    def files(self) -> tuple[str, ...]:
        """Paths below the source of single files that are taken besides the models' folders."""
        return tuple(filter(None, (self.requirements, *self.step_requirements)))


@dataclass(frozen=True)
class RequirementsFile:
    """A requirements file of the source."""

    path: str
    """Relative to the source's directory."""
    sha256: str
    """SHA-256 of its content, as 64 hexadecimal digits."""


@dataclass(frozen=True)
class PackagesRequest(Document):
    """Install the Python packages that requirements files of the source name and this image lacks."""

    key: str
    source: str
    """Digest of the source."""
    path: str
    """Path of the requirements file below the source."""
    sha256: str
    """SHA-256 of the requirements file, as 64 hexadecimal digits."""
    others: tuple[RequirementsFile, ...] = ()
    """Further files, whose packages are installed together with those of the first one."""
    served: bool = False
    """Whether a Python step imports the packages inside the server, in whose image pip runs. Of that image's own
    packages, a step sees NumPy alone."""

    @property
    def files(self) -> tuple[RequirementsFile, ...]:
        """All requirements files."""
        return (RequirementsFile(self.path, self.sha256), *self.others)


@dataclass(frozen=True)
class ModelCode:
    """The model as the user gives it."""

    format: str
    """A key of ``formats.SOURCE_FORMATS``."""
    entrypoint: Entrypoint
    """The file with ``get_model``; for a format that is a file, the model's own file or directory."""
    max_batch_size: int
    """Samples; 0: the model has no batch dimension."""
    ensemble: "EnsembleCode | None" = None
    """The models of an ensemble (format ``ensemble``), whose own entrypoint is empty."""
    declared: Signature | None = None
    """The inputs and outputs that the spec or the user's config.pbtxt declares; None: neither declares any."""
    name: str = ""
    """The model's name in Triton, which only code of format ``triton-python`` is told; empty: another format."""
    calls: tuple[str, ...] = ()
    """Names in Triton of the models of the ensemble that code of format ``triton-python`` asks by itself."""
    mount_path: str = ""
    """The absolute path at which code of format ``triton-python`` finds the folder of its file too; empty: at none."""
    scratch_paths: tuple[str, ...] = ()
    """The absolute paths at which code of format ``triton-python`` finds directories that it may write to."""

    @property
    def parts(self) -> "tuple[ModelCode, ...]":
        """The models of an ensemble, or the model itself."""
        return tuple(each.code for each in self.ensemble.models) if self.ensemble else (self,)


@dataclass(frozen=True)
class Step:
    """A model of an ensemble and how its tensors are connected."""

    model: str
    """The model's name in Triton."""
    inputs: Mapping[str, str]
    """Maps the model's inputs to the ensemble's tensors."""
    outputs: Mapping[str, str]
    """Maps the model's outputs that are used to the ensemble's tensors."""
    code: ModelCode


MOST_ASKED = 16
"""The most requests of Python steps to another model that are kept as its reference."""


@dataclass(frozen=True)
class EnsembleCode:
    """Models that answer a request together, each as the user gives it."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    steps: tuple[Step, ...]
    """The steps in data-flow order: a step's inputs are the ensemble's or come from earlier steps."""
    called: tuple[Step, ...] = ()
    """The models that are no step, which Python steps ask; their tensors are connected to none of the ensemble's."""

    @property
    def models(self) -> tuple[Step, ...]:
        """The steps, and then the models that are none."""
        return (*self.steps, *self.called)


@dataclass(frozen=True)
class HpsOptions:
    """How Merlin's Hierarchical Parameter Server keeps tables."""

    gpu_cache_percent: int
    """Share of each table's vectors that is kept in GPU memory."""
    keys_per_sample: int
    """Largest number of keys that a sample has in one table."""


@dataclass(frozen=True)
class CodeRequest(Document):
    """What each Job is told that runs the user's code."""

    key: str
    source: str
    """Digest of the source."""
    weights: str = field(default="", kw_only=True)
    """Digest of the weights; empty: the spec has none of its own."""
    packages: str = field(default="", kw_only=True)
    """Key of the installed Python packages; empty: the spec names no requirements file."""
    data: str = field(default="", kw_only=True)
    """Digest of the published data; empty: there is none, or it is mounted from a claim."""


@dataclass(frozen=True)
class ReferenceRequest(CodeRequest):
    """Run the framework in fp32 over the dataloader, or over generated inputs, and store its inputs and outputs."""

    model: ModelCode
    dataloader: Entrypoint | None
    """None: inputs are generated from what the model's graph declares."""
    max_samples: int
    needs_labels: bool
    """True if an accuracy threshold is set; a dataloader without labels is then an error."""
    batch_sizes: tuple[int, ...] = ()
    """Request sizes to prepare, in samples, for a model without a batch dimension. The reference uses the largest;
    every other size gets one request."""

    @property
    def largest_batch_size(self) -> int:
        """Samples of the largest batch or, without a batch dimension, of the largest request."""
        if self.model.max_batch_size == 0:
            return max(self.batch_sizes, default=1)
        return min(self.model.max_batch_size, self.max_samples)

    @property
    def other_batch_sizes(self) -> tuple[int, ...]:
        """The request sizes except the largest; if that is the only one, half of it: a model serves any size."""
        if self.model.max_batch_size:
            return ()
        largest = self.largest_batch_size
        others = tuple(sorted(set(self.batch_sizes) - {largest}))
        return others or ((largest // 2,) if largest > 1 else ())


@dataclass(frozen=True)
class ModelConfig:
    """What config.pbtxt says beyond the signature."""

    instances: int
    instance_group_kind: str
    """KIND_CPU, KIND_GPU or KIND_AUTO."""
    dynamic_batching: bool
    preferred_batch_sizes: tuple[int, ...]
    max_queue_delay_microseconds: int
    cuda_graphs: bool
    warmup: bool
    parameters: Mapping[str, str]
    max_batch_size: int = 0
    """Largest batch to serve, in samples, if a search chose another than the model's; 0: the model's."""
    overrides: str = ""
    """A piece of config.pbtxt that is put over all of it (``contract.overrides``)."""


@dataclass(frozen=True)
class TensorRtOptions:
    """How TensorRT builds an engine."""

    workspace_bytes: int
    """Most memory that the builder's tactics and the engine's layers may use in addition to the weights."""
    builder_optimization_level: int
    """0 to 5; a higher level finds faster kernels and takes longer. TensorRT's own default is 3."""


@dataclass(frozen=True)
class ConvertRequest(CodeRequest):
    """Convert the model for one candidate and publish the revision that serves it; ``key``: the revision's.

    A revision's key is of the conversion and the server's configuration.
    """

    conversion_key: str
    """Key of the model file alone; revisions that differ only in configuration share it."""
    reference: str
    """Key of the reference, which holds the signature and the example batches."""
    model_name: str
    model: ModelCode
    candidate: str
    format: str
    """A key of ``formats.FORMATS``."""
    precision: str
    """``fp32``, ``fp16`` or ``int8``; inputs and outputs stay as the signature says."""
    accelerator: str
    """``none``, ``cuda``, ``trt`` or ``amp``."""
    onnx_opset: int
    """The operator set; 0: the one that a source of format onnx has. DEFAULT_OPSET of a torch model: the lowest from it
    on that has the model's operators."""
    onnx_exporter: str
    """``Dynamo`` or ``TorchScript``, which is tried first; only for torch models."""
    onnx_optimized: bool
    """Whether the graph is simplified before it is served or given to TensorRT."""
    tensorrt: TensorRtOptions
    gpu_product: str
    """spec.gpu.product, for which an engine is built; empty: not set."""
    engine_cache: str
    """Absolute path where the server's ONNX Runtime keeps TensorRT engines; empty unless accelerator is trt."""
    config: ModelConfig
    gpu_count: int = 0
    """spec.gpu.count for a model of format ``hps``; 0: CPU, or another format."""
    hps: HpsOptions | None = None
    """Options of format ``hps``."""
    members: tuple["ConvertRequest", ...] = ()
    """Requests for the models of an ensemble (format ``ensemble``), with the revision's key. Only they say how a file
    is converted; a member's reference is its part of the ensemble's reference (``layout.member_key``)."""
    optimal_batch_size: int = 0
    """Samples in the batch that an engine of format ``trt`` is tuned for; 0: the largest batch."""
    quantization: Quantization | None = None
    """How an ``int8`` graph is made; None: another precision."""
    step_packages: str = ""
    """Key of the packages that a model of format ``triton-python`` imports inside the server; empty: it needs none."""

    @property
    def keeps_types(self) -> bool:
        """Whether the weights keep the types that the source's own file has: only Python code is loaded in fp32."""
        return self.precision == "fp32" and SOURCE_FORMATS[self.model.format].is_file
