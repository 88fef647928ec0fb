import copy
from typing import Any

from tests.report.subjects import golden
from triton_plugin.reading.subject import parse
from triton_plugin.telling.compare import compare
from triton_plugin.telling.report.document import Report, report


def changed(**environment: str) -> tuple[dict[str, Any], dict[str, Any]]:
    body, results = copy.deepcopy(golden("ready"))
    body["status"]["performance"]["environment"] |= environment
    return body, results


def of(body: dict[str, Any], results: dict[str, Any]) -> Report:
    return report(parse(body, results))


def test_figures_measured_alike_stand_side_by_side() -> None:
    faster, results = changed()
    for row in faster["status"]["performance"]["online"]:
        row["throughput"] = str(float(row["throughput"]) * 1.1)
        row["p99Latency"] = "4ms"
    found = compare(of(*changed()), of(faster, results))
    assert found.obstacles == []
    assert len(found.rows) == (2 + 3) * 4, "two offline loads and three online, four figures of each"
    online = [line for line in found.rows if line[0] == "Online"]
    assert {line[5] for line in online if line[2] == "Inferences/s"} == {"+10 %"}
    assert online[2][1:] == ["batch 1, concurrency 4", "P99", "5ms", "4ms", "-20 %"]
    assert found.unmatched_loads == 0


def test_figures_of_different_places_are_not_compared() -> None:
    found = compare(of(*changed()), of(*changed(gpuProduct="NVIDIA T4", device="gpu", serverVersion="2.60.0")))
    assert found.rows == []
    assert found.obstacles == [
        "device differs: cpu and gpu",
        "GPU differs: none and NVIDIA T4",
        "Triton server differs: 2.51.0 and 2.60.0",
    ]


def test_figures_measured_in_different_ways_are_not_compared() -> None:
    other, results = changed()
    other["spec"]["performance"] = {"protocol": "http", "measurement": {"stabilityPercent": 50}}
    found = compare(of(*changed()), of(other, results))
    assert found.obstacles == [
        "protocol differs: grpc and http",
        "measurement differs: windows of 50 requests, three within 10 % and windows of 50 requests, three within 50 %",
    ]


def test_what_serves_nothing_has_no_figures() -> None:
    assert compare(of(*changed()), of(*golden("new-object"))).obstacles == [
        "digits has no active revision that was measured"
    ]


def test_what_differs_in_configuration_is_listed() -> None:
    other, results = changed()
    other["spec"]["models"][0]["config"]["instances"] = 2
    other["status"]["accuracy"][0]["served"] = "0.97"
    found = compare(of(*changed()), of(other, results))
    assert found.parameters == [("Number of model instances", "1", "2")]
    assert found.accuracy == [("accuracy", "0.98", "0.97")]


def test_a_gpu_that_an_older_record_does_not_name_differs_from_none() -> None:
    named, unnamed = changed(gpuProduct="NVIDIA T4", device="gpu"), changed(device="gpu")
    assert compare(of(*named), of(*unnamed)).obstacles == []
    other = changed(gpuProduct="NVIDIA L4", device="gpu")
    assert compare(of(*named), of(*other)).obstacles == ["GPU differs: NVIDIA T4 and NVIDIA L4"]
