"""Every pod is restricted, has what its stage needs and no more; every object is of a kind the operator may apply."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.cluster import SETTINGS, Cluster, framework, pulled
from tests.simulation.deployments import a_model, a_spec
from tests.states.deployment import a_deployment
from triton_converters.contract.conversion_requests import ReferenceRequest
from triton_operator.api.quantity import amount
from triton_operator.kube import kinds
from triton_operator.names import is_reserved_variable
from triton_operator.resources.server import COMPLETE, ON_IPV6, RECONNECTING
from triton_operator.settings import DefaultResources

Body = dict[str, Any]
POD = {
    "resources": {"limits": {"cpu": "1500m", "memory": "4Gi"}},
    "nodeSelector": {"pool": "gpu"},
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
    "imagePullSecrets": [{"name": "registry"}],
    "labels": {
        "team": "vision",
        "triton-operator.dev/deployment": "another",
        "triton-operator.dev/server": "another-0123456789",
        "app.kubernetes.io/instance": "another",
        "pod-template-hash": "0123456789",
        "batch.kubernetes.io/job-name": "another",
    },
    "annotations": {"prometheus.io/scrape": "true", "container.apparmor.security.beta.kubernetes.io/convert": "none"},
    "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}},
}
AWAY = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}
POOLS = ("conversion", "serving")
USER_CODE = ("reference", "convert", "metrics")
IN_A_BOX = (*USER_CODE, "profile", "measure")
"""The stages that run the user's code."""
RICH = a_spec(
    models=[a_model(candidates=[{"name": "onnx-fp32", "format": "onnx", "precision": "fp32", "accelerator": "cuda"}])],
    dataset={"uri": "pvc://datasets/imagenet/val"},
    dataloader={"entrypoint": "dataloader.py", "arguments": {"path": "$(DATASET)/images"}},
    gpu={"product": "NVIDIA-H200", "count": 2},
    conversion={"image": "example/torch:1", "pod": POD},
    serving={"pod": POD},
)


@pytest.fixture(scope="module")
def applied() -> dict[str, Body]:
    """What is applied on the way to Ready, by stage (Jobs) or kind."""
    cluster, found = Cluster(RICH), {}
    for _ in range(80):
        for each in cluster.intent().objects:
            name = each["metadata"]["name"] if each["kind"] == "NetworkPolicy" else each["kind"]
            found[each["metadata"]["labels"].get("triton-operator.dev/stage", name)] = each
        cluster.run(1)
    assert cluster.condition("Ready")["status"] == "True"
    return found


def pods(applied: dict[str, Body]) -> Iterator[tuple[str, Body]]:
    for name, each in applied.items():
        if "template" in each.get("spec", {}):
            yield name, each["spec"]["template"]["spec"]


def containers(pod: Body) -> list[Body]:
    return [*pod.get("initContainers", []), *pod["containers"]]


def environment(pod: Body) -> dict[str, str]:
    return {each["name"]: each["value"] for each in framework(pod).get("env", [])}


def test_every_object_is_of_a_kind_that_is_watched_and_may_be_applied(applied: dict[str, Body]) -> None:
    for each in applied.values():
        kind = kinds.kind_of(each)
        assert kind in kinds.CHILDREN
        assert "create" in kind.verbs
        assert "patch" in kind.verbs or kind is kinds.JOB, "a Job is never changed"


def test_every_object_goes_with_its_owner_and_says_whose_it_is(applied: dict[str, Body]) -> None:
    for each in applied.values():
        (owner,) = each["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("TritonDeployment", "digits", True)
        labels = each["metadata"]["labels"]
        assert labels["triton-operator.dev/deployment"] == "digits"
        assert labels["app.kubernetes.io/managed-by"] == "triton-operator"


def test_every_pod_meets_the_restricted_standard(applied: dict[str, Body]) -> None:
    names = dict(pods(applied))
    assert set(names) == {"source", "reference", "convert", "profile", "metrics", "measure", "Deployment"}
    for pod in names.values():
        security = pod["securityContext"]
        assert security["runAsNonRoot"] is True
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False
        assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
        for container in containers(pod):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": True,
            }


