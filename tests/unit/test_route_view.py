"""What Gateways say about a route, read from its status, and what a spec may ask of a route."""

from typing import Any

import pytest
from pydantic import ValidationError

from triton_operator.api.serving import Serving
from triton_operator.observed.promotion import Promotion
from triton_operator.observed.routes import Parent, route_view

PARENTS = [{"name": "public"}]


def answered(*conditions: dict[str, Any], share: int = 0, generation: int = 2) -> dict[str, Any]:
    backends = [{"name": "digits", "weight": 100 - share}, {"name": "digits-preview", "weight": share}]
    return {
        "metadata": {"name": "digits", "namespace": "vision", "generation": generation},
        "spec": {"rules": [{"backendRefs": backends}]},
        "status": {"parents": [{"parentRef": {"name": "public"}, "conditions": list(conditions)}]},
    }


def condition(kind: str = "Accepted", status: str = "True", **fields: Any) -> dict[str, Any]:
    return {"type": kind, "status": status, "observedGeneration": 2, **fields}


def test_a_route_that_is_accepted_as_it_is() -> None:
    found = route_view(answered(condition(), condition("ResolvedRefs"), share=25))
    assert (found.parents, found.is_seen, found.share) == ((Parent("vision/public", True, ""),), True, 25)


def test_an_answer_about_an_older_version_is_none_yet() -> None:
    found = route_view(answered(condition(observedGeneration=1)))
    assert (found.parents[0].accepts, found.is_seen) == (None, False)


def test_a_controller_that_names_no_version_is_believed() -> None:
    body = answered({"type": "Accepted", "status": "True"})
    assert (route_view(body).parents[0].accepts, route_view(body).is_seen) == (True, True)


@pytest.mark.parametrize("kind", ["Accepted", "ResolvedRefs"])
def test_a_refusal_has_the_gateways_words(kind: str) -> None:
    refusal = condition(kind, "False", reason="BackendNotFound", message="no Service digits")
    (found,) = route_view(answered(condition(), refusal)).parents
    assert (found.accepts, found.message) == (False, f"{kind}: BackendNotFound: no Service digits")


def test_no_answer_and_other_conditions_are_no_answers() -> None:
    body = answered(condition("Programmed"))
    assert (route_view(body).is_seen, route_view(body).parents[0].accepts) == (False, None)
    del body["status"]
    assert (route_view(body).is_seen, route_view(body).parents) == (False, ())


def asked(**fields: Any) -> Serving:
    return Serving.model_validate(fields)


@pytest.mark.parametrize("canary", [[25, 5], [5, 5]])
def test_shares_rise(canary: list[int]) -> None:
    with pytest.raises(ValidationError, match="in rising order"):
        asked(soak={}, route={"parentRefs": PARENTS, "canary": canary})


def test_a_canary_needs_a_soak() -> None:
    with pytest.raises(ValidationError, match=r"route\.canary needs serving\.soak"):
        asked(route={"parentRefs": PARENTS, "canary": [5]})
    assert asked(route={"parentRefs": PARENTS}).route is not None
    assert asked(soak={}, route={"parentRefs": PARENTS, "canary": [5, 25, 50]}).route is not None


def test_the_record_of_a_canary_is_read_again() -> None:
    at = "2026-11-21T00:00:00+00:00"
    begun = Promotion(
        "0123456789abcdef", "digits-1", "uid-1", "digits-0", at, at, by_route=True, steps=("5 %: passed",)
    )
    assert Promotion.from_json(begun.to_json()) == begun
