"""A result's key is a hash of what its Job is given: Jobs that are given something else never share a result."""

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations as pairs
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import Attack
from tests.simulation.answers import INPUT, OUTPUT, TENSORRT
from tests.simulation.cluster import SETTINGS, Cluster
from tests.simulation.deployments import a_model, a_spec, a_step, an_ensemble, candidate
from tests.unit.test_attestation import passed, subject
from triton_converters.contract.results import ConvertResult, ReferenceResult, Signature, SourceResult
from triton_converters.contract.stages import STAGES
from triton_operator.api.duration import seconds
from triton_operator.api.triton_deployment import parse
from triton_operator.candidates.attempt import Attempt
from triton_operator.candidates.candidate import candidates_of
from triton_operator.context import Context
from triton_operator.jobs.attestation import predicate
from triton_operator.jobs.clean import clean_work
from triton_operator.jobs.comparison import comparison_work
from triton_operator.jobs.convert import work_and_damages
from triton_operator.jobs.measure import measure_work
from triton_operator.jobs.metrics import metrics_work
from triton_operator.jobs.packages import packages_works
from triton_operator.jobs.profile import profile_work
from triton_operator.jobs.publish import publish_work
from triton_operator.jobs.reference import Dump, reference_work
from triton_operator.jobs.search import Budget, search_work
from triton_operator.jobs.source import source_work
from triton_operator.names import is_reserved_variable
from triton_operator.observed.history import History, State
from triton_operator.observed.revision import Revision
from triton_operator.observed.snapshot import observe
from triton_operator.planning.pins import pinned_images
from triton_operator.resources.job import job
from triton_operator.resources.server import server
from triton_operator.resources.work import AnyWork, Client
from triton_operator.settings import Settings

