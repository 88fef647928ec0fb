"""What the operator makes, and what the API server says of it to a holder of the operator's token."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from tests.apiserver.kubectl import Kubectl, KubectlError
from tests.simulation.cluster import SETTINGS, Cluster
from tests.simulation.deployments import a_model, a_step, candidate
from tests.simulation.made_jobs import WEB
from tests.states.deployment import State, a_deployment, a_deployment_of, an_ensemble_of
from tests.states.moments import MOMENTS
from tests.states.passes import objects
from triton_operator.names import STAGE_LABEL

HOLDER = "the operator's token"
Body = dict[str, Any]

EVERYTHING_OF_A_POD = {
    "nodeSelector": {"pool": "gpu"},
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
            ],
        }
    },
    "topologySpreadConstraints": [{"topologyKey": "zone"}],
    "priorityClassName": "batch",
    "runtimeClassName": "gvisor",
    "imagePullSecrets": [{"name": "registry"}],
    "env": [{"name": "TF_CPP_MIN_LOG_LEVEL", "value": "$(HOME)"}],
    "labels": {"team": "vision", "kueue.x-k8s.io/queue-name": "models"},
    "annotations": {"example.com/note": "a note"},
    "runAsUser": 1000650000,
    "fsGroup": 2345,
}
GPU = {"product": "NVIDIA-A100-SXM4-80GB", "resourceName": "nvidia.com/mig-1g.10gb"}
DOWNLOADED: Body = {
    "source": {"uri": "https://models.example/digits", "secretRef": {"name": "registry"}},
    "weights": {"uri": "s3://models/digits/v3", "serviceAccountName": "models-reader"},
    "dataset": {"uri": "oci://models.example/acme/digits:v1"},
    "models": [a_model(arguments={"checkpoint": "$(WEIGHTS)/model.pt"}, candidates=[candidate("onnx-fp32")])],
    "conversion": {"requirements": "requirements.txt", "indexSecretRef": {"name": "index"}},
    "repository": {
        "volumeClaimTemplate": {"spec": {"storageClassName": "fast"}},
        "retentionPolicy": {"whenDeleted": "Retain"},
    },
}
ROUTED: Body = {
    "soak": {"duration": "30s", "minRequests": 1},
    "route": {
        "parentRefs": [{"name": "public", "namespace": "gateways", "sectionName": "web"}],
        "hostnames": ["digits.example", "*.models.example"],
        "canary": [5, 50],
    },
}
BOUNDED = replace(
    SETTINGS,
    converter_gpu_image="example/converter-gpu:1",
    user_code_runtime_class="kata",
    user_code_host_users=False,
    sources_egress=(WEB,),
    tracing_endpoint="http://collector.observability:4318/v1/traces",
    tracing_egress=(WEB,),
    allowed_service_accounts=("vision/models-reader",),
)


@dataclass
class Recorded(Cluster):
    """A cluster that keeps the last of all objects of a name that were made, also of those that are gone."""

    made: dict[tuple[str, str], Body] = field(default_factory=dict, repr=False)

    def apply(self, desired: Body) -> bool:
        """Keep what is applied, then store it."""
        self.made[desired["kind"], desired["metadata"]["name"]] = deepcopy(desired)
        return super().apply(desired)


def simulated() -> dict[str, State]:
    """Objects whose pods, claims and routes have everything that a spec and an installation can ask of them."""
    one = a_deployment().one_candidate()
    tensorrt = a_deployment().candidates("onnx-fp32", "trt-fp16").asking(gpu=GPU).where(settings=BOUNDED)
    several = {"replicas": 2, "tracing": True}
    sharing = {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteMany"]}}}
    return {
        "all of a pod": tensorrt.asking(pod=EVERYTHING_OF_A_POD, conversion={"image": "example/own:1"}),
        "gpu": tensorrt,
        "downloads": a_deployment().asking(**DOWNLOADED).where(settings=BOUNDED),
        "route": one.asking(serving=ROUTED).where(has_gateway_api=True),
        "scaling": one.asking(serving=several, repository=sharing).autoscaled(minReplicas=2).where(settings=BOUNDED),
        "a search": one.asking(selection={"search": {"mode": "Quick"}}),
        "an ensemble": an_ensemble_of("onnx-fp32"),
        "packages of a step": a_deployment_of(a_step(requirements="steps/needs.txt"))
        .asking(conversion={"indexSecretRef": {"name": "index"}})
        .where(settings=replace(BOUNDED, allowed_python_steps=True)),
    }


def simulated_objects() -> Iterator[Body]:
    """Every object that they make until they serve, and then serve another revision."""
    for name, state in simulated().items():
        cluster = Recorded(**vars(state.cluster()))
        cluster.settle()
        assert cluster.condition("Ready")["status"] == "True", (name, cluster.status["conditions"])
        yield from cluster.made.values()


def planned() -> list[Body]:
    """Every object that a golden case's plan creates."""
    return [body for case in MOMENTS for body in objects(case)]


def one(kind: str, stage: str = "") -> Body:
    """One of them, for any namespace; with ``stage``, a Job of that stage."""
    found = (body for body in planned() if body["kind"] == kind)
    return anywhere(next(body for body in found if stage in ("", body["metadata"]["labels"].get(STAGE_LABEL))))


def anywhere(body: Body) -> Body:
    """The object without its namespace."""
    body["metadata"].pop("namespace")
    return body


def pod(body: Body) -> Body:
    """The pod's spec of a Job or Deployment."""
    return body["spec"]["template"]["spec"]


def refused(kubectl: Kubectl, body: Body) -> str:
    """Why the API server refuses to create the object; empty if it does not."""
    try:
        kubectl("create", "--dry-run=server", "--validate=false", "-f", "-", body=body)
    except KubectlError as error:
        return str(error)
    return ""


def told(said: str) -> str:
    """The policy's own words."""
    return said.rpartition("denied request: ")[2].strip() or said[:100]
