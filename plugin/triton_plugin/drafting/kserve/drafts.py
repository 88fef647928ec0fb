"""What becomes of every InferenceService of a file: objects, what is left to do by hand, or why it stays. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import PurePosixPath
from posixpath import split as split_path
from typing import Any

from triton_converters.contract.formats import FORMATS, REPOSITORY
from triton_converters.contract.text import printable
from triton_converters.contract.uris import split
from triton_operator.candidates.server_image import refusal, release
from triton_operator.names import Body
from triton_plugin.drafting.first_object import NAME_CHARACTERS, ObjectOptions, object_name
from triton_plugin.drafting.kserve.fields import Found, LeftOut, MappedField, fields
from triton_plugin.drafting.kserve.first import FirstObject, first_object_from
from triton_plugin.drafting.kserve.listing import Listed, Models, below, models
from triton_plugin.drafting.kserve.service import KIND, Service, own_address, read, services
from triton_plugin.errors import FolderError

LISTING = "--listing"
"""Where a value comes from that no InferenceService has."""
STATES = ("complete", "by hand", "stays")
"""What an InferenceService may have become: objects that serve as it did, objects that need more, or none."""
ONNX = {"name": "onnx-fp32", "format": "onnx", "precision": "fp32"}
ITSELF = "."
"""The path of a model that is the source itself."""


@dataclass(frozen=True)
class Request:
    """What the command's options say, apart from the file of InferenceServices."""

    options: ObjectOptions
    model: str = ""
    """Path of the model below the source; empty: not given."""
    format: str = ""
    listing: Sequence[str] = ()
    """The URIs of files, or of one InferenceService their paths below its URI."""


@dataclass(frozen=True)
class Draft:
    """What became of one InferenceService."""

    service: str
    """The namespace, if one is given, and the name."""
    objects: tuple[FirstObject, ...]
    """None: it stays where it is."""
    reasons: tuple[str, ...]
    """Why the InferenceService stays, or what somebody has to do."""

    @property
    def state(self) -> str:
        """What became of it, in words."""
        complete, by_hand, stays = STATES
        return stays if not self.objects else by_hand if self.reasons else complete


def drafts(documents: Iterable[Any], request: Request) -> list[Draft]:
    """Return what becomes of each InferenceService among objects.

    Raises FolderError if there is none, or if there are several and an option fits only one.
    """
    bodies = services(documents)
    if not bodies:
        raise FolderError(f"the file has no object of kind {KIND}")
    options = request.options
    for_one = {
        "--source": options.source,
        "--dataset": options.dataset,
        "--model": request.model,
        "--format": request.format,
        f"{LISTING} without URIs": any("://" not in each for each in request.listing),
    }
    given = [name for name, value in for_one.items() if value]
    if given and len(bodies) > 1:
        raise FolderError(f"{given[0]} is for one {KIND}, and the file has {len(bodies)}; pass a file with that one")
    # No object gets the name of a Kubernetes Service that is there already.
    names = {(_namespace(each), own_address(each)) for each in bodies}
    return [_draft(each, request, names) for each in bodies]


def _draft(body: Body, request: Request, names: set[tuple[str, str]]) -> Draft:
    """Return what becomes of it. ``names``: namespaces and names that are taken; its own are added."""
    namespace = _namespace(body)
    label = printable("/".join(filter(None, (namespace, str(_metadata(body).get("name", "(no name)"))))))
    try:
        service = read(body)
        found = [*fields(service), *_given(service, request)]
        shown = _shown(service, found, request)
        objects = []
        for model in shown.taken or (None,):
            name = _name(
                f"{service.name}-{model.name}" if model and _is_part(shown) else service.name, namespace, names
            )
            renamed = [LeftOut("metadata.name", f"clients find the Service {name}")] if name != service.name else []
            listed = _of_listing(service, model, shown, found) if model else ()
            objects.append(first_object_from(service, name, [*renamed, *found, *listed]))
    except FolderError as error:
        return Draft(label, (), (printable(str(error)),))
    to_do = chain.from_iterable(each.to_do for each in objects)
    return Draft(label, tuple(objects), tuple(map(printable, dict.fromkeys([*to_do, *shown.left_out]))))