Body = dict[str, Any]
NOW = datetime(2026, 11, 21, tzinfo=UTC)
GPU = {"product": "NVIDIA-H200", "count": 1}
ACCELERATED = {**candidate("onnx-fp16"), "name": "onnx-trt", "accelerator": "trt"}
TORCH = a_spec(
    models=[a_model(candidates=[*map(candidate, ("ts-trace-fp32", "onnx-fp32", "trt-fp16")), ACCELERATED])], gpu=GPU
)
TENSORFLOW = a_spec(
    models=[a_model(format="tf-keras", candidates=list(map(candidate, ("tf-savedmodel-fp32", "tf-trt-fp16"))))],
    gpu=GPU,
)
BASES = (TORCH, TENSORFLOW, an_ensemble("onnx-fp32"), a_step())
CONFIG, TENSOR_RT, MEASUREMENT = "models.0.config", "models.0.tensorrt", "performance.measurement"
TUNING = {
    "pyt": "intra_op_thread_count",
    "tf-keras": "TF_NUM_INTRA_THREADS",
    "hps": "refresh_delay",
    "triton-python": "intra_op_thread_count",
}
"""A parameter that a backend of the model reads, by the model's format."""
PUBLISH: Body = {"uri": "oci://registry.example/acme/digits"}
OPTIONS: Mapping[str, tuple[Any, ...]] = {
    "source.uri": ("pvc://models/digits", "pvc://models/other", "https://models.example/digits.onnx"),
    "source.include": ([], ["*.onnx"], ["*.py", "*.onnx"]),
    "source.sha256": ("", "0" * 64),
    "source.version": ("", "v2"),
    "dataset": (None, {"uri": "pvc://data/a"}, {"uri": "pvc://data/a", "version": "v2"}),
    "dataloader.arguments": ({}, {"seed": "1"}),
    "metrics": (None, {"entrypoint": "metrics.py"}, {"entrypoint": "metrics.py", "arguments": {"top": "5"}}),
    "accuracy.thresholds": ([], [{"metric": "accuracy", "min": 0.9}], [{"metric": "f1", "max": 1}]),
    "accuracy.maxSamples": (256, 100, 4),
    "models.0.arguments": ({}, {"depth": "50"}),
    "models.0.requirements": ("", "requirements.txt", "steps/requirements.txt"),
    "models.0.mountPath": (None, "/models/a/1", "/models/b/1"),
    "models.0.scratchPaths": ([], ["/cache"], ["/cache", "/work"]),
    "models.0.hps": ({}, {"gpuCachePercent": 10}, {"keysPerSample": 3}),
    "models.0.onnx": ({}, {"opset": 13}, {"exporter": "Dynamo"}, {"optimized": True}),
    f"{TENSOR_RT}.workspace": ("1Gi", "2Gi"),
    f"{TENSOR_RT}.builderOptimizationLevel": (3, 5),
    f"{CONFIG}.maxBatchSize": (8, 16),
    f"{CONFIG}.instances": (1, 2),
    f"{CONFIG}.dynamicBatching": (None, {}, {"maxQueueDelay": "100us"}),
    f"{CONFIG}.dynamicBatching.preferredBatchSizes": ([], [4], [2, 4], [8]),
    f"{CONFIG}.cudaGraphs": (False, True),
    f"{CONFIG}.warmup": (True, False),
    f"{CONFIG}.overrides": ("", "optimization { eager_batching: true }"),
    f"{CONFIG}.parameters": ({}, lambda spec: {TUNING[spec["models"][0]["format"]]: "2"}),
    "gpu": (None, GPU, GPU | {"product": "NVIDIA-L40S"}, GPU | {"count": 2}, GPU | {"resourceName": "vendor/gpu"}),
    "conversion.image": ("", "example/mine:1"),
    "conversion.requirements": ("", "requirements.txt", "more/requirements.txt"),
    "conversion.indexSecretRef": (None, {"name": "registry"}),
    "conversion.pod.env": ([], [{"name": "A", "value": "1"}], [{"name": "A", "value": "2"}]),
    "pod.env": ([], [{"name": "A", "value": "1"}], [{"name": "B", "value": "1"}]),
    "pod.runAsUser": (1000, 2000),
    "pod.nodeSelector": ({}, {"pool": "gpu"}),
    "conversion.pod.resources.limits": ({}, {"cpu": "2"}, {"memory": "1Gi"}),
    "conversion.pod.resources.requests": ({}, {"cpu": "2"}),
    "conversion.activeDeadlineSeconds": (3600, 60),
    "conversion.parallelism": (2, 1),
    "conversion.tolerances": ([], [{"precision": "fp32", "absolute": 1e-3, "relative": 1e-3}]),
    "performance.protocol": ("grpc", "http"),
    "performance.offline": (None, {"batchSizes": [1, 4]}),
    "performance.online": (
        None,
        {"concurrency": {"start": 1, "end": 8}},
        {"concurrency": {"start": 1}},
        {"concurrency": {"start": 1, "end": 4}, "requestRate": {"rates": [100]}},
    ),
    "performance.inputShapes": ([], [{"input": "INPUT__0", "dims": [1, 8, 8]}]),
    "performance.sharedMemory": (["Offline"], [], ["Offline", "Online"]),
    "performance.activeDeadlineSeconds": (3600, 60),
    f"{MEASUREMENT}.mode": ("CountWindows", "TimeWindows"),
    f"{MEASUREMENT}.requestCount": (50, 60),
    f"{MEASUREMENT}.stabilityPercent": (10, 20),
    "selection.scenario": ("Online", "Offline"),
    "selection.objectives": ([], [{"metric": "p99Latency"}]),
    "selection.constraints": ({}, {"p99Latency": "9ms"}),
    "selection.search": ({"mode": "Quick"}, {"mode": "Exhaustive"}, {"mode": "Quick", "measurements": 9}),
    "serving.mode": ("Serve", "None"),
    "serving.replicas": (1, 2),
    "serving.image": ("", "example/triton:1"),
    "serving.arguments": (
        [],
        ["--backend-config=default-max-batch-size=4"],
        ["--http-thread-count=4"],
        ["--http-thread-count=4", "--rate-limit=execution_count"],
        ["--pinned-memory-pool-byte-size=1048576"],
    ),
    "serving.networkPolicy": (None, {"from": [{"podSelector": {}}]}),
    "serving.progressDeadlineSeconds": (600, 60),
    "serving.soak": (None, {}, {"duration": "60s", "maxErrorPercent": 0.1}),
    "serving.pod.resources.limits": ({}, {"cpu": "2"}),
    "rollout.onInconclusive": ("Hold", "Undo"),
    "repository.claimName": (None, "shared"),
    "publish": (
        None,
        PUBLISH,
        PUBLISH | {"uri": "oci://registry.example/acme/digits:v2"},
        PUBLISH | {"secretRef": {"name": "registry"}},
        PUBLISH | {"signing": {"secretRef": {"name": "cosign"}}},
        PUBLISH | {"samples": True},
    ),
}
"""Fields of the spec and values that they may have, or that follow from the spec; the first is the default."""
IMAGES: Mapping[str, tuple[Any, ...]] = {
    "converter_image": ("example/converter:1", "example/converter:2"),
    "converter_tensorflow_image": ("example/converter-tensorflow:1", "example/converter-tensorflow:2"),
    "converter_gpu_image": ("", "example/converter-gpu:1", "example/converter-gpu:2"),
    "server_image": ("example/server:1", "example/server:2"),
    "server_arguments": ((), ("--x=1",)),
}
"""The same of the installation."""
CHOICES = {name: st.sampled_from(values) for name, values in {**OPTIONS, **IMAGES}.items()}
EVERYTHING = [(name, value) for name, values in {**OPTIONS, **IMAGES}.items() for value in values]
MEASURES = ("profile", "search", "measure")
SERVED = State(
    (f"profile.{'1' * 16}", f"reference.{'2' * 16}"),
    f"profile.{'1' * 16}",
    revision=Revision.of(
        "3" * 16, "onnx-fp32", "digits", "digits-0", {}, {"serving": {"format": "onnx", "precision": "fp32"}}
    ),
)
"""What served before."""
REPORT = predicate(passed(subject()))
"""Why it was let through."""


