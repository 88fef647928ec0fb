"""What becomes of the fields of a spec that need a cluster. Pure."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from triton_converters.contract import uris
from triton_converters.contract.formats import FORMATS, PYTORCH, REPOSITORY, SOURCE_FORMATS, TRITON_PYTHON
from triton_local.gpus import WHOLE_GPU
from triton_local.install import ENVIRONMENT
from triton_local.session import Given
from triton_local.versions import SOURCES

LEFT_OUT = {
    "serving.route": "there is no Gateway",
    "serving.autoscaling": "there is one server",
    "serving.replicas": "there is one server",
    "serving.networkPolicy": "nobody but this machine reaches the server",
    "serving.tracing": "there is nobody to send to",
    "pod.fsGroup": "all files are yours",
    "repository": "all is kept in the folder of this command",
    "publish": "--publish pushes from here",
    **{
        f"{part}.{field}": "all runs on this machine"
        for part in ("pod", "conversion.pod", "serving.pod")
        for field in (
            *("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints", "priorityClassName"),
            *("runtimeClassName", "imagePullSecrets", "labels", "annotations"),
        )
    },
}
"""Fields that change neither what is checked nor how it is measured, and why they have no effect here."""
IMAGES = ("conversion.image", "serving.image")
OF_TORCH = frozenset(name for name, each in SOURCE_FORMATS.items() if "ts-trace" in each.converters) - {REPOSITORY}
"""The formats of a source that PyTorch runs. What a repository's model is, its files show."""
TORCHSCRIPT = " or ".join(name for name, each in FORMATS.items() if each.backend == PYTORCH)
TORCH_ENDINGS = SOURCE_FORMATS["ts-trace"].suffixes


def on_one_machine(spec: Mapping[str, Any], given: Given) -> tuple[dict[str, Any], list[str]]:
    """Return the spec as it can run on one machine, and a line for each field that has no effect there."""
    kept, said = deepcopy(dict(spec)), []
    for path, why in LEFT_OUT.items():
        place, name = _place(kept, path)
        if place.pop(name, None) is not None:
            said.append(f"spec.{path} has no effect: {why}")
    for path in IMAGES:
        place, name = _place(kept, path)
        if place.get(name) in given.images:
            place[name] = given.images[place[name]]
    return kept, said


def lacking(spec: Mapping[str, Any], given: Given) -> Iterator[str]:
    """Yield what the object names and this machine does not have, each with what to do."""
    secrets = [f"{name}.secretRef" for name in SOURCES]
    for path in (*secrets, "conversion.indexSecretRef"):
        place, name = _place(spec, path)
        secret = (place.get(name) or {}).get("name")
        if secret and secret not in given.secrets:
            yield f"spec.{path}: pass --secret {secret}=FOLDER, a folder with a file for each key of the Secret"
    for path in IMAGES:
        place, name = _place(spec, path)
        if place.get(name) and place[name] not in given.images:
            yield f"spec.{path}: pass --image {place[name]}=ARCHIVE, as `docker save` writes it"
    for name in SOURCES:
        part = spec.get(name) or {}
        if part.get("serviceAccountName"):
            yield f"spec.{name}.serviceAccountName: only a cluster has them; name a Secret in spec.{name}.secretRef"
        found = uris.split(part["uri"]) if part.get("uri") else None
        if found is not None and found.scheme == "pvc" and found.host not in given.claims:
            yield f"spec.{name}.uri: pass --claim {found.host}=FOLDER, the folder that is the claim here"
        if found is not None and found.scheme == "configmap" and found.host not in given.config_maps:
            yield f"spec.{name}.uri: write the ConfigMap {found.host} into the object's file"

    yield from _without_torch(spec, given)
    yield from _without_gpu(spec, given)


def _without_gpu(spec: Mapping[str, Any], given: Given) -> Iterator[str]:
    """Yield why an object that asks for a GPU is not served on one; the first reason alone where there is none."""
    gpu = spec.get("gpu") or {}
    count = gpu.get("count", 1) if spec.get("gpu") is not None else 0
    if not count:
        return
    if not given.gpus:
        yield "spec.gpu: nvidia-smi shows no GPU of this machine; without spec.gpu, the model is checked on its CPU"
        return
    if given.isolates:
        yield "spec.gpu: pass --unboxed, if you trust the model: programs in namespaces are given no GPU"
    if count > len(given.gpus):
        yield f"spec.gpu.count: the object asks for {count}, and this machine has {len(given.gpus)}"
    if gpu.get("product", given.gpus[0].product) not in {"", given.gpus[0].product}:
        yield f"spec.gpu.product: the GPU of this machine is {given.gpus[0].product}"
    if gpu.get("resourceName", WHOLE_GPU) != WHOLE_GPU:
        yield f"spec.gpu.resourceName: this machine gives whole GPUs alone, which are {WHOLE_GPU}"
    models = [each for each in spec.get("models") or () if each.get("format") != TRITON_PYTHON]
    if named := ", ".join(each["name"] for each in models if _backends(each) != {PYTORCH}):
        yield f"spec.models: of this server, PyTorch alone has a GPU: list candidates of {named}, as {TORCHSCRIPT}"


def _without_torch(spec: Mapping[str, Any], given: Given) -> Iterator[str]:
    """Yield where PyTorch is missing: no image of this command has it."""
    models = [each for each in spec.get("models") or () if _is_torch(each)]
    named = ", ".join(each["name"] for each in models)
    if not models or ENVIRONMENT in given.images:
        return
    if not (spec.get("conversion") or {}).get("image"):
        yield f"spec.models: pass --python PROGRAM, the Python whose packages have the PyTorch that runs {named}"
    elif not (spec.get("serving") or {}).get("image") and any(map(_serves_torch, models)):
        yield (
            f"spec.models: pass --python PROGRAM, the Python whose PyTorch serves {named} as TorchScript; or name an"
            " image for that in spec.serving.image, or candidates of format onnx alone"
        )


def _is_torch(model: Mapping[str, Any]) -> bool:
    form = model.get("format")
    return form in OF_TORCH if form else str(model.get("path") or "").endswith(TORCH_ENDINGS)


def _serves_torch(model: Mapping[str, Any]) -> bool:
    """Whether a candidate is TorchScript, as one is of those that a spec without any gets."""
    backends = _backends(model)
    return not backends or PYTORCH in backends


def _backends(model: Mapping[str, Any]) -> set[str]:
    """The backends of the candidates that a spec names; empty: it names none."""
    return {FORMATS[each["format"]].backend for each in model.get("candidates") or ()}


def _place(spec: Any, path: str) -> tuple[dict[str, Any], str]:
    """The object that holds a field, or an empty one, and the field's name."""
    *parents, name = path.split(".")
    for parent in parents:
        spec = spec.get(parent) or {}
    return spec, name