def test_commands_are_lists_and_no_shell_is_among_them(applied: dict[str, Body]) -> None:
    for _, pod in pods(applied):
        for container in containers(pod):
            argv = [*container.get("command", []), *container.get("args", [])]
            assert argv[0] in ("python3", "tritonserver", "cp")


def test_the_gpu_goes_to_who_runs_the_model(applied: dict[str, Body]) -> None:
    def gpus(container: Body) -> str | None:
        count: str | None = container.get("resources", {}).get("limits", {}).get("nvidia.com/gpu")
        return count

    found = {(name, each["name"]): gpus(each) for name, pod in pods(applied) for each in containers(pod)}
    having = {key for key, count in found.items() if count == "2"}
    assert having == {
        ("reference", "run"),
        ("convert", "run"),
        ("profile", "tritonserver"),
        ("Deployment", "tritonserver"),
    }
    assert {count for key, count in found.items() if key not in having} == {None}
    for _, pod in pods(applied):
        # All others follow the claim, which is attached to one node.
        assert pod["nodeSelector"]["nvidia.com/gpu.product"] == "NVIDIA-H200"


def test_who_asks_for_no_gpu_sees_none(applied: dict[str, Body]) -> None:
    """NVIDIA's images ask for all GPUs, and a node whose default runtime is NVIDIA's gives them."""
    cpu = a_deployment().settled().cluster()
    on_cpu = [
        (each["kind"], each["spec"]["template"]["spec"])
        for each in cpu.objects.values()
        if "template" in each.get("spec", {})
    ]
    for name, pod in [*pods(applied), *on_cpu]:
        for container in containers(pod):
            limited = "nvidia.com/gpu" in container.get("resources", {}).get("limits", {})
            void = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}
            assert (void in container.get("env", [])) is not limited, (name, container["name"])


def test_a_gpu_that_the_spec_limits_by_hand_is_seen() -> None:
    by_hand = {"pod": {"resources": {"limits": {"nvidia.com/mig-1g.5gb": "1"}}}}
    cluster = a_deployment().asking(serving=by_hand).settled().cluster()
    (server,) = cluster.of_kind("Deployment")
    (container,) = server["spec"]["template"]["spec"]["containers"]
    assert "NVIDIA_VISIBLE_DEVICES" not in {each["name"] for each in container["env"]}


