import copy
import csv
import io
import json
import re
from dataclasses import fields, replace
from pathlib import Path

import pytest
from markupsafe import escape

from tests.report.subjects import EXAMPLES, HOSTILE, RECORDED, golden, hostile, ready, saturated, searched
from triton_converters.contract.results import Row
from triton_operator.api.measured_status import RowStatus, StepStatus
from triton_plugin.reading.cluster import read_file
from triton_plugin.reading.subject import Subject, parse
from triton_plugin.telling import columns
from triton_plugin.telling.explain import explain
from triton_plugin.telling.report.as_csv import as_csv
from triton_plugin.telling.report.as_html import as_html
from triton_plugin.telling.report.as_markdown import as_markdown, drawings, text
from triton_plugin.telling.report.document import Report, report
from triton_plugin.telling.report.plots import tradeoff
from triton_plugin.telling.steps import lines

# The headings of the offline and online tables in NVIDIA's READMEs.
OFFLINE_HEADINGS = (
    "Precision|Backend Accelerator|Client Batch Size|Inferences/second|P90 Latency|P95 Latency|P99 Latency|Avg Latency"
)
COMPONENTS_HEADINGS = (
    "Client Batch Size|Concurrent client requests|Inferences/second|Client Send|Network+server Send/recv|Server Queue"
    "|Server Compute Input|Server Compute Infer|Server Compute Output|Client Recv"
    "|P50 Latency|P90 Latency|P95 Latency|P99 Latency|Avg Latency"
)
ONLINE_HEADINGS = (
    "Concurrent client requests|Inferences/second|Client Send|Network+server Send/recv|Server Queue"
    "|Server Compute Input|Server Compute Infer|Server Compute Output|Client Recv"
    "|P50 Latency|P90 Latency|P95 Latency|P99 Latency|Avg Latency"
)


def every_row(subject: Subject) -> list[RowStatus]:
    performance = subject.status.performance
    assert performance is not None
    rows = [*performance.offline, *performance.online]
    for candidate in subject.status.candidates:
        rows += [*subject.rows(candidate, "Offline"), *subject.rows(candidate, "Online")]
    return rows


@pytest.mark.parametrize("case", ["new-object", "newer-files", "soaking", "candidate-failed", "search-failed"])
def test_pages_and_texts_say_what_the_document_says(case: str) -> None:
    made = report(parse(*golden(case)))
    page, words = as_html(made), as_markdown(made, with_plots=False)
    assert list(made.remarks)
    for each in made.remarks:
        assert f"**{text(each.title)}**: {text(each.text)}." in words
        assert f"<strong>{escape(each.title)}</strong> {escape(each.text)}</p>" in page
    points = [point.cells for search in made.searches for point in search.points]
    for row in [*(each.cells(made.signature) for each in made.candidates), *points]:
        assert f"| {' | '.join(map(text, row))} |" in words
        assert re.search("".join(f"<td[^>]*>{re.escape(escape(each))}</td>" for each in row), page)


def test_request_rates_and_the_saturation_are_in_every_form() -> None:
    made = report(saturated())
    (candidate,) = made.candidates
    assert candidate.measured is not None
    assert candidate.measured.saturation == made.performance.saturation if made.performance else False
    lines = list(csv.DictReader(io.StringIO(as_csv(made))))
    found = [(each["Measured on"], each["Requests/second"]) for each in lines if each["Scenario"] == "RequestRate"]
    assert found == [("profile", "1000"), ("profile", "2000")]
    text, page = as_markdown(made, with_plots=True), as_html(made)
    assert "| Requests/second | Inferences/second |" in text
    for form in (text, page):
        assert "One replica does 3600.0 inferences/s at concurrency 8" in form
    assert any(path.name.endswith("-saturation.svg") for path in drawings(made))
    assert "saturated: concurrency 8" in page
    assert "request rate (open loop)" in page


def test_how_long_the_samples_were_is_in_the_report_of_an_object_whose_samples_differ() -> None:
    subject = parse(*golden("mixed-shapes"))
    made = report(subject)
    (candidate,) = [each for each in made.candidates if each.measured is not None][:1]
    assert candidate.measured is not None
    assert made.performance is not None
    assert candidate.measured.mixed_shapes == made.performance.mixed_shapes is not None
    plain = "INPUT__0, dimension 0, is 3 to 128 long, in half of them at most 17, in nine of ten at most 64"
    for form in (as_markdown(made, with_plots=False).replace("\\", ""), as_html(made), explain(subject)):
        assert plain in form
        assert "64 samples, 12 different ones" in form
    for form in (as_markdown(report(ready()), with_plots=False), as_html(report(ready())), explain(ready())):
        assert "different ones" not in form


