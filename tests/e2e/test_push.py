"""`kubectl triton push` through a real kubelet: what arrives on the claim, and what is left of a push that breaks."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.e2e import plugin
from tests.e2e.kubectl import Object
from tests.e2e.last_words import eventually
from tests.e2e.suite import Suite

LARGE = 64 * 1024 * 1024
PUSH_PODS = "--selector=app.kubernetes.io/name=triton-push"
DIGEST = "find -L . -type f -printf '%P\\0' | LC_ALL=C sort -z | xargs -0 sha256sum -- | sha256sum"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with code, a subfolder and a file that takes a moment to send."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "net").mkdir()
    (folder / "net/model.py").write_text("def get_model(): ...\n")
    (folder / "weights.bin").write_bytes(os.urandom(LARGE))
    (folder / ".git").mkdir()
    (folder / ".git/config").write_text("")
    return folder


def no_pod(suite: Suite) -> Object | None:
    return None if suite.busy.items("pods", PUSH_PODS) else {}


def test_a_push_arrives_is_replaced_and_leaves_no_pod(suite: Suite, model: Path) -> None:
    first = plugin.run(suite.busy, "push", str(model), "pvc://models/pushed/here")
    assert first.returncode == 0, first.stderr
    assert "left out: .git" in first.stderr
    source = yaml.safe_load(first.stdout)["source"]
    assert source["uri"] == "pvc://models/pushed/here"
    found = suite.workbench.run("sh", "-c", f"cd /models/pushed/here && {DIGEST}")
    assert found.split()[0] == source["sha256"]
    (model / "net/model.py").write_text("# changed\n")
    second = plugin.run(suite.busy, "push", str(model), source["uri"])
    assert second.returncode == 0, second.stderr
    assert "in the place of what was there" in second.stderr
    assert suite.workbench.run("cat", "/models/pushed/here/net/model.py") == "# changed\n"
    assert suite.workbench.run("ls", "-A", "/models/pushed").split() == ["here"]
    eventually("no pod of a push", lambda: no_pod(suite))


def test_an_interrupted_push_leaves_what_was_there_and_no_pod(suite: Suite, model: Path) -> None:
    suite.workbench.run("sh", "-c", "mkdir -p /models/interrupted/here && echo old > /models/interrupted/here/file")
    process = subprocess.Popen(
        plugin.argv(suite.busy, "push", str(model), "pvc://models/interrupted/here"),
        env=plugin.environment(suite.busy),
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    eventually("its pod", lambda: next(iter(suite.busy.items("pods", PUSH_PODS)), None))
    # kubectl gets it too, as from a terminal. SIGINT would be ignored if this suite runs in the background of a shell.
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(timeout=60) != 0
    eventually("no pod of a push", lambda: no_pod(suite))
    assert suite.workbench.run("cat", "/models/interrupted/here/file") == "old\n"
    assert suite.workbench.run("ls", "-A", "/models/interrupted").split() == ["here"]


def test_a_claim_that_does_not_exist_is_made(suite: Suite, model: Path) -> None:
    pushed = plugin.run(suite.busy, "push", str(model / "net"), "pvc://made-by-push/net", "--size", "64Mi")
    assert pushed.returncode == 0, pushed.stderr
    assert "made PersistentVolumeClaim made-by-push of 64Mi" in pushed.stderr
    assert suite.busy.get("pvc", "made-by-push")["status"]["phase"] == "Bound"
