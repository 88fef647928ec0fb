"""The moments that have a name of their own: states of all kinds, each found by what has happened.

They are come by at test time: keys change with everything that can change a result, so stored inputs would only be
written anew together with what is expected of them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from tests.simulation.answers import FINAL, Script, Scripts, all_good, samples_vary, when
from tests.simulation.cluster import SETTINGS, Cluster
from tests.simulation.deployments import UNANCHORED, a_step
from tests.simulation.edits import a_narrower_batch, a_wider_batch, another_source, merged, only
from tests.simulation.made_jobs import WEB
from tests.simulation.moving import move
from tests.states import nvidias_resnet50
from tests.states.deployment import State, a_deployment, a_deployment_of, an_ensemble_of
from tests.states.pods import without_a_node
from triton_converters.contract.envelope import EXIT_FINAL
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Counters

ONE = a_deployment().one_candidate("ts-trace-fp32")
PAIR = a_deployment().candidates("ts-trace-fp32", "onnx-fp16")
TENSORS = [{"name": "x", "dataType": "BYTES", "dims": [-1]}]

# One object with four candidates, on its way from its making.
NEW = a_deployment()
RUNNING_THE_FRAMEWORK = NEW.until_active("reference")
CONVERTING = RUNNING_THE_FRAMEWORK.until_active("convert", 2)
PROFILING = CONVERTING.until(lambda cluster: cluster.active("profile") == ["onnx-fp32"])
COMPUTING = PROFILING.until_active("metrics")
ROLLING_OUT = COMPUTING.until(lambda cluster: cluster.of_kind("Deployment"))
MEASURING = ROLLING_OUT.until_active("measure")
READY = MEASURING.until_has("Ready")
EDITED = READY.stepped().edited(a_narrower_batch())
SERVING = READY.settled()
FOLLOWED = (
    a_deployment()
    .one_candidate()
    .asking(source={"uri": "oci://registry.example/acme/digits:nightly", "interval": "1h"})
)
SECOND = Script(content="second")
NO_ANSWER = Script(exit_code=1, reason=Reason.SOURCE_UNREACHABLE, message="GET /v2/acme/digits: no answer")
PUBLISHED = ONE.asking(
    publish={
        "uri": "oci://registry.example/acme/digits:stable",
        "secretRef": {"name": "registry"},
        "signing": {"secretRef": {"name": "cosign"}},
    }
)
GATED = PUBLISHED.asking(serving={"mode": "None"})
NO_PROJECT = Script(exit_code=EXIT_FINAL, reason=Reason.REGISTRY_NOT_FOUND, message="POST /v2/acme/digits: 404")


@dataclass
class Clients:
    """Clients that send 100 requests a second to each server, from the beginning of an edit on."""

    cluster: Cluster
    old: str | None
    """Name of the Deployment that was active before."""
    began: datetime
    failing: int
    """Requests a second that fail in every other one."""

    def __call__(self, pod: str) -> Counters:
        """What the metrics of the server in a pod of that name say now."""
        seconds = int((self.cluster.now - self.began).total_seconds())
        failed = 0 if pod.startswith(f"{self.old}-") else self.failing * seconds
        return Counters(pod, 20_000 + 100 * seconds - failed, failed, 900_000_000 + 200_000 * seconds)


def asked_by_clients(cluster: Cluster, failing: int) -> None:
    """Let clients ask the active revision's server from now on. ``failing``: the share that fails in later ones."""
    cluster.counters = Clients(cluster, cluster.serving(), cluster.now, failing)


def idle(pod: str) -> Counters:
    """The metrics of a server that nobody asks."""
    return Counters(pod, 20_000, 0, 900_000_000)


def replaced(asked: State, failing: int = 0) -> State:
    """Another revision is asked for, while clients ask. ``failing``: its requests that fail a second."""
    return asked.settled().then(asked_by_clients, failing).run(10).edited(a_wider_batch())


