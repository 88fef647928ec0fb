"""A revision as an image in a real registry: the same from everywhere, whole or not at all."""

import json
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Attack
from tests.converters import published
from tests.converters.https_server import proxying
from tests.converters.published import EMPTY, FILES, REVISION, document, predicate, reference, request, revision
from tests.converters.registry_server import PASSWORD, Registry, a_docker_config, serving
from triton_converters import __main__ as program
from triton_converters.claim_store.digest import hashes_of
from triton_converters.contract import layout
from triton_converters.contract.envelope import Outcome
from triton_converters.contract.failure import StageError
from triton_converters.contract.publishing import PublishResult, is_loop
from triton_converters.contract.reasons import Reason
from triton_converters.fetch import connection
from triton_converters.fetch.registry import Repository
from triton_converters.publish import image as packed
from triton_converters.publish.push import Registry as Pushed
from triton_converters.publish.push import canonical, digest_of
from triton_converters.stages import publish

NAME = "team/digits"
LARGE = len(FILES["net/1/model.onnx"])


@pytest.fixture
def models(trusting: None, authority: tuple[Path, Path], tmp_path: Path) -> Iterator[Registry]:
    (tmp_path / "registry").mkdir()
    revision()
    reference()
    with serving(tmp_path / "registry", authority[1], authority[0]) as models:
        layout.CREDENTIALS_MOUNT.mkdir()
        (layout.CREDENTIALS_MOUNT / ".dockerconfigjson").write_text(a_docker_config(models.host))
        yield models


def run(models: Registry, tag: str = ":v1", **fields: Any) -> PublishResult:
    return publish.run(request(f"oci://{models.host}/{NAME}{tag}", **fields))


def failure(models: Registry, **fields: Any) -> StageError:
    with pytest.raises(StageError) as caught:
        run(models, **fields)
    assert PASSWORD not in caught.value.message
    return caught.value


def pushed(models: Registry) -> Pushed:
    """The registry as a publish Job sees it."""
    account = json.loads(a_docker_config(models.host))["auths"][models.host]["auth"]
    return Pushed(Repository(models.host, NAME, f"Basic {account}"))


def manifest(models: Registry, reference: str) -> Any:
    """A manifest of the registry."""
    return document(pushed(models).manifest(reference))


def tags(models: Registry) -> list[str]:
    answer = models._ask("GET", f"https://{models.host}/v2/{NAME}/tags/list")
    return sorted(json.loads(answer.data).get("tags") or []) if answer.status == 200 else []


def members(models: Registry, found: Any) -> list[tarfile.TarInfo]:
    layers = [
        models._ask("GET", f"https://{models.host}/v2/{NAME}/blobs/{each['digest']}").data for each in found["layers"]
    ]
    return [each for layer in layers for each in tarfile.open(fileobj=BytesIO(layer)).getmembers()]


def test_an_image_has_the_files_of_the_revision_and_no_others(models: Registry) -> None:
    result = run(models)
    found = manifest(models, "v1")
    assert manifest(models, result.digest) == found
    entries = members(models, found)
    assert {each.name: each.size for each in entries if each.isreg()} == {
        f"models/{name}": len(content) for name, content in FILES.items()
    }
    assert f"models/{EMPTY}" in {each.name for each in entries if each.isdir()}
    assert {(each.mtime, each.uid, each.gid, each.uname) for each in entries} == {(0, 0, 0, "")}
    assert {each.mode for each in entries} == {0o644, 0o755}
    assert len(found["layers"]) == 2
    assert (result.tag, result.signer) == ("v1", "")
    assert result.bytes == sum(each["size"] for each in found["layers"])


def test_the_same_files_are_one_digest_from_everywhere(models: Registry) -> None:
    first = run(models)
    moved = layout.revision_directory(REVISION)
    shutil.copytree(moved, aside := moved.with_name("aside"))
    shutil.rmtree(moved)
    aside.rename(moved)
    for path in moved.rglob("*"):
        os.utime(path, (1, 1))
        path.chmod(0o700)
    assert run(models, tag=":v2").digest == first.digest
    assert tags(models) == ["v1", "v2"]