def _metadata(body: Body) -> Body:
    given = body.get("metadata")
    return given if isinstance(given, dict) else {}


def _namespace(body: Body) -> str:
    return str(_metadata(body).get("namespace") or "")


def _name(wanted: str, namespace: str, names: set[tuple[str, str]]) -> str:
    """Return the nearest name that the CRD accepts and that is not taken, and take it."""
    for suffix in chain(("", "-triton"), (f"-triton-{number}" for number in count(2))):
        name = object_name(wanted)[: NAME_CHARACTERS - len(suffix)].rstrip("-") + suffix
        if (namespace, name) not in names:
            break
    names.add((namespace, name))
    return name


def _given(service: Service, request: Request) -> Iterator[Found]:
    """Yield what the command's options say; it comes after the fields, and so replaces them."""
    options = request.options
    constrained = {"objectives": [{"metric": "throughput"}], "constraints": {"p99Latency": options.p99_latency}}
    # Clients of a Triton repository know the model by its folder's name.
    name = PurePosixPath(request.model).name if service.form == "triton" else ""
    said = (
        ("--source", "source.uri", options.source),
        ("--dataset", "dataset.uri", options.dataset),
        ("--model", "models[].name", name),
        ("--model", "models[].path", request.model),
        ("--format", "models[].format", request.format),
        ("--gpu", "gpu.product", options.gpu),
        ("--max-batch-size", "models[].config.maxBatchSize", options.max_batch_size),
        ("--p99-latency", "selection", constrained if options.p99_latency else ""),
    )
    for option, place, value in said:
        if value not in ("", None):
            yield MappedField(option, place, value)


def _shown(service: Service, found: Sequence[Found], request: Request) -> Models:
    """Return the models that the listing shows; none if it has nothing of the source. Raises FolderError."""
    uri = _value(found, "source.uri")
    paths = below(request.listing, uri) if uri and not request.model else ()
    return models(paths, service.form) if paths else Models(())


def _value(found: Sequence[Found], place: str) -> str:
    """Return what goes into a place; empty: nothing does."""
    values = [str(each.value) for each in found if isinstance(each, MappedField) and each.place == place]
    return values[-1] if values else ""


def _is_part(shown: Models) -> bool:
    """Whether each model is one of several."""
    return len(shown.taken) + len(shown.left_out) > 1


def _of_listing(service: Service, model: Listed, shown: Models, found: Sequence[Found]) -> Iterator[Found]:
    """Yield what an object has for one model of the listing. Raises FolderError if no source can hold it."""
    path = model.path
    if path == ITSELF:
        above, path = split_path(_value(found, "source.uri").rstrip("/"))
        try:
            split(above)
        except ValueError:
            raise FolderError("its URI is that of a model itself; move that into a folder below it") from None
        yield MappedField(LISTING, "source.uri", above)
    if path != model.path or _is_part(shown):
        yield MappedField(LISTING, "source.include", [f"{PurePosixPath(path).parts[0]}/*"])
    yield MappedField(LISTING, "models[].path", path)
    if model.name:
        yield MappedField(LISTING, "models[].name", model.name)
    image = _value(found, "serving.image")
    if model.is_saved_model and (not release(image) or refusal(image, REPOSITORY, "tf-savedmodel")):
        yield MappedField(LISTING, "models[].candidates", [ONNX])
        why = f"servers after {FORMATS['tf-savedmodel'].last_release} do not run TensorFlow; it is served as ONNX"
        yield LeftOut(f"{path} (a SavedModel)", why)
    gpu = any(isinstance(each, MappedField) and each.place.startswith("gpu.") for each in found)
    if len(shown.taken) > 1 and service.model.get("resources"):
        why = f"each of the {len(shown.taken)} objects asks for these"
        yield LeftOut(f"predictor.{service.kind}.resources", why, needs_hand=gpu)
