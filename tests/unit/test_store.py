"""The cache of observed objects: newest wins, deleted stays deleted, a list tells what is gone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triton_operator.kube.kinds import CONFIG_MAP, DEPLOYMENT, EVENT, HTTP_ROUTE, JOB, POD, TRITON_DEPLOYMENT
from triton_operator.names import TRITON_DEPLOYMENT_LABEL
from triton_operator.observed.routes import hosts
from triton_operator.runtime import store as store_module
from triton_operator.runtime.store import FEW, Key, Store

JSON = dict[str, Any]
DIGITS = Key("vision", "digits")


def a_body(name: str, version: int, uid: str = "", namespace: str = "vision", owner: str | None = None) -> JSON:
    labels = {} if owner is None else {TRITON_DEPLOYMENT_LABEL: owner}
    metadata = {"name": name, "namespace": namespace, "uid": uid or name, "labels": labels}
    return {"metadata": {**metadata, "resourceVersion": str(version)}}


def names(store: Store, key: Key = DIGITS) -> list[str]:
    return sorted(body["metadata"]["name"] for body in store.children(key))


def test_children_are_found_by_their_label() -> None:
    store = Store()
    assert store.put(JOB, a_body("a", 1, owner="digits")) == DIGITS
    assert store.put(POD, a_body("a", 2, uid="pod", owner="digits")) == DIGITS
    assert store.put(JOB, a_body("b", 3, owner="other")) == Key("vision", "other")
    assert store.put(JOB, a_body("c", 4)) is None
    found = [(body["kind"], body["apiVersion"]) for body in store.children(DIGITS)]
    assert found == [("Job", "batch/v1"), ("Pod", "v1")]
    assert store.children(Key("elsewhere", "digits")) == []


def test_what_says_nothing_new_wakes_nobody() -> None:
    store = Store()
    assert store.put(TRITON_DEPLOYMENT, a_body("digits", 10)) == DIGITS
    assert store.put(TRITON_DEPLOYMENT, a_body("digits", 10)) is None
    assert store.put(TRITON_DEPLOYMENT, a_body("digits", 9)) is None
    assert store.owner(DIGITS) is not None
    # Compared as numbers: "100" comes before "11" as text.
    assert store.put(TRITON_DEPLOYMENT, a_body("digits", 100)) == DIGITS
    assert store.put(TRITON_DEPLOYMENT, a_body("digits", 11)) is None


def test_a_deleted_object_does_not_come_back_but_its_successor_does() -> None:
    store = Store()
    store.put(JOB, a_body("a", 5, uid="first", owner="digits"))
    assert store.remove(JOB, a_body("a", 7, uid="first", owner="digits")) == DIGITS
    # The response of a write that the API server carried out before the deletion.
    assert store.put(JOB, a_body("a", 6, uid="first", owner="digits")) is None
    assert names(store) == []
    assert store.put(JOB, a_body("a", 8, uid="second", owner="digits")) == DIGITS
    assert store.remove(JOB, a_body("a", 7, uid="first", owner="digits")) is None
    assert names(store) == ["a"]


def test_a_child_that_changes_its_label_changes_its_owner() -> None:
    store = Store()
    store.put(JOB, a_body("a", 1, owner="digits"))
    assert store.put(JOB, a_body("a", 2, owner="other")) == Key("vision", "other")
    assert names(store) == []
    assert names(store, Key("vision", "other")) == ["a"]


def an_event(name: str, version: int, about: str) -> JSON:
    return {**a_body(name, version), "involvedObject": {"uid": about}}


def test_an_event_belongs_to_what_its_object_belongs_to() -> None:
    store = Store()
    assert store.put(EVENT, an_event("early", 1, "pod")) is None
    store.put(POD, a_body("p", 2, uid="pod", owner="digits"))
    assert store.put(EVENT, an_event("why", 3, "pod")) == DIGITS
    assert store.put(EVENT, an_event("theirs", 4, "another")) is None
    assert names(store) == ["p", "why"]
    assert store.remove(EVENT, an_event("why", 5, "pod")) == DIGITS
    store.remove(POD, a_body("p", 6, uid="pod"))
    assert store.put(EVENT, an_event("late", 7, "pod")) is None
    assert names(store) == []


def test_the_reasons_of_all_are_known() -> None:
    store = Store()
    store.put(TRITON_DEPLOYMENT, a_body("digits", 1))
    ready = {"type": "Ready", "status": "True", "reason": "Ready"}
    store.put(TRITON_DEPLOYMENT, {**a_body("other", 2), "status": {"conditions": [ready]}})
    assert sorted(store.ready_reasons()) == ["Pending", "Ready"]
    store.remove(TRITON_DEPLOYMENT, a_body("digits", 3))
    assert store.ready_reasons() == ["Ready"]


def test_objects_are_neighbours_on_a_claim_whoever_made_it() -> None:
    store = Store()
    other = "digits-repository"
    for version, (name, claim) in enumerate({"digits": None, "guest": other, "alone": None, "far": "models"}.items()):
        repository = {} if claim is None else {"repository": {"claimName": claim}}
        store.put(TRITON_DEPLOYMENT, {**a_body(name, version), "spec": repository})
    store.put(TRITON_DEPLOYMENT, a_body("digits", 9, uid="elsewhere", namespace="audio"))
    assert store.others_on_claim(DIGITS, other) == ["guest"]
    assert store.others_on_claim(Key("vision", "guest"), other) == ["digits"]
    assert store.others_on_claim(Key("vision", "alone"), "alone-repository") == []
    store.remove(TRITON_DEPLOYMENT, a_body("guest", 10))
    assert store.others_on_claim(DIGITS, other) == []


def test_the_neighbours_are_those_on_the_claim_that_the_pass_plans_for() -> None:
    """A clean Job of that claim removes what no record of theirs names."""
    store = Store()
    for version, name in enumerate(("digits", "letters")):
        store.put(TRITON_DEPLOYMENT, on_claim(name, version))
    store.put(TRITON_DEPLOYMENT, on_claim("digits", 9, "another"))
    assert store.others_on_claim(DIGITS, "models") == ["letters"]
    assert store.others_on_claim(DIGITS, "another") == []


def leaving(name: str, version: int) -> JSON:
    """An object that somebody's finalizer keeps."""
    body = on_claim(name, version)
    body["metadata"] |= {"deletionTimestamp": "2026-11-29T00:00:00Z", "finalizers": ["example.org/never"]}
    return body


