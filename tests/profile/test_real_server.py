"""The profile and measure stages in the converter image, against a real tritonserver and with a real perf_analyzer."""

import json
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import replace

import numpy
import pytest
from served_claim import SAMPLES, load, measure_request, profile_request

from hack.imagebuild.pod import IN_IMAGE, ROOT, Pod, outcome_in
from triton_converters.claim_store.dump import read_batches
from triton_converters.claim_store.served_outputs import FOLDER, read_outputs
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import InputShape, Measurement, OpenLoop, Sweep
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Lengths, MeasureResult, Mix, ProfileResult, Row
from triton_converters.contract.saturation import Ended, is_saturated, request_rate, saturation, sustained
from triton_converters.measuring.server import Server

pytestmark = pytest.mark.images

ALWAYS_STABLE = 10_000
"""Percent by which perf_analyzer's windows may differ, where a busy machine must not decide."""


def profile(pod: Pod, request: object) -> ProfileResult:
    """The result of a profile stage that ends with one."""
    code, outcome, output = pod.run_stage("profile", request)
    assert code == 0, output
    assert isinstance(outcome.result, ProfileResult), output
    return outcome.result


def components(row: Row) -> int:
    return (
        row.client_send
        + row.network
        + row.queue
        + row.compute_input
        + row.compute_infer
        + row.compute_output
        + row.client_receive
    )


def test_a_sound_candidate_passes_and_is_measured(pod: Pod) -> None:
    request = profile_request("sound", "linear", pod.ports)
    code, outcome, output = pod.run_stage("profile", request, ("GPU_PRODUCT=NVIDIA-L4", "TENSORRT_VERSION=10.9"))
    assert code == 0, output
    found = outcome.result
    assert isinstance(found, ProfileResult)
    assert (found.passed, found.reason, found.samples) == (True, "Passed", SAMPLES)
    assert "40 samples agree in 9 requests of 1, 5, 6, 8 samples" in found.message
    assert 0 <= found.max_absolute_error < 1e-5
    assert [(row.batch_size, row.concurrency) for row in found.offline] == [(1, 1), (8, 1)]
    assert [(row.batch_size, row.concurrency) for row in found.online] == [(1, 1), (1, 2)]
    for row in found.offline + found.online:
        assert row.throughput > 10
        assert 0 < row.p50 <= row.p90 <= row.p95 <= row.p99
        assert row.compute_infer > 0
        # Integer parts of averages: seven roundings, and the average has one. Network is what is left, at least 0.
        assert row.network == 0 or components(row) == pytest.approx(row.average, abs=8)
        # What comes out in a second is what the latency allows, less what the client does between two requests.
        allowed = row.batch_size * row.concurrency * 1e6 / row.average
        assert 0.5 * allowed < row.throughput < 1.05 * allowed
    environment = found.environment
    assert (environment.server_version, environment.device) == ("2.51.0", "cpu")
    assert (environment.gpu_product, environment.tensorrt_version) == ("NVIDIA-L4", "10.9")
    assert "cores" in environment.cpu
    offline, online = environment.perf_analyzer
    assert "--shared-memory system" in offline
    assert "--shared-memory" not in online


