"""An object that is left: its server runs on as plain files, and the object is deleted."""

import json
import tempfile
from pathlib import Path

from tests.e2e import plugin
from tests.e2e.last_words import eventually
from tests.e2e.suite import Suite

RETAINED = {"spec": {"repository": {"retentionPolicy": {"whenDeleted": "Retain"}}}}


def leave(suite: Suite, name: str) -> None:
    """Do what `kubectl triton eject` prints, until the old name is the copy's."""
    kubectl = suite.busy
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder, "files")
        ejected = plugin.run(kubectl, "eject", name, "--output", str(files))
        assert ejected.returncode == 0, f"{ejected.stdout}\n{ejected.stderr}"
        kubectl.run("apply", "--filename", str(files))
        kubectl.run("rollout", "status", f"deployment/{name}-ejected", "--timeout=300s", timeout=310)
        kubectl.run("patch", "td", name, "--type=merge", f"--patch={json.dumps(RETAINED)}")
        eventually(
            "the claim without an owner",
            lambda: "ownerReferences" not in kubectl.get("pvc", f"{name}-repository")["metadata"] or None,
        )
        kubectl.delete("td", name)
        kubectl.run("wait", "--for=delete", f"service/{name}", "--timeout=60s", timeout=70)
        kubectl.run("apply", "--filename", str(files / "afterwards"))
