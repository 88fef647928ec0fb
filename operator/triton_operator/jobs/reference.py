"""The Job that runs the framework, and what all Jobs with user code get."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from triton_converters.contract import layout, uris
from triton_converters.contract.conversion_requests import EnsembleCode, Entrypoint, ModelCode, ReferenceRequest, Step
from triton_converters.contract.formats import ENSEMBLE
from triton_converters.contract.results import ReferenceResult, SourceResult, Tensor
from triton_operator import names
from triton_operator.api.model import Model
from triton_operator.api.source import FOLLOWS, Source, UserEntrypoint
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.context import Context
from triton_operator.jobs.packages import packages_key
from triton_operator.jobs.source import data_digest, source_paths, weights_digest
from triton_operator.names import Body
from triton_operator.resources import fixed_paths
from triton_operator.resources.volumes import JOB_TEMPORARY, Volumes, claim_volume, input_mount
from triton_operator.resources.work import UserCode, Work

LABELS = ("needs_labels",)
"""The field of a request that changes no batch: labels are kept if there are any, whether they are needed or not."""


@dataclass(frozen=True)
class Dump:
    """The reference's dump. Candidates are traced with its inputs and compared with its outputs."""

    source: SourceResult
    key: str
    result: ReferenceResult
    image_id: str = ""
    """ID of the image that the framework ran in; empty: not known."""


def reference_work(context: Context, source: SourceResult) -> Work[ReferenceRequest, ReferenceResult]:
    """Return the Job's work. Its key covers everything that can change the framework's outputs."""
    request = names.request_with_key("reference", _full_request(context, source), *surroundings(context))
    volumes, mounts = model_volumes(context, source)
    return Work(
        stage="reference",
        request=request,
        deadline_seconds=context.spec.conversion.active_deadline_seconds,
        shape=UserCode((layout.source_directory(source.digest),), volumes, mounts),
    )


def examples_key(context: Context, source: SourceResult) -> str:
    """Return the key of the reference's batches, which candidates are traced with and engines are built for."""
    request = _full_request(context, source)
    return names.result_key("examples", request, *surroundings(context), without=LABELS)


def basis(spec: TritonDeploymentSpec) -> str:
    """Return a digest of everything in the spec that changes the reference's batches, and so every conversion."""
    file_fields = [each for each in (spec.source, spec.weights, spec.dataset) if each is not None]
    # Who may read the files, and when somebody looks for newer ones, does not change them.
    sources = [_hashed(each, without={"secret_ref", "service_account_name", *FOLLOWS}) for each in file_fields]
    undeclared = (model.name for model in spec.models if spec.follows_graph(model))
    # A file that moves from `conversion` to a step is installed elsewhere.
    steps = [("steps", *spec.step_requirements)] if spec.step_requirements else []
    files = [*filter(None, [spec.conversion.requirements]), *steps]
    others = [spec.conversion.image, *spec.job_pod.env, *undeclared, *files, *source_paths(spec)]
    return names.result_key("basis", _request(spec), *sources, spec.device, *others, without=LABELS)


def _full_request(context: Context, source: SourceResult) -> ReferenceRequest:
    """Return the request without its key, with the digests of the published files that it needs."""
    return replace(_request(context.spec), **files_of_user_code(context, source))


def files_of_user_code(context: Context, source: SourceResult) -> dict[str, Any]:
    """Return the fields of a request that name the published files which the user's code may read."""
    return {
        "source": source.digest,
        "weights": weights_digest(context),
        "packages": packages_key(context, source),
        "data": data_digest(context),
    }


def _request(spec: TritonDeploymentSpec) -> ReferenceRequest:
    """Return the request with the fields that the spec alone decides."""
    return ReferenceRequest(
        key="",
        source="",
        model=served_code(spec),
        dataloader=entrypoint(spec, spec.dataloader) if spec.dataloader else None,
        max_samples=spec.max_samples,
        needs_labels=bool(spec.accuracy.thresholds),
        batch_sizes=request_sizes(spec),
    )


def surroundings(context: Context) -> list[Any]:
    """Return what decides what the user's code computes, besides the request.

    Data that is mounted from a claim has a version instead of a digest; claims of two namespaces may have one name, and
    one storage.
    """
    dataset = context.spec.mounted_dataset
    return [None if dataset is None else [context.namespace, _hashed(dataset)], *context.framework_inputs]


def _hashed(files: Source, without: AbstractSet[str] = frozenset()) -> dict[str, Any]:
    """Return files as keys and digests cover them. ``without``: fields that change nothing."""
    return files.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=set(without))


