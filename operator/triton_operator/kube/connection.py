"""Requests to the API server through the `kubernetes` package's own transport: credentials, TLS, tokens, the pool.

The package's dynamic client would look every kind up first, and take longer over a plain dict than the API server.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import urllib3
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.client.rest import RESTResponse

from triton_operator.kube.nesting import loads

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
READ_BYTES = 64 * 1024
"""How much of an answer whose length is bounded is read at a time."""
KEPT_CONNECTIONS = 16
"""Connections for the threads that make passes, and for lists at the same time."""


class ConfigurationError(Exception):
    """There is neither a service account nor a usable kubeconfig."""


class AnswerError(Exception):
    """The API server answered with a status other than 2xx."""

    def __init__(
        self, status: int, message: str, retry_after: float = 0.0, causes: Sequence[str] = (), is_status: bool = True
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
        """Seconds to wait, by Retry-After; 0: the API server did not say."""
        self.causes = causes
        """The reasons in the Status, such as NamespaceTerminating."""
        self.is_status = is_status
        """Whether the answer was a Status, as it is for every path that the API server knows."""


def configuration(kubeconfig: str | None = None) -> client.Configuration:
    """The configuration of the pod's service account, or of the kubeconfig (default: KUBECONFIG, ~/.kube/config).

    Raises ConfigurationError.
    """
    settings = client.Configuration()
    settings.connection_pool_maxsize = KEPT_CONNECTIONS
    # urllib3 would repeat reads by itself, and sleep as long as a 429 says; passes are repeated anyway.
    settings.retries = urllib3.Retry(0)
    try:
        if kubeconfig is None:
            try:
                config.load_incluster_config(client_configuration=settings)
                return settings
            except config.ConfigException:
                kubeconfig = os.environ.get("KUBECONFIG")
        config.load_kube_config(kubeconfig, client_configuration=settings)
    except config.ConfigException as error:
        raise ConfigurationError(f"no service account and no usable kubeconfig: {error}") from error
    return settings


class TooLongError(Exception):
    """The answer is longer than was asked for."""


class NoAnswerError(Exception):
    """The API server did not answer: no connection, no credentials, a silence, or something that is no JSON."""


class Connection:
    """A connection for any number of threads. Its requests raise AnswerError or NoAnswerError."""

    def __init__(self, settings: client.Configuration, user_agent: str, connect_seconds: float) -> None:
        # Fixed now: otherwise each request spends half of its time looking for a proxy in the environment.
        settings.proxy = settings.proxy
        self._client = client.ApiClient(settings)
        self._host = settings.host.rstrip("/")
        self._user_agent = user_agent
        self._connect_seconds = connect_seconds

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Mapping[str, Any] | None,
        content_type: str,
        seconds: float,
        longest: int | None = None,
    ) -> dict[str, Any]:
        """Send one request and return the parsed answer. `seconds`: the longest silence of the API server.

        Raises TooLongError for an answer of more than `longest` bytes, of which no more is read; None: of any length.
        """
        with _no_answer():
            answer = self._answer(method, path, query, body, content_type, seconds)
            text = answer.read() if longest is None else _bounded(answer.response, longest)
        return _parsed(text)

    def stream(self, path: str, query: Mapping[str, str], seconds: float) -> Iterator[dict[str, Any]]:
        """Yield the documents of a continued answer, one for each line, until the API server ends it.

        Raises NoAnswerError after a silence of more than `seconds`, too.
        """
        with _no_answer():
            response = self._answer("GET", path, query, None, "application/json", seconds).response
        try:
            chunks, rest = response.stream(amt=None), b""
            while True:
                with _no_answer():
                    chunk = next(chunks, None)
                if chunk is None:
                    return
                *lines, rest = (rest + chunk).split(b"\n")
                yield from map(_parsed, lines)
        finally:
            # It is not reused for other requests, because more of the answer may be on its way.
            response.close()

    def _answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Mapping[str, Any] | None,
        content_type: str,
        seconds: float,
    ) -> RESTResponse:
        headers = {"Accept": "application/json", "Content-Type": content_type, "User-Agent": self._user_agent}
        self._client.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
        url = f"{self._host}{path}?{urlencode(query)}" if query else f"{self._host}{path}"
        answer = self._client.call_api(
            method, url, headers, body=body, _request_timeout=(self._connect_seconds, seconds)
        )
        if answer.status >= 300:
            wait = answer.headers.get("Retry-After", "")
            raise _error(answer.status, answer.read(), float(wait) if wait.isdecimal() else 0.0)
        return answer


def _bounded(response: Any, longest: int) -> bytes:
    """Return the text of an answer. Raises TooLongError, and then gives its connection up."""
    text = bytearray()
    for chunk in response.stream(amt=READ_BYTES):
        text += chunk
        if len(text) > longest:
            response.close()
            raise TooLongError
    return bytes(text)


@contextmanager
def _no_answer() -> Iterator[None]:
    """Turn what the libraries raise without an answer into NoAnswerError."""
    try:
        yield
    except ApiException as error:
        # The package's own word for a TLS error. What it raises for a status is not asked of it.
        raise NoAnswerError(error.reason or str(error)) from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise NoAnswerError(str(error)) from error


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        parsed: dict[str, Any] = loads(text)
    except ValueError as error:
        raise NoAnswerError(f"what answered is no API server, because it sent no JSON: {error}") from error
    return parsed


def _error(status: int, answer: bytes, retry_after: float) -> AnswerError:
    """Make an error from the API server's Status, or from the raw answer."""
    try:
        said = loads(answer)
        causes = said.get("details", {}).get("causes", [])
        return AnswerError(status, str(said["message"]), retry_after, [cause.get("reason", "") for cause in causes])
    except (ValueError, KeyError, TypeError, AttributeError):
        message = f"HTTP {status} {answer[:200].decode(errors='replace').strip()}"
        return AnswerError(status, message, retry_after, is_status=False)
