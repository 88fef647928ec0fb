"""Objects that name what another one keeps on a claim: by its digest, by the claim's name, and as their dataset."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from tests.e2e.kubectl import KubectlError
from tests.e2e.last_words import eventually
from tests.e2e.state import State
from tests.e2e.suite import Suite
from tests.e2e.workbench import SOURCE

Told = tuple[str, str]
"""A reason and a message."""
ABSENT = {"uri": "pvc://models/absent"}
SPY = {"entrypoint": "hostile.py", "arguments": {"checkpoint": None, "attack": "files"}}
WAYS: Mapping[str, tuple[str, str]] = {
    "the digest of its source, as pinned weights": ("SourceResolved", "SourceUnreachable"),
    "the name of its claim": ("SourceResolved", "NotAllowed"),
    "its claim as the dataset": ("", "Refused"),
    "a link to what lies there as the dataset": ("Converted", "SourceInvalid"),
    "a folder of its claim as the dataset": ("Converted", "UserCodeFailed"),
}
"""The condition that tells what came of it, and its reason; the API server refuses one itself."""


def run(suite: Suite) -> Mapping[str, Told]:
    """Let each way be tried on the claim of an object that has read its source; return what the author is told."""
    bench, kubectl = suite.workbench, suite.busy
    owner = suite.new("possessor")
    # Files that the thieves do not have as their own source.
    bench.run("mkdir", "-p", "/models/secret")
    bench.run("cp", f"{SOURCE}/hostile.py", "/models/secret/model.py")
    generation = owner.apply({"source": {"uri": "pvc://models/secret"}})
    read = owner.wait("its source", lambda state: state.holds("SourceResolved"), generation=generation)
    bench.run("mkdir", "-p", "/repository/data")
    bench.run("ln", "-sfn", ".triton-operator", "/repository/link")
    suite.new("letters").apply({"source": ABSENT, "repository": {"claimName": None}})
    eventually("the claim of its own", lambda: kubectl.exists("pvc", "letters-repository") or None)
    digest = read.state.status["source"]["digest"].removeprefix("sha256:")
    attempts = {}
    told: dict[str, Told] = {}
    for number, (way, changes) in enumerate(zip(WAYS, thefts(digest), strict=True)):
        thief = suite.new(f"thief-{number}")
        try:
            attempts[way] = thief, thief.apply(changes)
        except KubectlError as error:
            told[way] = "Refused", str(error)
    for way, (thief, generation) in attempts.items():
        kind, reason = WAYS[way]
        over = thief.wait(
            f"the end of: {way}",
            partial(_is_over, kind, reason),
            generation=generation,
        )
        condition = over.state.condition(kind)
        told[way] = condition["reason"], condition["message"]
    return told


def thefts(digest: str) -> Sequence[Mapping[str, Any]]:
    """The change of each way, in their order. ``digest``: of the owner's source."""
    ways: Sequence[Mapping[str, Any]] = (
        {"weights": {"uri": "https://nowhere.invalid/x.bin", "sha256": digest}},
        {"repository": {"claimName": "letters-repository"}},
        {"dataset": {"uri": "pvc://repository"}},
        {"dataset": {"uri": "pvc://repository/link"}},
        {"dataset": {"uri": "pvc://repository/data"}},
    )
    return [{"model": SPY, **each} for each in ways]


def _is_over(kind: str, reason: str, state: State) -> bool:
    return state.says(kind, reason) or state.holds("Stalled")
