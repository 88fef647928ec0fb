"""The paths that a step's code names: who has them, in which keys they are, and what a forged record may not mount."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from tests.hostile_records import forge_revision
from tests.simulation.cluster import Cluster
from tests.simulation.deployments import a_step, an_ensemble
from tests.simulation.test_python_steps import ALLOWED, a_cluster, asked, pods
from tests.simulation.test_rollback import made, reasons, roll_back
from triton_converters.contract.conversion_requests import ReferenceRequest
from triton_operator.api.quantity import total
from triton_operator.resources.fixed_paths import BEFORE
from triton_operator.settings import DefaultResources

Body = dict[str, Any]
FIXED: Body = {"mountPath": "/models/first/1", "scratchPaths": ["/data-cache/hub", "/cache"]}
SCRATCH = [
    {"name": "scratch", "mountPath": "/cache", "subPath": "cache"},
    {"name": "scratch", "mountPath": "/data-cache/hub", "subPath": "data-cache/hub"},
]


def settled(**fields: Any) -> Cluster:
    cluster = a_cluster(spec=a_step(**fields))
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    return cluster


def containers(cluster: Cluster) -> Iterator[tuple[str, str, list[Body]]]:
    for stage, template in pods(cluster).items():
        pod = template["spec"]
        for container in (*pod.get("initContainers", []), *pod["containers"]):
            yield stage, container["name"], container["volumeMounts"]


def fixed(mounts: list[Body]) -> list[Body]:
    return [each for each in mounts if each["mountPath"] == FIXED["mountPath"] or each["name"] == "scratch"]


def test_the_containers_that_run_the_step_have_its_paths_and_no_other() -> None:
    cluster = settled(**FIXED)
    digest = ReferenceRequest.from_json(asked(cluster, "reference")).source
    key = cluster.status["serving"]["revision"]
    in_source, in_revision = f"sources/{digest}/steps", f"revisions/{key}/models/sparse/1/source/steps"
    expected = {
        ("reference", "run"): in_source,
        ("convert", "run"): in_source,
        ("profile", "tritonserver"): in_revision,
        ("server", "tritonserver"): in_revision,
    }
    found = {(stage, name): fixed(mounts) for stage, name, mounts in containers(cluster)}
    assert {place for place, mounts in found.items() if mounts} == expected.keys()
    for place, folder in expected.items():
        mount = {"name": "repository", "mountPath": FIXED["mountPath"], "readOnly": True}
        assert found[place] == [mount | {"subPath": f".triton-operator/{folder}"}, *SCRATCH], place


def starts(cluster: Cluster) -> dict[tuple[str, str], list[str]]:
    """What comes before tritonserver in each container that runs it."""
    return {
        (stage, container["name"]): container["args"][: container["args"].index("tritonserver")]
        for stage, template in pods(cluster).items()
        for container in (*template["spec"].get("initContainers", []), *template["spec"]["containers"])
        if "tritonserver" in container["args"]
    }


@pytest.mark.parametrize(("fields", "paths"), [({}, []), (FIXED, ["/cache", "/data-cache/hub"])], ids=str)
def test_a_server_empties_what_its_step_may_write_to_at_each_start(fields: Body, paths: list[str]) -> None:
    expected = [*BEFORE, "/dev/shm", "/tmp", *paths, "--"]
    found = starts(settled(**fields))
    assert found == dict.fromkeys([("profile", "tritonserver"), ("server", "tritonserver")], expected)


def test_a_server_without_steps_starts_at_once() -> None:
    cluster = Cluster(an_ensemble("onnx-fp32"))
    cluster.settle()
    assert set(map(tuple, starts(cluster).values())) == {()}


def test_all_that_the_server_may_write_to_is_empty_at_each_start() -> None:
    (container,) = pods(settled(**FIXED))["server"]["spec"]["containers"]
    writable = {each["mountPath"] for each in container["volumeMounts"] if not each.get("readOnly")}
    assert writable == set(container["args"][len(BEFORE) : container["args"].index("--")])


def test_a_server_that_emptied_nothing_is_served_again_as_it_was() -> None:
    cluster, _, _ = served_before()

    def older(template: Body) -> Body:
        (container,) = template["spec"]["containers"]
        del container["args"][: container["args"].index("tritonserver")]
        return template

    roll_back(cluster, forge_revision(cluster, older))
    cluster.settle()
    assert made(cluster)["spec"]["containers"][0]["args"][0] == "tritonserver"


def test_what_a_step_writes_is_bounded_as_tmp_is() -> None:
    for stage, template in pods(settled(**FIXED)).items():
        volumes = {each["name"]: each.get("emptyDir") for each in template["spec"]["volumes"]}
        limit = {"reference": "10Gi", "convert": "10Gi", "profile": "1Gi", "server": "1Gi"}.get(stage)
        assert volumes.get("scratch") == (limit and {"sizeLimit": limit}), stage


def test_eight_steps_with_all_their_paths_share_one_limit() -> None:
    spec, names = a_step(), [f"m{number}" for number in range(8)]
    spec["models"] = [
        spec["models"][0]
        | {"name": name, "mountPath": f"/m/{name}", "scratchPaths": [f"/s/{name}{n}" for n in range(4)]}
        for name in names
    ]
    inputs, output = [{"input": "x", "tensor": "EMB_KEY"}], {"output": "y"}
    spec["ensemble"]["steps"] = [
        {"model": name, "inputMap": inputs, "outputMap": [output | {"tensor": name}]} for name in names
    ]
    limits = {"ephemeral-storage": "1Gi"}
    cluster = Cluster(spec, settings=replace(ALLOWED, job_resources=DefaultResources(limits=limits)))
    cluster.until_active("reference")
    pod = pods(cluster)["reference"]["spec"]
    assert [each["emptyDir"] for each in pod["volumes"] if each["name"] == "scratch"] == [{"sizeLimit": "10Gi"}]
    run = pod["initContainers"][1]
    paths = [each["mountPath"] for each in run["volumeMounts"]]
    assert len(paths) == len(set(paths)) == 8 * 5 + len({"/tmp", "/incoming", "/dev/shm", "the source"})
    on_disk = [
        each["emptyDir"]["sizeLimit"] for each in pod["volumes"] if each.get("emptyDir", {}).keys() == {"sizeLimit"}
    ]
    assert run["resources"]["limits"]["ephemeral-storage"] == total(["1Gi", *on_disk])


def test_steps_that_name_the_same_directory_share_it() -> None:
    spec = a_step(**FIXED)
    spec["models"].append(spec["models"][0] | {"name": "again", "mountPath": None, "scratchPaths": ["/cache"]})
    (first,) = (each for each in spec["ensemble"]["steps"] if each["model"] == spec["models"][0]["name"])
    spec["ensemble"]["steps"].append(first | {"model": "again", "outputMap": [{"output": "y", "tensor": "again"}]})
    cluster = Cluster(spec, settings=ALLOWED)
    cluster.until_active("reference")
    request = ReferenceRequest.from_json(asked(cluster, "reference"))
    assert [each.scratch_paths for each in request.model.parts if each.scratch_paths][-1] == ("/cache",)
    run = pods(cluster)["reference"]["spec"]["initContainers"][1]
    assert [each for each in run["volumeMounts"] if each["name"] == "scratch"] == SCRATCH


def test_the_folder_of_a_file_at_the_root_is_the_whole_source() -> None:
    cluster = settled(entrypoint="first.py", **FIXED)
    assert mount(pods(cluster)["server"], 3)["subPath"].endswith("/models/sparse/1/source")


@pytest.mark.parametrize(
    "change",
    [{"mountPath": "/models/other/1"}, {"mountPath": None}, {"scratchPaths": ["/cache"]}, {"scratchPaths": ["/other"]}],
    ids=str,
)
def test_another_path_makes_the_reference_and_what_depends_on_it_again(change: Body) -> None:
    cluster = settled(**FIXED)
    before = {stage: asked(cluster, stage) for stage in ("reference", "convert", "profile")}
    server = cluster.serving()
    fields = {name: value for name, value in (FIXED | change).items() if value is not None}
    cluster.edit(models=a_step(**fields)["models"])
    cluster.settle()
    assert cluster.serving() not in (None, server)
    for stage, request in before.items():
        assert request not in [
            each["spec"]["template"]["spec"]["containers"][0]["args"][-1]
            for each in cluster.of_kind("Job")
            if each["metadata"]["labels"]["app.kubernetes.io/component"] == stage
        ]


def test_the_order_of_the_paths_changes_nothing() -> None:
    first, second = (
        settled(mountPath=FIXED["mountPath"], scratchPaths=paths) for paths in (["/a", "/b"], ["/b", "/a"])
    )
    assert first.serving() == second.serving()
    assert pods(first) == pods(second)


def test_a_step_with_paths_is_served_again_as_it_was() -> None:
    cluster, template, key = served_before()
    roll_back(cluster, key)
    cluster.settle()
    assert made(cluster) == template


def served_before() -> tuple[Cluster, Body, str]:
    """A cluster that served a step with paths, and serves one without them; the template and key of the first."""
    cluster = settled(**FIXED)
    template, key = deepcopy(made(cluster)), cluster.status["serving"]["revision"]
    cluster.edit(models=a_step()["models"])
    cluster.settle()
    assert made(cluster) != template
    return cluster, template, key


def mount(template: Body, place: int) -> Body:
    """A mount of the server: 3 is that of the step's folder, and the first of what it writes to follows."""
    found: Body = template["spec"]["containers"][0]["volumeMounts"][place]
    return found