def test_who_is_being_deleted_and_has_nothing_left_is_no_neighbour() -> None:
    """Nobody records any more what it needs, and a pod with the volume of its ConfigMap would never start."""
    store = Store()
    store.put(TRITON_DEPLOYMENT, on_claim("digits", 1))
    store.put(TRITON_DEPLOYMENT, on_claim("letters", 2))
    assert store.others_on_claim(DIGITS, "models") == ["letters"], "its record is to come"
    results = a_body("letters-results", 3, owner="letters")
    store.put(CONFIG_MAP, results)
    store.put(DEPLOYMENT, serves_from("models", 4))
    assert woken(store, "MODIFIED", leaving("letters", 5)) == ["letters"]
    results["metadata"]["resourceVersion"] = "6"
    assert store.seen(CONFIG_MAP, "DELETED", results) == [Key("vision", "letters")]
    assert store.others_on_claim(DIGITS, "models") == ["letters"], "it serves from it"
    assert store.seen(DEPLOYMENT, "DELETED", serves_from("models", 7)) == [Key("vision", "letters"), DIGITS]
    assert store.others_on_claim(DIGITS, "models") == []
    assert woken(store, "DELETED", leaving("letters", 8)) == ["letters"]
    assert woken(store, "ADDED", on_claim("letters", 9)) == ["letters", "digits"]
    assert woken(store, "MODIFIED", leaving("letters", 10)) == ["letters", "digits"], "it has no children yet"


def serves_from(claim: str, version: int) -> JSON:
    """A Deployment of letters."""
    volumes = [{"name": "tmp", "emptyDir": {}}, {"name": "repository", "persistentVolumeClaim": {"claimName": claim}}]
    return {
        **a_body("letters-0", version, owner="letters"),
        "spec": {"template": {"spec": {"volumes": volumes}}},
    }


def test_an_object_that_still_serves_from_a_claim_is_on_it() -> None:
    store = Store()
    store.put(TRITON_DEPLOYMENT, on_claim("digits", 1))
    store.put(TRITON_DEPLOYMENT, on_claim("letters", 2))
    store.put(DEPLOYMENT, serves_from("models", 3))
    store.put(TRITON_DEPLOYMENT, on_claim("letters", 4, "another"))
    assert store.others_on_claim(DIGITS, "models") == ["letters"]
    store.put(DEPLOYMENT, serves_from("another", 5))
    assert store.others_on_claim(DIGITS, "models") == []
    store.put(DEPLOYMENT, serves_from("models", 6))
    store.remove(TRITON_DEPLOYMENT, on_claim("letters", 7))
    assert store.others_on_claim(DIGITS, "models") == [], "a Deployment without an object is nobody's"
    store.remove(DEPLOYMENT, serves_from("models", 8))
    assert store._claims._users.keys() == {DIGITS._replace(name="models")}


