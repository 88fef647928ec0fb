"""The Jobs that read or download spec.source, spec.weights and spec.dataset."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from triton_converters.contract import layout, uris
from triton_converters.contract.conversion_requests import SourceRequest
from triton_converters.contract.records import record_name
from triton_converters.contract.results import RepositoryModel, SourceResult
from triton_operator import names
from triton_operator.api.source import Source
from triton_operator.context import Context
from triton_operator.jobs.run import Run
from triton_operator.resources.job import claim_volume, secret_volume
from triton_operator.resources.work import Work

T = TypeVar("T")

SourceWork = Work[SourceRequest, SourceResult]
SourceRun = Run[SourceResult]


@dataclass(frozen=True)
class FoundGraph:
    """What a model's graph shows."""

    batched: bool | None
    """Whether the graph has a batch dimension; None: the Job did not tell."""
    length: bool
    """Whether that dimension seems to be a length."""


@dataclass(frozen=True)
class FoundModel:
    """What the source Job told of one model."""

    format: str | None = None
    """None: it was not asked, or did not tell."""
    repository: RepositoryModel | None = None
    """What the model's Triton repository says; None: the model is in none."""
    graph: FoundGraph | None = None
    """None: its graph was not asked."""


def found_models(context: Context, told: SourceResult) -> dict[str, FoundModel]:
    """Return what the Job told of the models that it was asked about, by their names.

    Its result has parallel tuples, of which an older Job leaves out what it does not know.
    """
    found = {
        model.name: FoundModel(_at(told.formats, number), _at(told.repositories, number))
        for number, model in enumerate(context.sought_models)
    }
    for number, model in enumerate(context.graph_models):
        graph = FoundGraph(_at(told.batched, number), bool(_at(told.lengths, number)))
        found[model.name] = replace(found.get(model.name, FoundModel()), graph=graph)
    return found


def _at(told: Sequence[T], number: int) -> T | None:
    return told[number] if number < len(told) else None


def works(context: Context) -> dict[str, SourceWork]:
    """The work of each Job by the field of the spec that it reads; the same files are read once."""
    found = {"spec.source": source_work(context)}
    for field, files in (("spec.weights", context.spec.weights), ("spec.dataset", context.spec.published_dataset)):
        if files is not None and (work := _work(context, files)).key not in {each.key for each in found.values()}:
            found[field] = work
    return found


def source_work(context: Context) -> SourceWork:
    """The work of the source's Job, which also finds formats and batch dimensions."""
    requirements = context.spec.conversion.requirements
    sought, graphs = (
        tuple(each.path or "" for each in models) for models in (context.sought_models, context.graph_models)
    )
    return _work(context, context.spec.source, sought, graphs, requirements)


def weights_digest(context: Context) -> str:
    """The digest of the published weights; empty: the spec has none, or they are not published yet."""
    return _digest(context, context.spec.weights)


def data_digest(context: Context) -> str:
    """The digest of the published data; empty: the spec has none, it is on a claim, or it is not published yet."""
    return _digest(context, context.spec.published_dataset)


def _digest(context: Context, files: Source | None) -> str:
    result = told(context, _work(context, files)) if files is not None else None
    return result.digest if result is not None else ""


def told(context: Context, work: SourceWork) -> SourceResult | None:
    """What the record of such a Job tells; None: it has not ended yet."""
    record = context.observed.records.get(record_name(work.stage, work.key))
    result = record.outcome.result if record is not None else None
    return result if isinstance(result, SourceResult) else None


def _work(
    context: Context,
    source: Source,
    models: tuple[str, ...] = (),
    graphs: tuple[str, ...] = (),
    requirements: str = "",
) -> SourceWork:
    """A Job's work. Its key says nothing of the content; the user's ``revision`` says when to look again."""
    uri = uris.split(source.uri)
    request = SourceRequest(
        key="",
        uri=source.uri,
        path="" if uri.is_remote else uri.path,
        sha256=source.sha256,
        revision=source.version if uris.SCHEMES[uri.scheme].has_revisions else "",
        include=tuple(source.include),
        models=models,
        graphs=graphs,
        requirements=requirements,
    )
    request = names.request_with_key("source", request, source.version, context.triton_deployment.uid)
    volumes, mounts = _volumes(source)
    return Work(
        stage="source",
        request=request,
        deadline_seconds=context.spec.conversion.active_deadline_seconds,
        volumes=volumes,
        mounts=mounts,
        downloads=uri.is_remote,
        service_account=source.service_account_name or "",
    )


def _volumes(source: Source) -> tuple[tuple[dict[str, Any], ...], tuple[dict[str, Any], ...]]:
    """The volume with the files, or with the credentials for the download; none if it needs no credentials."""
    if not uris.split(source.uri).is_remote:
        pairs = [claim_volume("source", source.uri, layout.SOURCE_MOUNT)]
    elif source.secret_ref is not None:
        pairs = [secret_volume(source.secret_ref.name)]
    else:
        return (), ()
    return tuple(volume for volume, _ in pairs), tuple(mount for _, mount in pairs)
