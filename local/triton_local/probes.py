"""A container's probes, as a kubelet asks them: first the startup probe, then readiness and liveness."""

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from triton_local.box import END_AT_ONCE
from triton_operator.names import Body

PERIOD_SECONDS = 10.0
TIMEOUT_SECONDS = 1.0
FAILURES = 3
"""What Kubernetes takes where a probe says nothing: periodSeconds, timeoutSeconds, failureThreshold."""


@dataclass
class _Probe:
    """One of the three."""

    spec: Body
    due: float = 0.0
    failures: int = 0
    succeeds: bool = False
    running: "subprocess.Popen[bytes] | None" = None
    ends: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether the probe failed as often in a row as it may."""
        return self.failures >= int(self.spec.get("failureThreshold", FAILURES))

    def answered(self, now: float, ok: bool) -> None:
        self.succeeds = ok
        self.failures = 0 if ok else self.failures + 1
        self.due = now + self.spec.get("periodSeconds", PERIOD_SECONDS)


@dataclass
class Probes:
    """The probes of one start of a container."""

    container: Body
    address: str
    answers: Callable[[str, float], bool]
    """Whether a server at a URL answers with success, after so many seconds at most."""
    execute: Callable[[Sequence[str]], "subprocess.Popen[bytes]"]
    """Start a program in the container. Raises OSError."""
    started: bool = field(init=False)
    ready: bool = field(init=False)

    def __post_init__(self) -> None:
        self._startup = self._probe("startupProbe")
        self._readiness = self._probe("readinessProbe")
        self._liveness = self._probe("livenessProbe")
        self.started = self._startup is None
        self.ready = self.started and self._readiness is None

    def look(self, now: float) -> bool:
        """Ask what is due; whether the container may go on."""
        if not self.started and self._startup is not None:
            self._ask(self._startup, now)
            self.started = self._startup.succeeds
            if not self.started:
                return not self._startup.failed
        for each in filter(None, (self._readiness, self._liveness)):
            self._ask(each, now)
        if self._readiness is None:
            self.ready = True
        elif self._readiness.succeeds or self._readiness.failed:
            self.ready = self._readiness.succeeds
        return self._liveness is None or not self._liveness.failed

    def close(self) -> None:
        """End a program that still asks."""
        if self._startup is not None and self._startup.running is not None:
            self._startup.running.send_signal(END_AT_ONCE)
            self._startup.running.wait()

    def _probe(self, name: str) -> _Probe | None:
        return _Probe(self.container[name]) if name in self.container else None

    def _ask(self, probe: _Probe, now: float) -> None:
        if "exec" in probe.spec:
            self._ask_program(probe, now)
        elif now >= probe.due:
            probe.answered(now, self._answers(probe.spec))

    def _ask_program(self, probe: _Probe, now: float) -> None:
        timeout = probe.spec.get("timeoutSeconds", TIMEOUT_SECONDS)
        if probe.running is None and now >= probe.due:
            probe.running, probe.ends = self.execute(probe.spec["exec"]["command"]), now + timeout
        if probe.running is not None and (probe.running.poll() is not None or now >= probe.ends):
            probe.running.send_signal(END_AT_ONCE)
            code = probe.running.wait()
            probe.running = None
            probe.answered(now, code == 0)

    def _answers(self, spec: Body) -> bool:
        get = spec["httpGet"]
        ports = {each.get("name"): each["containerPort"] for each in self.container.get("ports", [])}
        url = f"http://{self.address}:{ports.get(get['port'], get['port'])}{get.get('path', '/')}"
        return self.answers(url, spec.get("timeoutSeconds", TIMEOUT_SECONDS))