PUBLIC = {"name": "public", "namespace": "gateways"}


def asks(name: str, version: int, **route: Any) -> JSON:
    """A TritonDeployment that asks for a route."""
    return {**a_body(name, version), "spec": {"serving": {"route": {"parentRefs": [PUBLIC]} | route}}}


def routes(name: str, version: int, made: str, *, is_accepted: bool = True, **route: Any) -> JSON:
    """Its HTTPRoute."""
    body = a_body(name, version, uid=f"{name}-route", owner=name)
    body["metadata"]["creationTimestamp"] = made
    accepted = {"conditions": [{"type": "Accepted", "status": "True" if is_accepted else "False"}]}
    return body | {
        "spec": {"parentRefs": [PUBLIC]} | route,
        "status": {"parents": [{"parentRef": PUBLIC} | accepted]},
    }


def holder(store: Store, key: Key) -> str:
    """Who else has a host name that the object's route asks for."""
    body = store.owner(key)
    assert body is not None
    return store.host_holder(key, hosts(key.namespace, body["spec"]["serving"]["route"]))


@pytest.mark.parametrize(
    ("taken", "wanted", "clashes"),
    [
        ({"hostnames": ["a.example"]}, {"hostnames": ["b.example", "a.example"]}, True),
        ({}, {}, True),
        ({"hostnames": ["a.example"]}, {"hostnames": ["b.example"]}, False),
        ({"hostnames": ["*.example"]}, {"hostnames": ["a.example"]}, False),
        ({"hostnames": ["a.example"]}, {}, False),
        ({"hostnames": ["a.example"]}, {"hostnames": ["a.example"], "parentRefs": [{"name": "public"}]}, False),
        (
            {"hostnames": ["a.example"], "parentRefs": [PUBLIC | {"sectionName": "http"}]},
            {"hostnames": ["a.example"], "parentRefs": [PUBLIC | {"sectionName": "https"}]},
            False,
        ),
        (
            {"hostnames": ["a.example"]},
            {"hostnames": ["a.example"], "parentRefs": [PUBLIC | {"sectionName": "https"}]},
            True,
        ),
    ],
)
def test_a_host_name_is_held_by_whose_route_has_it(taken: JSON, wanted: JSON, clashes: bool) -> None:
    store = Store()
    store.put(TRITON_DEPLOYMENT, asks("holder", 1, **taken))
    store.put(HTTP_ROUTE, routes("holder", 2, "2026-11-21T00:00:00Z", **taken))
    store.put(TRITON_DEPLOYMENT, asks("digits", 3, **wanted))
    assert holder(store, DIGITS) == ("vision/holder" if clashes else "")
    assert holder(store, Key("vision", "holder")) == ""
    store.remove(HTTP_ROUTE, routes("holder", 4, "2026-11-21T00:00:00Z", **taken))
    assert holder(store, DIGITS) == ""


def test_a_route_that_no_gateway_accepts_or_of_no_object_holds_nothing() -> None:
    store = Store()
    store.put(TRITON_DEPLOYMENT, asks("digits", 1, hostnames=["a.example"]))
    store.put(HTTP_ROUTE, routes("ghost", 2, "2026-11-21T00:00:00Z", hostnames=["a.example"]))
    assert holder(store, DIGITS) == ""
    store.put(TRITON_DEPLOYMENT, asks("refused", 3, hostnames=["a.example"]))
    store.put(HTTP_ROUTE, routes("refused", 4, "2026-11-21T00:00:00Z", is_accepted=False, hostnames=["a.example"]))
    assert holder(store, DIGITS) == ""


def test_of_two_routes_with_one_host_name_the_older_one_has_it() -> None:
    store = Store()
    for version, (name, made) in enumerate({"digits": "2026-11-21T00:00:00Z", "new": "2026-11-22T00:00:00Z"}.items()):
        store.put(TRITON_DEPLOYMENT, asks(name, version))
        store.put(HTTP_ROUTE, routes(name, version + 10, made))
    assert holder(store, DIGITS) == ""
    assert holder(store, Key("vision", "new")) == "vision/digits"


