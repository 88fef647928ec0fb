"""A pod by itself: what it answers, what it is told in secret, and what is left of that."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.local.pods import SYSTEM
from triton_local import alone
from triton_local.boxed import Box
from triton_local.publishing import Signing

WORDS = {"system": SYSTEM}.__getitem__


def a_pod(script: str, **more: Any) -> dict[str, Any]:
    main = alone.container("main", "system", ["sh", "-c", script], {"claim": "/claim!", "signing": "/signing!"})
    volumes = [
        {"name": "claim", "persistentVolumeClaim": {"claimName": "claim", "readOnly": True}},
        {"name": "signing", "secret": {"secretName": "signing"}},
    ]
    return {"securityContext": {"runAsUser": 1000}, "containers": [main], "volumes": volumes, **more}


def run(folder: Path, script: str, secret: Any) -> str:
    claim = folder / "claim"
    claim.mkdir(exist_ok=True)
    storage = alone.storage({"claim": claim}, secret)
    return alone.run(folder / "work", Box(), WORDS, storage, a_pod(script), downloads=False)


def test_it_returns_the_last_words(tmp_path: Path) -> None:
    with alone.secrets("r.example", {"cosign.key": b"the key"}) as secret:
        assert run(tmp_path, "cat /signing/cosign.key > /dev/termination-log", secret) == "the key"
        place = secret(alone.SIGNING)
    assert not place.exists()


def test_its_claim_cannot_be_written_to(tmp_path: Path) -> None:
    with alone.secrets("r.example", {}) as secret:
        script = "touch /claim/x && echo written > /dev/termination-log || echo refused > /dev/termination-log"
        assert run(tmp_path, script, secret).strip() == "refused"


def test_a_pod_without_an_answer_is_a_failure_with_its_log(tmp_path: Path) -> None:
    with alone.secrets("r.example", {}) as secret, pytest.raises(alone.PodError, match="it went wrong"):
        run(tmp_path, "echo it went wrong; exit 1", secret)


def test_a_volume_that_is_not_there_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(alone.PodError):
        alone.run(tmp_path, Box(), WORDS, alone.storage({}), a_pod("true", activeDeadlineSeconds=1), downloads=False)


def pair(text: str) -> dict[str, str]:
    return {"auth": base64.b64encode(text.encode()).decode()}


@pytest.mark.parametrize(
    ("auths", "found"),
    [
        ({"r.example": pair("a:b"), "other.example": pair("c:d")}, {"r.example"}),
        ({"https://r.example/v1/": pair("a:b")}, {"https://r.example/v1/"}),
        ({"r.example": {}}, None),
        ({}, None),
        ([], None),
    ],
)
def test_only_the_account_of_the_registry_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, auths: Any, found: set[str] | None
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    (tmp_path / "config.json").write_text(json.dumps({"auths": auths, "credsStore": "desktop"}))
    with alone.secrets("r.example", {}) as secret:
        file = secret(alone.REGISTRY) / ".dockerconfigjson"
        told = json.loads(file.read_text())["auths"].keys() if file.exists() else None
    assert told == found


def test_a_signing_key_is_in_no_text() -> None:
    assert "secret" not in repr(Signing(b"secret", b"secret"))
