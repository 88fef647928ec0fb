"""A real registry whose disk is full: it needs root, for a disk of its own."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.converters.conftest import authority, mount, trusting
from tests.converters.published import REVISION, new_key, pem, reference, revision, with_key
from tests.converters.registry_server import Registry, a_docker_config, serving
from tests.converters.test_published_image import failure, manifest, run, tags
from triton_converters.contract import layout
from triton_converters.contract.reasons import Reason
from triton_converters.publish.push import canonical, digest_of

pytestmark = pytest.mark.integrations
__all__ = ["authority", "mount", "trusting"]
DISK = "3m"
"""Room for one revision, which has 2 MiB."""


@pytest.fixture
def models(trusting: None, authority: tuple[Path, Path], tmp_path: Path) -> Iterator[Registry]:
    revision()
    reference()
    (disk := tmp_path / "registry").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", disk], check=True)
    try:
        with serving(disk, authority[1], authority[0]) as found:
            layout.CREDENTIALS_MOUNT.mkdir()
            (layout.CREDENTIALS_MOUNT / ".dockerconfigjson").write_text(a_docker_config(found.host))
            yield found
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_registry_without_room_says_so_and_the_tag_stays(models: Registry) -> None:
    with_key(pem(new_key()))
    first = run(models, signs=True)
    (layout.revision_directory(REVISION) / "models/net/1/model.onnx").write_bytes(bytes(2**21))
    error = failure(models, signs=True)
    assert (error.reason, error.final) == (Reason.REGISTRY_FULL, False)
    assert "make room" in error.message
    assert digest_of(canonical(manifest(models, "v1"))) == first.digest
    assert "v1" in tags(models)
