"""What `kubectl triton check --publish` and `replay` refuse before anything runs, and what they say."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.unit.test_attestation import passed, subject
from triton_converters.contract.failure import StageError
from triton_converters.contract.predicate import Predicate
from triton_converters.contract.replaying import ReplayResult
from triton_converters.fetch import connection
from triton_local.publishing import Publishing, Signing
from triton_operator.jobs.attestation import predicate
from triton_operator.names import API_VERSION, KIND
from triton_plugin.__main__ import main
from triton_plugin.commands.machine import in_words_of_here
from triton_plugin.exits import Exit
from triton_plugin.telling.replay import told


def an_object(folder: Path, uri: str, **source: str) -> str:
    model = {"name": "digits", "path": "digits.onnx"}
    spec = {"source": {"uri": uri, **source}, "models": [model]}
    body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "digits"}, "spec": spec}
    (folder / "object.yaml").write_text(yaml.safe_dump(body), encoding="utf-8")
    return str(folder / "object.yaml")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--publish", "r.example/digits"], "the URI to publish at must be oci://"),
        (["--publish", f"oci://r.example/digits@sha256:{'0' * 64}"], "the URI to publish at must be oci://"),
        (["--publish", "oci://r.example/team/source:v1"], "would become a newer version of spec.source"),
        (["--publish-samples"], "are of --publish"),
        (["--signing-key", "cosign.key"], "are of --publish"),
        (["--publish", "oci://r.example/digits", "--signing-key", "none.key"], "none.key: No such file"),
    ],
)
def test_what_cannot_be_published_is_refused_at_once(
    tmp_path: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = an_object(tmp_path, "oci://r.example/team/source:v1")
    assert main(["check", file, *words]) == Exit.FAILED
    assert message in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["object.yaml"]


def test_the_password_is_in_no_program_s_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSIGN_PASSWORD", "a-password")
    main(["check", an_object(tmp_path, "pvc://models"), "--publish", "r.example"])
    assert "COSIGN_PASSWORD" not in os.environ


@pytest.mark.parametrize("image", ["r.example/digits", "r.example/digits:v1", "oci://r.example/digits:v1", "%"])
def test_an_image_is_replayed_by_its_digest_alone(
    tmp_path: Path, image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cosign.pub").write_text("")
    assert main(["replay", image, "--key", str(tmp_path / "cosign.pub")]) == Exit.FAILED
    assert "replayed by its digest" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("failure", "variable"),
    [
        (connection.untrusted("r.example", "unable to get local issuer certificate"), "SSL_CERT_FILE"),
        (connection.unreachable("r.example", "the connection is refused"), "HTTPS_PROXY"),
        (connection.unreachable("r.example", "the proxy of the Helm value sources.proxy fails"), "HTTPS_PROXY"),
    ],
)
def test_a_connection_is_mended_by_variables_of_this_machine(failure: StageError, variable: str) -> None:
    said = in_words_of_here(failure.message)
    assert variable in said
    assert "Helm" not in said


def test_what_is_asked_of_the_stage_follows_from_what_passed() -> None:
    found = passed(subject())
    asked = Publishing("oci://r.example/digits", Signing(b"k", b"p"), samples=True).request(found)
    assert (asked.revision, asked.predicate) == (found.candidate.revision, predicate(found))
    assert (asked.signs, asked.samples) == (True, True)
    again = Publishing("oci://r.example/digits", Signing(b"other", b""), samples=True).request(found)
    assert again == asked
    assert Publishing("oci://r.example/digits", None, samples=True).request(found).key != asked.key


def test_a_replay_says_what_is_otherwise() -> None:
    report = Predicate.from_json(predicate(passed(subject())))
    where = report.figures.environment
    same = ReplayResult(True, "64 samples agree", 64, 0.0, where.server_version, where.cpu)
    assert "Here it repeats: 64 samples agree" in "\n".join(told("IMAGE", report, same))
    assert "Another" not in "\n".join(told("IMAGE", report, same))
    other = replace(
        same, repeats=False, message="y differs", server_version="2.99.0", cpu="another, 1 cores", reports=2
    )
    text = "\n".join(told("IMAGE", report, other))
    assert "Here it does not repeat: y differs" in text
    assert f"Another version of tritonserver than then: 2.99.0, and the report is of {where.server_version}" in text
    assert f"Another processor than then: another, 1 cores, and the report is of {where.cpu}" in text
    assert "The key signed 2 reports" in text
