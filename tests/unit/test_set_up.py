"""What is built, and in which order, before the demo has its cluster."""

from pathlib import Path

import pytest

from hack.deploy import environment
from hack.deploy.command import TargetCluster


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What set_up does, in words; none of it happens. The machine has neither helm nor a cluster."""
    noted: list[str] = []
    monkeypatch.setattr(TargetCluster, "run", lambda _, *argv, **__: noted.append(" ".join(argv[2:])))
    monkeypatch.setattr(environment, "together", lambda *commands: noted.extend(map(" ".join, commands)))
    monkeypatch.setattr(environment, "install", lambda kubeconfig, more: noted.append(f"install {kubeconfig}"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return noted


def test_images_are_built_next_to_the_programs_and_before_the_cluster(done: list[str], tmp_path: Path) -> None:
    environment.set_up("digits-trainer")
    assert done == [
        "hack.devcluster prepare",
        "hack.imagebuild build operator converter tritonserver-cpu digits-trainer",
        "hack.devcluster binaries kubernetes etcd coredns local-path-provisioner helm",
        "hack.devcluster up",
        f"install {tmp_path / 'triton-operator/cluster/kubeconfig'}",
    ]


def test_a_cluster_of_somebody_else_needs_no_programs_of_ours(
    done: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "helm").touch(mode=0o755)
    monkeypatch.setenv("KUBECONFIG", "/elsewhere/config")
    environment.set_up()
    assert not any("binaries" in each for each in done), "without names it would build all, the linter too"
    assert done[-1] == "install /elsewhere/config"