def newer_files(reason: str, scripts: Scripts | None = None) -> State:
    """Other files are found at the source of an object that is Ready, and what became of them so far."""
    return (
        READY.passed()
        .then(move, scripts)
        .until(lambda each: each.has(reason, "UpToDate") and each.started("convert") > 4)
    )


def followed(reason: str, look: Script, scripts: Scripts | None = None, **source: str) -> State:
    """A source that is followed is looked at an hour later, and what became of what that look found."""
    return (
        FOLLOWED.asking(merged("source", **source))
        .until_has("Ready")
        .passed()
        .then(_an_hour_later, look, scripts)
        .until(lambda cluster: cluster.has(reason, "UpToDate"))
    )


def _an_hour_later(cluster: Cluster, look: Script, scripts: Scripts | None) -> None:
    cluster.now += timedelta(hours=1.2)
    others = scripts or all_good
    cluster.scripts = lambda stage, name, request: look if stage == "look" else others(stage, name, request)


def regressed(**regression: object) -> State:
    """A new source's revision is half as fast as the one that serves."""
    return (
        ONE.until_has("Ready")
        .stepped()
        .faring(when("measure", Script(speed=0.5)))
        .edited(another_source(), performance={"regression": {"maxPercent": 10, **regression}})
        .until_has("PerformanceRegressed", "PerformanceMeasured")
    )


def _one_of_two_waits(cluster: Cluster) -> bool:
    waits = sorted(job["spec"]["suspend"] for job in cluster.of_kind("Job")[-2:])
    return waits == [False, True] and len(cluster.active("convert")) == 2


def _roll_back(cluster: Cluster) -> None:
    """The revision before the newest one serves again, by its key."""
    first = cluster.status["serving"]["revision"]
    cluster.edit(another_source())
    cluster.settle()
    cluster.edit(rollout={"revision": first})
    cluster.settle()


