"""Jobs of the simulation that really run, as far as none needs a server."""

import subprocess
from collections.abc import Callable, Sequence
from typing import Any

from hack.deploy.command import ROOT
from tests.simulation.answers import Script
from triton_converters.contract import envelope
from triton_converters.contract.reasons import Reason

STAGES = ("source", "reference", "convert")
LAST_WORDS = 300


class RealJobs:
    """How the Jobs of one object end."""

    def __init__(self, command: Callable[[str, Any], list[str]], stages: Sequence[str] = STAGES) -> None:
        """``command``: returns, by stage and request, the program that runs a Job; its answer comes last.

        ``stages``: those whose Jobs run.
        """
        self.command, self.stages = command, stages
        self.scripts: dict[str, Script] = {}

    def __call__(self, stage: str, candidate: str, request: Any) -> Script:
        """Return how the Job ends; those that need a server end well."""
        if stage not in self.stages:
            return Script()
        if request.key not in self.scripts:
            self.scripts[request.key] = self._run(stage, request)
        return self.scripts[request.key]

    def _run(self, stage: str, request: Any) -> Script:
        done = subprocess.run(self.command(stage, request), cwd=ROOT, capture_output=True, text=True, check=False)
        answer = next(iter(done.stdout.splitlines()[-1:]), "")
        try:
            outcome = envelope.Outcome.from_json(answer)
        except ValueError:
            return Script(exit_code=envelope.EXIT_FINAL, reason=Reason.CRASHED, message=done.stderr[-LAST_WORDS:])
        if outcome.reason is None:
            return Script(answer=answer)
        return Script(exit_code=envelope.EXIT_FINAL, reason=outcome.reason, message=outcome.message)