def test_placement_is_the_users_and_the_claims(applied: dict[str, Body]) -> None:
    for _, pod in pods(applied):
        assert pod["nodeSelector"]["pool"] == "gpu"
        assert pod["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}]
        assert pod["imagePullSecrets"] == [{"name": "registry"}]
        user, own = pod["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert user == {"topologyKey": "zone"}
        assert own["topologyKey"] == "kubernetes.io/hostname"
        assert own["labelSelector"] == {"matchLabels": {"triton-operator.dev/deployment": "digits"}}


@pytest.mark.parametrize(
    ("mode", "tolerant"),
    [
        ("ReadWriteOnce", {"source", "reference", "convert", "profile", "metrics", "measure", "server"}),
        ("ReadWriteMany", {"reference", "convert", "profile", "server"}),
    ],
)
def test_pods_tolerate_the_taint_of_gpu_nodes_if_they_use_a_gpu_or_follow_the_claim(
    mode: str, tolerant: set[str]
) -> None:
    cluster = (
        a_deployment()
        .asking(
            gpu={"product": "NVIDIA-H200", "count": 1},
            repository={"volumeClaimTemplate": {"spec": {"accessModes": [mode]}}},
        )
        .cluster()
    )
    assert tolerating(cluster) == tolerant


def test_pods_of_an_object_without_a_gpu_do_not_tolerate_the_taint() -> None:
    assert tolerating(a_deployment().cluster()) == set()


def tolerating(cluster: Cluster) -> set[str]:
    """The stages, and `server`, whose pods tolerate the taint of GPU nodes."""
    cluster.settle()
    taint = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    return {
        each["metadata"]["labels"].get("triton-operator.dev/stage", "server")
        for each in cluster.objects.values()
        if taint in each.get("spec", {}).get("template", {}).get("spec", {}).get("tolerations", [])
    }


def test_a_server_is_profiled_where_servers_run() -> None:
    pools = {name: {"pod": {"nodeSelector": {"pool": name}, "imagePullSecrets": [{"name": name}]}} for name in POOLS}
    cluster = a_deployment().asking(**pools).cluster()
    cluster.until_active("profile")
    profile = next(each for each in cluster.of_kind("Job") if "-profile-" in each["metadata"]["name"])
    pod = profile["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"pool": "serving"}
    assert pod["imagePullSecrets"] == [{"name": "serving"}, {"name": "conversion"}]


def test_what_is_said_of_all_pods_is_laid_under_what_is_said_of_some() -> None:
    common = {
        "nodeSelector": {"pool": "all", "disk": "ssd"},
        "tolerations": [{"key": "all", "operator": "Exists"}],
        "priorityClassName": "low",
        "runtimeClassName": "gvisor",
        "affinity": {"nodeAffinity": {}},
        "labels": {"team": "vision", "tier": "all"},
        "env": [{"name": "A", "value": "all"}, {"name": "B", "value": "all"}],
    }
    servers = {
        "nodeSelector": {"pool": "servers"},
        "tolerations": [],
        "priorityClassName": "high",
        "affinity": {"podAntiAffinity": AWAY},
        "labels": {"tier": "servers"},
        "env": [{"name": "B", "value": "servers"}],
    }
    cluster = a_deployment().asking(pod=common, serving={"pod": servers}).settled().cluster()
    made = {each["kind"]: each for each in (*cluster.of_kind("Job"), *cluster.of_kind("Deployment"))}
    job, server = (made[kind]["spec"]["template"] for kind in ("Job", "Deployment"))
    for template, tier, pool in ((job, "all", "all"), (server, "servers", "servers")):
        assert template["spec"]["nodeSelector"] == {"pool": pool, "disk": "ssd"}
        assert template["metadata"]["labels"].items() >= {"team": "vision", "tier": tier}.items()
        assert template["spec"]["runtimeClassName"] == "gvisor"
    assert (job["spec"]["tolerations"], "tolerations" in server["spec"]) == (common["tolerations"], False)
    assert [each["spec"]["priorityClassName"] for each in (job, server)] == ["low", "high"]
    assert "nodeAffinity" not in server["spec"]["affinity"]
    assert server["spec"]["affinity"]["podAntiAffinity"] == AWAY
    (container,) = server["spec"]["containers"]
    assert container["env"][:2] == [{"name": "A", "value": "all"}, {"name": "B", "value": "servers"}]


def test_the_users_variables_reach_the_users_code_and_the_servers_alone() -> None:
    cluster = a_deployment().asking(pod={"env": [{"name": "MODE", "value": "$(HOME) $$"}]}).settled().cluster()
    found = {
        (container["name"], each["value"])
        for body in (*cluster.of_kind("Job"), *cluster.of_kind("Deployment"))
        for container in containers(body["spec"]["template"]["spec"])
        for each in container.get("env", [])
        if each["name"] == "MODE"
    }
    # Kubernetes makes one $ of two, and then replaces nothing.
    assert found == {("run", "$$(HOME) $$$$"), ("tritonserver", "$$(HOME) $$$$")}


def test_no_variable_of_the_operators_is_the_users_to_set(applied: dict[str, Body]) -> None:
    ours = {
        each["name"] for _, pod in pods(applied) for container in containers(pod) for each in container.get("env", [])
    }
    assert {"HOME", "NVIDIA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "POD_UID", "PYTHONPATH"} <= ours
    assert [name for name in sorted(ours) if not is_reserved_variable(name)] == []


def test_a_namespaces_own_range_of_users_is_that_of_every_pod() -> None:
    for given, group in (({"runAsUser": 1234567}, 1234567), ({"runAsUser": 1234567, "fsGroup": 7}, 7)):
        cluster = a_deployment().asking(pod=given).settled().cluster()
        for each in (*cluster.of_kind("Job"), *cluster.of_kind("Deployment")):
            security = each["spec"]["template"]["spec"]["securityContext"]
            assert (security["runAsUser"], security["runAsGroup"], security["fsGroup"]) == (1234567, 1234567, group)
            assert security["runAsNonRoot"]


def test_pods_ask_for_nothing_that_openshift_refuses() -> None:
    """Its constraints restricted-v2: a user and a group of the namespace's range, and volumes of these types."""
    own, types = range(1000650000, 1000660000), {"configMap", "emptyDir", "persistentVolumeClaim", "secret"}
    cluster = a_deployment().asking(pod={"runAsUser": own[0]}).settled().cluster()
    for each in (*cluster.of_kind("Job"), *cluster.of_kind("Deployment")):
        pod = each["spec"]["template"]["spec"]
        assert {pod["securityContext"]["runAsUser"], pod["securityContext"]["fsGroup"]} <= set(own)
        assert {name for volume in pod["volumes"] for name in volume if name != "name"} <= types
        assert not pod.keys() & {"hostNetwork", "hostPID", "hostIPC"}
        for container in containers(pod):
            assert "runAsUser" not in container["securityContext"]
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_servers_spread_over_the_values_of_a_label() -> None:
    cluster = (
        a_deployment()
        .asking(serving={"pod": {"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 2}]}})
        .settled()
        .cluster()
    )
    (server,) = cluster.of_kind("Deployment")
    template = server["spec"]["template"]
    (spread,) = template["spec"]["topologySpreadConstraints"]
    assert (spread["topologyKey"], spread["maxSkew"], spread["whenUnsatisfiable"]) == ("zone", 2, "ScheduleAnyway")
    assert spread["labelSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    assert set(spread["matchLabelKeys"]) <= template["metadata"]["labels"].keys()


def test_the_users_labels_and_annotations_are_theirs_alone(applied: dict[str, Body]) -> None:
    """Objects from before the CRD's rule may hold keys that make their pods another object's."""
    for name, each in applied.items():
        if "template" in each.get("spec", {}):
            metadata = each["spec"]["template"]["metadata"]
            labels = metadata["labels"]
            ours = each["metadata"]["labels"]
            assert labels == ours | {"team": "vision"}, name
            assert (ours.get("team") == "vision") is (each["kind"] == "Job"), "Kueue looks at the Job's labels"
            assert ("triton-operator.dev/server" in labels) is (name == "Deployment")
            logged = {"kubectl.kubernetes.io/default-container": "run"} if name in IN_A_BOX else {}
            assert metadata["annotations"] == {"prometheus.io/scrape": "true"} | logged
            assert each["kind"] != "Job" or each["metadata"]["annotations"] == {"prometheus.io/scrape": "true"}


def test_every_volume_on_the_nodes_disk_or_in_its_memory_has_a_limit(applied: dict[str, Body]) -> None:
    for name, pod in pods(applied):
        own = {each["name"]: each["emptyDir"]["sizeLimit"] for each in pod["volumes"] if "emptyDir" in each}
        assert own["tmp"] == ("1Gi" if name == "Deployment" else "10Gi")
        assert own.get("converters", "64Mi") == "64Mi"
        assert own.get("dshm", "1Gi") == "1Gi"
        # Nothing larger could be published on the claim.
        assert own.get("incoming", "20Gi") == "20Gi"
        assert own.get("own-tmp", "10Gi") == "10Gi"


def test_threads_follow_the_cpu_limit_and_pickles_stay_shut(applied: dict[str, Body]) -> None:
    for stage in USER_CODE:
        found = environment(dict(pods(applied))[stage])
        assert (found["OMP_NUM_THREADS"], found["TORCH_FORCE_WEIGHTS_ONLY_LOAD"]) == ("2", "1")
        assert found["HOME"] == "/tmp"


def test_an_image_of_the_users_gets_our_converters(applied: dict[str, Body]) -> None:
    pod = dict(pods(applied))["convert"]
    prepare, run = pod["initContainers"]
    assert run["image"] == pulled("example/torch:1")
    assert environment(pod)["PYTHONPATH"] == "/converters"
    assert {"name": "converters", "mountPath": "/converters"} in prepare["volumeMounts"]
    assert {"name": "converters", "mountPath": "/converters", "readOnly": True} in run["volumeMounts"]
    for ours in (prepare, pod["containers"][0]):
        assert ours["image"] == "example/converter:1"
        assert "PYTHONPATH" not in {each["name"] for each in ours["env"]}


def test_only_who_publishes_may_write_to_the_claim(applied: dict[str, Body]) -> None:
    for name, pod in pods(applied):
        for container in containers(pod):
            mounts = {each["mountPath"]: each.get("readOnly", False) for each in container["volumeMounts"]}
            if "/repository" in mounts:
                assert mounts["/repository"] is (container["name"] in ("revision", "prepare")), name
            assert mounts.get("/source", True)
            assert mounts.get("/data", True)


def test_a_server_sees_its_revision_alone_and_it_is_looked_at_before(applied: dict[str, Body]) -> None:
    revision = applied["Deployment"]["metadata"]["labels"]["triton-operator.dev/key"]
    path = f".triton-operator/revisions/{revision}"
    mount = {"name": "repository", "mountPath": f"/repository/{path}", "subPath": path, "readOnly": True}
    profile, serving = (dict(pods(applied))[name] for name in ("profile", "Deployment"))
    (prepare, sidecar, _), (check,) = profile["initContainers"], serving["initContainers"]
    assert (prepare["name"], check["name"]) == ("prepare", "revision")
    for first, server in ((prepare, sidecar), (check, serving["containers"][0])):
        assert server["name"] == "tritonserver"
        assert [each for each in server["volumeMounts"] if each["name"] == "repository"] == [mount]
        assert first["image"] == "example/converter:1"
        assert first["resources"]["limits"]["memory"], "a quota asks for it"
    assert check["volumeMounts"] == [mount]
    # In a Job it sees the whole claim, so that the kubelet makes no directory in place of a missing one.
    claim = {"name": "repository", "mountPath": "/repository", "readOnly": True}
    assert [each for each in prepare["volumeMounts"] if each["name"] == "repository"] == [claim]


def test_user_code_sees_its_inputs_alone_and_writes_what_nobody_trusts(applied: dict[str, Body]) -> None:
    for stage in USER_CODE:
        pod = dict(pods(applied))[stage]
        (prepare, run), (publish,) = pod["initContainers"], pod["containers"]
        assert (prepare["name"], run["name"], publish["name"]) == ("prepare", "run", stage)
        parts = [each for each in run["volumeMounts"] if each["name"] == "repository"]
        kinds_of_input = {each["subPath"].split("/")[1] for each in parts}
        assert (
            kinds_of_input
            == {
                "reference": {"sources"},
                "convert": {"sources", "references"},
                "metrics": {"sources", "references", "measurements", "revisions"},
            }[stage]
        )
        for each in parts:
            assert (each["readOnly"], each["mountPath"]) == (True, f"/repository/{each['subPath']}")
        writes = {each["mountPath"] for each in run["volumeMounts"] if not each.get("readOnly")}
        assert writes == {"/incoming", "/tmp", "/dev/shm"}
        # PyTorch's workers hand batches over in it; the runtime's own has 64 MiB.
        (size,) = (each["emptyDir"] for each in pod["volumes"] if each["name"] == "dshm")
        assert size == {"medium": "Memory", "sizeLimit": "1Gi"}
        assert {"name": "incoming", "mountPath": "/incoming", "readOnly": True} in publish["volumeMounts"]
        shared = {each["name"] for each in publish["volumeMounts"]} & {each["name"] for each in run["volumeMounts"]}
        assert shared == {"repository", "incoming"}, "what publishes has a /tmp of its own"
        assert run["args"] == ["run", stage], "what is asked comes from prepare"
        assert [prepare["args"][:2], publish["args"][:2]] == [["prepare", stage], ["publish", stage]]
        assert prepare["args"][2] == publish["args"][2]


def test_the_metrics_get_what_the_profiles_kept(applied: dict[str, Body]) -> None:
    profile = applied["profile"]["metadata"]["labels"]["triton-operator.dev/key"]
    mounts = framework(dict(pods(applied))["metrics"])["volumeMounts"]
    assert f".triton-operator/measurements/{profile}/served" in {each.get("subPath") for each in mounts}


def test_a_quota_finds_limits_on_every_container_of_user_code(applied: dict[str, Body]) -> None:
    for stage in USER_CODE:
        for container in containers(dict(pods(applied))[stage]):
            limits = container["resources"]["limits"]
            assert (limits["cpu"], limits["memory"]) == ("1500m", "4Gi")


DEFAULTS = DefaultResources(
    requests={"memory": "256Mi", "ephemeral-storage": "64Mi"}, limits={"memory": "16Gi", "ephemeral-storage": "2Gi"}
)
MIB = 2**20


def by_default(**fields: Any) -> dict[str, Body]:
    """The pods of an installation with default resources, by stage (Jobs) or kind."""
    cluster = (
        a_deployment().asking(**fields).upgraded(job_resources=DEFAULTS, server_resources=DEFAULTS).settled().cluster()
    )
    return {
        each["metadata"]["labels"].get("triton-operator.dev/stage", each["kind"]): each["spec"]["template"]["spec"]
        for each in cluster.objects.values()
        if "template" in each.get("spec", {})
    }


def test_a_container_whose_spec_sets_no_resources_has_the_installations() -> None:
    for name, pod in by_default().items():
        for container in containers(pod):
            has = container["resources"]
            assert has["requests"] == DEFAULTS.requests, (name, container["name"])
            shared = any(each["name"] == "dshm" for each in container["volumeMounts"])
            assert has["limits"]["memory"] == ("17Gi" if shared else "16Gi"), "what is in /dev/shm is memory"


def test_a_pod_may_fill_its_volumes_before_it_reaches_its_own_limit() -> None:
    """The kubelet counts the emptyDirs of a pod against the sum of its containers' limits."""
    for pod in by_default().values():
        volumes = [each["emptyDir"] for each in pod["volumes"] if "emptyDir" in each]
        on_disk = sum(amount(each["sizeLimit"]) or 0 for each in volumes if "medium" not in each)
        for container in containers(pod):
            limit = amount(container["resources"]["limits"]["ephemeral-storage"])
            assert limit == on_disk + 2048 * MIB


@pytest.mark.parametrize(
    ("given", "requests", "limits"),
    [
        # Kubernetes sets the missing request to the limit.
        ({"limits": {"memory": "64Mi"}}, {"ephemeral-storage": "64Mi"}, {"memory": "64Mi"}),
        ({"requests": {"memory": "2Gi"}}, {"memory": "2Gi", "ephemeral-storage": "64Mi"}, {"memory": "16Gi"}),
        ({"requests": {"memory": "32Gi"}}, {"memory": "32Gi", "ephemeral-storage": "64Mi"}, {"memory": "32Gi"}),
        (
            {"requests": {"cpu": "2"}},
            {"cpu": "2", "memory": "256Mi", "ephemeral-storage": "64Mi"},
            {"memory": "16Gi"},
        ),
        (
            {"requests": {"memory": "1Gi"}, "limits": {"memory": "4Gi", "ephemeral-storage": "5Gi"}},
            {"memory": "1Gi"},
            {"memory": "4Gi", "ephemeral-storage": "5Gi"},
        ),
    ],
)
def test_what_the_spec_sets_comes_before_the_installations(given: Body, requests: Body, limits: Body) -> None:
    pod = by_default(conversion={"pod": {"resources": given}})["convert"]
    # Another test has the one with /dev/shm, whose default limit has that added.
    for container in (each for each in containers(pod) if each["name"] != "run"):
        has = container["resources"]
        assert has["requests"] == requests
        assert has["limits"] == {"ephemeral-storage": "42Gi"} | limits, "10 and 10 of /tmp, 20 incoming, 2 of its own"


def test_the_data_is_where_the_arguments_say(applied: dict[str, Body]) -> None:
    pod = dict(pods(applied))["reference"]
    request = ReferenceRequest.from_json(pod["containers"][0]["args"][-1])
    assert request.dataloader is not None
    assert request.dataloader.arguments == {"path": "/data/imagenet/val/images"}
    assert {"name": "data", "persistentVolumeClaim": {"claimName": "datasets", "readOnly": True}} in pod["volumes"]


def test_jobs_are_reached_by_nobody_and_only_measure_reaches_names_and_servers(applied: dict[str, Body]) -> None:
    own = {"triton-operator.dev/deployment": "digits"}
    jobs, measure = applied["digits-jobs"]["spec"], applied["digits-measure"]["spec"]
    stage = {"key": "triton-operator.dev/stage", "operator": "Exists"}
    assert jobs == {
        "podSelector": {"matchLabels": own, "matchExpressions": [stage]},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [],
        "egress": [],
    }, "no rule: nothing in, nothing out, not even names"
    assert measure["podSelector"] == {"matchLabels": own | {"triton-operator.dev/stage": "measure"}}
    servers, dns = measure["egress"]
    revision = {"key": "triton-operator.dev/server", "operator": "Exists"}
    assert servers == {"to": [{"podSelector": {"matchLabels": own, "matchExpressions": [revision]}}]}
    assert {each["port"] for each in dns["ports"]} == {53, 5353}, "OpenShift's DNS pods listen on the other one"


def test_a_job_that_cannot_mend_itself_is_not_tried_again(applied: dict[str, Body]) -> None:
    for stage, finals in (("convert", ["prepare", "convert"]), ("profile", ["prepare", "profile"])):
        *final, disrupted = applied[stage]["spec"]["podFailurePolicy"]["rules"]
        assert [each["onExitCodes"] for each in final] == [
            {"containerName": name, "operator": "In", "values": [42]} for name in finals
        ]
        assert disrupted["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]


def test_a_private_server_listens_to_its_own_pod_alone(applied: dict[str, Body]) -> None:
    """The kubelet could not ask it there, so only what runs inside its container does."""
    _, sidecar, _ = dict(pods(applied))["profile"]["initContainers"]
    (server,) = dict(pods(applied))["Deployment"]["containers"]
    flags = {f"--{name}-address=127.0.0.1" for name in ("http", "grpc", "metrics")}
    assert flags <= set(sidecar["args"])
    assert not flags & set(server["args"])
    assert RECONNECTING in server["args"]
    assert RECONNECTING not in sidecar["args"]
    assert {each for each in sidecar if each.endswith("Probe")} == {"startupProbe"}
    assert {each for each in server if each.endswith("Probe")} == {"startupProbe", "readinessProbe", "livenessProbe"}
    assert sidecar["startupProbe"] == server["startupProbe"]


def test_servers_take_the_configuration_as_it_is(applied: dict[str, Body]) -> None:
    """Else they add dynamic batching to it, and a search measures with what it takes to be without."""
    _, sidecar, _ = dict(pods(applied))["profile"]["initContainers"]
    (server,) = dict(pods(applied))["Deployment"]["containers"]
    assert COMPLETE in sidecar["args"]
    assert COMPLETE in server["args"]


@pytest.mark.parametrize(("ipv6", "expected"), [(False, set()), (True, set(ON_IPV6))])
def test_a_server_listens_where_its_service_has_an_address(ipv6: bool, expected: set[str]) -> None:
    cluster = Cluster(a_spec(), settings=replace(SETTINGS, ipv6=ipv6))
    cluster.settle()
    (deployment,) = cluster.of_kind("Deployment")
    (server,) = deployment["spec"]["template"]["spec"]["containers"]
    assert {each for each in server["args"] if "-address=" in each} == expected


def test_requests_are_drained_before_the_server_unloads_its_model(applied: dict[str, Body]) -> None:
    pod = dict(pods(applied))["Deployment"]
    (server,) = pod["containers"]
    drain = server["lifecycle"]["preStop"]["sleep"]["seconds"]
    age = next(each for each in server["args"] if each.startswith("--grpc-max-connection-age="))
    waits = next(each for each in server["args"] if each.startswith("--exit-timeout-secs="))
    assert int(age.partition("=")[2]) * 1.1 < drain * 1000, "gRPC lets a connection live up to a tenth longer"
    assert drain + int(waits.partition("=")[2]) < pod["terminationGracePeriodSeconds"]
