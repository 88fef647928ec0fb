"""The Jobs that read or download spec.source, spec.weights and spec.dataset."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from triton_converters.contract import layout, uris
from triton_converters.contract.conversion_requests import SourceRequest
from triton_converters.contract.document import DocumentError
from triton_converters.contract.records import record_name
from triton_converters.contract.results import RepositoryModel, SourceResult
from triton_operator import names
from triton_operator.api.source import Source
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.context import Context
from triton_operator.observed.following import Following, FoundVersion
from triton_operator.observed.record import Record
from triton_operator.resources.volumes import claim_volume, secret_volume
from triton_operator.resources.work import Download, Plain, Work

T = TypeVar("T")

SourceWork = Work[SourceRequest, SourceResult]
MESSAGES = ("field",)
"""The field of a request that messages alone name: the same files have one result, whichever fields name them."""
QUESTIONS = ("models", "graphs", "requirements", "step_requirements")
"""The fields of a request that ask something about the files, whichever these are."""


@dataclass(frozen=True)
class FoundGraph:
    """What a model's graph shows."""

    batched: bool | None
    """Whether the graph has a batch dimension; None: the Job did not find out."""
    length: bool
    """Whether that dimension seems to be a length."""


@dataclass(frozen=True)
class FoundModel:
    """What the source Job found out about one model."""

    format: str | None = None
    """The format in the source; None: the Job was not asked for it, or did not find it."""
    repository: RepositoryModel | None = None
    """What the model's Triton repository says; None: the model is in none."""
    graph: FoundGraph | None = None
    """What the model's graph shows; None: the Job was not asked for it."""


def found_models(context: Context, source_result: SourceResult) -> dict[str, FoundModel]:
    """Return what the Job found out about the models that it was asked about, by their names.

    Its result has parallel tuples, which are shorter in a record that somebody edited.
    """
    models = {
        model.name: FoundModel(_element(source_result.formats, number), _element(source_result.repositories, number))
        for number, model in enumerate(context.sought_models)
    }
    for number, model in enumerate(context.graph_models):
        graph = FoundGraph(_element(source_result.batched, number), bool(_element(source_result.lengths, number)))
        models[model.name] = replace(models.get(model.name, FoundModel()), graph=graph)
    return models


def _element(values: Sequence[T], number: int) -> T | None:
    return values[number] if number < len(values) else None


def source_works(context: Context) -> list[SourceWork]:
    """Return the work of each Job, that of spec.source first; the same files are read once."""
    works = [source_work(context)]
    for field, files in (("spec.weights", context.spec.weights), ("spec.dataset", context.spec.published_dataset)):
        if files is not None and (work := _work(context, files, field=field)).key not in {each.key for each in works}:
            works.append(work)
    return works


def source_work(context: Context) -> SourceWork:
    """Return the work of the source's Job, which also finds formats and batch dimensions.

    Of a source that is followed, it is that of the version that was taken.
    """
    taken = followed(context).taken
    return _work(context, context.spec.source, version=taken.version if taken is not None else "", **_asked(context))


def unfollowed_source(context: Context) -> SourceResult | None:
    """Return what a Job published of the source before it was followed; None: none did."""
    return recorded_source(context, _work(context, context.spec.source, **_asked(context)))


def followed(context: Context) -> Following:
    """Return what is known of the source that the spec asks for, whether it is followed or was.

    If the record of it is lost, the last status tells what serves.
    """
    source = context.spec.source
    asked = _request(source, **_asked(context))
    # Whichever object asks: one that is restored has another uid, and goes on from what its record says.
    identity = names.result_key("source", asked, source.version, *_named(asked), without=QUESTIONS)
    known, status = context.observed.following, context.triton_deployment.status.source
    if known is not None:
        return known if known.source == identity else Following(identity)
    serving = status.serving if status is not None and context.active_server is not None else None
    if serving is not None:
        with contextlib.suppress(DocumentError):
            return Following(identity, taken=FoundVersion(serving.version, serving.label, serving.found_at))
    return Following(identity)


def serving_version(context: Context) -> str:
    """Return the version that the active revision was made from; empty: none is active, or it is not known."""
    source = context.triton_deployment.status.source
    serving = source.serving if source is not None and context.active_server is not None else None
    return serving.version if serving is not None else ""


def look_request(context: Context) -> SourceRequest:
    """Return the request by which the source is downloaded, for a Job that only looks."""
    return _request(context.spec.source, **_asked(context))


def _asked(context: Context) -> dict[str, Any]:
    """Return the fields of the source's request that tell what of it is taken, and what is asked about it."""
    models, graphs = (
        tuple(each.path or "" for each in models) for models in (context.sought_models, context.graph_models)
    )
    return {
        "models": models,
        "graphs": graphs,
        "paths": source_paths(context.spec),
        "requirements": context.spec.conversion.requirements,
        "step_requirements": context.spec.other_requirements,
    }