def test_where_the_time_of_a_request_to_an_ensemble_goes_is_in_every_form_but_the_table_of_sweeps() -> None:
    steps = [
        StepStatus(model="decode", queue_time="670us", compute_time="1.55ms", share_percent="35.3"),
        StepStatus(model="<b>net_1</b>", queue_time="379us", compute_time="1.09ms", share_percent="23.3"),
    ]
    subject = ready()
    assert subject.status.performance is not None
    performance = subject.status.performance.model_copy(update={"steps": steps})
    subject = replace(subject, status=subject.status.model_copy(update={"performance": performance}))
    made = report(subject)
    text, page = as_markdown(made, with_plots=False), as_html(made)
    assert "| decode | 35.3 | 0.67 | 1.55 |\n| &lt;b&gt;net" in text.replace("\\<", "&lt;").replace("\\>", "&gt;")
    assert '<tr><td>decode</td><td class="figure">35.3</td>' in page
    assert "&lt;b&gt;net_1&lt;/b&gt;" in page
    assert "  decode: 35.3 % of the average latency (queue 670us, compute 1.55ms)\n" in explain(subject)
    rest = "the client, the network, and the server between the models"
    assert f"  the rest: 41.4 % ({rest})\n" in explain(subject)
    assert f"| {rest} | 41.4 |" in text
    assert f'<tr><td>{rest}</td><td class="figure">41.4</td><td class="figure"></td>' in page
    for form in (as_markdown(report(ready()), with_plots=False), as_html(report(ready())), explain(ready())):
        assert "by step" not in form
        assert "By model" not in form


def test_the_largest_batch_of_an_ensemble_s_models_is_beside_its_own() -> None:
    text = as_markdown(report(read_file(str(EXAMPLES / "dlrm-hps.yaml"))), with_plots=False)
    assert "| Max Batch Size | 0 (65536 + 0) |" in text


def test_models_that_run_at_once_leave_no_rest() -> None:
    steps = [
        StepStatus(model=name, queue_time="1ms", compute_time="5ms", share_percent="60.0") for name in ("left", "right")
    ]
    assert [each.partition(":")[0] for each in lines(steps)] == ["left", "right"]


@pytest.mark.parametrize("scenario", ["Online", "Offline", "RequestRate"])
def test_the_trade_off_is_of_the_scenario_that_is_ranked(scenario: str) -> None:
    made = report(saturated()).model_copy(update={"scenario": scenario})
    (plot,) = tradeoff(made)
    assert f"({columns.SWEEPS[scenario]} sweep)" in plot.title
    assert plot.svg.startswith("<svg")


def test_without_the_records_the_saturation_is_told_and_not_drawn() -> None:
    subject = saturated()
    made = report(replace(subject, records={}))
    assert "One replica does 3600.0" in as_html(made)
    assert not any(path.name.endswith("-saturation.svg") for path in drawings(made))


def test_the_columns_are_all_figures_of_a_row() -> None:
    assert {column.field for column in columns.ALL} == set(RowStatus.model_fields)
    told = {"spread": "spread_percent", "memory_bytes": "memory"}
    known = set(RowStatus.model_fields)
    for each in fields(Row):
        assert known & {told.get(each.name, each.name), f"{each.name}_time", f"{each.name}_latency"}, each.name
    assert sorted(step for each in columns.COMPONENTS for step in each.steps if step != 5) == [1, 2, 3, 4, 6, 7, 8]
    assert len(columns.STEPS) == 8


def test_each_candidate_has_the_rows_of_its_own_profile() -> None:
    made = report(ready())
    best = {each.status.name: each for each in made.candidates}
    for name, each in best.items():
        assert each.measured is not None, name
        assert max(float(row.throughput) for row in each.measured.online) == float(each.status.throughput)
        assert {row.precision for row in each.measured.online} == {name.rsplit("-", 1)[1]}
        assert (each.file_bytes, each.error_outside_triton) == (1000, "1e-06")
    assert [each.status.rank for each in made.candidates] == [1, 2, 3, 4]


