"""A replay: what is fetched, what is believed, and what is said of the answers."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest

from tests.conftest import Attack
from tests.converters import published, test_published_image
from tests.converters.onnx_models import Graph
from tests.converters.published import REVISION, new_key, pem, predicate, public_pem, with_key
from tests.converters.registry_server import Registry
from tests.converters.test_published_image import NAME, manifest, models, pushed
from triton_converters import replay
from triton_converters.claim_store.digest import hashes_of
from triton_converters.contract import layout
from triton_converters.contract.predicate import Predicate
from triton_converters.contract.replaying import IMAGE, PREDICATE, ReplayRequest, ReplayResult
from triton_converters.contract.results import Signature
from triton_converters.publish.push import MANIFEST, canonical, digest_of

__all__ = ["models"]
KEY = new_key()


@pytest.fixture
def last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TERMINATION_LOG", str(tmp_path / "last-words"))
    return tmp_path / "last-words"


def publish(models: Registry, *, samples: bool = True, **fields: Any) -> str:
    with_key(pem(KEY))
    return test_published_image.run(models, signs=True, samples=samples, told=predicate(**fields)).digest


def fetched(models: Registry, digest: str, last_words: Path, key: bytes = public_pem(KEY)) -> ReplayResult:
    (layout.SIGNING_MOUNT / replay.KEY).write_bytes(key)
    code = replay.main([ReplayRequest(models.host, NAME, digest).to_json()])
    result = ReplayResult.from_json(last_words.read_text())
    assert result.repeats == (code == 0)
    return result


def test_what_the_key_signed_is_fetched(models: Registry, last_words: Path) -> None:
    assert fetched(models, publish(models), last_words) == ReplayResult(True, "fetched")
    revision = layout.revision_directory(REVISION) / "models"
    assert hashes_of(layout.INCOMING_MOUNT / IMAGE / "models") == hashes_of(revision)
    assert (layout.INCOMING_MOUNT / IMAGE / "models" / published.EMPTY).is_dir()
    told = Predicate.from_json((layout.INCOMING_MOUNT / PREDICATE).read_text())
    assert told == predicate()


def test_the_newest_report_counts(models: Registry, last_words: Path) -> None:
    digest = publish(models)
    newer = replace(predicate().figures, measured_at="2026-12-24T00:00:00Z")
    assert publish(models, figures=newer) == digest
    assert fetched(models, digest, last_words).reports == 2
    assert Predicate.from_json((layout.INCOMING_MOUNT / PREDICATE).read_text()).figures == newer


def unsigned(models: Registry) -> tuple[str, bytes]:
    return test_published_image.run(models, samples=True).digest, public_pem(KEY)


def of_a_stranger(models: Registry) -> tuple[str, bytes]:
    return publish(models), public_pem(new_key())


def with_another_file(models: Registry) -> tuple[str, bytes]:
    """An image of the same layers and one more, beside which somebody put the signatures of the first one."""
    digest = publish(models)
    changed = manifest(models, digest)
    changed["layers"].append(changed["layers"][0])
    registry, body = pushed(models), canonical(changed)
    registry.put_manifest(body, MANIFEST, digest_of(body))
    for suffix in (".sig", ".att"):
        content = registry.manifest(digest.replace(":", "-") + suffix)
        assert content is not None
        registry.put_manifest(content, MANIFEST, digest_of(body).replace(":", "-") + suffix)
    return digest_of(body), public_pem(KEY)


def with_other_files_on_its_disk(models: Registry) -> tuple[str, bytes]:
    digest = publish(models)
    layer = manifest(models, digest)["layers"][0]["digest"].removeprefix("sha256:")
    (path,) = models.folder.rglob(f"{layer}/data")
    path.write_bytes(path.read_bytes().replace(b"ensemble", b"ENSEMBLE"))
    return digest, public_pem(KEY)


def with_another_manifest_on_its_disk(models: Registry) -> tuple[str, bytes]:
    digest = publish(models)
    (path,) = models.folder.rglob(f"{digest.removeprefix('sha256:')}/data")
    path.write_bytes(path.read_bytes().replace(b'"size":', b'"size":1', 1))
    return digest, public_pem(KEY)


def with_a_report_of_other_files(models: Registry) -> tuple[str, bytes]:
    """The key signs what the stage would never sign."""
    from triton_converters.publish import signatures

    digest = test_published_image.run(models, samples=True).digest
    told = replace(predicate(), revision=replace(predicate().revision, content="0" * 64))
    content = pushed(models).manifest(digest)
    assert content is not None
    signatures.attach(pushed(models), KEY, content, told.to_json().encode())
    return digest, public_pem(KEY)


def without_samples(models: Registry) -> tuple[str, bytes]:
    return publish(models, samples=False), public_pem(KEY)


def with_no_key(models: Registry) -> tuple[str, bytes]:
    return publish(models), b"no key"


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (unsigned, "the key has not signed"),
        (of_a_stranger, "the key has not signed"),
        (with_another_file, "the key has not signed"),
        (with_other_files_on_its_disk, "has not the SHA-256 that the registry tells"),
        (with_another_manifest_on_its_disk, "the manifest of"),
        (with_a_report_of_other_files, "its files are not those of its report"),
        (without_samples, "holds no samples to send"),
        (with_no_key, "the key cannot be used"),
    ],
)
def test_what_is_not_signed_is_not_served(
    models: Registry,
    last_words: Path,
    case: Callable[[Registry], tuple[str, bytes]],
    words: str,
    attack: Attack,
) -> None:
    layout.SIGNING_MOUNT.mkdir(exist_ok=True)
    digest, key = case(models)
    result = fetched(models, digest, last_words, key)
    assert not result.repeats
    assert words in result.message
    assert not (layout.INCOMING_MOUNT / PREDICATE).exists()
    attack("who may push to the registry", case.__name__.replace("_", " "), result.message[:70])


class Serving:
    """What stands for a server of the image: y = 2 x, and what a test adds."""

    error: float = 0.0

    def __init__(self, load: Any, model: str, members: Any) -> None:
        assert (model, members) == ("digits", ["net"])

    def wait_ready(self) -> None:
        """Be ready."""

    def signature(self) -> Signature:
        return predicate().gates.signature

    def infer(self, inputs: Any, outputs: Any) -> Any:
        return {"y": 2 * inputs["x"] + numpy.float32(self.error)}

    def version(self) -> str:
        return "2.60.0"

    def configs(self) -> list[Any]:
        return []


@pytest.fixture
def served(mount: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An image that was fetched."""
    graph = Graph()
    doubled = graph.add("Add", "x", "x")
    model = graph.model({"x": (1, ["n", 2])}, {"y": (doubled, 1, ["n", 2])})
    version = layout.INCOMING_MOUNT / IMAGE / "models/net/1"
    version.mkdir(parents=True)
    onnx.save(model, str(version / "model.onnx"))
    published.revision()
    reference = published.reference()
    shutil.copytree(reference / "batches", layout.INCOMING_MOUNT / "samples/batches")
    (layout.INCOMING_MOUNT / PREDICATE).write_text(predicate().to_json())
    monkeypatch.setattr(replay, "Server", Serving)


def asked(last_words: Path) -> ReplayResult:
    request = ReplayRequest("r.example", NAME, "sha256:0", "127.0.0.1:8001", "127.0.0.1:8000")
    replay.main([request.to_json()])
    return ReplayResult.from_json(last_words.read_text())


def test_the_same_answers_repeat_the_report(served: None, last_words: Path) -> None:
    result = asked(last_words)
    assert (result.repeats, result.samples, result.max_absolute_error) == (True, 4, 0.0)
    assert result.server_version == "2.60.0"
    assert "4 samples agree" in result.message


def test_answers_within_the_tolerance_repeat_it(
    served: None, last_words: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Serving, "error", 1e-5)
    assert asked(last_words).repeats


def test_other_answers_do_not(served: None, last_words: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Serving, "error", 0.1)
    result = asked(last_words)
    assert not result.repeats
    assert "output y: 16 of 16 elements are outside" in result.message


def test_fewer_samples_than_the_report_is_of_do_not(served: None, last_words: Path) -> None:
    (layout.INCOMING_MOUNT / "samples/batches/00001.npz").unlink()
    result = asked(last_words)
    assert not result.repeats
    assert "2 samples were sent, and the report is of 4" in result.message