def request_sizes(spec: TritonDeploymentSpec) -> tuple[int, ...]:
    """Return the request sizes that are measured, which the dataloader makes for a model without a batch dimension."""
    performance = spec.performance
    if spec.max_batch_size:
        return ()
    offline = performance.offline.batch_sizes if performance.offline else [1]
    return tuple(sorted({*offline, performance.online.batch_size if performance.online else 1}))


def served_code(spec: TritonDeploymentSpec) -> ModelCode:
    """Return the single model, or the ensemble with its models."""
    ensemble, models = spec.ensemble, {model.name: model for model in spec.models}
    if ensemble is None:
        return model_code(spec, spec.models[0])
    steps = tuple(
        Step(
            step.model,
            {each.input: each.tensor for each in step.input_map},
            {each.output: each.tensor for each in step.output_map},
            model_code(spec, models[step.model]),
        )
        for step in ensemble.steps
    )
    connected = {step.model for step in ensemble.steps}
    called = tuple(Step(name, {}, {}, model_code(spec, models[name])) for name in models if name not in connected)
    inputs, outputs = (
        tuple(Tensor(each.name, each.data_type, tuple(each.dims)) for each in tensors)
        for tensors in (ensemble.inputs, ensemble.outputs)
    )
    return ModelCode(
        ENSEMBLE, Entrypoint("", {}), ensemble.max_batch_size, EnsembleCode(inputs, outputs, steps, called)
    )


def model_code(spec: TritonDeploymentSpec, model: Model) -> ModelCode:
    """Return the code and format of one model, as a Job gets them; the format is empty as long as it is not known."""
    code = Entrypoint(model.code, _arguments(spec, model.arguments))
    return ModelCode(
        model.format or "",
        code,
        model.config.largest_batch,
        declared=model.declared,
        name=model.name if model.is_step else "",
        calls=tuple(model.calls),
        mount_path=model.mount_path or "",
        scratch_paths=tuple(sorted(model.scratch_paths)),
    )


def entrypoint(spec: TritonDeploymentSpec, user_entrypoint: UserEntrypoint) -> Entrypoint:
    """Return a Python file of the source and its arguments, as a Job gets them."""
    return Entrypoint(user_entrypoint.entrypoint, _arguments(spec, user_entrypoint.arguments))


def _arguments(spec: TritonDeploymentSpec, arguments: Mapping[str, str]) -> dict[str, str]:
    """Replace $(DATASET) and $(WEIGHTS) by the paths at which they are mounted."""
    dataset = layout.DATA_MOUNT
    if spec.mounted_dataset is not None:
        dataset /= uris.split(spec.mounted_dataset.uri).path
    paths = {"$(DATASET)": str(dataset), "$(WEIGHTS)": str(layout.WEIGHTS_MOUNT)}
    return {name: _fill_placeholders(value, paths) for name, value in arguments.items()}


def _fill_placeholders(value: str, paths: Mapping[str, str]) -> str:
    for placeholder, path in paths.items():
        value = value.replace(placeholder, path)
    return value


def model_volumes(context: Context, source: SourceResult) -> Volumes:
    """Return volumes and mounts of a container that runs the models, and with them the code of Python steps."""
    volumes, mounts = user_volumes(context, source)
    root = layout.source_directory(source.digest)
    folders = fixed_paths.mounts(context.spec, lambda model: root / Path(model.code).parent)
    return (*volumes, *fixed_paths.scratch_volumes(context.spec, JOB_TEMPORARY)), (*mounts, *folders)


def user_volumes(context: Context, source: SourceResult) -> Volumes:
    """Return volumes and mounts of the dataset, and mounts of the weights and the packages, if the spec has them."""
    volumes, mounts = tuple[Body, ...](), list[Body]()
    if context.spec.mounted_dataset is not None:
        # The rest of the claim may hold what others keep there, now or once the pod runs.
        uri = context.spec.mounted_dataset.uri
        folder = uris.split(uri).path
        volumes, (mount,) = claim_volume(context, "data", uri, layout.DATA_MOUNT / folder)
        mounts.append(mount | {"subPath": folder})
    published = ((weights_digest(context), layout.WEIGHTS_MOUNT), (data_digest(context), layout.DATA_MOUNT))
    mounts += [input_mount(layout.source_directory(digest), at) for digest, at in published if digest]
    if packages := packages_key(context, source):
        mounts.append(input_mount(layout.installed_packages(packages), layout.PACKAGES_MOUNT))
    return volumes, tuple(mounts)
