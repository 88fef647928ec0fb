"""Objects that serve, and take one bad spec after the other as new generations."""

import queue
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from datetime import datetime

from tests.e2e.applied import PATIENCE_SECONDS, Applied
from tests.e2e.bad_inputs import BadInput
from tests.e2e.kubectl import Object
from tests.e2e.state import State
from tests.e2e.watching import Sighting

SETTLING_SECONDS = 20.0
"""How long a first report of a failure may still be made more precise."""


@dataclass(frozen=True)
class Outcome:
    """What the object said once the case's condition was reported, and what served meanwhile."""

    host: str
    state: State
    reported_after_seconds: float | None
    """From the end of the first pod that failed to the first report; None where no pod failed."""
    revision_before: str
    selector_before: Mapping[str, str]
    selector_after: Mapping[str, str]
    since: float
    until: float
    report: str
    """Everything, for a failed assertion."""


@dataclass(frozen=True)
class Mended:
    """What the object said after its first spec was applied again."""

    before: State
    after: State
    new_jobs: tuple[str, ...]
    unfinished_jobs: tuple[str, ...]


class Hosts:
    """Runs cases, each on whichever host is free; results are futures by the case's name."""

    def __init__(self, hosts: tuple[Applied, ...], cases: tuple[BadInput, ...], executor: Executor) -> None:
        self._free: queue.Queue[Applied] = queue.Queue()
        self._ready = {host.name: executor.submit(self._prepare, host) for host in hosts}
        self._cases = {case.name: executor.submit(self._run, case) for case in cases}
        self._mended = executor.submit(self._mend, len(hosts))

    def outcome(self, case: BadInput) -> Outcome:
        """Of one case; waits for it."""
        return self._cases[case.name].result()

    def mended(self) -> dict[str, Mended]:
        """By host; waits for all cases."""
        return self._mended.result()

    def _prepare(self, host: Applied) -> State:
        state = host.wait_ready(host.apply()).state
        self._free.put(host)
        return state

    def _run(self, case: BadInput) -> Outcome:
        host = self._free.get(timeout=PATIENCE_SECONDS)
        try:
            return run_case(host, case)
        finally:
            self._free.put(host)

    def _mend(self, count: int) -> dict[str, Mended]:
        # The cases were queued before: once all are done, every host is free.
        for future in self._cases.values():
            future.exception()
        hosts = [self._free.get(timeout=PATIENCE_SECONDS) for _ in range(count)]
        return {host.name: mend(host, self._ready[host.name]) for host in hosts}


def run_case(host: Applied, case: BadInput) -> Outcome:
    """Apply the bad spec and wait for its report; a wrong report is returned as well, for the test to show."""
    before, selector = host.state.revision, service_selector(host)
    since = time.time()
    generation = host.apply(case.changes)

    def reported(state: State) -> bool:
        return state.says(case.condition, case.reason) and (not case.stalled or state.holds("Stalled"))

    def settled(state: State) -> bool:
        return reported(state) or state.holds("Stalled") or state.holds("Ready")

    seen = host.wait(f"{case.condition}: {case.reason}", settled, generation=generation, seconds=PATIENCE_SECONDS)
    if not reported(seen.state):
        later = host.watch.wait(host.kubectl.namespace, host.name, reported, SETTLING_SECONDS)
        seen = later or seen
    return Outcome(
        host=host.name,
        state=seen.state,
        reported_after_seconds=delay(host.children("pods"), (first_report(host, case, generation) or seen).time, since),
        revision_before=before,
        selector_before=selector,
        selector_after=service_selector(host),
        since=since,
        until=time.time(),
        report=host.report(),
    )


def mend(host: Applied, ready: "Future[State]") -> Mended:
    """Apply the first spec again; what was computed for it is still known, so no Job is needed."""
    jobs = host.jobs()
    state = host.wait_ready(host.apply()).state
    after = host.jobs()
    return Mended(
        before=ready.result(),
        after=state,
        new_jobs=tuple(after[uid]["metadata"]["name"] for uid in after.keys() - jobs.keys()),
        unfinished_jobs=tuple(job["metadata"]["name"] for job in after.values() if not finished(job)),
    )


def service_selector(host: Applied) -> Mapping[str, str]:
    """Of the Service that clients use."""
    selector: Mapping[str, str] = host.kubectl.get("service", host.name)["spec"]["selector"]
    return selector


def finished(job: Object) -> bool:
    """Whether the Job is complete or failed."""
    conditions = job.get("status", {}).get("conditions", [])
    return any(each["type"] in ("Complete", "Failed") and each["status"] == "True" for each in conditions)


def first_report(host: Applied, case: BadInput, generation: int) -> Sighting | None:
    """The first version of the generation that gave the case's reason."""
    seen = host.watch.history(host.kubectl.namespace, host.name)
    of_generation = (each for each in seen if each.state.generation == generation)
    return next((each for each in of_generation if each.state.says(case.condition, case.reason)), None)


def delay(pods: Iterable[Object], reported: float, since: float) -> float | None:
    """Seconds to the report from the end of the first pod that failed since then; None if none is there any more.

    A source is tried again with another pod, which may fail after the report, and in place of the one it is about.
    """
    ends = [
        ended
        for pod in pods
        for container in pod["status"].get("containerStatuses", [])
        if since - 1 <= (ended := _end(container)) <= reported
    ]
    return reported - min(ends) if ends else None


def _end(container: Object) -> float:
    """When the container ended with an error, in seconds since the epoch; 0: it did not."""
    terminated = container["state"].get("terminated")
    if not terminated or terminated["exitCode"] == 0:
        return 0.0
    return datetime.fromisoformat(terminated["finishedAt"]).timestamp()
