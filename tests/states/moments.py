"""The golden cases' inputs: moments of the simulation, each found by what has happened.

They are come by at test time: keys change with everything that can change a result, so stored inputs would only be
written anew together with what is expected of them.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import cache, partial

from tests.simulation.answers import FINAL, Fate, Fates, when
from tests.simulation.cluster import SETTINGS, Cluster
from tests.simulation.deployments import a_model, a_spec, an_ensemble, candidate
from tests.simulation.made_jobs import WEB
from tests.simulation.moving import move
from tests.states import nvidias_resnet50
from triton_converters.contract.results import Counters

Moment = Callable[[], Cluster]
ONE = [a_model(candidates=[candidate("ts-trace-fp32")])]
PAIR = [a_model(candidates=[candidate("ts-trace-fp32"), candidate("onnx-fp16")])]
OTHER_SOURCE = {"uri": "pvc://models/other"}
SMALLER = [a_model(config={"maxBatchSize": 4, "dynamicBatching": {}})]
NO_GPU = {
    "phase": "Pending",
    "conditions": [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
            "lastTransitionTime": "2026-11-21T00:00:12Z",
        }
    ],
}


def until(cluster: Cluster, holds: Callable[[Cluster], bool]) -> Cluster:
    """Passes and steps up to the first pass that finds it so."""
    for _ in range(300):
        if holds(cluster):
            return cluster
        cluster.act()
        cluster.step()
    raise AssertionError(f"it never came about: {cluster.story[-8:]}")


def has(reason: str, kind: str = "Ready") -> Callable[[Cluster], bool]:
    """A condition was written with that reason."""
    return lambda cluster: any(
        (each["type"], each["reason"]) == (kind, reason) for each in cluster.status.get("conditions", [])
    )


def active(stage: str, count: int = 1) -> Callable[[Cluster], bool]:
    """So many Jobs of a stage run."""
    return lambda cluster: len(cluster.active(stage)) == count


ON_THE_WAY: dict[str, Callable[[Cluster], bool]] = {
    "new-object": lambda _: True,
    "running-the-framework": active("reference"),
    "converting-in-parallel": active("convert", 2),
    "profiling": lambda cluster: cluster.active("profile") == ["onnx-fp32"],
    "computing-the-metrics": active("metrics"),
    "rolling-out": lambda cluster: bool(cluster.of_kind("Deployment")),
    "measuring-the-preview": active("measure"),
    "ready": has("Ready"),
}
"""What one object with four candidates passes on its way from its making, in this order."""


@cache
def _passed() -> dict[str, Cluster]:
    cluster, found = Cluster(a_spec()), {}
    for name, holds in ON_THE_WAY.items():
        found[name] = deepcopy(until(cluster, holds))
    return found


def on_the_way(name: str) -> Cluster:
    """A moment of ON_THE_WAY."""
    return deepcopy(_passed()[name])


def config_of_a_repository_read() -> Cluster:
    spec = {"source": {"uri": "pvc://models"}, "models": [{"name": "digits", "path": "repository/digits.onnx"}]}
    return until(Cluster(spec), active("reference"))


def installing_packages() -> Cluster:
    spec = a_spec(models=ONE, conversion={"requirements": "requirements.txt"})
    return until(Cluster(spec, settings=replace(SETTINGS, sources_egress=(WEB,))), active("packages"))


def cleaning_the_claim() -> Cluster:
    """Nothing of earlier generations is kept, and a second one serves."""
    cluster = until(Cluster(a_spec(models=ONE, revisionHistoryLimit=0)), has("Ready"))
    cluster.step()
    cluster.edit(source=OTHER_SOURCE)
    return until(cluster, active("clean"))


def edited() -> Cluster:
    cluster = on_the_way("ready")
    cluster.step()
    cluster.edit(models=SMALLER)
    return cluster


def newer_files(reason: str, fates: Fates | None = None) -> Cluster:
    cluster = on_the_way("ready")
    cluster.act()
    move(cluster, fates)
    return until(cluster, lambda each: has(reason, "UpToDate")(each) and each.started("convert") > 4)


def newer_images() -> Cluster:
    cluster = on_the_way("ready")
    cluster.settings = replace(SETTINGS, server_image="example/server:2")
    return cluster


def candidate_failed() -> Cluster:
    cluster = Cluster(a_spec(), when("convert", FINAL, "ts-script-fp32"))
    return until(cluster, lambda each: any(found.reason == FINAL.reason for found in each.events))


def server_refuses_the_model() -> Cluster:
    words = (
        "E1121 00:00:42.123456 1 model_lifecycle.cc:654] \"failed to load 'digits' version 1: Invalid argument: model"
        " 'digits', tensor 'OUTPUT__0': the model expects 2 dimensions (shape [-1,-1]) but the model configuration"
        ' specifies 2 dimensions (shape [-1,10])"\nerror: creating server: Internal - failed to load all models\n'
    )
    return until(Cluster(a_spec(), when("profile", Fate(sidecar_crashes=words), "onnx-fp32")), has("Ready"))


def new_revision_about_to_be_measured() -> Cluster:
    return until(edited(), lambda cluster: len(cluster.of_kind("Deployment")) == 2)


def constraint_broken_in_the_preview() -> Cluster:
    cluster = edited()
    cluster.fates = when("measure", Fate(p99=90_000))
    return until(cluster, has("ConstraintsNotMet", "PerformanceMeasured"))


def no_candidate_meets_the_constraint() -> Cluster:
    spec = a_spec(selection={"constraints": {"p99Latency": "10us"}})
    return until(Cluster(spec), has("ConstraintsNotMet"))


def killed_for_memory() -> Cluster:
    spec = a_spec(conversion={"pod": {"resources": {"limits": {"memory": "64Mi"}}}})
    return until(Cluster(spec, when("reference", Fate(exit_code=137, killed="OOMKilled"))), has("OutOfMemory"))


def unschedulable() -> Cluster:
    cluster = Cluster(a_spec(gpu={"count": 99}), when("reference", Fate(pending=NO_GPU)))
    return until(cluster, has("Unschedulable"))


def queued() -> Cluster:
    """Of two conversions, one runs and one waits for Kueue's quota."""
    pod = {"labels": {"kueue.x-k8s.io/queue-name": "models"}}
    cluster = Cluster(a_spec(models=PAIR, conversion={"pod": pod}), quota=1)
    waits = [True, False]
    return until(
        cluster,
        lambda each: (
            waits == sorted((job["spec"]["suspend"] for job in each.of_kind("Job")[-2:]), reverse=True)
            and len(each.active("convert")) == 2
        ),
    )