def test_an_older_route_does_not_win_a_host_name_by_an_edit() -> None:
    store = Store()
    store.put(HTTP_ROUTE, routes("holder", 2, "2026-11-22T00:00:00Z", hostnames=["a.example"]))
    store.put(HTTP_ROUTE, routes("digits", 3, "2026-11-21T00:00:00Z", hostnames=["b.example"]))
    store.put(TRITON_DEPLOYMENT, asks("holder", 1, hostnames=["a.example"]))
    store.put(TRITON_DEPLOYMENT, asks("digits", 4, hostnames=["a.example"]))
    assert holder(store, DIGITS) == "vision/holder"
    assert holder(store, Key("vision", "holder")) == ""


def on_claim(name: str, version: int, claim: str = "models") -> JSON:
    return {**a_body(name, version), "spec": {"repository": {"claimName": claim}}}


def woken(store: Store, event: str, body: JSON) -> list[str]:
    return [key.name for key in store.seen(TRITON_DEPLOYMENT, event, body)]


def test_who_begins_or_ends_to_share_a_claim_wakes_the_others_on_it() -> None:
    store = Store()
    assert woken(store, "ADDED", on_claim("digits", 1)) == ["digits"]
    assert woken(store, "ADDED", on_claim("letters", 2)) == ["letters", "digits"]
    assert woken(store, "MODIFIED", on_claim("letters", 3)) == ["letters"], "a status, say"
    assert woken(store, "MODIFIED", on_claim("letters", 3)) == []
    assert woken(store, "MODIFIED", on_claim("letters", 4, "own")) == ["letters", "digits"]
    assert woken(store, "MODIFIED", on_claim("letters", 5)) == ["letters", "digits"]
    assert woken(store, "DELETED", on_claim("letters", 6)) == ["letters", "digits"]
    store.put(TRITON_DEPLOYMENT, on_claim("letters", 7))
    assert store.replace(TRITON_DEPLOYMENT, None, [on_claim("digits", 1)], "8") == {DIGITS, Key("vision", "letters")}


def test_among_a_thousand_objects_on_a_claim_one_more_wakes_only_itself() -> None:
    store = Store()
    most = max(len(woken(store, "ADDED", on_claim(f"object-{number}", number))) for number in range(1000))
    assert most <= 1 + FEW
    assert woken(store, "ADDED", on_claim("another", 1000)) == ["another"]
    assert woken(store, "DELETED", on_claim("object-7", 1001)) == ["object-7"]


def test_among_many_on_a_claim_whoever_cleans_it_learns_of_one_more() -> None:
    store = Store()
    for number in range(10):
        store.put(TRITON_DEPLOYMENT, on_claim(f"object-{number}", number))
    store.put(JOB, a_body("object-3-clean-0123456789", 10, owner="object-3"))
    store.put(JOB, a_body("object-4-convert-0123456789", 11, owner="object-4"))
    assert woken(store, "ADDED", on_claim("another", 12)) == ["another", "object-3"]


def test_a_host_name_is_looked_up_among_those_who_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store()
    for number in range(50):
        store.put(TRITON_DEPLOYMENT, asks(f"object-{number}", number))
        store.put(HTTP_ROUTE, routes(f"object-{number}", number, "2026-11-21", hostnames=[f"{number}.example"]))
    compared: list[object] = []

    def shared(one: object, other: object) -> bool:
        compared.append(other)
        return True

    monkeypatch.setattr(store_module, "shared", shared)
    assert store.host_holder(DIGITS, hosts("vision", {"parentRefs": [PUBLIC], "hostnames": ["7.example"]})) != ""
    assert compared == [hosts("vision", {"parentRefs": [PUBLIC], "hostnames": ["7.example"]})]


def test_a_list_tells_what_is_gone() -> None:
    store = Store()
    for name, version in (("kept", 1), ("gone", 2), ("newer", 30)):
        store.put(JOB, a_body(name, version, owner="digits"))
    store.put(JOB, a_body("elsewhere", 3, namespace="audio", owner="digits"))
    listed = [a_body("kept", 1, owner="digits"), a_body("found", 4, owner="digits")]
    assert store.replace(JOB, "vision", listed, "20") == {DIGITS}
    assert names(store) == ["found", "kept", "newer"]
    assert names(store, Key("audio", "digits")) == ["elsewhere"]
    assert store.replace(JOB, None, listed, "40") == {DIGITS, Key("audio", "digits")}
    assert names(store) == ["found", "kept"]
    assert store.replace(JOB, None, listed, "41") == set()


