"""What was wrong beside the object is mended, and the object goes on by itself."""

from tests.conftest import Fault
from tests.e2e.applied import stage_of
from tests.e2e.repair import Mending


def test_a_converter_killed_for_memory_fails_alone(more_memory: Mending, fault: Fault) -> None:
    fault("converter killed for memory", 1, "OutOfMemory, names the limit; the other candidate serves")
    state = more_memory.broken
    assert state.candidates["onnx-fp32"]["state"] == "Failed"
    assert state.candidates["onnx-fp32"]["reason"] == "OutOfMemory", state.summary()
    assert "1Gi" in state.candidates["onnx-fp32"]["message"]
    assert "conversion.pod.resources" in state.candidates["onnx-fp32"]["message"]
    assert state.status["serving"]["candidate"] == "trace-fp32"


def test_more_memory_is_a_retry_of_what_failed_alone(more_memory: Mending) -> None:
    assert {each["state"] for each in more_memory.mended.candidates.values()} == {"Selected", "Passed"}
    converted = [job for job in more_memory.jobs if stage_of(job) == "convert"]
    assert len(converted) == 1, "the candidate that was converted is not converted again"
    assert not [job for job in more_memory.jobs if stage_of(job) in ("source", "reference")]


def test_what_failed_runs_again_when_asked(retried: Mending, fault: Fault) -> None:
    fault("another try asked for", 1, "runs again, Ready")
    condition = retried.broken.condition("Converted")
    assert condition["reason"] == "UserCodeFailed"
    assert "late" in condition["message"]
    assert len(retried.jobs) == 1
    assert retried.mended.status["signature"]["maxBatchSize"] == 8


def test_a_full_claim_is_reported_and_goes_on_once_there_is_room(full_claim: Mending, fault: Fault) -> None:
    fault("claim full in the middle of a write", 1, "StorageFull; goes on once there is room")
    condition = full_claim.broken.condition("SourceResolved")
    assert "MiB" in condition["message"]
    assert "enlarge the claim" in condition["message"]
    assert full_claim.mended.holds("SourceResolved")


def test_a_damaged_revision_is_published_anew(damaged: Mending, fault: Fault) -> None:
    fault("file of the active revision changed on the claim", 1, "RepositoryDamaged; published anew, Ready")
    condition = damaged.broken.condition("Available")
    assert "is not what was published" in condition["message"]
    assert damaged.broken.revision in condition["message"]
    assert damaged.mended.holds("Available")
    assert {stage_of(job) for job in damaged.jobs} == {"convert", "profile", "metrics", "measure"}