class Given(NamedTuple):
    """A Job: its stage and key, and what it is given."""

    stage: str
    key: str
    asked: str
    """The request without keys that are made from it, and the parts of the pod that can change its result."""
    made_from: str
    """The whole pod, and what it reads that no part of the pod tells."""


def chosen(base: Body, values: Mapping[str, Any]) -> tuple[Body, Settings]:
    """The spec and the installation with these values."""
    spec = deepcopy(base)
    for name, value in values.items():
        if name not in IMAGES:
            _put(spec, name.split("."), value(spec) if callable(value) else deepcopy(value))
    return spec, replace(SETTINGS, **{name: value for name, value in values.items() if name in IMAGES})


def _put(place: Any, path: list[str], value: Any) -> None:
    for name in path[:-1]:
        if isinstance(place, list):
            place = place[int(name)]
            continue
        if place.get(name) is None:
            place[name] = {}
        place = place[name]
    place[path[-1]] = value


def works(context: Context) -> Iterator[AnyWork]:
    """The work of every stage, as if each went well."""
    reading = source_work(context)
    source = SourceResult(
        context.spec.source.uri.encode().hex()[:64].ljust(64, "0"),
        3,
        1000,
        requirements=reading.request.requirements.encode().hex(),
        step_requirements=tuple(each.encode().hex() for each in reading.request.step_requirements),
    )
    yield reading
    yield from (work for _, work in packages_works(context, source))
    reference = reference_work(context, source)
    yield reference
    signature = Signature((INPUT,), (OUTPUT,), context.spec.max_batch_size)
    dump = Dump(source, reference.key, ReferenceResult(signature, 64, 8, 1.0))
    for each in candidates_of(context.spec):
        convert, _ = work_and_damages(context, dump, each)
        yield convert
        version = TENSORRT if each.format == "trt" else ""
        conversion = ConvertResult("e" * 64, 1000, ("FP32",), 1.0, (), version, 1e-6)
        cache = convert.request.engine_cache
        attempt = Attempt(each, convert.key, conversion=conversion, engine_cache=cache)
        profile = profile_work(context, dump, attempt)
        yield profile
        if context.spec.ensemble is None:
            asked = context.spec.selection.search
            budget = Budget(asked.measurements, int(seconds(asked.duration)))
            for part in (0, 1):
                yield search_work(context, dump, replace(attempt, profile_key=profile.key), budget, part)
        yield measure_work(context, dump, attempt)
        if context.spec.metrics is not None:
            yield metrics_work(context, dump, [replace(attempt, profile_key=profile.key)])
            yield comparison_work(context, dump, [replace(attempt, profile_key=profile.key)], [SERVED])
    if context.spec.publish is not None:
        yield publish_work(context, context.spec.publish, REPORT)
    yield clean_work(context, dropped=1)


