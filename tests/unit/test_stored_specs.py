"""Specs that the CRD cannot refuse, or did not when they were stored: the operator refuses them and names the field."""

import json
from typing import Any

import pytest

from tests.apiserver.custom_resources import MINIMAL, changed
from tests.simulation.cluster import Cluster
from tests.simulation.deployments import an_ensemble
from triton_converters.contract.backend_parameters import PARAMETERS
from triton_operator.api.backend_settings import OPTIONS
from triton_operator.api.triton_deployment import LONGEST_SPEC_BYTES, InvalidSpecError, parse

CONFIG = "spec.models.0.config"
STEP = {"name": "step", "format": "triton-python", "entrypoint": "step.py"}
IDENTITY = {"name": "digits", "namespace": "vision", "uid": "uid-0", "generation": 1}
WRONG = {"key": "zone", "operator": "Is"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
UNKNOWN = "there is no such field, or the operator sets it itself: correct or remove it"
LONGEST_ARGUMENT = 128 * 1024
"""MAX_ARG_STRLEN of Linux, in bytes: no program starts with a longer argument."""
LONGEST_ANNOTATIONS = 256 * 1024
"""All annotations of an object together, in bytes."""


def long_arguments(kilobytes: int) -> dict[str, str]:
    return {f"argument_{number}": '"' * 500 for number in range(kilobytes)}


STORED: dict[str, tuple[dict[str, Any], str]] = {
    "a URI with credentials": (
        {"spec.source.uri": "https://user:pw@models.example/a.onnx"},
        "spec.source.uri: the URI has a query, a fragment or credentials; remove them",
    ),
    "a URI of no scheme": (
        {"spec.source.uri": "file:///etc/passwd"},
        "spec.source.uri: the URI must be one of pvc://CLAIM/PATH",
    ),
    "a Python environment": (
        {CONFIG: {"parameters": {"EXECUTION_ENV_PATH": "env.tar.gz"}}},
        "spec.models.0: config.parameters must not have EXECUTION_ENV_PATH",
    ),
    "a library in a step's arguments": (
        {"spec.models.0": STEP | {"arguments": {"TRITON_BATCH_STRATEGY_PATH": "/tmp/a.so"}}},
        "spec.models.0: arguments of format triton-python must not have EXECUTION_ENV_PATH",
    ),
    "a mount in a step's arguments": (
        {"spec.models.0": STEP | {"arguments": {"words": "$(DATASET)/words.txt"}}},
        "spec.models.0: arguments of format triton-python are read inside the server",
    ),
    "a step's file among bytecode": (
        {"spec.models.0": STEP | {"entrypoint": "__pycache__/step.py"}},
        "spec.models.0: the file of format triton-python is in a folder __pycache__",
    ),
    "a path of the server's programs": (
        {"spec.models.0": STEP | {"mountPath": "/opt/tritonserver"}},
        "spec.models.0.mountPath: a path must not be in a folder of the system or of the operator",
    ),
    "a path that is ours, to write to": (
        {"spec.models.0": STEP | {"scratchPaths": ["/cache", "/repository/x"]}},
        "spec.models.0.scratchPaths.1: a path must not be in a folder of the system or of the operator",
    ),
    "a path with a colon": (
        {"spec.models.0": STEP | {"mountPath": "/cache:/etc"}},
        "spec.models.0.mountPath: String should match pattern",
    ),
    "five paths to write to": (
        {"spec.models.0": STEP | {"scratchPaths": ["/a", "/b", "/c", "/d", "/e"]}},
        "spec.models.0.scratchPaths: List should have at most 4 items",
    ),
    "a parameter of TensorFlow for a model in ONNX": (
        {CONFIG: {"parameters": {"TF_NUM_INTRA_THREADS": "2", "enable_mem_arena": "0"}}},
        "spec.models.0: config.parameters must not have TF_NUM_INTRA_THREADS: docs/formats.md lists what may be set",
    ),
    "a parameter of no backend for a model of unknown format": (
        {
            "spec.models.0": {"name": "m", "path": "m.onnx", "config": {"parameters": {"EXECUTION_ENV_PATH": "a"}}},
        },
        "config.parameters must not have EXECUTION_ENV_PATH",
    ),
    "a path": (
        {CONFIG: {"parameters": {"gpu_mem_limit": "/etc/passwd"}}},
        "spec.models.0.config.parameters.gpu_mem_limit: String should match pattern",
    ),
    "a directory of backends": (
        {"spec.serving": {"arguments": ["--backend-config=backend-directory=models"]}},
        "spec.serving.arguments.0: must be an allowed argument of tritonserver: remove or correct it. Allowed are",
    ),
    "a flag that opens a file": (
        {"spec.serving": {"arguments": ["--http-thread-count=8", "--log-file=/dev/stdout"]}},
        "spec.serving.arguments.1: must be an allowed argument of tritonserver: remove or correct it. Allowed are",
    ),
    "no workspace": (
        {"spec.models.0.tensorrt": {"workspace": 0}},
        "spec.models.0.tensorrt.workspace: must be from 1Mi to 1Ti: correct it",
    ),
    "cores below zero": (
        {"spec.serving": {"pod": {"resources": {"limits": {"cpu": "-1"}}}}},
        "spec.serving.pod.resources.limits.cpu: a quantity is a number, with or without a suffix",
    ),
    "a response cache": (
        {CONFIG: {"overrides": "response_cache { enable: true }"}},
        "spec.models.0.config: overrides: response_cache must not be overridden: remove it",
    ),
    "a queue policy without a queue": (
        {CONFIG: {"overrides": "dynamic_batching { preserve_ordering: true }"}},
        "spec.models.0.config: overrides: dynamic_batching needs the dynamic batcher: set dynamicBatching",
    ),
    "a variable that loads a library": (
        {"spec.pod": {"env": [{"name": "LD_PRELOAD", "value": "evil.so"}]}},
        "spec.pod.env.0: LD_PRELOAD is reserved and must not be set: remove it",
    ),
    "a variable by which CUDA loads a library": (
        {"spec.serving": {"pod": {"env": [{"name": "CUDA_INJECTION64_PATH", "value": "evil.so"}]}}},
        "spec.serving.pod.env.0: CUDA_INJECTION64_PATH is reserved and must not be set: remove it",
    ),
    "a variable by which NVTX loads a library": (
        {"spec.conversion": {"pod": {"env": [{"name": "NVTX_INJECTION32_PATH", "value": "evil.so"}]}}},
        "spec.conversion.pod.env.0: NVTX_INJECTION32_PATH is reserved and must not be set: remove it",
    ),
    "an affinity of 100 KB": (
        {"spec.conversion": {"pod": {"affinity": {"nodeAffinity": {"x": "y" * 100_000}}}}},
        "the spec has 100",
    ),
    "an affinity of 20 KB": (
        {"spec.conversion": {"pod": {"affinity": {"nodeAffinity": {"x": "y" * 20_000}}}}},
        "spec.conversion.pod.affinity: the affinity has 20027 bytes as JSON, more than 16384: shorten it",
    ),
    "an affinity to no pods": (
        {"spec.serving": {"pod": {"affinity": {"podAffinity": "node-1"}}}},
        "spec.serving.pod.affinity.podAffinity: must be an object: correct it",
    ),
    "an affinity to one pod": (
        {"spec.serving": {"pod": {"affinity": {"podAffinity": {REQUIRED: {"topologyKey": "zone"}}}}}},
        f"spec.serving.pod.affinity.podAffinity.{REQUIRED}: must be a list: correct it",
    ),
    "a misspelt affinity": (
        {"spec.pod": {"affinity": {"nodeAfinity": {}}}},
        f"spec.pod.affinity.nodeAfinity: {UNKNOWN}",
    ),
    "a misspelt field within an affinity": (
        {"spec.serving": {"pod": {"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": "a", "labels": {}}]}}}}},
        f"spec.serving.pod.affinity.podAntiAffinity.{REQUIRED}.0.labels: {UNKNOWN}",
    ),
    "an operator of no affinity": (
        {"spec.pod": {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [WRONG]}]}}}}},
        "nodeSelectorTerms.0.matchFields.0.operator: Input should be 'In', 'NotIn', 'Exists'",
    ),
    "a misspelt toleration": (
        {"spec.conversion": {"pod": {"tolerations": [{"Key": "gpu"}]}}},
        f"spec.conversion.pod.tolerations.0.Key: {UNKNOWN}",
    ),
    "a toleration in Python's spelling": (
        {"spec.pod": {"tolerations": [{"toleration_seconds": 5}]}},
        f"spec.pod.tolerations.0.toleration_seconds: {UNKNOWN}",
    ),
    "a spread over nothing": (
        {"spec.serving": {"pod": {"topologySpreadConstraints": [{"maxSkew": 1}]}}},
        "spec.serving.pod.topologySpreadConstraints.0.topologyKey: Field required",
    ),
    "two spreads over one key": (
        {"spec.pod": {"topologySpreadConstraints": [{"topologyKey": "zone"}, {"topologyKey": "zone"}]}},
        "spec.pod.topologySpreadConstraints: two have one topologyKey: remove one of them",
    ),
    "a spread over others' pods": (
        {"spec.pod": {"topologySpreadConstraints": [{"topologyKey": "zone", "labelSelector": {}}]}},
        f"spec.pod.topologySpreadConstraints.0.labelSelector: {UNKNOWN}",
    ),
    "a label of a kilobyte": (
        {"spec.serving": {"pod": {"labels": {"team": "x" * 1024}}}},
        "spec.serving.pod.labels.team: String should have at most 63 characters",
    ),
    "arguments of 100 KB": (
        {"spec.models.0.arguments": long_arguments(100)},
        "bytes as JSON, more than 65536: shorten it; most are in spec.models",
    ),
}


