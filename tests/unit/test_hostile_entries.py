"""Reading a results ConfigMap takes bounded time, and what is no record of the operator's counts as absent."""

import base64
import gc
import json
import time
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from tests.hostile_records import packed
from triton_converters.contract.envelope import Outcome
from triton_converters.contract.results import SourceResult
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.observed.history import MOST_STATES
from triton_operator.observed.snapshot import Observed, observe

MIB = 2**20
TRIES = 3
AS_MUCH_AS = 60
"""Times that a mebibyte of JSON is parsed, which takes 4 s at most on any processor of these years. Eight passes run at
a time, and one that takes 300 s counts as hanging."""
REVISION = {"key": "0", "candidate": "a", "model": "m", "server": "s"}
ACTIVE = {"server": "s", "uid": "u", "revision": "0", "model": "m", "deployment": {}}
AT = "2026-11-21T00:00:00+00:00"
PROMOTION = {"revision": "r", "server": "s", "uid": "u", "previous": "p", "at": AT, "since": AT}


def read(**data: str) -> Observed:
    return observe("digits", [{"kind": "ConfigMap", "metadata": {"name": "digits-results"}, "data": data}])


def cost(work: Callable[[], Any]) -> float:
    """Return how much time of a processor it takes, as a share of the bound on this machine, as fast as it is now.

    The least of some tries: a machine that is slow for one of the two says nothing.
    """
    return min(seconds(work) / AS_MUCH_AS / seconds(parse) for _ in range(TRIES))


def seconds(work: Callable[[], Any]) -> float:
    # What other tests left in this process is walked by no collection meanwhile.
    gc.freeze()
    try:
        begun = time.thread_time()
        work()
        return time.thread_time() - begun
    finally:
        gc.unfreeze()


def parse() -> None:
    json.loads("[" + "[]," * (MIB // 3) + "[]]")


def filled(name: str, text: Callable[[str], str]) -> dict[str, str]:
    """Entries that fill a ConfigMap; ``text``: of a key."""
    size = len(name.format(0)) + 8 + len(text("00000000"))
    return {name.format(f"{number:08x}"): text(f"{number:08x}") for number in range(MIB // size)}


def a_record(plain: bytes, stage: str = "measure") -> Callable[[str], str]:
    body = base64.b85encode(zlib.compress(plain, 9)).decode()
    return lambda key: json.dumps({"stage": stage, "key": key, "deflated": body}, separators=(",", ":"))


@pytest.mark.parametrize(
    "text",
    [
        a_record(b"[" + b"[]," * 21_500 + b"[]]"),
        a_record(b'{"a":' * 10_000 + b"1" + b"}" * 10_000),
        a_record(b" " * 65_530 + b"{}"),
        a_record(b"x" * 10_000_000),
        lambda key: "{}",
        lambda key: "",
        lambda key: "[" * 4_000,
    ],
    ids=["lists", "levels", "blanks", "bomb", "objects", "nothing", "brackets"],
)
def test_a_mebibyte_of_records_costs_little(text: Callable[[str], str]) -> None:
    data = filled("measure.{}", text)
    assert cost(lambda: read(**data)) < 1


@pytest.mark.parametrize("prefix", ["failure.", "damaged.", "soak."])
def test_a_mebibyte_of_other_entries_costs_little(prefix: str) -> None:
    data = filled(prefix + "{}", lambda key: "{}")
    assert cost(lambda: read(**data)) < 1


def test_records_beyond_the_bound_are_kept_and_not_read() -> None:
    data = filled("measure.{}", a_record(b"[" + b"[]," * 21_500 + b"[]]"))
    outcome = Outcome("source", "0123456789abcdef", SourceResult("d" * 64, 3, 1000)).to_json()
    name = "source.0123456789abcdef"
    found = read(**{name: outcome}, **data, **{f"finished.{name}": AT})
    assert list(found.records) == [name]
    assert found.unreadable == data


def a_history(count: int, parts: str) -> str:
    named = ({"key": f"{number:x}", "server": f"digits-{number:x}"} for number in range(count))
    revisions = [REVISION | each | {"parts": parts} for each in named]
    states = {"served": [[]] * count, "profiles": [""] * count, "images": [{}] * count}
    return json.dumps({**states, "dropped": 0, "revisions": revisions})


def test_a_mebibyte_of_history_costs_little() -> None:
    text = a_history(700, packed('[{"a":%s},{}]' % ("[" + "[]," * 330_000 + "[]]")))
    found = read(history=text)

    def work() -> None:
        history = read(history=text).history
        for _ in range(3):
            assert history.revisions["3"].template is None
            assert history.revisions["3"].status == {}

    assert cost(work) < 1
    assert len(found.history.served) == MOST_STATES


def test_as_many_states_are_read_as_a_spec_may_ask_for() -> None:
    limit = TritonDeploymentSpec.model_fields["revision_history_limit"]
    assert [each.le + 1 for each in limit.metadata if hasattr(each, "le")] == [MOST_STATES]


TIMES = ("x", "2026-11-21", "2026-11-21T00:00:00", "9999-12-31T23:59:59+00:00", "0001-01-01T00:00:00Z")


@pytest.mark.parametrize("field", ["at", "since", "held_since", "again_at", "down_since", "down_seen"])
@pytest.mark.parametrize("text", TIMES)
def test_a_change_at_no_time_counts_as_absent(field: str, text: str) -> None:
    assert set(read(**{"soak.u": json.dumps(PROMOTION)}).promotions) == {"u"}
    assert read(**{"soak.u": json.dumps(PROMOTION | {field: text})}).promotions == {}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model", 'x"}[1s])) or count(kube_secret_info) #'),
        ("model", "a\nb"),
        ("model", ""),
        ("server", "../../../kube-system/deployments/x"),
        ("server", "a" * 64),
        ("deployment", []),
    ],
)
def test_what_is_active_has_names(field: str, value: Any) -> None:
    assert read(**{"soak.active": json.dumps(ACTIVE)}).active_record is not None
    assert read(**{"soak.active": json.dumps(ACTIVE | {field: value})}).active_record is None


