"""Two objects with the same model on one claim; then one of them moves on, and what nobody needs is removed."""

from collections.abc import Iterable
from dataclasses import dataclass

from tests.apiserver.operator_process import eventually
from tests.chaos.node.place import Place, all_at_once, delayed, server_pods
from tests.e2e.applied import Applied
from tests.e2e.state import State

CLAIM = "repository"
"""The namespace's own, which the workbench has at /repository."""
ROOT = "/repository/.triton-operator"
LONG_AGO = "2 hours ago"
"""A clean Job leaves alone what is younger than ten minutes."""


@dataclass(frozen=True)
class Shared:
    """What lay on the claim after each step, as names of revisions, and what served."""

    revisions: tuple[str, str]
    """Of the two objects, both new."""
    at_first: frozenset[str]
    unfinished: tuple[str, ...]
    """Temporary directories on the claim while both were Ready."""
    moved_on: tuple[str, str, str]
    """The later revisions of the first object."""
    while_shared: frozenset[str]
    """After the first clean Job: the second object still serves what both served."""
    afterwards: frozenset[str]
    """After the second clean Job: the second object is gone."""
    others: frozenset[str]
    """Sources and references then."""
    restarted: State
    """The first object once its server's pod was made anew from the claim."""


def run(place: Place) -> Shared:
    """Of three queue delays each makes a revision; one state before the present one is kept."""
    first, second = (place.new(name, repository={"claimName": CLAIM}, revisionHistoryLimit=1) for name in NAMES)
    states = all_at_once(*(lambda each=each: each.wait_ready(each.apply()).state for each in (first, second)))
    at_first, unfinished = listed(place), temporary(place)
    delays = [first.wait_ready(first.apply(delayed(100))).state.revision]
    delays.append(moved_on(place, first, 200))
    while_shared = listed(place)
    place.kubectl.delete("td", second.name)
    eventually(lambda: not place.kubectl.exists("configmap", f"{second.name}-results"), 60)
    delays.append(moved_on(place, first, 300))
    afterwards = listed(place)
    (pod,) = server_pods(first)
    place.kubectl.delete("pod", pod["metadata"]["name"])
    restarted = first.wait_ready(first.state.generation).state
    others = frozenset(listed(place, "sources") | listed(place, "references"))
    place.kubectl.delete("td", first.name)
    return Shared(
        revisions=(states[0].revision, states[1].revision),
        at_first=at_first,
        unfinished=unfinished,
        moved_on=(delays[0], delays[1], delays[2]),
        while_shared=while_shared,
        afterwards=afterwards,
        others=others,
        restarted=restarted,
    )


NAMES = ("first", "second")


def moved_on(place: Place, applied: Applied, delay: int) -> str:
    """Make everything on the claim old, let the object have another revision, and wait for the clean Job after it."""
    before = applied.jobs("clean")
    place.workbench.run(
        "find", ROOT, "-mindepth", "2", "-maxdepth", "2", "-exec", "touch", "--date", LONG_AGO, "{}", "+"
    )
    revision = applied.wait_ready(applied.apply(delayed(delay))).state.revision

    def cleaned() -> bool:
        new = (job for uid, job in applied.jobs("clean").items() if uid not in before)
        return any(job.get("status", {}).get("succeeded") for job in new)

    eventually(cleaned, 120)
    return revision


def listed(place: Place, folder: str = "revisions") -> frozenset[str]:
    """Names of a folder of the claim."""
    return frozenset(place.workbench.run("ls", f"{ROOT}/{folder}").split())


def temporary(place: Place) -> tuple[str, ...]:
    """What is half-written."""
    found: Iterable[str] = place.workbench.run("find", "/repository", "-name", ".tmp-*").split()
    return tuple(found)
