"""What may happen: one row for each kind, with how often it does, what is drawn, and what it changes.

What is drawn is JSON, so that a printed walk can be walked again.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any

from tests.simulation.answers import Script
from tests.simulation.api_server import Body
from tests.simulation.cluster import ORDER, accepted
from tests.simulation.test_properties import FATES, STAGES
from tests.simulation.test_repair import saying
from tests.simulation.walk import edits
from tests.simulation.walk.origin import ANSWERS, FARES
from tests.simulation.walk.world import World
from triton_converters.contract.envelope import EXIT_FINAL
from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import ACTIVE
from triton_converters.contract.results import Counters
from triton_operator import names
from triton_operator.names import REQUEST_ANNOTATION as ASKED
from triton_operator.observed.turn import Measurement

KINDS = (
    "Job",
    "Deployment",
    "Service",
    "ConfigMap",
    "NetworkPolicy",
    "ScaledObject",
    "HTTPRoute",
    "PodDisruptionBudget",
    "PersistentVolumeClaim",
)
"""Of the children that the operator makes."""
ORDERS = (ORDER, ("containers", "job", "pod"), ("job", "containers", "pod"))
MORE_SCRIPTS: Mapping[str, Script] = {
    "hangs": Script(hangs=True),
    "no node": Script(pending={"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]}),
    "evicted": Script(evicted="the node was low on resource: memory"),
    "rehearsed": Script(rehearsed=True),
    "inaccurate": Script(accuracy=0.5),
    "worse": Script(before=0.99),
    "not comparable": Script(not_comparable="it is gone"),
    "registry lies": Script(EXIT_FINAL, reason=Reason.REGISTRY_INVALID, message="it has another image"),
    "registry is full": Script(1, reason=Reason.REGISTRY_FULL, message="no room is left"),
    "another TensorRT": Script(server_tensorrt="10.8.0.1"),
} | {f"script {number}": script for number, script in enumerate(FATES)}
REFUSED = [
    ["status", "TritonDeployment"],
    *([verb, kind] for verb in ("create", "apply", "delete") for kind in KINDS),
]
LATER: Sequence[Mapping[str, Any]] = (
    {"converter_image": "example/converter:2"},
    {"server_image": "example/server:2"},
    {"converter_gpu_image": "example/converter-gpu:1"},
    {"gateway_api": False},
    {"gateway_api": True},
    {"prometheus_address": ""},
    {"prometheus_address": "http://prometheus.monitoring:9090"},
    {"unschedulable_seconds": 30},
    {"measurements_per_node": 0},
    {"measurements_per_node": 1},
    {"user_code_runtime_class": "gvisor"},
    {"server_arguments": ("--http-thread-count=4",)},
    {"tracing_endpoint": "http://collector:4318"},
)
"""Changes of the installation's values, which start the operator anew."""


BESIDE = [
    [None, None],
    [None, None],
    ["node-a", None],
    ["node-a", ["node-a"]],
    ["node-a", ["node-a", "node-b"]],
    ["", None],
]
"""The node on which another object's Job measures (empty: it has none yet; None: there is no such Job), and the nodes
that may take Jobs that measure; None: they are not known."""


@dataclass(frozen=True)
class Row:
    """A kind of happening."""

    weight: int
    """How often it happens, relative to the others."""
    draw: Callable[[Random], Any]
    """Draws what it is about."""
    happen: Callable[[World, Any], None]


def _measure_beside(world: World, beside: tuple[str | None, list[str] | None]) -> None:
    node, nodes = beside
    job = Measurement(("audio", "voices"), frozenset(filter(None, [node])), bool(node))
    found = [] if node is None else [job]
    world.cluster.measured_beside, world.cluster.measuring_nodes = lambda: found, nodes


def _nothing(_: Random) -> None:
    return None


def _one_of(values: Sequence[Any]) -> Callable[[Random], Any]:
    return lambda chance: chance.choice(values)


def _share(share: float) -> Callable[[Random], bool]:
    return lambda chance: chance.random() < share


def _number(below: int) -> Callable[[Random], int]:
    return lambda chance: chance.randrange(below)


def _scripts(chance: Random) -> Any:
    candidates = ["", "", "onnx-fp32", "ts-trace-fp32", "onnx-fp32.tuned"]
    return [
        [stage, chance.choice(candidates), chance.choice(list(MORE_SCRIPTS))]
        for stage in chance.sample(
            [*STAGES, "metrics", "comparison", "packages", "publish", "clean"], chance.randrange(3)
        )
    ]


