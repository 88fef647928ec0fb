"""What a check passed is published to a real registry, and replayed by the real tritonserver."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.converters.https_server import make_authority
from tests.converters.published import new_key, pem, public_pem
from tests.converters.registry_server import PASSWORD, Registry, a_docker_config, serving
from tests.local.checking import ROOT
from tests.local.test_check import Check, an_object, archives, check
from triton_converters.contract.predicate import Predicate
from triton_plugin.__main__ import main
from triton_plugin.exits import Exit

pytestmark = pytest.mark.images
__all__ = ["archives", "check"]
KEY = new_key()


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Registry, Path]]:
    folder = tmp_path_factory.mktemp("registry")
    authority, certificate = make_authority(folder)
    with serving(folder, certificate, authority) as found:
        yield found, authority


@pytest.fixture
def host(registry: tuple[Registry, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The registry, with its account and its authority in this machine's variables."""
    found, authority = registry
    (tmp_path / "docker").mkdir()
    (tmp_path / "docker/config.json").write_text(a_docker_config(found.host))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    for place in ("models", "other"):
        (tmp_path / place).mkdir()
        shutil.copy(ROOT / "manifests/samples/digits/digits.onnx", tmp_path / place)
    (tmp_path / "object.yaml").write_text(an_object("digits.onnx"), encoding="utf-8")
    (tmp_path / "key.pem").write_bytes(pem(KEY))
    (tmp_path / "key.pub").write_bytes(public_pem(KEY))
    (tmp_path / "stranger.pub").write_bytes(public_pem(new_key()))
    return found.host


def words(host: str, *more: str, claim: str = "models") -> tuple[str, ...]:
    target = ("--publish", f"oci://{host}/team/digits", "--signing-key", "key.pem", "--publish-samples")
    return ("object.yaml", "--claim", f"models={claim}", *target, *more)


def image(said: str) -> str:
    """The image that a check said to have published."""
    return said.partition("Published ")[2].partition(",")[0]


def test_what_passed_is_published_from_two_places_as_one_and_replayed(
    check: Check, host: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(*words(host)) == Exit.OK
    first = capsys.readouterr().out
    assert check(*words(host, "--folder", "elsewhere", claim="other")) == Exit.OK
    second = capsys.readouterr().out
    assert image(first) == image(second) != ""
    assert main(["replay", image(first), "--key", "key.pub"]) == Exit.OK
    assert "Here it repeats: 16 samples agree" in capsys.readouterr().out
    assert main(["replay", image(first), "--key", "stranger.pub"]) == Exit.FAILED
    assert "the key has not signed" in capsys.readouterr().err
    secrets = (pem(KEY).splitlines()[1], PASSWORD.encode())
    kept = [each for each in tmp_path.rglob("*-check/**/*") if each.is_file() and not each.is_symlink()]
    assert kept
    assert not [each for each in kept for secret in secrets if secret in each.read_bytes()]


def test_what_is_refused_is_not_published(
    check: Check, host: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "models/digits.onnx").write_text("no graph", encoding="utf-8")
    assert check(*words(host)) == Exit.STALLED
    assert image(capsys.readouterr().out) == ""


def test_a_registry_that_refuses_the_account_leaves_the_check_as_it_was(
    check: Check, host: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "docker/config.json").write_text(a_docker_config(host, password="another"))
    assert check(*words(host)) == Exit.FAILED
    said = capsys.readouterr().err
    assert "nothing was published: RegistryAccessDenied" in said
    assert "config.json of DOCKER_CONFIG" in said
    body = json.loads((tmp_path / "digits-check/objects.json").read_text())["items"][0]
    (ready,) = (each for each in body["status"]["conditions"] if each["type"] == "Ready")
    assert ready["status"] == "True"


def test_the_report_is_what_the_object_says(check: Check, host: str, tmp_path: Path) -> None:
    assert check(*words(host)) == Exit.OK
    (file,) = (tmp_path / "digits-check").glob("pods/alone-*/publish/container.json")
    asked = json.loads(file.read_text())["argv"][-1]
    told = Predicate.from_json(json.loads(asked)["predicate"])
    body = json.loads((tmp_path / "digits-check/objects.json").read_text())["items"][0]
    assert told.revision.key == body["status"]["serving"]["revision"]
    assert told.local
