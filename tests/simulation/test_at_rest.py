"""What is stored is compared with what is wanted by the simulation itself, whatever the operator takes for drift."""

import pytest

from tests.simulation.cluster import Cluster


def test_rest_with_another_object_than_the_wanted_one_fails_the_test(serving: Cluster) -> None:
    serving.objects["Service", "digits"]["metadata"]["labels"]["added"] = "by somebody"
    assert serving.act() == 0, "to the operator, a label of somebody else is no drift"
    with pytest.raises(
        AssertionError, match=r"the operator rests, and these are not what it wants: \['Service digits'\]"
    ):
        serving.settle()


def test_an_apply_of_what_is_stored_is_no_write(serving: Cluster) -> None:
    before = serving.version
    assert not any(map(serving.apply, serving.intent().objects))
    assert serving.version == before


def test_a_pass_that_fails_fails_the_test(serving: Cluster) -> None:
    serving.broken = "no such stage"
    serving.act()
    assert serving.has("InternalError", "Reconciling", "no such stage")
    serving.broken = ""
    serving.settings = None  # type: ignore[assignment]  # a bug that no test asked for
    with pytest.raises(AssertionError, match="a pass failed: "):
        serving.act()
