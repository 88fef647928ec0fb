"""The threads of instances follow the server's CPU limit, unless the spec says something else."""

from typing import Any

import pytest

from tests.simulation.cluster import Cluster
from tests.simulation.deployments import a_model, a_spec, candidate
from triton_converters.contract.conversion_requests import ConvertRequest
from triton_converters.contract.measurement_requests import SearchRequest

Body = dict[str, Any]


def a_limit(cpu: str) -> Body:
    return {"pod": {"resources": {"limits": {"cpu": cpu}}}}


def asked(stage: str, spec: Body) -> str:
    """What the first Job of a stage is asked."""
    cluster = Cluster(spec)
    cluster.settle()
    jobs = [each for each in cluster.of_kind("Job") if f"-{stage}-" in each["metadata"]["name"]]
    return str(jobs[0]["spec"]["template"]["spec"]["containers"][0]["args"][-1])


def parameters(candidate_name: str = "onnx-fp32", config: Body | None = None, **spec: Any) -> Body:
    """The parameters of config.pbtxt of one candidate."""
    model = a_model(candidates=[candidate(candidate_name)], **({"config": config} if config else {}))
    return dict(ConvertRequest.from_json(asked("convert", a_spec(models=[model], **spec))).config.parameters)


@pytest.mark.parametrize(
    ("cpu", "instances", "threads"), [("4", 1, "4"), ("4", 2, "2"), ("4", 3, "1"), ("1500m", 1, "2"), ("500m", 2, "1")]
)
def test_the_instances_share_the_limit(cpu: str, instances: int, threads: str) -> None:
    found = parameters(config={"maxBatchSize": 8, "instances": instances}, serving=a_limit(cpu))
    assert found == {"intra_op_thread_count": threads}


def test_a_torchscript_file_has_the_parameter_of_its_backend() -> None:
    assert parameters("ts-trace-fp32", serving=a_limit("3")) == {"INTRA_OP_THREAD_COUNT": "3"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {}),
        ({"serving": a_limit("4"), "gpu": {"count": 1}}, {}),
        (
            {
                "serving": a_limit("4"),
                "config": {"maxBatchSize": 8, "parameters": {"intra_op_thread_count": "1"}},
            },
            {"intra_op_thread_count": "1"},
        ),
        (
            {"serving": a_limit("4") | {"arguments": ["--backend-config=onnxruntime,intra_op_thread_count=2"]}},
            {},
        ),
    ],
    ids=["no limit", "a GPU", "the spec's own", "the spec's for all models"],
)
def test_else_they_are_left_alone(fields: Body, expected: Body) -> None:
    assert parameters(**fields) == expected


def test_a_search_divides_the_limit_among_the_instances_of_each_configuration() -> None:
    spec = a_spec(selection={"search": {"mode": "Quick"}}, serving=a_limit("4"))
    assert SearchRequest.from_json(asked("search", spec)).cpus == 4
    assert SearchRequest.from_json(asked("search", a_spec(selection={"search": {"mode": "Quick"}}))).cpus == 0
