import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.report.subjects import golden, hostile, saturated
from triton_plugin.__main__ import main
from triton_plugin.reading.subject import parse
from triton_plugin.telling.compare import compare
from triton_plugin.telling.report.as_markdown import text
from triton_plugin.telling.report.document import Report, report
from triton_plugin.telling.report.results import results


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


def on_a_gpu() -> Report:
    """What the same candidates did on a GPU."""
    made = of(*changed())
    candidates = []
    for each in made.candidates:
        assert each.measured is not None
        assert each.measured.environment is not None
        where = each.measured.environment.model_copy(update={"device": "gpu", "gpu_product": "NVIDIA-A30"})
        measured = each.measured.model_copy(update={"environment": where})
        candidates.append(each.model_copy(update={"measured": measured}))
    return made.model_copy(update={"candidates": candidates})


def headings(document: str) -> list[str]:
    return re.findall(r"^#.*$", document, re.MULTILINE)


def test_the_results_have_a_section_for_each_scenario_device_and_candidate(tmp_path: Path) -> None:
    cpu, gpu, out = tmp_path / "cpu.json", tmp_path / "gpu.json", tmp_path / "results.md"
    for file, each in ((cpu, of(*changed())), (gpu, on_a_gpu())):
        file.write_text(each.model_dump_json(by_alias=True, indent=2), encoding="utf-8")
    assert main(["compare", str(cpu), str(gpu), "--file", str(out)]) == 0
    written = out.read_text(encoding="utf-8")
    candidates = ("onnx with FP32", "onnx with FP16", "ts-trace with FP32", "ts-script with FP32")
    assert headings(written) == [
        "# Performance",
        *(
            line
            for scenario in ("Offline", "Online")
            for line in (
                f"## {scenario} scenario",
                *(
                    f"### {scenario}: digits on {device}, {each}"
                    for device in ("a CPU, 2 cores", "NVIDIA-A30")
                    for each in candidates
                ),
            )
        ),
    ]
    section = written.partition("### Offline: digits on NVIDIA-A30, onnx with FP16")[2].partition("\n### ")[0]
    assert "| GPU | NVIDIA-A30 |\n| Candidate | onnx-fp16 |\n| Export Format | pyt |" in section
    assert "| Precision | FP16 |" in section
    assert "| fp16 | none | 8 | 2700.0 |" in section
    assert "Components of the latency" in section
    assert main(["compare", str(cpu), str(gpu)]) == 0, "saved reports are compared as objects are"


def test_request_rates_are_a_scenario_of_their_own() -> None:
    document = results([report(saturated())])
    assert headings(document)[-2:] == [
        *("## Open loop scenario", "### Open loop: digits on a CPU, 2 cores, onnx with FP32")
    ]
    assert "| Requests/second | Inferences/second |" in document


def test_words_of_a_stranger_in_the_results_are_text() -> None:
    document = results([report(hostile())])
    assert text("$x$ </text></script><script>document.title") in document
    assert not re.search(r"(?<!\\)<script", document)


def test_what_cannot_be_compared_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "new.json", ["--file", str(tmp_path / "out.md")]
    file.write_text(of(*golden("new-object")).model_dump_json(by_alias=True), encoding="utf-8")
    assert main(["compare", str(file), *out]) == 1
    assert "no candidate of digits was measured yet" in capsys.readouterr().err
    assert main(["compare", str(file)]) == 1
    assert "name two objects, or pass --file FILE.md" in capsys.readouterr().err
    file.write_text(json.dumps({"candidates": [{}]}), encoding="utf-8")
    assert main(["compare", str(file), *out]) == 1
    assert "new.json is no report of this version of kubectl-triton" in capsys.readouterr().err
    file.write_text("{", encoding="utf-8")
    assert main(["compare", str(file), *out]) == 1
    assert "new.json is not a saved TritonDeployment" in capsys.readouterr().err
    assert not (tmp_path / "out.md").exists()