def over_the_server(template: Body) -> None:
    mount(template, 3)["mountPath"] = "/opt/tritonserver/backends/python"


def over_its_revision(template: Body) -> None:
    mount(template, 4)["mountPath"] = "/repository/x"
    mount(template, 4)["subPath"] = "repository/x"


def over_python(template: Body) -> None:
    mount(template, 4).update(mountPath="/usr/lib", subPath="usr/lib")


def to_write_to(template: Body) -> None:
    del mount(template, 3)["readOnly"]


def of_another_revision(template: Body) -> None:
    mount(template, 3)["subPath"] = ".triton-operator/revisions/0123456789abcdef/models/sparse/1/source/steps"


def of_a_source(template: Body) -> None:
    mount(template, 3)["subPath"] = f".triton-operator/sources/{'0' * 64}"


def out_of_its_revision(template: Body) -> None:
    mount(template, 3)["subPath"] += "/../../../../../../../other"


def of_a_longer_name(template: Body) -> None:
    mount(template, 3)["subPath"] = mount(template, 3)["subPath"].replace("/models/", "/models2/")


def of_the_whole_claim(template: Body) -> None:
    del mount(template, 3)["subPath"]


def of_numbers(template: Body) -> None:
    mount(template, 3)["mountPath"] = 1


def by_an_expression(template: Body) -> None:
    del mount(template, 3)["subPath"]
    mount(template, 3)["subPathExpr"] = "$(POD_UID)"