def _requests(chance: Random) -> Any:
    """Requests a second, the share of them that fails, and how much longer they take."""
    return [chance.choice([0, 10]), chance.choice([0, 0, 0.5]), chance.choice([1, 3])]


def _suffer(world: World, chosen: Any) -> None:
    world.scripts = {(stage, candidate): MORE_SCRIPTS[name] for stage, candidate, name in chosen}


def _night(world: World, chosen: Any) -> None:
    """A pipeline brings its next model, or one of before again."""
    number, fares = chosen
    _suffer(world, [["comparison", "", fares]] if fares else [])
    _change(world, {**world.cluster.spec, "source": {"uri": f"pvc://models/night-{number}"}})


def _says(chance: Random) -> list[str]:
    """A version; half of a push and then all of it; an alias that flaps; one that is refused; or no version at all."""
    new, old = (f"good-{chance.randrange(6)}" for _ in range(2))
    bad = f"{chance.choice(list(FARES))}-{chance.randrange(6)}"
    return chance.choice(
        [[new], [new], [f"half-{new}", new], [new, old], [bad], [bad, new], [chance.choice(list(ANSWERS)), new]]
    )


def _edit(world: World, name: str) -> None:
    _change(world, edits.edited(world.cluster.spec, edits.EDITS[name]))


def _serve(world: World, name: str) -> None:
    serving = edits.edited(world.cluster.spec.get("serving", {}), edits.SERVING[name])
    if "canary" not in serving.get("route", {}) or "soak" in serving:
        _change(world, {**world.cluster.spec, "serving": serving})


def _change(world: World, spec: Body) -> None:
    """Edit the object, if the API server accepts the spec."""
    if edits.is_accepted(spec):
        world.cluster.spec = {}
        world.edit(**spec)


def _scale(world: World, replicas: int) -> None:
    """`kubectl scale`, or KEDA."""
    world.cluster.edit(serving={**world.cluster.spec.get("serving", {}), "replicas": replicas})


def _approve(world: World, number: int) -> None:
    keys = [each["revision"] for each in world.cluster.status.get("candidates", []) if "revision" in each]
    if keys:
        world.edit(selection={"approval": "Manual", "approvedRevision": keys[number % len(keys)]})


def _retry(world: World, _: None) -> None:
    world.cluster.retry()
    world.service.undone.clear()


def _delete(world: World, kind: str) -> None:
    """Somebody deletes all objects of a kind; nobody can tell any more what only these told."""
    for name in [each["metadata"]["name"] for each in world.cluster.of_kind(kind)]:
        world.cluster.delete(kind, name)
    if kind == "ConfigMap" or (kind == "Service" and not world.service.is_recorded):
        world.service.forget()
    world.service.undone.clear()


def _delete_one(world: World, number: int) -> None:
    """Somebody deletes the server that is active, or another one."""
    servers = [each["metadata"]["name"] for each in world.cluster.of_kind("Deployment")]
    if servers:
        world.cluster.delete("Deployment", servers[number % len(servers)])


def _make_anew(world: World, _: None) -> None:
    """Somebody deletes the TritonDeployment and makes it again; the garbage collector was faster."""
    cluster = world.cluster
    cluster.objects = {
        key: body for key, body in cluster.objects.items() if key[0] == "PersistentVolumeClaim" and not _owned(body)
    }
    cluster.serial += 1
    cluster.uid, cluster.generation, cluster.retries = f"owner-{cluster.serial}", 1, 0
    cluster.status = {"observedGeneration": -1}
    world.earlier.clear()
    world.service.passed.clear()
    world.service.forget()
    world.start()


def _owned(body: Body) -> bool:
    return bool(body["metadata"].get("ownerReferences"))


def _point(world: World, number: int) -> None:
    """Somebody edits the Service's selector."""
    service = world.cluster.objects.get(("Service", "digits"))
    servers = [each["metadata"]["name"] for each in world.cluster.of_kind("Deployment")]
    if service is not None:
        # Nobody moves it back while the spec is refused.
        known = world.service.is_recorded and world.cluster.spec.get("conversion", {}).get("parallelism") != 99
        service["spec"]["selector"][names.SERVER_LABEL] = [*servers, "digits-nobody"][number % (len(servers) + 1)]
        found = world.cluster.objects.get(("ConfigMap", "digits-results"), {"data": {}})["data"].get(ACTIVE, "{}")
        # A move that is recorded, and that a webhook refuses, may so be made by hand.
        if not known or json.loads(found).get("server") == world.cluster.serving():
            world.service.forget()


