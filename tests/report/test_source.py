"""What a command says where the API server refuses, does not know, or does not answer."""

import json

import pytest
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import ProtocolError

from triton_plugin.errors import SubjectError, UnreachableError
from triton_plugin.source import DeniedError, MissingError, translated_errors


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
