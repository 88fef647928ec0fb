"""Which cluster and namespace a command asks, by kubectl's habits."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from triton_plugin.__main__ import main
from triton_plugin.command_line import parser
from triton_plugin.commands.logs import arguments, selector
from triton_plugin.errors import SubjectError
from triton_plugin.exits import Exit
from triton_plugin.reading.cluster import Cluster

NOWHERE = "http://127.0.0.1:9"
"""The discard port, on which nobody listens."""
DEFAULT_LOCATION = "kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION"


def kubeconfig(folder: Path, namespace: str = "vision") -> str:
    file = folder / f"{namespace}.yaml"
    context = {"cluster": "c", "user": "u", "namespace": namespace}
    config = {
        "clusters": [{"name": "c", "cluster": {"server": NOWHERE}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": context}, {"name": "y", "context": {**context, "namespace": "y"}}],
        "current-context": "x",
    }
    file.write_text(yaml.safe_dump(config))
    return str(file)


@pytest.mark.parametrize(
    "words",
    [
        ["watch", "digits", "-n", "a", "--context", "b", "--kubeconfig", "c"],
        ["-n", "a", "--context=b", "--kubeconfig", "c", "watch", "digits"],
        ["--namespace", "a", "watch", "--context", "b", "digits", "--kubeconfig=c"],
    ],
)
def test_the_place_stands_before_or_after_the_command(words: list[str]) -> None:
    options: Any = parser().parse_args(words)
    assert (options.name, options.namespace, options.context, options.kubeconfig) == ("digits", "a", "b", "c")


@pytest.mark.parametrize("command", ["init", "validate"])
def test_a_command_that_asks_no_cluster_takes_the_place_too(command: str) -> None:
    words = [command, "models", "-n", "a", "--context", "b", "--kubeconfig", "c"]
    options: Any = parser().parse_args(words)
    assert (options.namespace, options.context, options.kubeconfig) == ("a", "b", "c")


def test_a_namespace_may_have_the_name_of_a_command() -> None:
    words = ["-n", "report", "watch", "digits"]
    assert parser().parse_args(words).namespace == "report"


def test_kubectl_is_asked_about_the_same_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DEFAULT_LOCATION, kubeconfig(tmp_path, "default-place"))
    assert Cluster(None, None).kubectl("get") == ["kubectl", "--context", "x", "--namespace", "default-place", "get"]
    file = kubeconfig(tmp_path)
    assert Cluster("y", None, file).kubectl() == ["kubectl", "--kubeconfig", file, "--context", "y", "--namespace", "y"]
    assert Cluster(None, "n", file).namespace == "n"


def test_a_pod_without_a_kubeconfig_asks_its_own_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("token", "secret"), ("namespace", "jobs\n"), ("ca.crt", "none")):
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "9")
    monkeypatch.setattr("kubernetes.config.incluster_config.SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr("kubernetes.config.incluster_config.SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setattr("triton_plugin.reading.cluster.OWN_NAMESPACE", tmp_path / "namespace")
    monkeypatch.setattr(DEFAULT_LOCATION, str(tmp_path / "none"))
    found = Cluster(None, None)
    assert (found.namespace, found.kubectl("get")) == ("jobs", ["kubectl", "--namespace", "jobs", "get"])
    with pytest.raises(SubjectError, match="no cluster is configured"):
        Cluster("x", None)
    monkeypatch.setattr(DEFAULT_LOCATION, kubeconfig(tmp_path))
    assert Cluster(None, None).namespace == "vision", "a kubeconfig comes first, as for kubectl"


@pytest.mark.parametrize("current", [None, "", "deleted"])
def test_a_context_that_is_named_needs_no_current_one(tmp_path: Path, current: str | None) -> None:
    """As of kubectl: a script names its context, and the current one may be one that was deleted since."""
    file = Path(kubeconfig(tmp_path))
    config = yaml.safe_load(file.read_text()) | {"current-context": current}
    file.write_text(yaml.safe_dump({name: value for name, value in config.items() if value is not None}))
    found = Cluster("y", None, str(file))
    assert found.kubectl() == ["kubectl", "--kubeconfig", str(file), "--context", "y", "--namespace", "y"]
    with pytest.raises(SubjectError, match="no cluster is configured"):
        Cluster(None, None, str(file))


@pytest.mark.parametrize(
    "text", ["a: [", "- a\n", "text", "contexts: 3\n", "contexts: [3]\ncurrent-context: a\n", "\xff"]
)
def test_a_kubeconfig_that_is_none_is_no_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (tmp_path / "config").write_bytes(text.encode("latin-1"))
    assert main(["explain", "digits", "--kubeconfig", str(tmp_path / "config")]) == Exit.FAILED
    said = capsys.readouterr().err
    assert said.startswith("kubectl triton: no cluster is configured (")
    assert said.count("\n") == 1


@pytest.mark.parametrize("text", ["5", "300", "1h30m", "", "s", "-5s", "nans", "soon", "5 m"])
def test_a_time_that_is_none_is_told_with_what_is_one(capsys: pytest.CaptureFixture[str], text: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["watch", "digits", f"--timeout={text}"])
    assert ended.value.code == Exit.USAGE
    assert "a number and a unit (us, ms, s, m or h)" in capsys.readouterr().err


def test_a_cluster_that_does_not_answer_has_an_exit_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "digits", "--kubeconfig", kubeconfig(tmp_path)]) == Exit.UNREACHABLE
    assert "TritonDeployment digits: the API server cannot be reached: " in capsys.readouterr().err


def test_the_page_has_every_exit_status() -> None:
    page = Path("docs/report.md").read_text(encoding="utf-8")
    rows = {int(status): words for status, words in re.findall(r"^\| (\d+) \| (.*) \|$", page, re.MULTILINE)}
    meanings = {int(each): each.meaning for each in Exit}
    assert {status: words.replace("`", "") for status, words in rows.items()} == meanings


@pytest.mark.parametrize(
    ("options", "selected"),
    [
        ((None, None, False), ""),
        (("convert", "onnx-fp16", False), ",triton-operator.dev/stage=convert,triton-operator.dev/candidate=onnx-fp16"),
        ((None, None, True), ",app.kubernetes.io/component=server"),
    ],
)
def test_logs_are_selected_by_labels(options: tuple[str | None, str | None, bool], selected: str) -> None:
    assert selector("digits", *options) == f"triton-operator.dev/deployment=digits{selected}"


@pytest.mark.parametrize("asked", [[], ["--previous"], ["--since=5m"], ["--follow"]])
def test_logs_of_containers_that_were_started_again_and_of_some_time(asked: list[str]) -> None:
    given = arguments(parser().parse_args(["logs", "digits", *asked]))
    assert [each for each in given if each.startswith(("--previous", "--since", "--follow"))] == asked


def test_a_program_begins_no_line_of_another_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kubectl = tmp_path / "kubectl"
    kubectl.write_text("#!/bin/sh\nprintf '[pod/a/run] x\\r[pod/b/profile] passed\\n[pod/a/run] \\377\\r\\n'\n")
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(Cluster, "triton_deployment", lambda *_: {})
    assert main(["logs", "digits", "--kubeconfig", kubeconfig(tmp_path)]) == Exit.OK
    assert capsys.readouterr().out.splitlines() == [
        "[pod/a/run] x\N{REPLACEMENT CHARACTER}[pod/b/profile] passed",
        "[pod/a/run] \N{REPLACEMENT CHARACTER}",
    ]


def test_what_was_changed_since_it_was_read_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []

    def refused(_: object, *request: Any, **__: Any) -> None:
        sent.append(request[-1])
        raise ApiException(status=409, reason="Conflict")

    monkeypatch.setattr(client.CustomObjectsApi, "patch_namespaced_custom_object", refused)
    with pytest.raises(SubjectError, match=r"digits was changed while .*; type the command again"):
        Cluster(None, None, kubeconfig(tmp_path)).patch_spec("digits", "7", {"suspend": True})
    assert sent == [{"metadata": {"resourceVersion": "7"}, "spec": {"suspend": True}}]
