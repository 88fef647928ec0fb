"""A Python step asks a small model, and a large one only where the small one is not sure."""

from tests.e2e.cascading import Cascade


def test_the_cascade_is_as_right_as_the_frameworks(cascade: Cascade) -> None:
    (row,) = cascade.state.status["accuracy"]
    assert (row["metric"], row["samples"], row["served"]) == ("accuracy", 360, row["framework"])
    assert float(row["served"]) > 0.95


def test_the_large_model_is_asked_about_some_pictures_alone(cascade: Cascade) -> None:
    asked = cascade.answers["asked"]
    assert asked["digits"] == asked["cascade"] == asked["small"] == 100
    assert 5 < asked["large"] < 60
    assert cascade.answers["right"] >= 90