def test_without_a_tag_it_is_the_revisions_key(models: Registry) -> None:
    assert run(models, tag="").tag == REVISION
    assert tags(models) == [REVISION]


def test_samples_are_in_the_image_if_they_are_asked_for(models: Registry) -> None:
    result = run(models, samples=True)
    names = {each.name for each in members(models, manifest(models, result.digest))}
    assert {"samples/batches/00000.npz", "samples/batches/00001.npz"} <= names


def test_many_large_files_are_no_more_layers_than_are_mounted(
    models: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "LARGE_BYTES", 1)
    monkeypatch.setattr(packed, "MOST_LARGE", 2)
    assert len(manifest(models, run(models).digest)["layers"]) == 3


CHANGES: dict[str, Callable[[Path], object]] = {
    "another byte": lambda folder: (folder / "models/net/config.pbtxt").write_bytes(b'name: "nut"\n'),
    "another file": lambda folder: (folder / "models/net/1/extra").write_bytes(b""),
    "a file less": lambda folder: (folder / "models/net/warmup/x").unlink(),
    "another folder": lambda folder: (folder / "models/net/2").mkdir(),
    "a link": lambda folder: (folder / "models/net/1/link").symlink_to("model.onnx"),
    "a link to a folder": lambda folder: (folder / "models/net/2").symlink_to("1"),
    "a pipe": lambda folder: os.mkfifo(folder / "models/net/1/pipe"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_revision_that_is_another_by_now_is_not_pushed(models: Registry, change: str, attack: Attack) -> None:
    told = predicate()
    CHANGES[change](layout.revision_directory(REVISION))
    error = failure(models, told=told)
    assert error.reason is Reason.REPOSITORY_DAMAGED
    assert tags(models) == []
    attack("who writes to the claim", f"a revision that is to be published: {change}", f"{error.reason}: not pushed")


def test_samples_that_are_others_by_now_are_not_pushed(models: Registry) -> None:
    told = predicate()
    (layout.reference_directory(published.REFERENCE) / "batches/00001.npz").write_bytes(b"other answers")
    assert failure(models, told=told, samples=True).reason is Reason.REPOSITORY_DAMAGED
    assert tags(models) == []


def test_a_file_that_changes_between_hash_and_push_is_not_published(
    models: Registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, attack: Attack
) -> None:
    secret = tmp_path / "cosign.key"
    secret.write_bytes(b"s" * len(FILES["net/1/model.onnx"]))
    target = layout.revision_directory(REVISION) / "models/net/1/model.onnx"
    real = publish._push

    def changed(*arguments: Any) -> str:
        target.unlink()
        target.symlink_to(secret)
        return real(*arguments)

    monkeypatch.setattr(publish, "_push", changed)
    error = failure(models)
    assert error.reason is Reason.REPOSITORY_DAMAGED
    target.unlink()
    monkeypatch.setattr(publish, "_push", lambda *each: target.write_bytes(secret.read_bytes()) and real(*each))
    target.write_bytes(FILES["net/1/model.onnx"])
    assert failure(models).reason is Reason.REGISTRY_INVALID
    assert tags(models) == []
    attack("who writes to the claim", "a file that becomes a link to the signing key", f"{error.reason}: not sent")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("models/net/config.pbtxt", b'parameters { key: "trt_engine_cache_path" value { string_value: "/engines" } }'),
        ("ps.json", b"{}"),
        ("models/net/config.pbtxt", b'value: "%s/revisions/1"'),
    ],
)
def test_what_no_other_server_could_read_is_not_published(models: Registry, name: str, content: bytes) -> None:
    root = os.fsencode(layout.ROOT)
    (layout.revision_directory(REVISION) / name).write_bytes(content.replace(b"%s", root))
    assert failure(models, told=predicate()).reason is Reason.NOT_PORTABLE
    assert tags(models) == []