def test_without_the_results_the_status_alone_is_shown() -> None:
    subject = ready()
    bare = Subject(subject.namespace, subject.name, 1, subject.spec, subject.status, {})
    made = report(bare)
    assert [each.measured for each in made.candidates] == [None] * 4
    text = as_html(made)
    assert text.count("<figure") == 4, "trade-off, two offline, one online: of the active revision"
    assert as_csv(made).count("\n") == 1 + 2 + 3


def test_json_holds_the_whole_document() -> None:
    made = report(ready())
    text = made.model_dump_json(by_alias=True)
    again = Report.model_validate(json.loads(text))
    assert again == made.model_copy(update={"configuration": ""})
    assert json.loads(text)["candidates"][0]["measured"]["online"][0]["clientSendTime"] == "10us"


def test_csv_has_a_line_for_every_row_and_the_column_names_of_nvidias_tables() -> None:
    subject = ready()
    lines = list(csv.reader(io.StringIO(as_csv(report(subject)))))
    assert lines[0][:3] == ["Candidate", "Measured on", "Scenario"]
    assert {*OFFLINE_HEADINGS.split("|"), *ONLINE_HEADINGS.split("|")} <= set(lines[0])
    # The offline rows of the active revision are its candidate's own.
    assert len(lines) - 1 == len(every_row(subject)) - 2
    service = [line for line in lines if line[1] == "service"]
    assert [line[lines[0].index("Inferences/second")] for line in service] == ["1400.0", "1800.0", "1800.0"]


def test_markdown_keeps_the_layout_of_nvidias_readmes() -> None:
    text = as_markdown(report(ready()), with_plots=True)
    headings = re.findall(r"^#+ .*$", text, re.MULTILINE)
    assert headings == [
        "# Deploying the digits model on Triton Inference Server",
        "## Solution overview",
        "## Setup",
        "## Advanced",
        "### Prepare configuration",
        "### Latency explanation",
        "## Performance",
        "### Offline scenario",
        "#### Offline: a CPU, 2 cores, onnx with FP32",
        "### Online scenario",
        "#### Online: a CPU, 2 cores, onnx with FP32",
        "### Saturation",
        "## Accuracy",
        "## Candidates",
        "## Environment",
        "## Release Notes",
        "### Changelog",
        "### Known issues",
    ]
    tables = [line.strip("| ").replace(" | ", "|") for line in text.splitlines() if line.startswith("| ")]
    assert OFFLINE_HEADINGS in tables
    assert COMPONENTS_HEADINGS in tables
    assert ONLINE_HEADINGS in tables
    assert "| Max Batch Size | 8 |" in text
    assert "| Backend | ONNX Runtime |\n| Model Format | onnx |\n| Model size |" in text
    assert re.search(r"^ \* 2026-11-21: candidate onnx-fp32 of source .*, accuracy 0.98$", text, re.MULTILINE)
    assert "|![Throughput against batch size](plots/digits-offline-throughput.svg)" in text


def known_issues(subject: Subject) -> list[str]:
    return as_markdown(report(subject), with_plots=False).partition("### Known issues\n\n")[2].splitlines()


def test_the_known_issues_are_what_the_status_and_the_records_hold() -> None:
    assert known_issues(ready()) == ["No issues are known."]
    assert known_issues(parse(*golden("new-object"))) == [
        " * The object is not ready: the operator has not seen it yet."
    ]
    assert known_issues(parse(*golden("candidate-failed"))) == [
        " * The object is not ready: 2 of 4 candidates are done; converting onnx-fp32, onnx-fp16.",
        " * Candidate ts-script-fp32 failed: model.py, line 3: no.",
    ]
    assert known_issues(searched())[0].startswith(" * The search from candidate ")


def test_skipped_candidates_unstable_figures_and_warnings_are_known_issues() -> None:
    body, results = copy.deepcopy(golden("ready"))
    skipped, unstable = body["status"]["candidates"][:2]
    skipped |= {"state": "Skipped", "message": "the image has no such backend"}
    unstable["stable"] = False
    body["status"]["performance"]["online"][0]["stable"] = False
    for candidate in body["status"]["candidates"][2:]:
        record = results["data"][f"convert.{candidate['revision']}"]
        results["data"][f"convert.{candidate['revision']}"] = record.replace(
            '"warnings":[]', '"warnings":["a *constant*"]'
        )
    assert known_issues(parse(body, results)) == [
        f" * Candidate {skipped['name']} is skipped: the image has no such backend.",
        " * The figures of these candidates are unstable, since no three windows agreed: ts-script-fp32.",
        " * 1 of 5 measurements of the active revision are unstable.",
        " * The conversion warned (onnx-fp32, onnx-fp16): a \\*constant\\*",
    ]