def several_servers() -> Cluster:
    """Two servers, which may run on different nodes, with the last pass done."""
    repository = {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteMany"]}}}
    return until(Cluster(a_spec(models=ONE, serving={"replicas": 2}, repository=repository)), has("Ready"))


def suspended() -> Cluster:
    return until(Cluster(a_spec(suspend=True)), has("Suspended"))


def choosing(**selection: object) -> Cluster:
    return Cluster(a_spec(models=PAIR, selection=selection))


def approval_invalid() -> Cluster:
    return until(choosing(approval="Manual", approvedRevision="0123456789abcdef"), has("ApprovalInvalid"))


def closest_selected() -> Cluster:
    selection = {"constraints": {"p99Latency": "4ms"}, "fallback": "Closest"}
    return until(Cluster(a_spec(models=ONE, selection=selection)), has("Ready"))


def kept() -> Cluster:
    cluster = until(Cluster(a_spec(models=ONE)), has("Ready"))
    cluster.step()
    cluster.edit(models=PAIR, selection={"minImprovementPercent": 60})
    return until(cluster, has("Kept", "Selected"))


def regressed(**fields: object) -> Cluster:
    cluster = until(Cluster(a_spec(models=ONE)), has("Ready"))
    cluster.step()
    cluster.fates = when("measure", Fate(speed=0.5))
    cluster.edit(source=OTHER_SOURCE, performance={"regression": {"maxPercent": 10, **fields}})
    return until(cluster, has("PerformanceRegressed", "PerformanceMeasured"))


def second_part_of_a_search() -> Cluster:
    cluster = choosing(search={"mode": "Quick", "measurements": 60})
    return until(cluster, lambda each: each.started("search") == 2)


def search_failed() -> Cluster:
    cluster = choosing(search={"mode": "Quick"})
    cluster.fates = when("search", FINAL, "ts-trace-fp32")
    return until(cluster, has("Ready"))


def saturated() -> Cluster:
    """One candidate, whose sweep went on until its server was saturated, and two request rates."""
    online = {"concurrency": {"start": 1}, "requestRate": {"rates": [1000, 2000]}}
    one = [a_model(candidates=[candidate("onnx-fp32")])]
    return until(Cluster(a_spec(models=one, performance={"online": online})), has("Ready"))


def autoscaled(reason: str) -> Cluster:
    """One candidate, which KEDA scales by its saturation; with the last pass done, so that the ScaledObject is seen."""
    one = [a_model(candidates=[candidate("onnx-fp32")])]
    cluster = Cluster(a_spec(models=one, serving={"autoscaling": {"maxReplicas": 6}}), has_keda=True)
    return until(cluster, has(reason, "Autoscaling"))


def soaked(reason: str, failing: int = 0, words: str = "", **serving: object) -> Cluster:
    """A revision that replaced another one, and what its soak found. ``failing``: its requests that fail a second.

    ``words``: what the condition's message says. ``serving``: what else the object asks for.
    """
    one = [a_model(candidates=[candidate("onnx-fp32")])]
    wider = [a_model(config={"maxBatchSize": 16, "dynamicBatching": {}}, candidates=[candidate("onnx-fp32")])]
    cluster = Cluster(a_spec(models=one, serving={"soak": {"duration": "1m"}, **serving}), has_gateway_api=True)
    cluster.settle()
    old, began = cluster.serving(), cluster.now

    def counters(pod: str) -> Counters:
        seconds = int((cluster.now - began).total_seconds())
        failed = 0 if pod.startswith(f"{old}-") else failing * seconds
        return Counters(pod, 20_000 + 100 * seconds - failed, failed, 900_000_000 + 200_000 * seconds)

    cluster.counters = counters
    cluster.run(10)
    cluster.edit(models=wider)
    return until(cluster, lambda each: has(reason, "Soaked")(each) and words in each.condition("Soaked")["message"])


def rolled_back() -> Cluster:
    """The revision before the newest one serves again, by its key."""
    cluster = on_the_way("ready")
    cluster.settle()
    first = cluster.status["serving"]["revision"]
    cluster.edit(source=OTHER_SOURCE)
    cluster.settle()
    cluster.edit(rollout={"revision": first})
    cluster.settle()
    return cluster


def revision_unknown() -> Cluster:
    cluster = on_the_way("ready")
    cluster.settle()
    cluster.edit(rollout={"revision": "0123456789abcdef"})
    return until(cluster, has("RevisionUnknown", "SourceResolved"))


def held() -> Cluster:
    """A canary whose first step nobody sent a request in."""
    cluster = soaked("Canary", words="step 1 of 3", route=ROUTE)
    cluster.counters = lambda pod: Counters(pod, 20_000, 0, 900_000_000)
    return until(cluster, lambda each: "no verdict yet" in each.condition("Soaked")["message"])


ROUTE = {
    "parentRefs": [{"name": "public", "namespace": "gateways"}],
    "hostnames": ["digits.example"],
    "canary": [5, 25, 50],
}


MOMENTS: dict[str, Moment] = {
    **{name: partial(on_the_way, name) for name in ON_THE_WAY},
    # Other ways to a server.
    "config-of-a-repository-read": config_of_a_repository_read,
    "installing-packages": installing_packages,
    "queued": queued,
    "ensemble-profiling": lambda: until(Cluster(an_ensemble("onnx-fp32", "ts-trace-fp32")), active("profile")),
    "resnet50-on-an-a100": lambda: until(Cluster(nvidias_resnet50.SPEC, gpu_product_exists=True), active("profile")),
    "second-part-of-a-search": second_part_of_a_search,
    "awaiting-approval": lambda: until(choosing(approval="Manual"), has("AwaitingApproval")),
    "closest-selected": closest_selected,
    "saturated": saturated,
    "several-servers": several_servers,
    "autoscaled": lambda: autoscaled("Scaling"),
    "autoscaling-paused": lambda: autoscaled("ScalingPaused"),
    # What an edit leads to.
    "new-generation-while-serving": edited,
    "new-revision-about-to-be-measured": new_revision_about_to_be_measured,
    "cleaning-the-claim": cleaning_the_claim,
    "kept": kept,
    "soaking": lambda: soaked("Soaking"),
    "canary": lambda: soaked("Canary", words="step 2 of 3", route=ROUTE),
    "canary-held": held,
    "rolled-back": rolled_back,
    # What went wrong, and what is waited for.
    "revision-unknown": revision_unknown,
    "suspended": suspended,
    "unschedulable": unschedulable,
    "killed-for-memory": killed_for_memory,
    "candidate-failed": candidate_failed,
    "server-refuses-the-model": server_refuses_the_model,
    "search-failed": search_failed,
    "approval-invalid": approval_invalid,
    "no-candidate-meets-the-constraint": no_candidate_meets_the_constraint,
    "constraint-broken-in-the-preview": constraint_broken_in_the_preview,
    "performance-regressed": regressed,
    "performance-regression-blocks": lambda: regressed(block=True),
    "undone": lambda: soaked("SoakFailed", failing=5),
    "newer-files": lambda: newer_files("Running"),
    "newer-files-fail": lambda: newer_files("AllCandidatesFailed", when("convert", FINAL)),
    "newer-images": newer_images,
    "canary-undone": lambda: soaked("SoakFailed", failing=5, route=ROUTE),
}
"""By the case's name. A page in objects/ shows the first object of its kind, in this order."""
