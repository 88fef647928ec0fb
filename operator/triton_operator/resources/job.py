"""The Jobs: one for each piece of work, whose shape decides about the containers of its pod."""

from typing import Any

from triton_converters.contract import layout
from triton_converters.contract.envelope import EXIT_FINAL
from triton_operator import names
from triton_operator.api.pod import Pod
from triton_operator.context import Context
from triton_operator.observed.job_rules import BACKOFF_LIMIT
from triton_operator.observed.pod import RUN
from triton_operator.resources import pod
from triton_operator.resources.containers import PREPARE, TENSORRT_CHECK, checks_engine, containers
from triton_operator.resources.work import AnyWork, Download, Pip, UserCode


def job(context: Context, work: AnyWork) -> dict[str, Any]:
    """The Job that does the work. Its name contains a hash of its whole template, but for `_identified`."""
    settings = _unqueued(context.job_pod) if work.stage == "snapshot" else context.job_pod
    labels = {names.STAGE_LABEL: work.stage, names.KEY_LABEL: work.key}
    if work.candidate:
        labels[names.CANDIDATE_LABEL] = work.candidate
    if work.downloads:
        labels[names.DOWNLOADS_LABEL] = "true"
    spec: dict[str, Any] = {
        # A failure that another try would repeat ends with EXIT_FINAL, and is not tried again.
        "backoffLimit": BACKOFF_LIMIT,
        "podFailurePolicy": _failure_policy(work),
        # A pod that still terminates holds the claim and the GPU.
        "podReplacementPolicy": "Failed",
        "template": {
            "metadata": _metadata(context, work, settings, labels),
            "spec": _pod(context, work),
        },
    }
    metadata = context.metadata(names.job(context.name, work.stage, [work.key, spec]), work.stage, **labels)
    for group, given in pod.pod_metadata(context, settings, work.stage, labels).items():
        metadata[group] = {**metadata.get(group, {}), **given}
    spec["template"]["spec"] = _identified(context, spec["template"]["spec"])
    if retry := context.triton_deployment.retry:
        # The retry that the Job belongs to. One that is asked for later asks for another try of it too.
        metadata["annotations"] = metadata.get("annotations", {}) | {names.RETRY_ANNOTATION: retry}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _unqueued(settings: Pod) -> Pod:
    """The settings without a queue: counters that are read late say nothing, and reading them takes no GPU."""
    labels = {name: value for name, value in settings.labels.items() if name != names.QUEUE_LABEL}
    return settings.model_copy(update={"labels": labels})


def _metadata(context: Context, work: AnyWork, settings: Pod, labels: dict[str, str]) -> dict[str, Any]:
    if runs_user_code(context, work):
        settings = pod.user_code_settings(context, settings)
    metadata = pod.pod_metadata(context, settings, work.stage, labels)
    if work.boxed:
        # What a user looks for in a Job's log is the user's own traceback, or the figures.
        metadata["annotations"] = metadata.get("annotations", {}) | {names.LOGGED_CONTAINER: RUN}
    return metadata


def _failure_policy(work: AnyWork) -> dict[str, Any]:
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


def _pod(context: Context, work: AnyWork) -> dict[str, Any]:
    parts, shape = containers(context, work), work.shape
    gpu = work.server is not None or (isinstance(shape, UserCode) and shape.gpu)
    spec = pod.pod_spec(context, _placement(context, work), work.stage, gpu=gpu)
    if runs_user_code(context, work):
        spec |= pod.isolation(context.settings)
    if isinstance(shape, Download) and shape.service_account:
        # No token of the cluster is mounted, nor for any other pod: a cloud mounts its own, or knows the pod.
        spec["serviceAccountName"] = shape.service_account
    spec |= {
        "restartPolicy": "Never",
        # The Job's own deadline would also count the time in which no node takes the pod.
        "activeDeadlineSeconds": work.deadline_seconds,
        "terminationGracePeriodSeconds": 5,
        "containers": [parts.main],
        "volumes": [
            pod.repository_volume(context, read_only=False),
            pod.temporary_volume(pod.JOB_TEMPORARY),
            *parts.volumes,
        ],
    }
    spec = _with_one_volume(context, spec | {"initContainers": [*parts.first]} if parts.first else spec)
    return pod.finished(context, spec)


def _with_one_volume(context: Context, spec: dict[str, Any]) -> dict[str, Any]:
    """The pod's spec without a second volume of the repository claim, which would keep the pod from starting for good.

    The kubelet mounts a claim once for a pod, and waits for the other volume (kubernetes/kubernetes#82526).
    """
    claims = {each["name"]: each.get("persistentVolumeClaim", {}).get("claimName") for each in spec["volumes"]}
    same = {name for name, claim in claims.items() if claim == context.claim_name}

    def mounted(container: dict[str, Any]) -> dict[str, Any]:
        mounts = [each | {"name": "repository"} if each["name"] in same else each for each in container["volumeMounts"]]
        return container | {"volumeMounts": mounts}

    groups = {group: [mounted(each) for each in spec.get(group, ())] for group in ("initContainers", "containers")}
    volumes = [each for each in spec["volumes"] if each["name"] not in same - {"repository"}]
    return spec | {"volumes": volumes} | {group: each for group, each in groups.items() if each}


def _identified(context: Context, spec: dict[str, Any]) -> dict[str, Any]:
    """The pod's spec, whose containers of ours before and after user code know the object and its claim.

    By these they keep apart what lies on storage that others use too. No result depends on them.
    """
    claim = f"{context.namespace}/{context.claim_name}"
    variables = [{"name": layout.OBJECT, "value": context.name}, {"name": layout.CLAIM, "value": claim}]

    def identified(container: dict[str, Any]) -> dict[str, Any]:
        return container | {"env": [*container["env"], *variables]}

    first = [identified(each) if each["name"] == PREPARE else each for each in spec.get("initContainers", [])]
    changed = {"containers": [identified(each) for each in spec["containers"]]}
    return spec | changed | ({"initContainers": first} if first else {})


def runs_user_code(context: Context, work: AnyWork) -> bool:
    """Whether the user's Python code runs in the Job's pod: in a container for it, or as a step inside the server."""
    return isinstance(work.shape, UserCode) or (work.server is not None and context.spec.has_steps)


def _placement(context: Context, work: AnyWork) -> Pod:
    """The settings for the pod's node. A pod with a server runs where servers run, so that its figures hold there."""
    own, serving = context.job_pod, context.server_pod
    pulls_server = work.server is not None or (isinstance(work.shape, Pip) and work.shape.served)
    placed = serving if work.server is not None else context.follower_pod if pod.follows_servers(context) else own
    if not pulls_server:
        return placed
    secrets = {each.name: each for each in [*serving.image_pull_secrets, *own.image_pull_secrets]}
    return placed.model_copy(update={"image_pull_secrets": list(secrets.values())})