def test_markdown_names_the_files_of_its_plots() -> None:
    made = report(ready())
    files = drawings(made)
    named = re.findall(r"\]\((plots/[^)]+)\)", as_markdown(made, with_plots=True))
    assert sorted(named) == sorted(map(str, files))
    for drawing in files.values():
        assert drawing.startswith("<svg")
        assert "var(--" not in drawing
        assert not re.search("#0000[a-f][0-9a-f]", drawing), "every placeholder became a colour"
    assert "plots/" not in as_markdown(made, with_plots=False)


def test_a_search_is_shown_in_every_form_with_all_its_points() -> None:
    made = report(searched())
    found, failed = made.searches
    assert (len(found.rows), failed.points) == (24, []), "22 points, and two of them once more"
    parameters = {each.name: each.value for each in made.parameters}
    assert (parameters["Configuration found by"], parameters["Number of model instances"]) == ("Quick search", "3")
    page, text = as_html(made), as_markdown(made, with_plots=False)
    assert page.count("<td>max batch 8, ") == 24
    assert text.count("| max batch 8, ") == 24
    for words in ("max batch 8, 3 instances, queue delay 400us", "MeasurementsSpent", "Failed"):
        assert words in page
        assert words in text
    assert "onnx-fp16: searched" in page, "in the plot"
    lines = list(csv.DictReader(io.StringIO(as_csv(made))))
    assert sum(line["Measured on"] == "search" for line in lines) == 24
    assert {line["Configuration"] for line in lines if line["Measured on"] == "service"} == {
        "max batch 8, 3 instances, queue delay 400us"
    }


def test_nobodys_words_are_anything_but_words() -> None:
    made = report(hostile())
    page = as_html(made)
    assert "<script>document" not in page
    assert page.count("<script>") == 1
    assert "[b]{{7*7}}" in page, "words are no template"
    assert "\x1b" not in page
    text = as_markdown(made, with_plots=False)
    assert "\x1b" not in text
    # What begins with four spaces is code.
    for line in (each for each in text.splitlines() if not each.startswith("    ")):
        assert "<script>" not in line
        if line.startswith("| ") and "taken" in line:
            assert len(re.findall(r"(?<!\\)\|", line)) in (7, 11), "a cell stays one cell"


def test_a_page_brings_all_it_needs() -> None:
    page = as_html(report(ready()))
    assert not re.findall(r"""(?:src|href)=["'](?!data:|#)[^"']+""", page.replace("xlink:href", "href"))
    assert "@import" not in page
    assert "url(http" not in page
    assert HOSTILE not in page
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids)), "plots do not share ids"


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
def test_the_report_of_each_example_is_built_in_every_form(file: Path) -> None:
    subject = read_file(str(file))
    made = report(subject)
    for each in made.candidates:
        assert each.measured or each.status.rank is None, "its record is of an older version: record the example again"
    page, text = as_html(made), as_markdown(made, with_plots=True)
    for row in every_row(subject):
        assert f"<td>{row.throughput}</td>" in page
        assert f",{row.throughput}," in as_csv(made)
    for candidate in subject.status.candidates:
        assert candidate.name in page
        assert (candidate.reason or "") in text
    assert page.count("<figure") >= 4
    assert len(page.encode()) < 2_000_000


@pytest.mark.parametrize(("data_type", "shown"), [("BYTES", False), ("INT64", False), ("FP16", True)])
def test_an_error_is_shown_of_floating_point_outputs_alone(data_type: str, shown: bool) -> None:
    """For text it would always be 0, which reads as if numbers were exact."""
    signature = ready().status.signature
    assert signature is not None
    outputs = [each.model_copy(update={"data_type": data_type}) for each in signature.outputs]
    candidate = ready().status.candidates[0].model_copy(update={"max_absolute_error": "0"})
    found = columns.max_error(candidate, signature.model_copy(update={"outputs": outputs}))
    assert found == ("0" if shown else "")