def seen_by_the_host(template: Body) -> None:
    mount(template, 4)["mountPropagation"] = "Bidirectional"


def of_the_servers_own_tmp(template: Body) -> None:
    mount(template, 4)["name"] = "tmp"


def without_a_limit(template: Body) -> None:
    template["spec"]["volumes"][-1]["emptyDir"] = {}


def in_memory(template: Body) -> None:
    template["spec"]["volumes"][-1]["emptyDir"]["medium"] = "Memory"


def of_the_node(template: Body) -> None:
    template["spec"]["volumes"][-1] = {"name": "scratch", "hostPath": {"path": "/"}}


def twice(template: Body) -> None:
    template["spec"]["volumes"].append(template["spec"]["volumes"][-1])


def in_the_check(template: Body) -> None:
    template["spec"]["initContainers"][0]["volumeMounts"].append(mount(template, 4))


def that_empties_what_it_serves(template: Body) -> None:
    template["spec"]["containers"][0]["args"].insert(len(BEFORE), "/repository")


def that_runs_another_program(template: Body) -> None:
    template["spec"]["containers"][0]["args"][len(BEFORE) - 1] = "import os"


def that_becomes_a_shell(template: Body) -> None:
    arguments = template["spec"]["containers"][0]["args"]
    arguments[arguments.index("--") + 1 :] = ["sh", *arguments[arguments.index("--") + 1 :]]


def that_becomes_nothing(template: Body) -> None:
    template["spec"]["containers"][0]["args"].remove("--")


FORGERIES: tuple[Callable[[Body], None], ...] = (
    over_the_server,
    over_its_revision,
    over_python,
    to_write_to,
    of_another_revision,
    of_a_source,
    out_of_its_revision,
    of_a_longer_name,
    of_the_whole_claim,
    of_numbers,
    by_an_expression,
    seen_by_the_host,
    of_the_servers_own_tmp,
    without_a_limit,
    in_memory,
    of_the_node,
    twice,
    in_the_check,
    that_empties_what_it_serves,
    that_runs_another_program,
    that_becomes_a_shell,
    that_becomes_nothing,
)


@pytest.mark.parametrize("change", FORGERIES, ids=lambda change: change.__name__)
def test_a_forged_mount_is_not_served(change: Callable[[Body], None]) -> None:
    def forged(template: Body) -> Body:
        change(template)
        return template

    cluster, _, _ = served_before()
    before = made(cluster)
    roll_back(cluster, forge_revision(cluster, forged))
    cluster.run(5)
    assert made(cluster) == before
    assert reasons(cluster, "UpToDate", "Stalled") == [("False", "NotAllowed"), ("True", "NotAllowed")]