def stored(changes: dict[str, Any]) -> dict[str, Any]:
    return changed(MINIMAL, {"metadata": IDENTITY, **changes})


@pytest.mark.parametrize("case", STORED)
def test_what_was_stored_before_the_rule_is_refused_and_named(case: str) -> None:
    changes, expected = STORED[case]
    with pytest.raises(InvalidSpecError) as refused:
        parse(stored(changes))
    assert expected in str(refused.value)


def test_no_setting_that_names_a_file_or_lets_code_in_is_allowed() -> None:
    names = [name for each in (*PARAMETERS.values(), *OPTIONS.values()) for name in each]
    words = ("path", "file", "dir", "env", "plugin", "librar", "shm", "compile", "version-compatible")
    assert [name for name in names if any(word in name.lower() for word in words)] == []


def test_the_longest_spec_fits_into_everything_that_is_made_of_it() -> None:
    expression = {"key": "zone", "operator": "In", "values": ["y" * 15_000]}
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}
    spec = an_ensemble("onnx-fp32", "ts-trace-fp32")
    spec["models"][1]["arguments"] = spec["dataloader"]["arguments"] = long_arguments(22)
    spec |= {"serving": {"pod": {"affinity": affinity}}}
    assert 0.9 < len(json.dumps(spec)) / LONGEST_SPEC_BYTES < 1
    cluster = Cluster(spec)
    made: dict[str, dict[str, Any]] = {}
    for _ in range(80):
        made |= {each["metadata"]["name"]: each for each in cluster.intent().objects}
        cluster.run(1)
    assert cluster.condition("Ready")["status"] == "True"
    kinds = [each["kind"] for each in made.values()]
    assert {"Job", "Deployment", "ConfigMap"} <= set(kinds)
    for each in made.values():
        assert sum(map(len, each["metadata"].get("annotations", {}).values())) < LONGEST_ANNOTATIONS
        for container in each.get("spec", {}).get("template", {}).get("spec", {}).get("containers", []):
            assert max(map(len, container["args"])) < LONGEST_ARGUMENT, each["metadata"]["name"]
