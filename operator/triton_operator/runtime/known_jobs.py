"""What is asked of the Jobs of all TritonDeployments: which of them look, clean and measure, and on which nodes."""

import threading
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from triton_operator.kube.kinds import JOB, ApiKind
from triton_operator.observed.turn import Measurement
from triton_operator.runtime.store_facts import CLEAN, LOOK, Load, stage_of

Owner = tuple[str, str]
"""Namespace and name of a TritonDeployment."""


class _Known(NamedTuple):
    """A Job or a pod."""

    stage: str
    """LOOK or CLEAN; empty: another one, or a pod."""
    load: Load | None


class KnownJobs:
    """The Jobs and pods in the store. Passes ask from other threads, hence the lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[Owner, dict[tuple[ApiKind, str], _Known]] = {}

    def put(self, owner: Owner, kind: ApiKind, name: str, load: Load | None) -> None:
        """Know a Job or a pod of a TritonDeployment."""
        stage = stage_of(owner[1], name) if kind is JOB else ""
        if not stage and load is None:
            self.remove(owner, kind, name)
            return
        with self._lock:
            self._known.setdefault(owner, {})[kind, name] = _Known(stage, load)

    def remove(self, owner: Owner, kind: ApiKind, name: str) -> None:
        """Forget a Job or a pod."""
        with self._lock:
            known = self._known.get(owner, {})
            known.pop((kind, name), None)
            if not known:
                self._known.pop(owner, None)

    def looking(self, namespace: str) -> list[Owner]:
        """Return the TritonDeployments of a namespace that look at their sources, once for each Job."""
        with self._lock:
            in_namespace = ((owner, known) for owner, known in self._known.items() if owner[0] == namespace)
            return [owner for owner, known in in_namespace for each in known.values() if each.stage == LOOK]

    def cleans(self, owner: Owner) -> bool:
        """Whether a TritonDeployment has a Job that cleans its claim."""
        with self._lock:
            return any(each.stage == CLEAN for each in self._known.get(owner, {}).values())

    def measuring(self) -> list[Measurement]:
        """Return the Jobs that measure, or may begin to at any time: one that is suspended, as by Kueue, does not."""
        with self._lock:
            return [each for owner, known in self._known.items() for each in _measurements(owner, known.values())]


def _measurements(owner: Owner, known: Iterable[_Known]) -> Iterator[Measurement]:
    """Yield what measures of the Jobs and pods of one TritonDeployment."""
    loads = [each.load for each in known if each.load is not None]
    served = {each.node for each in loads if not each.job}
    for job in (each for each in loads if each.stage):
        pods = [each.node for each in loads if each.job == job.job and not each.stage]
        if job.runs or pods:
            nodes = {*pods, *(served if job.stage == "measure" else ())} - {""}
            yield Measurement(owner, frozenset(nodes), is_placed=any(pods))