def source_paths(spec: TritonDeploymentSpec) -> tuple[str, ...]:
    """Return the models' paths in the source, if their files are all that is taken of it; none: all is taken.

    Python code may read any file of the source. All is taken too if the spec has the digest of all, or says itself what
    belongs to the source.
    """
    has_code = any(each.entrypoint for each in (*spec.models, spec.dataloader, spec.metrics) if each is not None)
    paths = {each.path or "" for each in spec.models}
    takes_all = has_code or spec.source.sha256 or spec.source.include or "" in paths
    return () if takes_all else tuple(sorted(paths))


def weights_digest(context: Context) -> str:
    """Return the digest of the published weights; empty: the spec has none, or they are not published yet."""
    return _digest(context, context.spec.weights)


def data_digest(context: Context) -> str:
    """Return the digest of the published dataset; empty: there is none, it is on a claim, or not published yet."""
    return _digest(context, context.spec.published_dataset)


def _digest(context: Context, files: Source | None) -> str:
    owner = context.triton_deployment
    result = recorded_files(context.observed.records, files, owner.uid) if files is not None else None
    return result.digest if result is not None else ""


def recorded_source(context: Context, work: SourceWork) -> SourceResult | None:
    """Return the recorded result of the Job; None: there is none yet."""
    return _recorded(context.observed.records, work.key)


def recorded_files(records: Mapping[str, Record], files: Source, uid: str) -> SourceResult | None:
    """Return what a Job published of weights or data; None: nothing yet. ``uid``: the object's."""
    return _recorded(records, _key(files, _request(files), uid))


def _recorded(records: Mapping[str, Record], key: str) -> SourceResult | None:
    record = records.get(record_name("source", key))
    result = record.outcome.result if record is not None else None
    return result if isinstance(result, SourceResult) else None


def _work(context: Context, source: Source, **fields: Any) -> SourceWork:
    """Return a Job's work. Its key does not cover the content: the user changes ``version`` to have it read again.

    Whoever asks something else about files that were read does not ask for others, which may lie there by now. So the
    answer is found in what is published.
    """
    request = _request(source, **fields)
    key = _key(source, request, context.triton_deployment.uid)
    request = replace(request, key=key, files_key=_files_key(context, source, request))
    shape: Plain | Download
    if (published := _published(context, request)) is not None:
        request = replace(request, published=published.digest, resolved=published.resolved)
        shape = Plain()
    elif uris.split(source.uri).is_remote:
        shape = download(source)
    else:
        shape = Plain(*claim_volume(context, "source", source.uri, layout.SOURCE_MOUNT))
    return Work(
        stage="source",
        request=request,
        deadline_seconds=context.spec.conversion.active_deadline_seconds,
        shape=shape,
    )


def _request(source: Source, **fields: Any) -> SourceRequest:
    """Return a request without its keys."""
    uri = uris.split(source.uri)
    return SourceRequest(
        key="",
        uri=source.uri,
        path="" if uri.is_remote else uri.path,
        sha256=source.sha256,
        revision=source.version if uris.SCHEMES[uri.scheme].has_revisions else "",
        include=tuple(source.include),
        **fields,
    )


def _files_key(context: Context, source: Source, request: SourceRequest) -> str:
    """Return ``SourceRequest.files_key``."""
    others = _others(source, context.triton_deployment.uid)
    return names.result_key("source", request, *others, *_named(request), without=QUESTIONS)


def _named(request: SourceRequest) -> list[str]:
    """Return the files that are taken because they are named; where all is taken, to name one takes no other."""
    return sorted({*request.files}) if request.paths else []


def _key(source: Source, request: SourceRequest, uid: str) -> str:
    return names.result_key("source", request, *_others(source, uid), without=MESSAGES)


def _others(source: Source, uid: str) -> tuple[str, str]:
    """Return what the keys cover besides the request."""
    return source.version, uid


def download(source: Source) -> Download:
    """Return the shape of a Job that reaches the source's server."""
    credentials = secret_volume(source.secret_ref.name) if source.secret_ref is not None else ((), ())
    return Download(*credentials, source.service_account_name or "")


def _published(context: Context, request: SourceRequest) -> SourceResult | None:
    """Return the result of a Job that has read the same files but was asked something else; None: there is none."""
    own = record_name("source", request.key)
    results = (each.outcome.result for name, each in sorted(context.observed.records.items()) if name != own)
    found = (each for each in results if isinstance(each, SourceResult) and each.files_key == request.files_key)
    return next(found, None)