def _change_child(world: World, chosen: Any) -> None:
    """Somebody edits a child of a kind: labels, and the first field of its spec that is a number, text or list."""
    kind, number = chosen
    found = world.cluster.of_kind(kind)
    if not found or kind in ("Job", "PersistentVolumeClaim"):
        return
    body = found[number % len(found)]
    body["metadata"]["labels"]["app.kubernetes.io/part-of"] = "something-else"
    body["metadata"]["generation"] += 1
    if kind == "ConfigMap":
        body["data"]["of-somebody"] = "{}"
    elif kind == "Service":
        body["spec"]["ports"] = body["spec"]["ports"][:1]
    elif kind == "Deployment":
        # Without the template that it was made with, nobody could tell a hand's change from an older operator's.
        kept = {names.TEMPLATE_ANNOTATION: body["metadata"]["annotations"][names.TEMPLATE_ANNOTATION]}
        body["metadata"]["annotations"] = kept
    else:
        body["spec"] |= {name: [] for name, value in body["spec"].items() if isinstance(value, list)}


def _scale_by_hand(world: World, replicas: int) -> None:
    for each in world.cluster.of_kind("Deployment"):
        each["spec"]["replicas"] = replicas
        each["metadata"]["generation"] += 1


def _reboot(world: World, _: None) -> None:
    """A node: every server is started again."""
    for pod in world.cluster.of_kind("Pod"):
        if names.SERVER_LABEL in pod["metadata"]["labels"] and pod["status"]["phase"] == "Running":
            world.cluster.restart(pod["metadata"]["name"])
    world.service.rebooted = True


def _crash(world: World, number: int) -> None:
    """One server ends, and is started again."""
    pods = [each for each in world.cluster.of_kind("Pod") if names.SERVER_LABEL in each["metadata"]["labels"]]
    running = [each for each in pods if each["status"]["phase"] == "Running"]
    if running:
        world.cluster.restart(running[number % len(running)]["metadata"]["name"])
        world.service.rebooted = False


def _blink(world: World, chosen: Any) -> None:
    """One server is not ready in every other pass, so in any: of a verdict, of a canary's step, of an exchange."""
    number, rounds = chosen
    for _ in range(rounds):
        pods = [each for each in world.cluster.of_kind("Pod") if names.SERVER_LABEL in each["metadata"]["labels"]]
        world.cluster.unready = {pods[number % len(pods)]["metadata"]["name"]} if pods else set()
        world.cluster.step()
        world.reconcile()
        world.cluster.unready = set()
        world.cluster.step()
        world.reconcile()


def _leave(world: World, chosen: Any) -> None:
    """The operator dies before one of its next writes, and comes back later."""
    writes, seconds = chosen
    world.api.fails_after = writes
    for _ in range(20):
        world.reconcile()
        if world.api.fails_after is None:
            break
        world.cluster.step()
    world.api.fails_after = None
    for _ in range(3):
        world.cluster.step()
    world.cluster.now += timedelta(seconds=seconds)
    world.start()


def _hold_reading(world: World, seconds: int) -> None:
    """Somebody suspends the Jobs that read counters, and lets them go on later."""
    for _ in range(40):
        world.reconcile()
        if world.cluster.active("snapshot"):
            break
        world.cluster.step()
    jobs = [
        each for each in world.cluster.of_kind("Job") if each["metadata"]["labels"][names.STAGE_LABEL] == "snapshot"
    ]
    held = [each for each in jobs if not each["status"].get("shown")]
    for job in held:
        job["spec"]["suspend"] = True
    for _ in range(3):
        world.cluster.step()
        world.reconcile()
    world.cluster.now += timedelta(seconds=seconds)
    world.reconcile()
    for job in held:
        job["spec"]["suspend"] = False


def _refuse_in_exchange(world: World, rounds: int) -> None:
    """Somebody edits the object to what only the operator refuses, in an exchange if one begins soon."""
    for _ in range(60):
        world.reconcile()
        if any(
            names.MAKES_WAY_ANNOTATION in each["metadata"]["annotations"]
            for each in world.cluster.of_kind("Deployment")
        ):
            for _ in range(rounds):
                world.cluster.step()
                world.reconcile()
            break
        world.cluster.step()
    _edit(world, "invalid")


def _empty(world: World, _: None) -> None:
    """The claim is emptied: no server starts again until its revision is published anew."""
    servers = world.cluster.of_kind("Deployment")
    world.cluster.damaged = saying([each["metadata"]["labels"][names.KEY_LABEL] for each in servers])
    for body in servers:
        for pod in world.cluster.pods_of(body["metadata"]["name"]):
            del world.cluster.objects["Pod", pod["metadata"]["name"]]


