"""The two doors: each takes an object to its end, and returns what tells of it, as `kubectl get` prints that."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import yaml

from tests.e2e import plugin
from tests.e2e.kubectl import Kubectl
from tests.local.doors.objects import Given
from triton_operator import names
from triton_plugin.reading.subject import parse

SECONDS = 900.0
"""The longest time from the object to its end."""
POLL_SECONDS = 3.0
Body = dict[str, Any]


class Door(Protocol):
    """Where an object is checked."""

    def run(self, given: Given, folder: Path) -> Body:
        """Return the object with its results. ``folder``: for files. Raises AssertionError if it came to no end."""


class ByCluster:
    """The operator, in a namespace of a cluster."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl

    def run(self, given: Given, folder: Path) -> Body:
        """Push, apply, wait, read and remove."""
        name, kubectl = given.body["metadata"]["name"], self._kubectl
        for claim, place in given.claims.items():
            for each in place.iterdir():
                pushed = plugin.run(kubectl, "push", str(each), f"pvc://{claim}/{each.name}")
                assert pushed.returncode == 0, f"{pushed.stdout}\n{pushed.stderr}"
        secrets = [_named("Secret", secret, stringData=dict(data)) for secret, data in given.secrets.items()]
        maps = [_named("ConfigMap", each, data=dict(data)) for each, data in given.config_maps.items()]
        try:
            kubectl.apply(*secrets, *maps, given.body)
            return self._end(name)
        finally:
            kubectl.run("delete", "td", name, "--ignore-not-found", "--cascade=foreground", timeout=180)

    def _end(self, name: str) -> Body:
        deadline = time.monotonic() + SECONDS
        while True:
            body = self._kubectl.get("td", name)
            with suppress(KeyError):
                subject = parse(body, None)
                if subject.holds("Ready") or subject.holds("Stalled"):
                    return self._kubectl.get(f"td/{name}", f"configmap/{names.results(name)}")
            assert time.monotonic() < deadline, json.dumps(body["status"], indent=1)
            time.sleep(POLL_SECONDS)


class ByCheck:
    """`kubectl triton check` on this machine."""

    def __init__(self, authority: Path, command: Sequence[str] = ("triton_plugin", "check")) -> None:
        """``authority``: whom the programs that download trust, in PEM. ``command``: a module, and its first words."""
        self._authority = authority
        self._command = command

    def run(self, given: Given, folder: Path) -> Body:
        """Write the object's file, run the command, and read what it left."""
        maps = [_named("ConfigMap", each, data=dict(data)) for each, data in given.config_maps.items()]
        file, kept = folder / "object.yaml", folder / "check"
        file.write_text(yaml.safe_dump_all([given.body, *maps]), encoding="utf-8")
        words = [word for claim, place in given.claims.items() for word in ("--claim", f"{claim}={place}")]
        for secret, data in given.secrets.items():
            place = folder / "secrets" / secret
            place.mkdir(parents=True)
            for key, value in data.items():
                (place / key).write_text(value, encoding="utf-8")
            words += ["--secret", f"{secret}={place}"]
        for image, archive in given.images.items():
            words += ["--image", f"{image}={archive}"]
        argv = [sys.executable, "-m", *self._command, str(file), "--folder", str(kept), *words]
        done = subprocess.run(
            [*argv, "--timeout", f"{SECONDS:.0f}s"],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        (folder / "printed").write_text(done.stdout, encoding="utf-8")
        assert done.returncode in (0, 3), f"exit status {done.returncode}:\n{done.stdout[-4000:]}"
        found: Body = json.loads((kept / "objects.json").read_text(encoding="utf-8"))
        return found

    @property
    def _environment(self) -> Mapping[str, str]:
        modules = os.pathsep.join(sys.path)
        return {**os.environ, "PYTHONPATH": modules, "SSL_CERT_FILE": str(self._authority)}


def _named(kind: str, name: str, **fields: Any) -> Body:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **fields}
