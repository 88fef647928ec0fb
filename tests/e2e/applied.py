"""A TritonDeployment that a test applied: change it, wait for it, and say everything about it when it disappoints."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.kubectl import Kubectl, KubectlError, Object
from tests.e2e.manifests import changed
from tests.e2e.state import State
from tests.e2e.watching import Sighting, Watch

PATIENCE_SECONDS = 900.0
"""For anything that needs Jobs: two cores run all tests' Jobs at once."""


class DisappointedError(AssertionError):
    """What was waited for did not come; the message holds conditions, events, pods and logs."""


@dataclass
class Applied:
    """One object and the manifest it started from."""

    kubectl: Kubectl
    watch: Watch
    base: Object
    name: str
    manifest: Object = field(default_factory=dict)

    def apply(self, changes: Mapping[str, Any] | None = None) -> int:
        """`kubectl apply` of the base manifest with changes laid over it; gives the generation."""
        self.manifest = changed(self.base, self.name, changes or {})
        said = self.kubectl.run("apply", "--filename=-", "--output=json", stdin=json.dumps(self.manifest))
        return int(json.loads(said)["metadata"]["generation"])

    @property
    def state(self) -> State:
        """The newest version seen."""
        return self.watch.history(self.kubectl.namespace, self.name)[-1].state

    def wait(
        self, what: str, until: Callable[[State], bool], *, generation: int, seconds: float = PATIENCE_SECONDS
    ) -> Sighting:
        """The first version of ``generation`` for which ``until`` holds; raises DisappointedError."""

        def there(state: State) -> bool:
            return state.generation >= generation and until(state)

        seen = self.watch.wait(self.kubectl.namespace, self.name, there, seconds)
        if seen is None:
            raise DisappointedError(f"waited {seconds:.0f} s for {what}\n{self.report()}")
        return seen

    def wait_ready(self, generation: int) -> Sighting:
        """The state once it is Ready; raises DisappointedError as soon as it is Stalled."""

        def over(state: State) -> bool:
            return state.holds("Ready") or state.holds("Stalled")

        seen = self.wait("Ready", over, generation=generation)
        if not seen.state.holds("Ready"):
            raise DisappointedError(f"Stalled instead of Ready\n{self.report()}")
        return seen

    def children(self, kind: str, **labels: str) -> list[Object]:
        """Its children of one kind, by label."""
        chosen = {"triton-operator.dev/deployment": self.name}
        chosen |= {f"triton-operator.dev/{label}": value for label, value in labels.items()}
        selector = ",".join(f"{label}={value}" for label, value in chosen.items())
        return self.kubectl.items(kind, f"--selector={selector}")

    def jobs(self, *stages: str) -> dict[str, Object]:
        """Jobs of the stages (all, where none is named) by uid."""
        jobs = {job["metadata"]["uid"]: job for job in self.children("jobs")}
        return {uid: job for uid, job in jobs.items() if not stages or stage_of(job) in stages}

    def report(self) -> str:
        """State, events, and the pods' containers with the end of the logs of those that did not end well."""
        history = self.watch.history(self.kubectl.namespace, self.name)
        parts = [history[-1].state.summary() if history else f"{self.name} was never seen"]
        try:
            parts.append(self.kubectl.run("get", "events", "--sort-by=.lastTimestamp", "--no-headers"))
            parts[-1] = "\n".join(line for line in parts[-1].splitlines() if f"/{self.name}" in line)[-4000:]
            parts += [self._pod(pod) for pod in self.children("pods")]
        except KubectlError as error:
            parts.append(str(error))
        return "\n".join(parts)

    def _pod(self, pod: Object) -> str:
        status, name = pod["status"], pod["metadata"]["name"]
        lines = [f"pod {name}: {status.get('phase')}"]
        for container in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
            lines.append(f"  {container['name']}: {json.dumps(container['state'])}")
            if status.get("phase") != "Succeeded":
                lines.append(self.kubectl.logs(name, container["name"], tail=15))
        return "\n".join(lines)


def stage_of(job: Object) -> str:
    """The stage a Job or pod belongs to; empty for a server's."""
    return str(job["metadata"]["labels"].get("triton-operator.dev/stage", ""))
