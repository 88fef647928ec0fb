"""The shape of each stage's Job, and the containers that it has."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tests.simulation.cluster import SETTINGS, Cluster
from tests.simulation.deployments import a_model, a_spec, candidate
from tests.simulation.test_keys import PUBLISH, works
from triton_converters.contract import layout
from triton_converters.contract.stages import STAGES
from triton_operator.api.triton_deployment import parse
from triton_operator.context import Context
from triton_operator.jobs.look import look_work
from triton_operator.jobs.source import source_work
from triton_operator.names import DOWNLOADS_LABEL
from triton_operator.observed.history import History
from triton_operator.observed.pod import OWN_FIRST
from triton_operator.observed.snapshot import observe
from triton_operator.planning.pins import pinned_images
from triton_operator.resources.job import job
from triton_operator.resources.work import AnyWork, Client, Download, Pip, Plain, UserCode, reader

THREE = ("prepare", "run")
SPEC = a_spec(
    models=[a_model(candidates=[candidate("trt-fp16")])],
    gpu={"product": "NVIDIA-H200", "count": 1},
    conversion={"requirements": "requirements.txt"},
    publish=PUBLISH,
)
"""An object with every stage that takes a key, whose candidate is an engine."""
SHAPES: Mapping[str, tuple[type, tuple[str, ...]]] = {
    # stage -> its shape, and the containers before its own
    "source": (Plain, ()),
    "packages": (Pip, THREE),
    "reference": (UserCode, THREE),
    "convert": (UserCode, THREE),
    "metrics": (UserCode, THREE),
    "comparison": (UserCode, THREE),
    "profile": (Client, ("prepare", "tensorrt", "tritonserver", "run")),
    "search": (Client, ("prepare", "tensorrt", "tritonserver", "run")),
    "measure": (Client, THREE),
    "publish": (Download, ()),
    "clean": (Plain, ()),
}


def a_context(spec: Mapping[str, Any] = SPEC) -> Context:
    deployment = parse(Cluster(dict(spec)).body())
    pins = pinned_images(deployment, History(), SETTINGS)
    return Context(deployment, observe("digits", ()), SETTINGS, datetime(2026, 11, 21, tzinfo=UTC), pins)


def pod_of(context: Context, work: AnyWork) -> dict[str, Any]:
    spec: dict[str, Any] = job(context, work)["spec"]["template"]["spec"]
    return spec


def test_each_stage_has_its_shape() -> None:
    context, found = a_context(), {}
    for work in works(context):
        pod = pod_of(context, work)
        (main,) = pod["containers"]
        assert main["name"] == work.stage
        names = tuple(each["name"] for each in pod.get("initContainers", ()))
        found[work.stage] = (type(work.shape), names)
    assert found == SHAPES
    assert found.keys() | {"look", "snapshot"} == STAGES.keys()


def test_a_look_is_a_download_without_the_claim() -> None:
    source = {"uri": "s3://models/digits", "interval": "1h", "secretRef": {"name": "bucket"}}
    context = a_context(SPEC | {"source": source})
    looks, downloads = (job(context, work)["spec"]["template"] for work in (look_work(context), source_work(context)))
    assert looks["metadata"]["labels"][DOWNLOADS_LABEL] == downloads["metadata"]["labels"][DOWNLOADS_LABEL] == "true"
    (look,), (download,) = (each["spec"]["containers"] for each in (looks, downloads))
    assert look["env"] == download["env"]
    assert look["securityContext"] == download["securityContext"]
    volumes = {"tmp", "credentials"}
    assert {each["name"] for each in looks["spec"]["volumes"]} == volumes
    assert {each["name"] for each in downloads["spec"]["volumes"]} == volumes | {"repository"}
    # Nor does it have to run where the claim's volume is.
    assert "affinity" not in looks["spec"]
    changed = looks["spec"].keys() - {"containers", "volumes", "activeDeadlineSeconds"}
    assert {each: looks["spec"][each] for each in changed} == {each: downloads["spec"][each] for each in changed}


def test_what_pushes_only_reads_the_claim_and_has_the_secrets_alone() -> None:
    secrets = {"secretRef": {"name": "registry"}, "signing": {"secretRef": {"name": "cosign"}}}
    context = a_context(SPEC | {"publish": PUBLISH | secrets})
    (work,) = (each for each in works(context) if each.stage == "publish")
    template = job(context, work)["spec"]["template"]
    assert template["metadata"]["labels"][DOWNLOADS_LABEL] == "true"
    volumes = {each["name"]: each for each in template["spec"]["volumes"]}
    assert volumes.keys() == {"repository", "tmp", "credentials", "signing"}
    assert volumes["repository"]["persistentVolumeClaim"]["readOnly"]
    assert [volumes[name]["secret"]["secretName"] for name in ("credentials", "signing")] == ["registry", "cosign"]
    (container,) = template["spec"]["containers"]
    mounts = {each["name"]: each for each in container["volumeMounts"]}
    assert [mounts[name]["mountPath"] for name in ("credentials", "signing")] == [
        str(layout.CREDENTIALS_MOUNT),
        str(layout.SIGNING_MOUNT),
    ]
    assert all(mounts[name]["readOnly"] for name in ("credentials", "signing"))
    writers = {each.stage for each in works(context) if each.has_claim and each.writes_claim}
    assert writers == STAGES.keys() - {"publish", "look", "snapshot"}


def test_the_operators_own_init_containers_are_known_by_their_names() -> None:
    """All others were added by something in the cluster."""
    context = a_context()
    for work in works(context):
        assert {each["name"] for each in pod_of(context, work).get("initContainers", ())} <= OWN_FIRST


def test_the_shapes_are_what_the_converters_can_do() -> None:
    for work in works(a_context()):
        assert work.boxed is STAGES[work.stage].boxed, work.stage
        assert isinstance(work.shape, UserCode) is STAGES[work.stage].user_code, work.stage


def test_every_container_asks_for_cpu_where_the_spec_does() -> None:
    """A quota on CPU refuses a pod of which one container does not."""
    cpu = {"pod": {"resources": {"requests": {"cpu": "100m"}}}}
    conversion = SPEC["conversion"] | cpu
    context = a_context(SPEC | {"conversion": conversion, "serving": cpu})
    for work in works(context):
        pod = pod_of(context, work)
        for container in [*pod.get("initContainers", ()), *pod["containers"]]:
            assert container["resources"]["requests"]["cpu"] == "100m", (work.stage, container["name"])


def test_an_answer_is_read_again_by_one_container_of_ours() -> None:
    context = a_context()
    for work in works(context):
        pod = pod_of(context, reader(work))
        (container,) = pod["containers"]
        assert "initContainers" not in pod
        assert container["args"][0] == ("publish" if work.boxed else work.stage)
        installed = work.stage in ("packages", "publish")
        assert container["image"] == (SETTINGS.converter_image if installed else context.images.converter)
