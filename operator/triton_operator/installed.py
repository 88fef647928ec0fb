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

from triton_operator.kube.cluster import Cluster
from triton_operator.kube.errors import ClusterError, RefusedError
from triton_operator.kube.kinds import TRITON_DEPLOYMENT
from triton_operator.names import API_VERSION, KIND

READY_WITHIN_SECONDS = 120.0
"""After an installation, a pod has to be scheduled, its image pulled, and everything listed once."""
ANSWER_SECONDS = 10.0
"""How long one request may wait for the operator's answer, in seconds: one that is well needs far less."""
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


def api_is_served(cluster: Cluster) -> str:
    """Look for the kind at the API server. Raises NotInstalledError if it is not served, or a ClusterError."""
    if not cluster.serves(TRITON_DEPLOYMENT):
        raise NotInstalledError(
            f"the API server does not serve {KIND}s of {API_VERSION}; install the CustomResourceDefinition"
        )
    return f"the API server serves {API_VERSION}"


def object_is_accepted(cluster: Cluster, namespace: str) -> str:
    """Create the smallest object as a dry run. Raises NotInstalledError if it is refused, or a ClusterError."""
    metadata = SMALLEST["metadata"] | {"namespace": namespace}
    try:
        cluster.try_create(TRITON_DEPLOYMENT, SMALLEST | {"metadata": metadata})
    except RefusedError as error:
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
        cluster = Cluster.connect("helm-test")
        print(api_is_served(cluster), flush=True)
        print(object_is_accepted(cluster, namespace), flush=True)
    except (NotInstalledError, ClusterError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