def context_of(spec: Body, installation: Settings = SETTINGS) -> Context:
    """A pass over a new object."""
    deployment = parse(Cluster(spec, settings=installation).body())
    return Context(
        deployment, observe("digits", ()), installation, NOW, pinned_images(deployment, History(), installation)
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"dataset": {"uri": "pvc://datasets/a"}},
        {"conversion": {"requirements": "requirements.txt", "indexSecretRef": {"name": "index"}}},
    ],
)
def test_what_a_name_stands_for_in_another_namespace_is_something_else(fields: Body, attack: Attack) -> None:
    """Claims of two namespaces may have one storage, and the same name is not the same claim or Secret."""
    context = context_of(a_spec(**fields))
    other = replace(context, triton_deployment=replace(context.triton_deployment, namespace="blue"))
    mine, theirs = ({work.key for work in works(each) if work.stage != "source"} for each in (context, other))
    stages = {"packages", "reference"} if "conversion" in fields else {"reference"}
    found = {work.stage for work in works(other) if work.key in mine & theirs}
    attack("author in another namespace", f"results on shared storage made with {[*fields]}", f"{found}")
    assert not stages & found


def jobs(spec: Body, installation: Settings) -> list[Given]:
    """What every stage's Jobs are given for a spec."""
    context = context_of(spec, installation)
    found = list(works(context))
    dumps = {work.key: _dump(context, work) for work in found if work.stage == "reference"}
    given_to = [_given(context, work, dumps) for work in found]
    return given_to + [each for one in given_to if one.stage == "convert" for each in _files(one)]


def _request(work: AnyWork) -> Body:
    asked: Body = json.loads(work.request.to_json())
    del asked["key"]
    asked.pop("files_key", None)
    return asked


def _dump(context: Context, reference: AnyWork) -> list[Any]:
    """What the batches of a reference are made from. Labels are kept where there are any, whoever needs them."""
    data, gpu = context.spec.dataset, context.spec.gpu
    device = [gpu.product, gpu.resource_name] if gpu is not None and gpu.count else []
    return [_request(reference) | {"needs_labels": None}, data and data.model_dump(), device]


def _given(context: Context, work: AnyWork, dumps: Mapping[str, Any]) -> Given:
    asked, template = _request(work), job(context, work)["spec"]["template"]
    pod = template["spec"]
    own, others = pod["containers"][0], pod.get("initContainers", [])
    parts: list[Any] = [asked]
    if work.stage == "convert":
        # The candidate's name only tells messages apart.
        asked["candidate"] = ""
        _name_dumps(asked, dumps)
    if work.stage == "packages":
        # The same file is the same wherever it lies; who may read the index is part of the key alone.
        del asked["source"], asked["path"]
        for each in asked.get("others", []):
            del each["path"]
    if STAGES[work.stage].image_in_key:
        # pip and what is around it are the installation's, and only the image that imports the packages decides.
        deciding = [each for each in (own, *others) if work.stage != "packages" or each["name"] == "run"]
        parts.append([each["image"] for each in deciding])
        parts.append([pair for each in others if each["name"] in ("run", "tritonserver") for pair in _own_env(each)])
    unseen: Any = None
    if work.stage in MEASURES:
        assert isinstance(work.shape, Client)
        attempt = work.shape.attempt
        unseen = server(context, attempt, context.images.server).template
        (container,) = unseen["spec"]["containers"]
        parts.append({name: each["cpu"] for name, each in own["resources"].items() if "cpu" in each})
        parts.append([container["image"], container["args"], container["resources"], _own_env(container)])
    elif work.stage in ("source", "reference", "metrics"):
        unseen = [context.spec.source.version, context.spec.dataset and context.spec.dataset.version]
    text = json.dumps([template, unseen], sort_keys=True)
    return Given(work.stage, work.key, json.dumps(parts, sort_keys=True), text.replace(work.key, ""))


