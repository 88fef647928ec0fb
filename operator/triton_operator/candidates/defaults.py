"""The candidates of a model whose spec lists none: from the spec, the source's format and the images. Pure."""

from collections.abc import Iterator
from itertools import islice

from triton_converters.contract.formats import AS_GIVEN, FORMATS, SOURCE_FORMATS
from triton_operator.api.model import Model, ModelCandidate
from triton_operator.api.resolved import ModelOfRepository
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.api.status import Images
from triton_operator.candidates import server_image

MOST_CANDIDATES = 3
"""The most candidates of one model. Each costs a conversion and a profile, so only the most promising ones are
tried."""


def takes_defaults(model: Model) -> bool:
    """Whether the operator chooses the model's candidates, as soon as it knows the model's format."""
    return not model.candidates and model.format not in AS_GIVEN


def default_candidates(spec: TritonDeploymentSpec, model: Model, images: Images) -> tuple[ModelCandidate, ...]:
    """Return at most three candidates for the images. A model of an ensemble has one: they multiply.

    ``model``: its format is known. A model of a Triton repository, which somebody serves already, keeps its format.
    The first one is in fp32. On the CPU all are; on a GPU the others are in fp16, because it is faster there.
    """
    if isinstance(model, ModelOfRepository) and not model.is_of_mlflow:
        assert model.format is not None
        return (_candidate(model.format, "fp32", "none"),)
    served_ways = (way for way in _ways(spec, model, images) if _is_served(images.server, model, *way))
    return tuple(_candidate(*way) for way in islice(served_ways, 1 if spec.ensemble else MOST_CANDIDATES))


def spare_candidates(spec: TritonDeploymentSpec, model: Model, images: Images) -> tuple[ModelCandidate, ...]:
    """Return the candidate of an ensemble's model that is tried if the first one fails: in fp32 in the next format.

    Empty: there is none.
    """
    if isinstance(model, ModelOfRepository) and not model.is_of_mlflow:
        return ()
    others = ((name, "fp32", "none") for name in SOURCE_FORMATS[model.format or ""].tried[1:])
    return tuple(
        _candidate(*way) for way in islice((way for way in others if _is_served(images.server, model, *way)), 1)
    )


def _ways(spec: TritonDeploymentSpec, model: Model, images: Images) -> Iterator[tuple[str, str, str]]:
    """Yield format, precision and accelerator of each way to serve the model, the most promising first."""
    formats = SOURCE_FORMATS[model.format or ""].tried
    # Neither TensorRT nor ONNX Runtime runs models of tables on a GPU, and fp16 would move thresholds.
    if spec.gpu_count == 0 or SOURCE_FORMATS[model.format or ""].library:
        yield from ((name, "fp32", "none") for name in formats)
        return
    yield formats[0], "fp32", "none"
    if spec.gpu is not None and spec.gpu.product:
        yield "onnx", "fp16", "trt"
        # The converter image for GPUs has TensorRT; that for TensorFlow has none.
        if spec.conversion.image or (images.converter_gpu and not SOURCE_FORMATS[model.format or ""].is_tensorflow):
            yield "trt", "fp16", "none"
    yield from ((name, "fp16", "none") for name in formats)


def _is_served(image: str, model: Model, format_name: str, precision: str, accelerator: str) -> bool:
    """Whether a server of the image is known to serve a candidate."""
    needs_release = FORMATS[format_name].last_release and not server_image.release(image)
    lacks_tensorrt = accelerator == "trt" and server_image.is_cpu_image(image)
    return not needs_release and not lacks_tensorrt and not server_image.refusal(image, model.format or "", format_name)


def _candidate(format_name: str, precision: str, accelerator: str) -> ModelCandidate:
    name_parts = [format_name, accelerator, precision] if accelerator != "none" else [format_name, precision]
    return ModelCandidate.model_validate(
        {"name": "-".join(name_parts), "format": format_name, "precision": precision, "accelerator": accelerator}
    )