def test_what_is_no_longer_on_the_claim(models: Registry) -> None:
    told = predicate()
    shutil.rmtree(layout.reference_directory(published.REFERENCE))
    assert failure(models, told=told, samples=True).reason is Reason.INPUT_MISSING
    shutil.rmtree(layout.revision_directory(REVISION))
    assert failure(models, told=told).reason is Reason.RESULT_MISSING


def test_the_job_answers_and_writes_nothing_to_the_claim(
    models: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERMINATION_LOG", str(tmp_path / "last-words"))
    monkeypatch.setenv(layout.CLAIM, "default/digits-repository")
    before = hashes_of(layout.ROOT)
    asked = request(f"oci://{models.host}/{NAME}:v1", samples=True)
    assert program.main(["publish", asked.to_json()]) == 0
    outcome = Outcome.from_json((tmp_path / "last-words").read_text())
    assert isinstance(outcome.result, PublishResult)
    assert outcome.result.digest == digest_of(canonical(manifest(models, "v1")))
    assert hashes_of(layout.ROOT) == before


@pytest.mark.parametrize("after", [0, 1, *(LARGE * part // 4 for part in range(1, 5)), LARGE + 2000])
def test_an_upload_that_breaks_goes_on(
    models: Registry, monkeypatch: pytest.MonkeyPatch, after: int, capfd: pytest.CaptureFixture[str]
) -> None:
    whole = run(models, tag=":whole")
    shutil.rmtree(models.folder)
    monkeypatch.setattr("triton_converters.publish.push.PART_BYTES", 2**19)
    # The seventh connection sends the large file; before it were those that ask and log in, and a small file.
    with proxying(sends=[2**62] * 6 + [after, 2**62, 300_000]) as (proxy, _):
        monkeypatch.setenv(connection.PROXY, proxy)
        assert run(models).digest == whole.digest
    said = capfd.readouterr().out
    assert "goes on after" in said
    # The second break is after 300,000 bytes of the rest.
    assert said.count("trying again") == (2 if after < LARGE else 1)


def test_a_wrong_account_is_denied(models: Registry) -> None:
    (layout.CREDENTIALS_MOUNT / ".dockerconfigjson").write_text(a_docker_config(models.host, password="another"))
    error = failure(models)
    assert (error.reason, error.final) == (Reason.REGISTRY_ACCESS_DENIED, True)
    assert "spec.publish.secretRef" in error.message


def test_an_authority_that_is_not_trusted(models: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(connection.CA_BUNDLE)
    connection._pool.cache_clear()
    assert failure(models).reason is Reason.REGISTRY_CERTIFICATE_INVALID


@pytest.mark.parametrize("uri", ["oci://h", "https://h/n", "oci://h/n@sha256:" + "0" * 64, "oci://u@h/n", "oci://h/N"])
def test_a_uri_at_which_nothing_can_be_published(mount: Path, uri: str) -> None:
    revision()
    reference()
    with pytest.raises(StageError) as caught:
        publish.run(request(uri))
    assert caught.value.reason is Reason.INVALID_SPEC


def test_a_predicate_of_another_revision_is_refused(models: Registry) -> None:
    wanted = request(f"oci://{models.host}/{NAME}", predicate())
    with pytest.raises(StageError) as caught:
        publish.run(type(wanted)(**{**vars(wanted), "revision": "0" * 16}))
    assert caught.value.reason is Reason.INVALID_SPEC


@pytest.mark.parametrize(
    ("source", "followed", "expected"),
    [
        ("oci://r.example/a/b:v1", True, True),
        ("oci://R.example:443/a/b:v2", True, True),
        ("oci://r.example/a/b:v2", False, False),
        ("oci://r.example/a/b:v1", False, True),
        (f"oci://r.example/a/b@sha256:{'0' * 64}", True, True),
        (f"oci://r.example/a/b@sha256:{'0' * 64}", False, False),
        ("oci://r.example/a/b/c:v1", True, False),
        ("oci://r.example:8443/a/b:v1", True, False),
        ("s3://bucket/a", True, False),
    ],
)
def test_what_is_published_must_not_become_a_newer_source(source: str, followed: bool, expected: bool) -> None:
    assert is_loop("oci://r.example/a/b:v1", source, followed=followed) is expected
