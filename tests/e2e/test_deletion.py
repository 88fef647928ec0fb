"""A deleted object takes its children with it, and its claim where it should."""

from tests.e2e.deletion import DROPPED, RETAINED, Deleted


def test_children_go_with_the_object(deleted: Deleted) -> None:
    assert any(f"/{RETAINED}-source" in each for each in deleted.children)
    assert any(each == f"configmap/{DROPPED}-results" for each in deleted.children)
    assert deleted.left == ()


def test_nothing_holds_the_object_itself(deleted: Deleted) -> None:
    assert deleted.prompt


def test_the_claim_stays_where_it_is_to_be_retained(deleted: Deleted) -> None:
    assert deleted.claims_left == (f"{RETAINED}-repository",)
