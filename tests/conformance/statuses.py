"""What of a pod's status is compared, and how two of them differ."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Body = dict[str, Any]
Told = dict[str, str]
"""Values by their paths, such as `main.state.exitCode`."""
HEX = re.compile(r"\b[0-9a-f]{16,64}\b")
"""A key or a digest."""
PLAIN_ROOT = re.compile(r"/[\w./-]*/pods/[\w-]+/root(?=/)")
"""What Plain tells programs of before each path of a mount."""
SEEN = re.compile(r"^(\w+(?: /\S*)?)=(.*)$")
"""A line of view.sh."""


def told(status: Body) -> Told:
    """What the status of a pod says, without times, addresses and identities."""
    found = {name: str(status.get(name, "")) for name in ("phase", "reason", "message")}
    for each in (*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])):
        name = each["name"]
        for place in ("state", "lastState"):
            found |= {f"{name}.{place}.{key}": value for key, value in _state(each.get(place, {})).items()}
        found |= {f"{name}.{key}": str(each.get(key, False)) for key in ("ready", "started")}
        found[f"{name}.restarted"] = str(each["restartCount"] > 0)
    return {path: value for path, value in found.items() if value}


def _state(state: Body) -> Told:
    kind, facts = next(iter(state.items()), ("", {}))
    found = {"is": kind, **{key: str(facts.get(key, "")) for key in ("exitCode", "reason")}}
    return found | (_message(facts.get("message", "")) if kind == "terminated" else {})


def _message(message: str) -> Told:
    lines = [SEEN.match(line) for line in message.splitlines()]
    if lines and all(lines):
        return {f"sees {each[1]}": each[2] for each in lines if each is not None}
    return {"message": HEX.sub("KEY", PLAIN_ROOT.sub("", message))}


@dataclass(frozen=True)
class Difference:
    """Where two statuses differ."""

    case: str
    runtime: str
    path: str
    kubelet: str
    here: str

    def __str__(self) -> str:
        """A row of the table."""
        return f"{self.case:32} {self.runtime:6} {self.path:40} {_short(self.kubelet)} -> {_short(self.here)}"


def _short(value: str) -> str:
    return repr(value if len(value) <= 120 else f"{value[:60]}...{value[-50:]} ({len(value)})")


def differences(case: str, runtime: str, kubelet: Mapping[str, str], here: Mapping[str, str]) -> Iterator[Difference]:
    """Yield where a status is another one than the kubelet's."""
    for path in sorted({*kubelet, *here}):
        if kubelet.get(path, "") != here.get(path, ""):
            yield Difference(case, runtime, path, kubelet.get(path, ""), here.get(path, ""))


@dataclass(frozen=True)
class Meant:
    """A difference that is meant."""

    why: str
    path: str
    """A pattern that the whole path meets."""
    case: str = ".*"
    runtime: str = "Box|Plain"

    def covers(self, difference: Difference) -> bool:
        """Whether the difference is of this kind."""
        pairs = ((self.path, difference.path), (self.case, difference.case), (self.runtime, difference.runtime))
        return all(re.fullmatch(pattern, text) for pattern, text in pairs)


SEES = r".*\.sees "
MEANT = (
    Meant("the words are the container runtime's own", r".*\.message", "absent-.*|no-program"),
    Meant(
        "nothing is pulled, so there is one reason for an image that is not there",
        r"main\.state\.reason",
        "absent-image",
    ),
    Meant("the box filters system calls whether the spec says so or not", SEES + "seccomp"),
    Meant("an ordinary user has one group to give", SEES + "(gid|groups)"),
    Meant("a Job's pod has no network; a server has this machine's", SEES + "networks"),
    Meant("there is no terminal and no message queue", SEES + "devices"),
    Meant("the root is read-only whatever the spec says", SEES + "tmp_is_writable", "sees-writable-root"),
    Meant("a Secret is a folder of the user's", SEES + "mount /secret", "secret"),
    Meant("how long an end is remembered is up to a kubelet's cleaning", r"sidecar\.lastState\..*", "sidecar-.*"),
    Meant("its probe may run at the same time", r"tritonserver\..*sees processes", "sees-.*"),
    Meant("no namespace has it for its first process", r"phase|.*\.(exitCode|reason)", "kills-itself", "Plain"),
    Meant("a signal ends it without a handler", r".*\.exitCode", "(deadline|sidecar|server)-.*|deadline", "Plain"),
    Meant("it has a folder of its own for /tmp", r"main\.state\.message", "directory", "Plain"),
    Meant("nobody asks a Job's pod by HTTP from outside", ".*", "sidecar-late-by-http"),
    Meant(
        "nobody has the address that it asks, and each network says so in its own words", r".*\.message", "snapshot-.*"
    ),
)


def unmeant(case: str, runtime: str, kubelet: Mapping[str, str], here: Mapping[str, str]) -> list[str]:
    """The differences that are faults."""
    found = differences(case, runtime, kubelet, here)
    return [str(each) for each in found if not any(meant.covers(each) for meant in MEANT)]