def test_only_our_own_managed_fields_are_kept() -> None:
    store, body = Store(), a_body("a", 1, owner="digits")
    ours = {"manager": "triton-operator", "operation": "Apply", "fieldsV1": {}}
    others = [
        {**ours, "manager": "kube-controller-manager"},
        {**ours, "operation": "Update"},
        {**ours, "subresource": "status"},
    ]
    body["metadata"]["managedFields"] = [*others, ours]
    store.put(JOB, body)
    assert store.children(DIGITS)[0]["metadata"]["managedFields"] == [ours]
    assert len(body["metadata"]["managedFields"]) == 4


def test_remembered_deletions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "REMEMBERED_DELETIONS", 2)
    store = Store()
    for name in "abc":
        store.remove(JOB, a_body(name, 5, owner="digits"))
    for name in "abc":
        store.put(JOB, a_body(name, 4, owner="digits"))
    assert names(store) == ["a"]


def test_a_child_whose_label_was_taken_away_comes_back_with_it() -> None:
    store = Store()
    store.put(JOB, a_body("a", 1, owner="digits"))
    # A watch by label says DELETED, with the version that lost the label.
    store.remove(JOB, a_body("a", 2, owner="digits"))
    assert names(store) == []
    assert store.put(JOB, a_body("a", 3, owner="digits")) == DIGITS
    assert names(store) == ["a"]
    # The same message after the repair's own response.
    assert store.remove(JOB, a_body("a", 2, owner="digits")) is None
    assert names(store) == ["a"]


@given(st.permutations([(version, version == 9) for version in range(1, 10)]))
def test_the_order_of_arrival_does_not_matter(arrivals: list[tuple[int, bool]]) -> None:
    """Whatever the order of the versions 1 to 8 and of the deletion 9, the object is gone in the end."""
    store = Store()
    for version, deleted in arrivals:
        body = a_body("a", version, uid="one", owner="digits")
        if deleted:
            store.remove(JOB, body)
        else:
            store.put(JOB, body)
    assert names(store) == []


@given(st.permutations(range(1, 10)))
def test_the_newest_version_wins(arrivals: list[int]) -> None:
    store = Store()
    for version in arrivals:
        store.put(JOB, a_body("a", version, owner="digits"))
    assert [body["metadata"]["resourceVersion"] for body in store.children(DIGITS)] == ["9"]


def test_what_cannot_be_taken_in_leaves_everything_as_it_was() -> None:
    bugs: list[Exception] = []
    store, body = Store(bugs.append), a_body("digits", 5)
    store.put(TRITON_DEPLOYMENT, body)
    without_sense = a_body("digits", 6) | {"spec": {"repository": "pvc"}, "status": {"conditions": [{"type": "Ready"}]}}
    assert store.seen(TRITON_DEPLOYMENT, "MODIFIED", without_sense) == []
    assert [type(bug) for bug in bugs] == [KeyError]
    assert store.owner(DIGITS) is not None
    assert store.ready_reasons() == ["Pending"]
    assert store.seen(TRITON_DEPLOYMENT, "DELETED", a_body("digits", 7)) == [DIGITS]
    assert store.keys() == []


def test_only_looks_of_other_objects_of_the_namespace_are_counted() -> None:
    store = Store()
    others = [("vision", "digits"), ("vision", "faces"), ("vision", "words"), ("sound", "voices")]
    for number, (namespace, owner) in enumerate(others):
        for stage in ("look", "source"):
            store.put(JOB, a_body(f"{owner}-{stage}-1", number + 1, f"{owner}-{stage}", namespace, owner))
        store.put(TRITON_DEPLOYMENT, a_body(owner, 1, namespace=namespace))
    store.put(JOB, a_body("pages-source-1", 9, owner="pages"))
    # Whoever may make Jobs could keep all others from looking.
    store.put(JOB, a_body("nobody-look-1", 9, owner="nobody"))
    assert store.looks_beside(DIGITS) == 2
    assert store.looks_beside(Key("sound", "voices")) == 0
    store.remove(JOB, a_body("faces-look-1", 10, uid="faces-look", owner="faces"))
    assert store.looks_beside(DIGITS) == 1
