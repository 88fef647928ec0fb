"""What `helm test` runs in a pod: `python3 -m triton_operator.installed URL NAMESPACE`.

It asks the operator at the URL whether it is ready, and the API server whether it takes a TritonDeployment, without
creating one. It prints a line for each, and ends with 1 and the reason at the first that fails.
"""

import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any

from triton_operator.kube.connection import AnswerError, ConfigurationError, Connection, NoAnswerError, configuration
from triton_operator.kube.kinds import TRITON_DEPLOYMENT
from triton_operator.names import API_VERSION, KIND

READY_WITHIN_SECONDS = 120.0
"""After an installation, a pod has to be scheduled, its image pulled, and everything listed once."""
ANSWER_SECONDS = 10.0
"""How long one request may wait for its answer, in seconds: an operator or API server that is well needs far less."""
SMALLEST: dict[str, Any] = {
    "apiVersion": API_VERSION,
    "kind": KIND,
    "metadata": {"generateName": "helm-test-"},
    "spec": {"source": {"uri": "pvc://models"}, "models": [{"name": "model", "path": "model.onnx"}]},
}


class NotInstalledError(Exception):
    """Something that users need does not work; the message says what to do."""


def operator_answers(url: str, within: float = READY_WITHIN_SECONDS) -> str:
    """Wait until the operator behind the URL is ready. Raises NotInstalledError with its last answer."""
    deadline = time.monotonic() + within
    while True:
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=ANSWER_SECONDS):  # noqa: S310 - of the chart
                return f"the operator at {url} is ready"
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace").strip()
        except OSError as error:
            said = str(error)
        if time.monotonic() > deadline:
            raise NotInstalledError(f"the operator at {url} is not ready: {said}; look at its pods and their log")
        time.sleep(1)


def api_is_served(connection: Connection) -> str:
    """Look for the kind among those of the API server. Raises NotInstalledError if it is not there."""
    try:
        served = connection.request("GET", f"/apis/{API_VERSION}", {}, None, "application/json", ANSWER_SECONDS)
    except AnswerError as error:
        raise NotInstalledError(
            f"the API server does not serve {API_VERSION}: {error}; install the CustomResourceDefinition"
        ) from error
    if TRITON_DEPLOYMENT.plural not in {each["name"] for each in served["resources"]}:
        raise NotInstalledError(f"the API server serves {API_VERSION} without {TRITON_DEPLOYMENT.plural}")
    return f"the API server serves {API_VERSION}"


def object_is_accepted(connection: Connection, namespace: str) -> str:
    """Create the smallest object as a dry run. Raises NotInstalledError if the API server refuses it."""
    path = f"/apis/{API_VERSION}/namespaces/{namespace}/{TRITON_DEPLOYMENT.plural}"
    query = {"dryRun": "All", "fieldValidation": "Strict"}
    try:
        connection.request("POST", path, query, SMALLEST, "application/json", ANSWER_SECONDS)
    except AnswerError as error:
        raise NotInstalledError(
            f"the API server refuses the smallest {KIND} in namespace {namespace}: {error}; the"
            " CustomResourceDefinition may be of another version than the operator"
        ) from error
    return f"the API server accepts a {KIND} in namespace {namespace} (dry run)"


def main(argv: Sequence[str] | None = None) -> int:
    """Check everything in turn; return the exit status."""
    url, namespace = sys.argv[1:] if argv is None else argv
    try:
        print(operator_answers(url), flush=True)
        connection = Connection(configuration(), "triton-operator-test", ANSWER_SECONDS)
        print(api_is_served(connection), flush=True)
        print(object_is_accepted(connection, namespace), flush=True)
    except (NotInstalledError, ConfigurationError) as error:
        print(error, file=sys.stderr)
        return 1
    except NoAnswerError as error:
        print(f"no answer from the API server: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