def _own_env(container: Body) -> list[Body]:
    return [each for each in container.get("env", []) if not is_reserved_variable(each["name"])]


def _files(convert: Given) -> Iterator[Given]:
    """The conversions in a convert Job: what the converter of each file is given."""
    request, images, env = json.loads(convert.asked)
    for each in request.get("members", [request]):
        key = each.pop("conversion_key")
        for served in ("accelerator", "config", "engine_cache", "hps", "gpu_count"):
            each.pop(served, None)
        if "trt" not in each["format"]:
            del each["tensorrt"]
        made_from = json.dumps([each, images, env], sort_keys=True)
        yield Given("conversion", key, made_from, made_from)


def _name_dumps(asked: Body, dumps: Mapping[str, Any]) -> None:
    for request in (asked, *asked.get("members", [])):
        request.pop("key", None)
        key, _, member = request["reference"].partition("/")
        request["reference"] = [dumps[key], member]


def judge(given_to: list[Given]) -> None:
    """Fail where two Jobs that are given different things have one key, or two that are given the same have two."""
    for one, other in pairs(given_to, 2):
        if one.stage != other.stage:
            continue
        if one.key == other.key:
            assert one.asked == other.asked, f"{one.stage}: one key for different requests"
        else:
            assert one.made_from != other.made_from, f"{one.stage}: two keys for the same request"


EQUAL: Mapping[str, tuple[Any, ...]] = {
    "conversion.tolerances": tuple(
        [{"precision": "fp32", "absolute": one, "relative": one}] for one in (1, 1.0, float("1e0"))
    ),
    "conversion.pod.resources.limits": ({"cpu": 2}, {"cpu": "2"}, {"cpu": "2000m"}),
    "serving.pod.resources.limits": ({"memory": "1Gi"}, {"memory": "1024Mi"}, {"memory": 2**30}),
    "serving.sharedMemorySize": ("2Gi", "2048Mi", 2**31),
    f"{TENSOR_RT}.workspace": ("2Gi", "2048Mi", 2**31),
}
"""Fields of the spec with one value in several forms."""


@pytest.mark.parametrize("name", EQUAL)
def test_a_value_has_one_key_and_one_pod_however_it_is_written(name: str) -> None:
    first, *others = [jobs(*chosen(TORCH, {name: value})) for value in EQUAL[name]]
    assert others == [first] * len(others)


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("base", BASES, ids=("torch", "tensorflow", "ensemble", "step"))
def test_a_field_is_in_the_keys_of_the_jobs_that_are_given_it(base: Body, name: str) -> None:
    values = {**OPTIONS, **IMAGES}[name]
    judge([each for value in values for each in jobs(*chosen(base, {name: value}))])


@settings(max_examples=150, deadline=None)
@given(
    base=st.sampled_from(BASES),
    first=st.fixed_dictionaries({}, optional=CHOICES),
    changes=st.lists(st.sampled_from(EVERYTHING), min_size=0, max_size=3),
)
def test_requests_that_differ_have_different_keys_and_equal_ones_the_same(
    base: Body, first: dict[str, Any], changes: list[tuple[str, Any]]
) -> None:
    judge([*jobs(*chosen(base, first)), *jobs(*chosen(base, first | dict(changes)))])


def test_the_jobs_of_every_stage_are_compared() -> None:
    """Except those that read counters, or look at a source: their key names a moment."""
    asked = {"conversion.requirements": "requirements.txt", "publish": PUBLISH}
    assert {each.stage for each in jobs(*chosen(TORCH, asked))} - {"conversion"} == STAGES.keys() - {"look", "snapshot"}
