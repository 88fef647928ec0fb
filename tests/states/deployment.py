"""States of a TritonDeployment by name, to be put together: `a_deployment().one_candidate().serving().cluster()`.

A state is reached: the simulation drives the real planner there, from the making of the object. It is a place in a tree
whose branches are what happens next, so the same words lead to the same place, which is reached once a process; every
`cluster()` is a copy of the caller's own. README.md tells how to put states together and how to name another one.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import Any, Concatenate, ParamSpec

from tests.simulation.answers import Scripts
from tests.simulation.cluster import Cluster
from tests.simulation.deployments import a_spec, an_ensemble
from tests.simulation.edits import Edit, merged, only

Happening = ParamSpec("Happening")
ROUTE = {"parentRefs": [{"name": "public", "namespace": "gateways"}], "hostnames": ["digits.example"]}
"""The route of what is `routed`."""
KEPT = 200
"""States whose clusters are kept, those that were reached last; a cluster takes about a megabyte."""


class State:
    """A state of a TritonDeployment and its cluster, before the operator's next pass; it never changes."""

    def __init__(self, reach: Callable[[], Cluster]) -> None:
        self._reach = reach
        self._next: dict[str, State] = {}

    def _reached(self) -> Cluster:
        if self not in _REACHED:
            found = self._reach()
            while len(_REACHED) >= KEPT:
                del _REACHED[next(iter(_REACHED))]
            _REACHED[self] = found
        return _REACHED[self]

    def cluster(self) -> Cluster:
        """The cluster in this state, as a copy of the caller's own. Raises AssertionError if it is not reached."""
        return deepcopy(self._reached())

    def then(
        self,
        happening: Callable[Concatenate[Cluster, Happening], object],
        *args: Happening.args,
        **kw: Happening.kwargs,
    ) -> "State":
        """The state after something happened to the cluster; the same happening leads to the same state."""

        def reach() -> Cluster:
            cluster = self.cluster()
            happening(cluster, *args, **kw)
            return cluster

        # A function's text has its address. The state keeps the function, so no other one gets that address.
        return self._next.setdefault(f"{happening!r} {args!r} {kw!r}", State(reach))

    # What is asked for, before the first pass -----------------------------------------------------------------------

    def asking(self, *edits: Edit, **fields: Any) -> "State":
        """Its spec is so from the beginning: with these edits, and with these fields as they are."""
        return self.then(Cluster.ask, *edits, **fields)

    def one_candidate(self, name: str = "onnx-fp32") -> "State":
        """Its model has one candidate."""
        return self.asking(only(name))

    def candidates(self, *names: str) -> "State":
        """Its model has the candidates of these names, FORMAT-PRECISION."""
        return self.asking(only(*names))

    def autoscaled(self, **autoscaling: Any) -> "State":
        """It asks for `serving.autoscaling`, by default of up to 6 replicas, and the cluster has KEDA."""
        return self.asking(merged("serving", autoscaling={"maxReplicas": 6} | autoscaling)).where(has_keda=True)

    def soaked(self, **soak: Any) -> "State":
        """It asks for `serving.soak`, by default of a minute."""
        return self.asking(merged("serving", soak={"duration": "1m"} | soak))

    def routed(self, **route: Any) -> "State":
        """It asks for `serving.route`, and the cluster has the Gateway API."""
        return self.asking(merged("serving", route=ROUTE | route)).where(has_gateway_api=True)

    # How the cluster is ---------------------------------------------------------------------------------------------

    def where(self, **fields: Any) -> "State":
        """The cluster is so from now on; the fields are those of `Cluster`."""
        return self.then(_set, **fields)

    def faring(self, scripts: Scripts) -> "State":
        """Jobs fare like this from now on."""
        return self.where(scripts=scripts)

    def upgraded(self, **settings: Any) -> "State":
        """The operator runs with other settings from now on."""
        return self.then(_upgrade, **settings)

    # What comes about -----------------------------------------------------------------------------------------------

    def serving(self) -> "State":
        """It is Ready, and nothing is left to do."""
        return self.then(_serve)

    def settled(self) -> "State":
        """Nothing is left to do, whatever came of it."""
        return self.then(Cluster.settle)

    def until(self, holds: Callable[[Cluster], object]) -> "State":
        """The first moment at which it is so."""
        return self.then(Cluster.until, holds)

    def until_active(self, stage: str, count: int = 1) -> "State":
        """So many Jobs of a stage run."""
        return self.then(Cluster.until_active, stage, count)

    def until_has(self, reason: str, kind: str = "Ready", words: str = "") -> "State":
        """A condition has that reason, and these words in its message."""
        return self.then(Cluster.until_has, reason, kind, words)

    def edited(self, *edits: Edit, **fields: Any) -> "State":
        """The user has just changed the spec: by these edits, and by these fields as they are."""
        return self.then(Cluster.edit, *edits, **fields)

    def run(self, steps: int) -> "State":
        """So many passes and steps later."""
        return self.then(Cluster.run, steps)

    def passed(self) -> "State":
        """One pass later."""
        return self.then(Cluster.act)

    def stepped(self) -> "State":
        """One step of the cluster later, without a pass."""
        return self.then(Cluster.step)


def _set(cluster: Cluster, /, **fields: Any) -> None:
    for name, value in fields.items():
        assert hasattr(cluster, name), f"a Cluster has no field {name}"
        setattr(cluster, name, value)


def _upgrade(cluster: Cluster, /, **settings: Any) -> None:
    cluster.settings = replace(cluster.settings, **settings)


def _serve(cluster: Cluster) -> None:
    cluster.settle()
    ready = cluster.condition("Ready")
    assert ready["status"] == "True", f"it does not serve: {ready}"


_REACHED: dict[State, Cluster] = {}
"""The clusters of states, in the order in which these were reached."""


@contextmanager
def apart() -> Iterator[None]:
    """Reach all states anew, and for this block alone, because the operator or the simulation is another one in it."""
    kept = dict(_REACHED)
    _REACHED.clear()
    try:
        yield
    finally:
        _REACHED.clear()
        _REACHED.update(kept)


_NEW = State(lambda: Cluster(a_spec()))
_EMPTY = State(lambda: Cluster({}))


def a_deployment() -> State:
    """A new TritonDeployment, before its first pass: four candidates on CPU, a threshold and a latency budget."""
    return _NEW


def a_deployment_of(spec: dict[str, Any]) -> State:
    """A new TritonDeployment with exactly that spec, before its first pass."""
    return _EMPTY.asking(**spec)


def an_ensemble_of(*dense: str) -> State:
    """A new TritonDeployment of an ensemble whose dense model has these candidates, before its first pass."""
    return a_deployment_of(an_ensemble(*dense))
