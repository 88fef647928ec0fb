"""What serves goes on: over roll-outs under load, without a free GPU, and on a claim that two objects share."""

from tests.chaos.node.promoting import Promoted
from tests.chaos.node.refusals import Refused
from tests.chaos.node.room import Room
from tests.chaos.node.sharing import Shared
from tests.conftest import Fault


def test_no_request_fails_while_revisions_change_under_load(promoted: Promoted, fault: Fault) -> None:
    what = "revision changed under perf_analyzer's load on lasting gRPC connections"
    fault(what, promoted.promotions)
    assert promoted.promotions >= 3
    assert promoted.exit_code == 0, promoted.said
    assert promoted.exit_code_without_server != 0, "perf_analyzer says when a request fails"
    fault(what, promoted.promotions, "no request failed")


def test_two_objects_of_one_key_share_one_revision(shared: Shared, fault: Fault) -> None:
    what = "two objects with the same model and key on one claim"
    fault(what)
    assert shared.revisions[0] == shared.revisions[1]
    assert shared.at_first == {shared.revisions[0]}
    assert shared.unfinished == ()
    fault(what, 1, "one revision, both Ready")


def test_a_clean_job_removes_what_nobody_needs_and_no_more(shared: Shared, fault: Fault) -> None:
    what = "clean Job on a claim of two objects, then of one"
    fault(what, 2)
    first, later = shared.revisions[0], shared.moved_on
    assert shared.while_shared == {first, *later[:2]}, "the other object serves the first one"
    assert shared.afterwards == set(later[1:]), "one state before the present one is kept"
    assert len(shared.others) == 2, "one source, one reference"
    assert shared.restarted.revision == later[2]
    fault(what, 2, "what serves and what is kept stays, the rest goes")


def test_half_of_the_old_revision_makes_way_where_no_gpu_is_free(roomless: Room, fault: Fault) -> None:
    what = "no free GPU for a new revision"
    fault(what)
    said = [condition for each in roomless.made_way if (condition := each.condition("Available"))]
    assert [each for each in said if "was scaled to 1 of 2 replicas" in each["message"]], said
    assert {each["status"] for each in said} == {"True"}
    assert roomless.second.revision != roomless.first.revision
    fault(what, 1, "one of two old servers makes way, and the other one answers")


def test_the_old_revision_comes_back_where_the_new_one_fails(roomless: Room, fault: Fault) -> None:
    what = "no free GPU for a new revision, which then fails"
    fault(what)
    assert roomless.failed.revision == roomless.second.revision
    assert roomless.failed.says("Ready", "Unschedulable"), roomless.failed.summary()
    assert roomless.selector_kept
    assert roomless.replicas_back == 2
    fault(what, 1, "the old one is back")


def test_a_missing_pull_secret_is_named(refused: Refused, fault: Fault) -> None:
    fault("imagePullSecret missing", 1, "ImagePullFailed, names the Secret")
    message = refused.secret.condition("Converted")["message"]
    assert "absent" in message
    assert not refused.secret.holds("Stalled")


def test_a_read_only_claim_is_named_and_not_tried_again(refused: Refused, fault: Fault) -> None:
    fault("claim read-only", 1, "ClaimUnusable")
    assert refused.claim.says("SourceResolved", "ClaimUnusable"), refused.claim.summary()
    assert "Read-only file system" in refused.claim.condition("SourceResolved")["message"]
    assert refused.tries == 1