def _drain(world: World, _: None) -> None:
    """Pods go; those of servers are made again at once."""
    for pod in world.cluster.of_kind("Pod"):
        del world.cluster.objects["Pod", pod["metadata"]["name"]]


def _lose(world: World, number: int) -> None:
    """An entry of the results is lost."""
    found = world.cluster.objects.get(("ConfigMap", "digits-results"))
    if found is not None and found["data"]:
        name = sorted(found["data"])[number % len(found["data"])]
        del found["data"][name]
        if name == ACTIVE:
            world.service.forget()
        world.service.undone.clear()


def _lose_status(world: World, _: None) -> None:
    world.cluster.status = {"observedGeneration": -1}
    world.service.forget()


def _restore(world: World, chosen: Any) -> None:
    """A backup brings back an earlier status, earlier results, or both."""
    what, number = chosen
    if not world.earlier:
        return
    status, data = world.earlier[number % len(world.earlier)]
    found = world.cluster.objects.get(("ConfigMap", "digits-results"))
    if what != "results":
        world.cluster.status = deepcopy(status)
    if what != "status" and found is not None:
        found["data"] = dict(data)
    world.service.forget()
    world.service.undone.clear()


def _forget_fields(world: World, number: int) -> None:
    """An older operator wrote the status: a field is not there yet."""
    fields = sorted(set(world.cluster.status) - {"conditions", "observedGeneration"})
    if fields:
        world.cluster.status = {
            name: value for name, value in world.cluster.status.items() if name != fields[number % len(fields)]
        }
        world.service.forget()


def _ask(world: World, chosen: Any) -> None:
    """Clients ask all servers; a share of the requests to those that are not active now fails."""
    rate, failing, slower = chosen
    cluster, active = world.cluster, world.service.active

    def counters(pod: str) -> Counters:
        requests = int((cluster.now.timestamp() % 10_000_000) * rate)
        ill = active is not None and not pod.startswith(f"{active}-")
        failed = int(requests * failing) if ill else 0
        return Counters(pod, requests - failed, failed, int((requests - failed) * 2000 * (slower if ill else 1)))

    cluster.counters = counters


def _start_servers(world: World, which: str) -> None:
    old = {each["metadata"]["name"] for each in world.cluster.of_kind("Deployment")}
    world.cluster.starts = {
        "all": lambda name: True,
        "those that are there": lambda name: name in old,
        "none": lambda name: False,
    }[which]


def _damage(world: World, number: int) -> None:
    """A revision on the claim is damaged, and its servers start again."""
    servers = world.cluster.of_kind("Deployment")
    world.cluster.damaged = lambda revision: ""
    if servers and number:
        body = servers[number % len(servers)]
        world.cluster.damaged = saying([body["metadata"]["labels"][names.KEY_LABEL]])
        for pod in world.cluster.pods_of(body["metadata"]["name"]):
            del world.cluster.objects["Pod", pod["metadata"]["name"]]


def _forbid(world: World, refused: Any) -> None:
    world.api.refused = {tuple(each) for each in refused}


def _break(world: World, kinds: Any) -> None:
    world.api.broken = set(kinds)


def _find(name: str) -> Callable[[World, Any], None]:
    """The cluster has a kind of another project, or has it no more; the operator is started anew by that."""

    def happen(world: World, there: bool) -> None:
        setattr(world.cluster, name, there)
        if not there:
            kind = "ScaledObject" if name == "has_keda" else "HTTPRoute"
            _delete(world, kind)
        world.start()

    return happen


def _set(name: str) -> Callable[[World, Any], None]:
    return lambda world, value: setattr(world.cluster, name, value)


def _let_in(world: World, quota: int | None) -> None:
    """Kueue comes, with a quota, or goes; then nothing of it is left."""
    world.cluster.quota = quota
    for job in world.cluster.of_kind("Job") if quota is None else ():
        job["spec"].pop("suspend", None)


def _route(world: World, answers: str) -> None:
    world.cluster.gateway = {"accepted": accepted, "silent": lambda route: []}[answers]


def _turn(world: World, seconds: int) -> None:
    world.skew = timedelta(seconds=seconds)


def _upgrade(world: World, number: int) -> None:
    world.settings(**LATER[number])


