"""The Jobs: one for each piece of work, whose shape decides about the containers of its pod."""

from collections.abc import Collection, Mapping
from typing import Any

from triton_converters.contract import layout
from triton_converters.contract.envelope import EXIT_FINAL
from triton_operator import names
from triton_operator.api.pod import Pod
from triton_operator.context import Context
from triton_operator.names import Body
from triton_operator.observed.job_rules import BACKOFF_LIMIT
from triton_operator.observed.pod import RUN
from triton_operator.observed.turn import MEASURING
from triton_operator.resources import pod
from triton_operator.resources.containers import PREPARE, TENSORRT_CHECK, checks_engine, containers
from triton_operator.resources.work import AnyWork, Download, Pip, Replay, UserCode

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
UNQUEUED = ("look", "snapshot")
"""The stages that wait in no queue: what they find late says nothing, and they take no GPU."""


def job(context: Context, work: AnyWork) -> Body:
    """The Job that does the work. Its name contains a hash of its whole template, but for what `_identify` adds."""
    settings = _unqueued(context.job_pod) if work.stage in UNQUEUED else context.job_pod
    labels = {names.STAGE_LABEL: work.stage, names.KEY_LABEL: work.key}
    if work.candidate:
        labels[names.CANDIDATE_LABEL] = work.candidate
    if work.downloads:
        labels[names.DOWNLOADS_LABEL] = "true"
    template = {"metadata": _pod_metadata(context, work, settings, labels), "spec": _pod(context, work)}
    spec = {
        # A failure that another try would repeat ends with EXIT_FINAL, and is not tried again.
        "backoffLimit": BACKOFF_LIMIT,
        "podFailurePolicy": _failure_policy(work),
        # A pod that still terminates holds the claim and the GPU.
        "podReplacementPolicy": "Failed",
        "template": template,
    }
    metadata = context.metadata(names.job(context.name, work.stage, [work.key, spec]), work.stage, **labels)
    _identify(context, template["spec"])
    if measures(work):
        metadata["labels"][names.MEASURES_LABEL] = "true"
        _keep_off(context.observed.turn.taken, template["spec"])
    # What the Job belongs to. A retry that is asked for later asks for another try of it too, and so does a look.
    owner = context.triton_deployment
    asked = {names.RETRY_ANNOTATION: owner.retry, names.REQUEST_ANNOTATION: owner.requested_at}
    annotations = {name: text for name, text in asked.items() if text}
    own = pod.pod_metadata(context, settings, work.stage, {"labels": labels, "annotations": annotations})
    metadata |= {group: {**metadata.get(group, {}), **given} for group, given in own.items()}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _unqueued(settings: Pod) -> Pod:
    """The settings without a queue."""
    labels = {name: value for name, value in settings.labels.items() if name != names.QUEUE_LABEL}
    return settings.model_copy(update={"labels": labels})


def _pod_metadata(context: Context, work: AnyWork, settings: Pod, labels: dict[str, str]) -> Body:
    if runs_user_code(context, work):
        settings = pod.user_code_settings(context, settings)
    # What a user looks for in a Job's log is the user's own traceback, or the figures.
    logged = {names.LOGGED_CONTAINER: RUN} if work.boxed else {}
    return pod.pod_metadata(context, settings, work.stage, {"labels": labels, "annotations": logged})


def _failure_policy(work: AnyWork) -> Body:
    engine = [TENSORRT_CHECK] if checks_engine(work) else []
    final = [PREPARE, *engine, work.stage] if work.boxed else [work.stage]
    return {
        "rules": [
            *(
                {"action": "FailJob", "onExitCodes": {"containerName": each, "operator": "In", "values": [EXIT_FINAL]}}
                for each in final
            ),
            # An eviction or a drained node says nothing about the work.
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        ]
    }


def _pod(context: Context, work: AnyWork) -> Body:
    shape = work.shape
    gpu = work.server is not None or (isinstance(shape, UserCode) and shape.gpu)
    # No token of the cluster is mounted, nor for any other pod: a cloud mounts its own, or knows the pod.
    account = shape.service_account if isinstance(shape, Download) else ""
    others = {
        **({"serviceAccountName": account} if account else {}),
        "restartPolicy": "Never",
        # The Job's own deadline would also count the time in which no node takes the pod.
        "activeDeadlineSeconds": work.deadline_seconds,
        "terminationGracePeriodSeconds": 5,
    }
    placement = _placement(context, work)
    purpose = pod.PodPurpose(work.stage, placement, gpu, runs_user_code(context, work), others, work.has_claim)
    return pod.pod_spec(context, purpose, containers(context, work))


def _identify(context: Context, spec: Body) -> None:
    """Tell the containers of ours before and after user code the object and its claim.

    By these they keep apart what lies on storage that others use too. No result depends on them.
    """
    claim = f"{context.namespace}/{context.claim_name}"
    variables = [{"name": layout.OBJECT, "value": context.name}, {"name": layout.CLAIM, "value": claim}]
    first = [each for each in spec.get("initContainers", ()) if each["name"] == PREPARE]
    for container in (*first, *spec["containers"]):
        container["env"] += variables


def measures(work: AnyWork) -> bool:
    """Whether another load on the node would change what the Job answers. One that reads an answer again does not."""
    return work.stage in MEASURING and not isinstance(work.shape, Replay)


def _keep_off(nodes: Collection[str], spec: Body) -> None:
    """Keep the pod off nodes where others are measured. Where it runs otherwise is not for the Job's name to say."""
    if not nodes:
        return
    fields = [{"key": "metadata.name", "operator": "NotIn", "values": [each]} for each in sorted(nodes)]
    affinity = spec.get("affinity", {})
    node = affinity.get("nodeAffinity", {})
    terms = node.get(REQUIRED, {}).get("nodeSelectorTerms") or [{}]
    kept = [{**each, "matchFields": [*each.get("matchFields", []), *fields]} for each in terms]
    spec["affinity"] = affinity | {"nodeAffinity": node | {REQUIRED: {"nodeSelectorTerms": kept}}}


def keeps_off(job: Mapping[str, Any]) -> bool:
    """Whether a Job was made to keep off nodes; a spec's own affinity names labels alone."""
    affinity = job["spec"]["template"]["spec"].get("affinity", {}).get("nodeAffinity", {})
    return any("matchFields" in each for each in affinity.get(REQUIRED, {}).get("nodeSelectorTerms", []))


def runs_user_code(context: Context, work: AnyWork) -> bool:
    """Whether the user's Python code runs in the Job's pod: in a container for it, or as a step inside the server."""
    return isinstance(work.shape, UserCode) or (work.server is not None and context.spec.has_steps)


def _placement(context: Context, work: AnyWork) -> Pod:
    """The settings for the pod's node. A pod with a server runs where servers run, so that its figures hold there."""
    own, serving = context.job_pod, context.server_pod
    pulls_server = work.server is not None or (isinstance(work.shape, Pip) and work.shape.served)
    follows = work.has_claim and pod.follows_servers(context)
    placed = serving if work.server is not None else context.follower_pod if follows else own
    if not pulls_server:
        return placed
    secrets = {each.name: each for each in [*serving.image_pull_secrets, *own.image_pull_secrets]}
    return placed.model_copy(update={"image_pull_secrets": list(secrets.values())})