def test_what_was_run_stays_on_the_claim_and_can_be_pasted(pod: Pod) -> None:
    request = replace(profile_request("kept", "linear", pod.ports), keep_outputs=True)
    found = profile(pod, replace(request, load=load(pod.ports, ALWAYS_STABLE)))
    directory = pod.measurement("kept")
    names = {path.name for path in directory.iterdir()}
    points = ("offline-batch1", "offline-batch8", "online-batch1")
    assert {f"{point}-concurrency1.{kind}" for point in points for kind in ("csv", "log")} < names
    assert {"result.json", "served"} < names
    kept = [each["LOGITS"] for each in read_outputs(directory / FOLDER)]
    expected = numpy.concatenate([batch.outputs["LOGITS"] for batch in read_batches(pod.root / "references/linear")])
    numpy.testing.assert_allclose(numpy.stack(kept), expected, atol=1e-5)
    assert not any(path.name.startswith(".tmp") for path in directory.parent.iterdir())
    argv = shlex.split(found.environment.perf_analyzer[1])
    mounts = ["--mount", f"{pod.root}:{layout.ROOT}:ro"]
    again = subprocess.run(
        [*IN_IMAGE, "converter", *mounts, "--", *argv],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Concurrency: 1, throughput:" in again.stdout, again.stdout + again.stderr


def test_a_result_is_replayed_and_not_measured_again(pod: Pod) -> None:
    request = replace(profile_request("replayed", "linear", pod.ports), online=Sweep((1,), (1,), False))
    first, second = (pod.run_stage("profile", request) for _ in range(2))
    assert first[1] == second[1]
    assert "online 1/1" in first[2]
    assert "online 1/1" not in second[2]


def test_a_sweep_ends_at_saturation_and_rates_are_measured(pod: Pod) -> None:
    request = replace(
        profile_request("saturated", "linear", pod.ports),
        load=pod.load(Measurement("CountWindows", 200, 5000, ALWAYS_STABLE)),
        offline=Sweep((), (), False),
        online=Sweep((1,), (1, 2, 4, 8, 16, 32, 64, 128), False, until_saturated=True),
        open_loop=OpenLoop((50,), confirmed_percent=30),
    )
    found = profile(pod, request)
    saturated = saturation(found.online, ())
    assert saturated is not None
    assert saturated.row is not None
    assert [row.concurrency for row in found.online] == [1 << number for number in range(len(found.online))]
    assert (saturated.ended is Ended.PLATEAU) == is_saturated(found.online)
    slow, confirmed = found.request_rate
    assert (slow.request_rate, slow.concurrency) == (50, 0)
    assert slow.throughput == pytest.approx(50, rel=0.2)
    assert confirmed.request_rate == request_rate(saturated.row, 30)
    for row in found.request_rate:
        assert 0 < row.p50 <= row.p90 <= row.p95 <= row.p99
        assert row.compute_infer > 0
    assert "--request-rate-range 50 --request-distribution poisson" in found.environment.perf_analyzer[1]
    assert (pod.measurement("saturated") / "request_rate-batch1-rate50.csv").is_file()


def test_a_rate_that_no_server_keeps_up_with_gives_a_row_that_says_so(pod: Pod) -> None:
    request = replace(
        profile_request("flooded", "linear", pod.ports),
        load=load(pod.ports, ALWAYS_STABLE),
        offline=Sweep((), (), False),
        online=Sweep((1,), (1,), False),
        open_loop=OpenLoop((100_000,)),
    )
    (row,) = profile(pod, request).request_rate
    assert row.throughput < 50_000
    assert row.client_bound
    assert sustained([row], ()) == 0


@pytest.mark.parametrize(
    ("model", "reason", "words"),
    [
        ("scaled", Reason.OUTPUTS_DIFFER, "of sample"),
        ("swapped", Reason.OUTPUTS_DIFFER, "output LOGITS"),
        ("broken", Reason.OUTPUTS_NOT_FINITE, "output LOGITS"),
        ("frozen", Reason.INFERENCE_FAILED, "tritonserver refused a request to model frozen: "),
        ("smaller", Reason.SIGNATURE_MISMATCH, "max_batch_size is 4, not 8"),
        ("varying", Reason.SIGNATURE_MISMATCH, "not 8"),
        ("half", Reason.PRECISION_MISMATCH, "should be fp32"),
    ],
)
def test_mutants_are_caught_and_not_measured(pod: Pod, model: str, reason: Reason, words: str) -> None:
    request = profile_request(f"mutant-{model}", model, pod.ports)
    found = profile(pod, replace(request, keep_outputs=True))
    assert not (pod.measurement(request.key) / "served").exists()
    assert (found.passed, found.reason) == (False, str(reason))
    assert words in found.message
    assert (found.offline, found.online, found.environment.perf_analyzer) == ((), (), ())
    assert numpy.isfinite(found.max_absolute_error)


def test_a_candidate_that_serves_fewer_samples_at_once_is_held_against_the_same_reference(pod: Pod) -> None:
    request = profile_request("fewer", "smaller", pod.ports)
    few = replace(request, max_batch_size=4, offline=Sweep((4,), (1,), True), online=Sweep((), (), False))
    found = profile(pod, few)
    assert found.passed, found.message
    assert found.samples == SAMPLES
    assert "requests of 1, 3, 4 samples" in found.message
    assert [row.batch_size for row in found.offline] == [4]


@pytest.mark.parametrize(("model", "tolerance"), [("linear", 1e-2), ("scaled", 1e9)])
def test_an_fp32_file_labelled_fp16_is_caught_whatever_the_tolerance(pod: Pod, model: str, tolerance: float) -> None:
    request = profile_request(f"label-{model}", model, pod.ports)
    loose = replace(request.tolerance, absolute=tolerance)
    found = profile(pod, replace(request, precision="fp16", tolerance=loose))
    assert found.reason == str(Reason.PRECISION_MISMATCH)


def test_a_true_fp16_file_passes_as_fp16(pod: Pod) -> None:
    request = profile_request("half", "half", pod.ports)
    one_point = Sweep((1,), (1,), False)
    wider = replace(request.tolerance, absolute=1e-2, relative=1e-2)
    found = profile(pod, replace(request, precision="fp16", tolerance=wider, offline=one_point, online=one_point))
    assert found.passed, found.message
    assert found.max_absolute_error > 1e-5


def test_inputs_that_vary_are_measured_in_the_samples_own_shapes(pod: Pod) -> None:
    request = profile_request("varying", "varying", pod.ports, "varying")
    shared = Sweep((1,), (1, 2), True)
    found = profile(
        pod, replace(request, load=load(pod.ports, ALWAYS_STABLE), online=shared, open_loop=OpenLoop((50,)))
    )
    assert found.passed, found.message
    assert [(row.batch_size, row.stable) for row in found.offline if row.throughput > 0] == [(1, True), (4, True)]
    for command in found.environment.perf_analyzer:
        assert "--input-data mixed.json" in command
        assert "--shape" not in command
        # Twice the largest output of a request.
        assert "--output-shared-memory-size 56" in command
    assert found.mix == Mix(8, 3, (Lengths("X", 0, 3, 5, 7, 7),))
    names = {path.name for path in pod.measurement("varying").iterdir()}
    assert {f"offline-batch4-concurrency1-shape{number}.csv" for number in (1, 2, 3)} < names
    assert {"mixed.json", "shape-1.json", "shape-2.json", "shape-3.json"} < names


def test_inputs_that_vary_are_measured_in_the_shape_of_the_spec(pod: Pod) -> None:
    request = profile_request("shaped", "varying", pod.ports, "varying")
    shaped = replace(request.load, input_shapes=(InputShape("X", (11,)),))
    found = profile(pod, replace(request, load=shaped))
    assert found.passed, found.message
    assert "--input-data perf.json --shape X:11" in found.environment.perf_analyzer[0]
    assert "--output-shared-memory-size 88" in found.environment.perf_analyzer[0]
    steps = json.loads((pod.measurement("shaped") / "perf.json").read_text())["data"]
    assert {tuple(step["X"]["shape"]) for step in steps} == {(11,)}


def test_a_shape_that_does_not_fit_ends_the_job_for_good(pod: Pod) -> None:
    request = profile_request("misshaped", "linear", pod.ports)
    wrong = replace(request.load, input_shapes=(InputShape("FEATURES", (7,)),))
    code, outcome, _ = pod.run_stage("profile", replace(request, load=wrong))
    assert (code, outcome.reason) == (42, Reason.INVALID_SPEC)
    assert not pod.measurement("misshaped").exists()


def test_a_model_without_batch_dimension_is_verified_and_measured(pod: Pod) -> None:
    found = profile(pod, profile_request("whole", "whole", pod.ports, "whole"))
    assert (found.passed, found.samples) == (True, 2)
    assert all(row.throughput > 0 for row in found.offline + found.online)
    assert found.mix == Mix(2, 2, (Lengths("X", 0, 2, 2, 5, 5),))
    assert "--input-data mixed.json" in found.environment.perf_analyzer[0]


def test_strings_are_verified_and_measured_through_shared_memory_too(pod: Pod) -> None:
    request = profile_request("words", "words", pod.ports, "words")
    shared = replace(request, online=Sweep((1,), (1, 2), True), open_loop=OpenLoop((50,)))
    found = profile(pod, replace(shared, keep_outputs=True, load=load(pod.ports, ALWAYS_STABLE)))
    assert found.passed, found.message
    assert found.samples == 5
    assert [(row.batch_size, row.throughput > 0) for row in found.offline] == [(1, True), (4, True)]
    assert [(row.concurrency, row.throughput > 0) for row in found.online] == [(1, True), (2, True)]
    # The longest sample's output: two lengths of four bytes, 6,000 bytes of "ä" and "rot".
    for command in found.environment.perf_analyzer:
        assert "--shared-memory system --output-shared-memory-size 6011" in command
    kept = [each["FOREIGN"].tolist() for each in read_outputs(pod.measurement("words") / FOLDER)]
    assert kept[:2] == [["rot", "grün"], ["grün", ""]]
    assert all("rror" not in path.read_text() for path in pod.measurement("words").glob("*.log"))


def test_one_other_word_is_no_agreement(pod: Pod) -> None:
    found = profile(pod, profile_request("misread", "misread", pod.ports, "words"))
    assert (found.passed, found.reason) == (False, str(Reason.OUTPUTS_DIFFER))
    assert "output FOREIGN" in found.message
    assert "are not equal: at most 0 may be" in found.message


def test_a_point_that_never_settles_gives_a_row_that_says_so(pod: Pod) -> None:
    request = profile_request("bumpy", "bumpy", pod.ports, "bumpy")
    nowhere = Sweep((), (), False)
    # On a quiet machine three windows may agree within a percent; in every digit they never do.
    found = profile(
        pod,
        replace(request, load=load(pod.ports, 0), offline=nowhere, online=Sweep((1,), (1,), False)),
    )
    (row,) = found.online
    assert not row.stable
    # What it says is true all the same: one request in flight, so throughput is the inverse of the average latency.
    assert 0.5 < row.throughput * row.average / 1e6 < 1.05
    log = (pod.measurement("bumpy") / "online-batch1-concurrency1.log").read_text()
    assert log.count("$ perf_analyzer") == 3
    assert "--stability-percentage 1000000" in found.environment.perf_analyzer[0]


def test_the_serving_server_is_measured_online_only(pod: Pod) -> None:
    code, outcome, output = pod.run_stage("measure", measure_request("serving", "linear", pod.ports))
    assert code == 0, output
    assert isinstance(outcome.result, MeasureResult)
    assert [row.concurrency for row in outcome.result.online] == [1, 2, 4]
    assert len(outcome.result.environment.perf_analyzer) == 1


def test_http_is_measured_where_it_is_asked_for(pod: Pod) -> None:
    request = measure_request("http", "linear", pod.ports)
    http = replace(request.load, protocol="http", url=request.load.http_url)
    code, outcome, output = pod.run_stage("measure", replace(request, load=http))
    assert code == 0, output
    assert isinstance(outcome.result, MeasureResult)
    assert len(outcome.result.online) == 3
    assert f"-u 127.0.0.1:{pod.ports[0]} -i http" in outcome.result.environment.perf_analyzer[0]


def test_another_model_at_the_address_is_not_measured(pod: Pod) -> None:
    code, outcome, _ = pod.run_stage("measure", measure_request("other", "smaller", pod.ports))
    assert (code, outcome.reason) == (42, Reason.SIGNATURE_MISMATCH)


def test_a_model_that_never_gets_ready_is_named(pod: Pod) -> None:
    with pytest.raises(StageError, match=r"/v2/models/nobody/ready answers 400 after 0\.5 s"):
        Server(load(pod.ports), "nobody").wait_ready(seconds=0.5)


def test_a_server_that_ends_during_the_sweep_is_worth_another_run(start_pod: Callable[[str], Pod]) -> None:
    pod = start_pod("linear")
    many = Sweep((1,), tuple(range(1, 17)), False)
    stage = pod.start_stage("profile", replace(profile_request("crash", "linear", pod.ports), online=many))
    assert stage.stdout is not None
    lines = []
    for line in stage.stdout:
        lines.append(line)
        if line.startswith("online 1/16"):
            pod.server.terminate()
    assert stage.wait(120) == 1, "".join(lines)
    outcome = outcome_in("".join(lines))
    assert outcome.reason in (Reason.MEASUREMENT_FAILED, Reason.SERVER_CRASHED)
    assert not pod.measurement("crash").exists()