ROWS: Mapping[str, Row] = {
    "time passes": Row(40, _one_of([2, 6, 10, 20, 40, 60, 90, 300]), lambda world, _: None),
    "an hour passes": Row(5, lambda chance: 3600, lambda world, _: None),
    "an edit": Row(12, _one_of(list(edits.EDITS)), _edit),
    "an edit of serving": Row(8, _one_of(list(edits.SERVING)), _serve),
    "scaled": Row(4, _number(5), _scale),
    "an approval": Row(3, _number(6), _approve),
    "a retry": Row(3, _nothing, _retry),
    "scripts": Row(6, _scripts, _suffer),
    "a night": Row(
        6, lambda chance: [chance.randrange(6), chance.choice(["", "", "worse", "worse", "not comparable"])], _night
    ),
    "requests": Row(
        3, lambda chance: [chance.choice([0, 10]), chance.choice([0, 0, 0.5]), chance.choice([1, 3])], _ask
    ),
    "servers start": Row(3, _one_of(["all", "all", "those that are there", "none"]), _start_servers),
    "GPUs": Row(4, _one_of([None, 0, 1, 1, 2, 3]), _set("gpus")),
    "a quota on GPUs": Row(1, _share(0.3), _set("gpu_quota")),
    "an autoscaler of nodes": Row(1, _share(0.5), _set("announces")),
    "no node": Row(1, _one_of(["", "", "1 node(s) were unschedulable"]), _set("unschedulable")),
    "nodes of the product": Row(1, _one_of([None, True, False]), _set("gpu_product_exists")),
    "others measure": Row(4, _one_of(BESIDE), _measure_beside),
    "Kueue": Row(2, _one_of([None, 0, 1]), _let_in),
    "KEDA": Row(2, _share(0.6), _find("has_keda")),
    "the Gateway API": Row(2, _share(0.6), _find("has_gateway_api")),
    "the Gateway": Row(1, _one_of(["accepted", "silent"]), _route),
    "a sidecar in Jobs": Row(1, _one_of(["", "istio-proxy"]), _set("injects")),
    "the order of watches": Row(1, _one_of(ORDERS), _set("order")),
    "the source is followed": Row(6, _one_of(edits.FOLLOWED), _edit),
    "the source's server says": Row(12, _says, lambda world, says: setattr(world.origin, "says", says)),
    "asked to look": Row(1, _number(9), lambda world, number: world.cluster.annotations.update({ASKED: str(number)})),
    "neighbours": Row(1, _one_of([[], ["letters"]]), _set("neighbours")),
    "deleted by hand": Row(3, _one_of(KINDS), _delete),
    "a server deleted by hand": Row(2, _number(3), _delete_one),
    "the object made anew": Row(1, _nothing, _make_anew),
    "a selector by hand": Row(2, _number(4), _point),
    "a child by hand": Row(3, lambda chance: [chance.choice(KINDS), chance.randrange(6)], _change_child),
    "replicas by hand": Row(1, _number(3), _scale_by_hand),
    "a reboot": Row(2, _nothing, _reboot),
    "a crash": Row(2, _number(6), _crash),
    "a server is not ready": Row(4, lambda chance: [chance.randrange(6), chance.choice([1, 1, 2, 8])], _blink),
    "the operator is away": Row(3, lambda chance: [chance.randrange(8), chance.choice([60, 600, 1200])], _leave),
    "Jobs that read are held": Row(2, _one_of([60, 600, 1200]), _hold_reading),
    "a refused spec in an exchange": Row(2, _number(6), _refuse_in_exchange),
    "the claim is emptied": Row(1, _nothing, _empty),
    "pods are gone": Row(1, _nothing, _drain),
    "damage": Row(1, _number(4), _damage),
    "an entry is lost": Row(2, _number(60), _lose),
    "the status is lost": Row(1, _nothing, _lose_status),
    "a backup": Row(1, lambda chance: [chance.choice(["status", "results", "both"]), chance.randrange(12)], _restore),
    "an older status": Row(1, _number(12), _forget_fields),
    "refusals": Row(3, lambda chance: chance.sample(REFUSED, chance.randrange(3)), _forbid),
    "a webhook is down": Row(3, lambda chance: chance.sample(KINDS, chance.randrange(3)), _break),
    "no answer": Row(3, _number(6), lambda world, after: setattr(world.api, "fails_after", after)),
    "the operator starts": Row(1, _nothing, lambda world, _: world.start()),
    "the operator's clock": Row(1, _one_of([0, 0, 10, 1000, -10, -1000]), _turn),
    "an upgrade": Row(2, _number(len(LATER)), _upgrade),
}
"""By the name that a walk is printed with."""


def draw(chance: Random) -> tuple[str, Any]:
    """Draw one happening."""
    (name,) = chance.choices(list(ROWS), [row.weight for row in ROWS.values()])
    return name, ROWS[name].draw(chance)