@pytest.mark.parametrize("deployment", [{}, {"spec": 1}, {"spec": {"template": [1]}}], ids=str)
def test_what_is_active_may_have_no_template(deployment: Any) -> None:
    active = read(**{"soak.active": json.dumps(ACTIVE | {"deployment": deployment})}).active_record
    assert active is not None
    assert active.template == {}


def test_a_record_that_finished_at_no_time_is_read_without_it() -> None:
    outcome = Outcome("source", "0123456789abcdef", SourceResult("d" * 64, 3, 1000)).to_json()
    name = "source.0123456789abcdef"
    assert read(**{name: outcome, f"finished.{name}": AT}).records[name].finished_at == AT
    assert read(**{name: outcome, f"finished.{name}": "x"}).records[name].finished_at == ""


PLACES = ("", ".", "..", "/repository", "/repository/.triton-operator", "d" * 63, "D" * 64, "d" * 64 + "/x", "sources")


@pytest.mark.parametrize("place", PLACES)
def test_a_recorded_digest_is_no_path_of_the_claim(place: str) -> None:
    whole = Outcome("source", "0123456789abcdef", SourceResult("d" * 64, 3, 1000)).to_json()
    name, text = "source.0123456789abcdef", json.dumps({**json.loads(whole)})
    assert list(read(**{name: text}).records) == [name]
    found = read(**{name: text.replace("d" * 64, place)})
    assert (list(found.records), list(found.unreadable)) == ([], [name])


@pytest.mark.parametrize("place", PLACES[:5] + PLACES[-1:])
def test_a_recorded_key_of_a_revision_is_no_path_of_the_claim(place: str) -> None:
    assert read(**{"soak.active": json.dumps(ACTIVE | {"revision": place})}).active_record is None
    history = {"served": [[]], "dropped": 0, "revisions": [REVISION | {"key": place}]}
    assert read(history=json.dumps(history)).history.states == ()
