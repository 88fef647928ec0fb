"""Check that the installation allows everything that the spec names. Pure."""

import json
from collections.abc import Iterator

from triton_converters.contract.formats import TRITON_PYTHON
from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import shortened
from triton_converters.contract.uris import split
from triton_operator import names
from triton_operator.api.pod import Placement
from triton_operator.api.source import Source
from triton_operator.context import Context
from triton_operator.effects import Effects, Statement
from triton_operator.jobs import look
from triton_operator.resources.claim import other_owner
from triton_operator.rollout.route import route_refusals
from triton_operator.rollout.wording import not_allowed
from triton_operator.stages.progress import Progress

CLAIM_SCHEME = "pvc"
"""The scheme of a URI that names a claim."""
LONGEST_PEER = 300
"""The most bytes of a peer in a message."""


def permit(context: Context, progress: Progress) -> Progress:
    """Wait if the spec names what the installation does not allow, or asks for what it does not have."""
    refusal = next(_refusals(context), None)
    if refusal is None:
        return progress
    # Jobs that ended, and failures, stay recorded: they count again once the spec or the installation changes. A look
    # would take the place of another object's.
    ended_jobs = frozenset(
        each.name for each in context.observed.jobs.values() if not each.active and each.stage != look.STAGE
    )
    effects = Effects(jobs=ended_jobs, failures=context.observed.failures)
    return progress.wait_with(Statement("SourceResolved", False, Reason.NOT_ALLOWED, refusal), effects, stalled=True)


def _refusals(context: Context) -> Iterator[str]:
    """Yield a message for each field that names something which the installation does not allow."""
    settings = context.settings
    for field, image in _images(context):
        if image and not settings.allows_image(image):
            yield not_allowed(field, image, "image", "allowed.images")
    for field, claim in _claims(context):
        if not settings.allows_claim(claim):
            yield not_allowed(field, claim, "claim", "allowed.claims")
    yield from _claim_refusals(context)
    for field, files in _files(context):
        account = f"{context.namespace}/{files.service_account_name}"
        if files.service_account_name and account not in settings.allowed_service_accounts:
            yield not_allowed(f"{field}.serviceAccountName", account, "ServiceAccount", "allowed.serviceAccounts")
    for field, pod in _pods(context):
        for key in pod.annotations:
            if not settings.allows_annotation(key):
                yield not_allowed(f"{field}.annotations", key, "annotation", "allowed.annotations")
    yield from route_refusals(context)
    yield from _client_refusals(context)
    yield from _step_refusals(context)
    if context.spec.serving.tracing and not settings.tracing_endpoint:
        yield (
            "spec.serving.tracing needs a collector of traces, and this installation has none; remove the field, or ask"
            " the administrator who installed the operator to set the Helm value tracing.endpoint"
        )


def _step_refusals(context: Context) -> Iterator[str]:
    """Yield a message for each model whose Python code must not run in the server, and for what opens its box."""
    for model in context.spec.models:
        if model.is_step and not context.settings.allowed_python_steps:
            yield (
                f"spec.models: model {model.name} has format {TRITON_PYTHON}, which runs Python code inside the server,"
                " and this installation does not allow that; use another format, or ask the administrator who installed"
                " the operator to set the Helm value allowed.pythonSteps to true"
            )
    spec = context.spec
    box = context.settings.user_code_runtime_class
    if not spec.has_steps:
        return
    own = context.server_pod.runtime_class_name
    if box and own not in ("", box):
        yield (
            f"spec.serving.pod or spec.pod has runtimeClassName {own}, but servers with"
            f" a model of format {TRITON_PYTHON} have {box} in this installation; remove the field"
        )
    if spec.serving.tracing:
        yield (
            f"spec.serving.tracing lets the server reach a collector, and Python code of format {TRITON_PYTHON} in it"
            " must reach nothing; remove spec.serving.tracing"
        )


def _client_refusals(context: Context) -> Iterator[str]:
    """Yield a message for each peer that the spec lets in and the installation does not."""
    named = context.spec.serving.network_policy
    for each in named.peers if named is not None else ():
        if not context.settings.allows_client(context.namespace, each.body()):
            words = shortened(json.dumps(each.body()), LONGEST_PEER)
            yield not_allowed("spec.serving.networkPolicy.from", words, "peer", "allowed.clients")


def _claim_refusals(context: Context) -> Iterator[str]:
    """Yield a message if the spec names the claim that the operator makes, or made, for another TritonDeployment."""
    name = context.spec.repository.claim_name
    owner = other_owner(context)
    if owner and context.observed.claim is None:
        yield (
            f"spec.repository.claimName names claim {name}, which is not there, and which the operator makes for"
            f" TritonDeployment {owner}; to use a claim of that name, make it first; or name another one"
        )
    elif owner:
        yield (
            f"spec.repository.claimName names claim {name}, which is that of TritonDeployment {owner} alone; to share a"
            f" claim, make one, and name it in both; if {owner} is gone and its files are for this one, type: kubectl"
            f" label pvc {name} --namespace {context.namespace} {names.TRITON_DEPLOYMENT_LABEL}-"
        )


def _pods(context: Context) -> Iterator[tuple[str, Placement]]:
    spec = context.spec
    yield "spec.pod", spec.pod
    yield "spec.conversion.pod", spec.conversion.pod
    yield "spec.serving.pod", spec.serving.pod


def _images(context: Context) -> Iterator[tuple[str, str]]:
    spec = context.spec
    yield "spec.conversion.image", spec.conversion.image
    yield "spec.serving.image", spec.serving.image


def _claims(context: Context) -> Iterator[tuple[str, str]]:
    """Yield the field and the claim that it names. The operator's own claim is named by no field."""
    spec = context.spec
    if spec.repository.claim_name is not None:
        yield "spec.repository.claimName", spec.repository.claim_name
    for field, files in _files(context):
        uri = split(files.uri)
        if uri.scheme == CLAIM_SCHEME:
            yield f"{field}.uri", uri.host


def _files(context: Context) -> Iterator[tuple[str, Source]]:
    """Yield the fields that say where files come from."""
    spec = context.spec
    fields = (("spec.source", spec.source), ("spec.weights", spec.weights), ("spec.dataset", spec.dataset))
    yield from ((field, files) for field, files in fields if files is not None)
