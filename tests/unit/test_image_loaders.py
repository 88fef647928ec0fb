from pathlib import Path

import pytest

from hack.devcluster.image_loaders import load_command


@pytest.mark.parametrize(
    ("context", "command"),
    [
        ("kind-kind", "kind load image-archive /a.tar --name kind"),
        ("kind-my-test", "kind load image-archive /a.tar --name my-test"),
        ("k3d-k3s-default", "k3d image import /a.tar --cluster k3s-default"),
        ("minikube", "minikube image load /a.tar --profile minikube"),
        ("minikube-m02", "minikube image load /a.tar --profile minikube-m02"),
    ],
)
def test_each_tool_gives_an_archive_to_its_cluster(context: str, command: str) -> None:
    assert load_command(context, Path("/a.tar")) == command.split()


def test_another_cluster_takes_no_archive() -> None:
    with pytest.raises(LookupError, match="gke_x is no context of kind"):
        load_command("gke_x", Path("/a.tar"))