A_REPOSITORY: dict[str, Any] = {
    "source": {"uri": "pvc://models"},
    "models": [{"name": "digits", "path": "repository/digits.onnx"}],
}
LAST_WORDS = (
    "E1121 00:00:42.123456 1 model_lifecycle.cc:654] \"failed to load 'digits' version 1: Invalid argument: model"
    " 'digits', tensor 'OUTPUT__0': the model expects 2 dimensions (shape [-1,-1]) but the model configuration"
    ' specifies 2 dimensions (shape [-1,10])"\nerror: creating server: Internal - failed to load all models\n'
)
"""Of a server that refuses its model."""
SATURATING = {"concurrency": {"start": 1}, "requestRate": {"rates": [1000, 2000]}}
SEVERAL_NODES = {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteMany"]}}}
SCALED = a_deployment().one_candidate().autoscaled()
SOAKED = a_deployment().one_candidate().soaked().where(has_gateway_api=True)
CANARY = SOAKED.routed(canary=[5, 25, 50])

MOMENTS: dict[str, State] = {
    "new-object": NEW,
    "running-the-framework": RUNNING_THE_FRAMEWORK,
    "judging-the-framework": RUNNING_THE_FRAMEWORK.until_active("metrics"),
    "converting-in-parallel": CONVERTING,
    "profiling": PROFILING,
    "computing-the-metrics": COMPUTING,
    "comparing-with-earlier-revisions": EDITED.until_active("comparison"),
    "rolling-out": ROLLING_OUT,
    "measuring-the-preview": MEASURING,
    "ready": READY,
    # Other ways to a server.
    "config-of-a-repository-read": a_deployment_of(A_REPOSITORY).until_active("reference"),
    "installing-packages": ONE.asking(conversion={"requirements": "requirements.txt"})
    .upgraded(sources_egress=(WEB,))
    .until_active("packages"),
    "queued": PAIR.asking(conversion={"pod": {"labels": {"kueue.x-k8s.io/queue-name": "models"}}})
    .where(quota=1)
    .until(_one_of_two_waits),
    "ensemble-profiling": an_ensemble_of("onnx-fp32", "ts-trace-fp32").until_active("profile"),
    "python-step": a_deployment_of(a_step(inputs=TENSORS, outputs=TENSORS))
    .where(settings=replace(SETTINGS, allowed_python_steps=True, user_code_runtime_class="gvisor"))
    .until_has("Ready"),
    "packages-of-a-python-step": a_deployment_of(
        a_step(inputs=TENSORS, outputs=TENSORS, requirements="steps/needs.txt")
    )
    .where(settings=replace(SETTINGS, allowed_python_steps=True, sources_egress=(WEB,)))
    .until_active("convert"),
    "fixed-paths": a_deployment_of(a_step(mountPath="/models/first/1", scratchPaths=["/cache", "/data-cache/hub"]))
    .where(settings=replace(SETTINGS, allowed_python_steps=True))
    .until_has("Ready"),
    "resnet50-on-an-a100": a_deployment_of(nvidias_resnet50.SPEC)
    .where(gpu_product_exists=True)
    .until_active("profile"),
    "second-part-of-a-search": PAIR.asking(selection={"search": {"mode": "Quick", "measurements": 60}}).until(
        lambda cluster: cluster.started("search") == 2
    ),
    "awaiting-approval": PAIR.asking(selection={"approval": "Manual"}).until_has("AwaitingApproval"),
    "closest-selected": ONE.asking(selection={"constraints": {"p99Latency": "4ms"}, "fallback": "Closest"}).until_has(
        "Ready"
    ),
    "saturated": a_deployment().one_candidate().asking(performance={"online": SATURATING}).until_has("Ready"),
    "int8": a_deployment().candidates("onnx-fp32", "onnx-int8").until_has("Ready"),
    "mixed-shapes": ONE.faring(samples_vary).until_has("Ready"),
    "several-servers": ONE.asking(serving={"replicas": 2}, repository=SEVERAL_NODES).until_has("Ready"),
    "flags-and-clients": ONE.asking(
        serving={
            "arguments": ["--http-thread-count=16"],
            "networkPolicy": {"from": [{"namespaceSelector": {"matchLabels": {"team": "shop"}}}]},
        }
    ).until_has("Ready"),
    "autoscaled": SCALED.until_has("Scaling", "Autoscaling"),
    "autoscaling-paused": SCALED.until_has("ScalingPaused", "Autoscaling"),
    # What an edit leads to.
    "new-generation-while-serving": EDITED,
    "new-revision-about-to-be-measured": EDITED.until(lambda cluster: len(cluster.of_kind("Deployment")) == 2),
    "cleaning-the-claim": ONE.asking(revisionHistoryLimit=0, **UNANCHORED)
    .until_has("Ready")
    .stepped()
    .edited(another_source())
    .until_active("clean"),
    "kept": ONE.until_has("Ready")
    .stepped()
    .edited(only("ts-trace-fp32", "onnx-fp16"), selection={"minImprovementPercent": 60})
    .until_has("Kept", "Selected"),
    "soaking": replaced(SOAKED).until_has("Soaking", "Soaked"),
    "canary": replaced(CANARY).until_has("Canary", "Soaked", "step 2 of 3"),
    "canary-held": replaced(CANARY)
    .until_has("Canary", "Soaked", "step 1 of 3")
    .where(counters=idle)
    .until(lambda cluster: "no verdict yet" in cluster.condition("Soaked")["message"]),
    "rolled-back": SERVING.then(_roll_back),
    # What went wrong, and what is waited for.
    "revision-unknown": SERVING.edited(rollout={"revision": "0123456789abcdef"}).until_has(
        "RevisionUnknown", "SourceResolved"
    ),
    "suspended": a_deployment().asking(suspend=True).until_has("Suspended"),
    "unschedulable": a_deployment()
    .asking(gpu={"count": 99})
    .faring(when("reference", Script(pending=without_a_node())))
    .until_has("Unschedulable"),
    "killed-for-memory": a_deployment()
    .asking(conversion={"pod": {"resources": {"limits": {"memory": "64Mi"}}}})
    .faring(when("reference", Script(exit_code=137, killed="OOMKilled")))
    .until_has("OutOfMemory"),
    "framework-misses-a-threshold": a_deployment()
    .asking(accuracy={"thresholds": [{"metric": "accuracy", "min": 90}]})
    .until_has("ThresholdNotMet"),
    "candidate-failed": a_deployment()
    .faring(when("convert", FINAL, "ts-script-fp32"))
    .until(lambda cluster: any(each.reason == FINAL.reason for each in cluster.events)),
    "server-refuses-the-model": a_deployment()
    .faring(when("profile", Script(sidecar_crashes=LAST_WORDS), "onnx-fp32"))
    .until_has("Ready"),
    "search-failed": PAIR.asking(selection={"search": {"mode": "Quick"}})
    .faring(when("search", FINAL, "ts-trace-fp32"))
    .until_has("Ready"),
    "approval-invalid": PAIR.asking(selection={"approval": "Manual", "approvedRevision": "0123456789abcdef"}).until_has(
        "ApprovalInvalid"
    ),
    "no-candidate-meets-the-constraint": a_deployment()
    .asking(selection={"constraints": {"p99Latency": "10us"}})
    .until_has("ConstraintsNotMet"),
    "constraint-broken-in-the-preview": EDITED.faring(when("measure", Script(p99=90_000))).until_has(
        "ConstraintsNotMet", "PerformanceMeasured"
    ),
    "performance-regressed": regressed(),
    "performance-regression-blocks": regressed(block=True),
    "undone": replaced(SOAKED, failing=5).until_has("SoakFailed", "Soaked"),
    "newer-files": newer_files("Running"),
    "newer-files-fail": newer_files("AllCandidatesFailed", when("convert", FINAL)),
    "newer-files-are-worse": newer_files("WorseThanBefore", when("comparison", Script(before=0.99))),
    "looking-at-the-source": FOLLOWED.until_active("look"),
    "newer-version-fails": followed("AllCandidatesFailed", SECOND, when("convert", FINAL)),
    "newer-version-staged": followed("AwaitingApproval", SECOND, onChange="Stage"),
    "newer-version-only-told-of": followed("NewerVersion", SECOND, onChange="Notify"),
    "look-fails": followed("SourceUnreachable", NO_ANSWER),
    "publishing": PUBLISHED.until_active("publish"),
    "published": PUBLISHED.until_has("Published", "Published"),
    "not-published": PUBLISHED.faring(when("publish", NO_PROJECT)).until_has("RegistryNotFound", "Published"),
    "gate-only": GATED.until_has("Ready"),
    "gate-only-publishing": GATED.until_active("publish"),
    "server-removed": READY.edited(merged("serving", mode="None")).passed(),
    "newer-images": READY.upgraded(server_image="example/server:2"),
    "canary-undone": replaced(CANARY, failing=5).until_has("SoakFailed", "Soaked"),
}
"""Moments that a plan answers, by the case's name."""


def _about_to_make(kind: str) -> Callable[[Cluster], bool]:
    """Whether the next pass makes an object of that kind."""

    def holds(cluster: Cluster) -> bool:
        wanted = {(each["kind"], each["metadata"]["name"]) for each in cluster.intent().objects}
        return any(each not in cluster.objects for each in wanted if each[0] == kind)

    return holds


REPORTS: dict[str, State] = {
    "spec-invalid": SERVING.edited(merged("selection", constraints={"p99Latency": "soon"})),
    "job-refused": a_deployment().where(refuses={("create", "Job")}),
    "newer-server-refused": EDITED.until(_about_to_make("Deployment")).where(refuses={("create", "Deployment")}),
    "scaler-refused": SCALED.until(_about_to_make("ScaledObject")).where(refuses={("create", "ScaledObject")}),
    "pass-failed": SERVING.where(broken="no such stage"),
}
"""Moments whose status no plan has, by the case's name: the Reconciler makes it of what went wrong in the pass."""
