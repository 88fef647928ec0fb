"""What `helm test` asks the API server, and how it ends; tests/apiserver/test_installations.py asks a real one."""

from typing import Any

import pytest
from kubernetes import client

from triton_operator import installed
from triton_operator.installed import NotInstalledError, api_is_served, main, object_is_accepted
from triton_operator.kube.cluster import Cluster
from triton_operator.kube.connection import AnswerError, Connection, NoAnswerError
from triton_operator.kube.kinds import TRITON_DEPLOYMENT

JSON = dict[str, Any]
SERVED = {"resources": [{"name": "tritondeployments"}]}
FORBIDDEN = AnswerError(403, 'tritondeployments is forbidden: User "test" cannot create resource')


class ApiServer(Connection):
    """Gives its answers in turn, and raises those that are errors."""

    def __init__(self, *answers: JSON | Exception) -> None:
        super().__init__(client.Configuration(), "test", 1.0)
        self._answers = list(answers)
        self.asked: list[tuple[Any, ...]] = []

    def request(self, method: str, path: str, query: Any, body: Any, *_: Any) -> JSON:
        self.asked.append((method, path, query, body))
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_an_object_is_tried_and_not_made() -> None:
    server = ApiServer({})
    assert object_is_accepted(Cluster(server), "vision").endswith("in namespace vision (dry run)")
    ((method, path, query, body),) = server.asked
    assert (method, path) == ("POST", "/apis/triton-operator.dev/v1alpha1/namespaces/vision/tritondeployments")
    assert (query["dryRun"], query["fieldValidation"]) == ("All", "Strict")
    assert body["metadata"] == {"generateName": "helm-test-", "namespace": "vision"}
    assert "namespace" not in installed.SMALLEST["metadata"]


def test_the_operator_itself_makes_none() -> None:
    server = ApiServer()
    with pytest.raises(RuntimeError, match=r"create tritondeployments is not among the verbs of kinds\.py"):
        Cluster(server).create(TRITON_DEPLOYMENT, installed.SMALLEST | {"metadata": {"namespace": "vision"}})
    assert server.asked == []


def test_a_refusal_says_why() -> None:
    with pytest.raises(NotInstalledError, match=r"in namespace vision: .*cannot create resource; the Custom"):
        object_is_accepted(Cluster(ApiServer(FORBIDDEN)), "vision")


@pytest.mark.parametrize("answer", [AnswerError(404, "not found"), {"resources": [{"name": "others"}]}])
def test_a_kind_that_is_not_served_is_to_be_installed(answer: JSON | Exception) -> None:
    with pytest.raises(NotInstalledError, match=r"TritonDeployments of .*; install the CustomResourceDefinition"):
        api_is_served(Cluster(ApiServer(answer)))


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ((NoAnswerError("refused"),), "no answer from the API server: refused\n"),
        ((SERVED, AnswerError(500, "the webhook hangs")), "the webhook hangs\n"),
        ((SERVED, {}), ""),
    ],
)
def test_the_exit_status_tells_whether_all_is_well(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answers: tuple[JSON | Exception, ...],
    told: str,
) -> None:
    monkeypatch.setattr(installed, "operator_answers", lambda url: f"the operator at {url} is ready")
    monkeypatch.setattr(Cluster, "connect", lambda holder: Cluster(ApiServer(*answers)))
    assert main(["http://operator", "vision"]) == bool(told)
    assert capsys.readouterr().err == told


def test_no_credentials_are_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(installed, "operator_answers", lambda url: f"the operator at {url} is ready")
    monkeypatch.setenv("KUBECONFIG", "/missing")
    assert main(["http://operator", "vision"]) == 1
    assert "no service account and no usable kubeconfig" in capsys.readouterr().err
