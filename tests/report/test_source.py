"""What a command says where the API server refuses, does not know, or does not answer."""

import copy
import json
from pathlib import Path
from unittest.mock import Mock

import pytest
from kubernetes.client import CoreV1Api, CustomObjectsApi
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import ProtocolError

from tests.report.subjects import golden
from tests.report.test_location import kubeconfig
from triton_plugin.__main__ import main
from triton_plugin.errors import SubjectError, UnreachableError
from triton_plugin.reading.cluster import Cluster, DeniedError, MissingError, translated_errors
from triton_plugin.reading.subject import one_line


def an_answer(status: int, message: str) -> ApiException:
    error = ApiException(status=status, reason="Refused")
    error.body = json.dumps({"kind": "Status", "message": message})
    return error


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (an_answer(403, "no right"), DeniedError, "ConfigMap a: the API server answered 403 no right"),
        (an_answer(404, "not there"), MissingError, "ConfigMap a: the API server answered 404 not there"),
        (an_answer(500, "webhook down"), SubjectError, "ConfigMap a: the API server answered 500 webhook down"),
        (
            ApiException(status=502, reason="Bad Gateway"),
            SubjectError,
            "ConfigMap a: the API server answered 502 Bad Gate",
        ),
        (ProtocolError("reset"), UnreachableError, "ConfigMap a: the API server cannot be reached: reset"),
    ],
)
def test_every_error_of_the_client_is_about_what_was_asked(
    error: Exception, kind: type[SubjectError], words: str
) -> None:
    with pytest.raises(SubjectError) as caught, translated_errors("ConfigMap a"):
        raise error
    assert type(caught.value) is kind
    assert str(caught.value).startswith(words)


def test_a_namespace_that_is_missing_can_be_made() -> None:
    with (
        pytest.raises(MissingError, match="make it first: kubectl create namespace vision"),
        translated_errors("a claim"),
    ):
        raise an_answer(404, 'namespaces "vision" not found')


@pytest.mark.parametrize("levels", [600, 9_000])
def test_an_object_that_is_nested_too_deeply_keeps_no_other_off_the_page(
    levels: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = '{"f:a":' * levels + "{}" + "}" * levels
    odd, results = copy.deepcopy(golden("ready"))
    odd["metadata"] |= {"name": "odd", "managedFields": [{"manager": "somebody", "fieldsV1": "DEEP"}]}
    results["metadata"] = odd["metadata"] | {"name": "odd-results"}
    listed = {"items": [golden("ready")[0], odd]}
    texts = {name: json.dumps(each).replace('"DEEP"', deep) for name, each in (("list", listed), ("results", results))}
    answers = {name: Mock(data=text.encode()) for name, text in texts.items()}
    monkeypatch.setattr(CustomObjectsApi, "list_cluster_custom_object", lambda *_, **__: answers["list"])
    monkeypatch.setattr(CoreV1Api, "read_namespaced_config_map", lambda *_, **__: answers["results"])
    file, place = tmp_path / "page.html", kubeconfig(tmp_path)
    assert main(["report", "-A", "--file", str(file), "--kubeconfig", place]) == 0
    page = file.read_text(encoding="utf-8")
    assert ("digits</td>" in page, "odd</td>" in page) == (True, True)
    found = Cluster(None, None, place).results("odd")
    assert found is not None
    assert found["data"] == results["data"]


def test_a_text_of_many_blanks_costs_no_more_than_its_length() -> None:
    # What took the square of it took minutes.
    blanks = " " * 200_000
    assert one_line(f"first \n\n\t second{blanks}x") == f"first second{blanks}x"
    assert one_line({"a": [blanks, f"{blanks}\n"]}) == {"a": [blanks, " "]}
