"""A first TritonDeployment for an InferenceService, as commented YAML. Pure.

Each value that is taken is tried on the CRD, and becomes a comment if that refuses it: who wrote it wrote it for
another API.
"""

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

import yaml

from triton_converters.contract.text import printable
from triton_operator.names import API_VERSION, KIND, Body
from triton_plugin.drafting.kserve.fields import Found, LeftOut, MappedField
from triton_plugin.drafting.kserve.listing import SINGLE_FILES
from triton_plugin.drafting.kserve.service import Service
from triton_plugin.drafting.marks import TODO
from triton_plugin.drafting.validation.validate import check
from triton_plugin.errors import FolderError

WIDTH = 120
LONGEST_REASON = 300
"""Characters of a reason: the API server's may list everything that is allowed."""
SOME_CPU = {"resources": {"requests": {"cpu": "100m"}}}
"""A pod that requests no CPU gets next to none on a busy node."""
REQUIRED = ("spec.source.uri", "spec.models[0].path")
"""What no object can do without; if it does not go together with another value, that one is left out."""
UNKNOWN_PATH = TODO


class FirstObject(NamedTuple):
    """A first object of an InferenceService."""

    name: str
    text: str
    """The YAML."""
    to_do: tuple[str, ...]
    """What somebody has to do before it serves as the InferenceService did."""


def first_object_from(service: Service, name: str, found: Sequence[Found]) -> FirstObject:
    """Return an object of that name. ``found``: what goes into it; a later value replaces an earlier one.

    Raises FolderError if it would be refused without any of these values, or an option is.
    """
    body, taken, left_out = _accepted(service, name, found)
    missing = list(_missing(service, body, is_told=any(each.place == "source.uri" for each in taken)))
    text = yaml.safe_dump(body, sort_keys=False, width=WIDTH, allow_unicode=True)
    # Comments quote a file that anybody may have written; values are escaped by YAML.
    commented = printable("\n".join([*map(_line, _comments(service, missing, left_out)), text]))
    return FirstObject(name, commented, (*missing, *(_sentence(each) for each in left_out if each.needs_hand)))


def _accepted(service: Service, name: str, found: Sequence[Found]) -> tuple[Body, list[MappedField], list[LeftOut]]:
    """The object without what the CRD refuses, what is in it, and what has no place. Raises FolderError."""
    taken = [each for each in found if isinstance(each, MappedField)]
    left_out = [each for each in found if isinstance(each, LeftOut)]
    while True:
        body, places = _body(service, name, taken)
        faults = check(body)
        if not faults:
            return body, taken, left_out
        blamed = {number: fault.message for fault in faults for number in _blamed(fault.path, places)}
        if not blamed:
            raise FolderError(f"an object for it would be invalid: {faults[0]}")
        for number, why in blamed.items():
            if taken[number].field.startswith("--"):
                raise FolderError(f"{taken[number].field}: {why}")
            left_out.append(LeftOut(taken[number].field, f"the API refuses it: {why}", needs_hand=True))
        taken = [each for number, each in enumerate(taken) if number not in blamed]


def _blamed(path: str, places: Sequence[str]) -> list[int]:
    """The numbers of the values that a fault's path lies in or, if there are none, of those that lie below it."""
    within = [
        number for number, place in enumerate(places) if path == place or path.startswith((f"{place}.", f"{place}["))
    ]
    below = [number for number, place in enumerate(places) if place.startswith((f"{path}.", f"{path}["))]
    return within or [number for number in below if places[number] not in REQUIRED and path != "spec"]


def _body(service: Service, name: str, taken: Sequence[MappedField]) -> tuple[Body, list[str]]:
    """The object, and the path of each value in it."""
    spec: Body = {
        "source": {"uri": f"pvc://models/{name}"},
        "dataset": {},
        "dataloader": {},
        "models": [{"name": name, "path": _path(taken)}],
        "gpu": {},
        "pod": {},
        "conversion": {"pod": SOME_CPU},
        "serving": {},
        "selection": {},
    }
    if _needs_dataloader(service):
        spec["dataloader"] = {"entrypoint": "dataloader.py"}
    body: Body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": spec}
    if not any(each.place.startswith("serving.pod.resources.") and each.place.endswith(".cpu") for each in taken):
        spec["serving"] = {"pod": {"resources": {"requests": dict(SOME_CPU["resources"]["requests"])}}}
    places = [_put(body, each) for each in taken]
    body["spec"] = {field: value for field, value in spec.items() if value not in ({}, [])}
    return body, places


def _path(taken: Sequence[MappedField]) -> str:
    """The path of the model, if the source is that single file."""
    uri = next((str(each.value) for each in reversed(taken) if each.place == "source.uri"), "")
    last = PurePosixPath(uri).name
    return last if last.endswith(SINGLE_FILES) else UNKNOWN_PATH


def _put(body: Body, value: MappedField) -> str:
    """Put a value into its place in the object; return the path to it, as faults have it."""
    parts = value.place.split(".")
    if parts[0] != "metadata":
        parts = ["spec", *parts]
    at, path = body, ""
    for part in parts[:-1]:
        name = part.removesuffix("[]")
        path += f".{name}[0]" if part != name else f".{name}"
        inner = at.setdefault(name, {})
        at = inner[0] if part != name else inner
    last = parts[-1].removesuffix("[]")
    if last == parts[-1]:
        at[last] = value.value
        return f"{path}.{last}".removeprefix(".")
    items = at.setdefault(last, [])
    items.append(value.value)
    return f"{path}.{last}[{len(items) - 1}]".removeprefix(".")


def _missing(service: Service, body: Body, *, is_told: bool) -> Iterator[str]:
    """What somebody has to fill in. ``is_told``: where the files are."""
    if not is_told:
        yield "source.uri: where the files are, by a URI of docs/source.md (--source URI)"
    if body["spec"]["models"][0]["path"] == UNKNOWN_PATH:
        what = "the model's folder" if service.form == "triton" else "the model's file or folder"
        yield (
            f"models[0].path: {what} below the URI, which an InferenceService does not name (--model PATH, or --listing"
            " FILE)"
        )
    if _needs_dataloader(service):
        yield (
            "dataloader: a file with get_dataloader_fn, and the model as TorchScript: archives of TorchServe are not"
            " taken (docs/user-files.md)"
        )


def _comments(service: Service, missing: Sequence[str], left_out: Sequence[LeftOut]) -> Iterator[str]:
    """What somebody has to fill in, and what has no place."""
    yield (
        f"Written by `kubectl triton init --from`, for InferenceService {service.name}. After every change, check it:"
        " `kubectl triton validate FILE`."
    )
    for each in missing:
        yield f"{TODO}: {each}."
    if left_out:
        yield "Of the InferenceService, this is not taken, or needs more:"
        yield from dict.fromkeys(f"- {_sentence(each)}" for each in left_out)


def _sentence(left_out: LeftOut) -> str:
    return f"{left_out.field}: {left_out.why[:LONGEST_REASON]}"


def _needs_dataloader(service: Service) -> bool:
    """Whether the model is one of TorchServe's, which declares no inputs; a Triton repository declares its own."""
    return service.form == "pytorch" and "triton" not in str(service.model.get("runtime", ""))


def _line(text: str) -> str:
    """A comment on one line, whatever is in the text."""
    return f"# {' '.join(text.split())}"
