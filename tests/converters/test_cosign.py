"""What the real cosign says of an image that a publish Job has pushed to a real registry."""

import base64
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hack.devcluster.binaries import program
from hack.release.signing import NO_SERVICES
from tests.converters.published import document, new_key, pem, predicate, public_pem, request, with_key
from tests.converters.registry_server import Registry, a_docker_config
from tests.converters.test_published_image import NAME, manifest, models, pushed, run, tags
from triton_converters.contract.predicate import PREDICATE_TYPE
from triton_converters.publish import signatures
from triton_converters.publish.keys import private_key
from triton_converters.publish.push import MANIFEST, canonical, digest_of
from triton_converters.stages import publish

pytestmark = pytest.mark.integrations
__all__ = ["models"]


class Cosign:
    """cosign with the account and the authority of a registry, and without any service of Sigstore's."""

    def __init__(self, name: str, folder: Path, models: Registry, authority: Path) -> None:
        self.program = program(name)
        (folder / "config.json").write_text(a_docker_config(models.host))
        self.folder, self.host = folder, models.host
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "DOCKER_CONFIG": str(folder),
            "SSL_CERT_FILE": str(authority),
            "COSIGN_PASSWORD": "",
        }

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.program), *words],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )

    def without_services(self) -> list[str]:
        """The options with which it signs without any of Sigstore's services."""
        if self.program.name == "cosign-2":
            return ["--tlog-upload=false"]
        for option, content in NO_SERVICES.items():
            (self.folder / f"{option}.json").write_text(json.dumps(content))
        return [word for option in NO_SERVICES for word in (f"--{option}", f"{option}.json")]

    def verified(self, key: bytes, digest: str, command: str, *more: str) -> subprocess.CompletedProcess[str]:
        (self.folder / "key.pub").write_bytes(key)
        done = self(*(command, "--key", "key.pub", "--private-infrastructure", *more, f"{self.host}/{NAME}@{digest}"))
        print(done.stderr)
        return done

    def accepts(self, key: bytes, digest: str, command: str = "verify", *more: str) -> bool:
        return self.verified(key, digest, command, *more).returncode == 0

    def report(self, key: bytes, digest: str) -> Any:
        """The predicate, as docs/publish-audit.md has it read."""
        done = self.verified(key, digest, "verify-attestation", "--type", PREDICATE_TYPE)
        return json.loads(base64.b64decode(json.loads(done.stdout)["payload"]))["predicate"]

    def attests(self, key: bytes, digest: str, *more: str) -> bool:
        return self.accepts(key, digest, "verify-attestation", "--type", PREDICATE_TYPE, *more)


@pytest.fixture(params=["cosign", "cosign-2"])
def cosign(request: pytest.FixtureRequest, tmp_path: Path, models: Registry, authority: tuple[Path, Path]) -> Cosign:
    (tmp_path / "cosign").mkdir()
    return Cosign(request.param, tmp_path / "cosign", models, authority[0])


def test_cosign_accepts_what_was_signed_and_attested(models: Registry, cosign: Cosign, tmp_path: Path) -> None:
    key = new_key()
    with_key(pem(key))
    result = run(models, signs=True)
    assert cosign.accepts(public_pem(key), result.digest)
    assert cosign.report(public_pem(key), result.digest) == json.loads(predicate().to_json())
    policy = cosign.folder / "policy.cue"
    policy.write_text("predicate: gates: max_absolute_error: <=0.001\npredicate: gates: samples: >=4\n")
    assert cosign.attests(public_pem(key), result.digest, "--policy", str(policy))
    policy.write_text("predicate: gates: samples: >=5\n")
    assert not cosign.attests(public_pem(key), result.digest, "--policy", str(policy))
    assert not cosign.accepts(public_pem(new_key()), result.digest)
    assert not cosign.attests(public_pem(new_key()), result.digest)


def test_the_tags_alone_are_enough_for_the_form_of_cosign_2(models: Registry, cosign: Cosign) -> None:
    key = new_key()
    with_key(pem(key))
    result = run(models, signs=True)
    older = ("--new-bundle-format=false",)
    assert cosign.accepts(public_pem(key), result.digest, "verify", *older)
    assert cosign.attests(public_pem(key), result.digest, *older)


def test_a_key_that_cosign_made_signs(models: Registry, cosign: Cosign) -> None:
    cosign.environment["COSIGN_PASSWORD"] = "a password"
    assert cosign("generate-key-pair").returncode == 0
    with_key((cosign.folder / "cosign.key").read_bytes(), "a password")
    result = run(models, signs=True)
    assert cosign.accepts((cosign.folder / "cosign.pub").read_bytes(), result.digest)


def test_a_moved_tag_is_another_digest_which_nobody_signed(models: Registry, cosign: Cosign) -> None:
    key = new_key()
    with_key(pem(key))
    result = run(models, signs=True)
    changed = manifest(models, "v1") | {"annotations": {"added": "by somebody"}}
    pushed(models).put_manifest(canonical(changed), MANIFEST, "v1")
    other = digest_of(canonical(changed))
    assert document(pushed(models).manifest("v1")) == changed
    assert cosign.accepts(public_pem(key), result.digest)
    assert not cosign.accepts(public_pem(key), other)
    assert not cosign.attests(public_pem(key), other)


def test_what_cosign_signed_stays_and_is_believed(models: Registry, cosign: Cosign) -> None:
    cosign.environment["COSIGN_PASSWORD"] = ""
    assert cosign("generate-key-pair").returncode == 0
    result = run(models, tag=":unsigned")
    options = cosign.without_services()
    reference = f"{models.host}/{NAME}@{result.digest}"
    (cosign.folder / "predicate.json").write_text(predicate().to_json())
    assert cosign("sign", "--yes", "--key", "cosign.key", *options, reference).returncode == 0
    words = ("attest", "--yes", "--key", "cosign.key", "--type", PREDICATE_TYPE, "--predicate", "predicate.json")
    assert cosign(*words, *options, reference).returncode == 0
    theirs = private_key((cosign.folder / "cosign.key").read_bytes(), b"").public_key()
    assert signatures.predicates(pushed(models), theirs, result.digest) == [json.loads(predicate().to_json())]
    ours = new_key()
    with_key(pem(ours))
    publish.run(request(f"oci://{models.host}/{NAME}:signed", signs=True))
    assert signatures.predicates(pushed(models), theirs, result.digest)
    assert cosign.accepts((cosign.folder / "cosign.pub").read_bytes(), result.digest)
    assert cosign.accepts(public_pem(ours), result.digest)
    assert "signed" in tags(models)
