"""Waits for the example's training and for its server, with something to look at meanwhile."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from rich.console import Console

from demo.example import NAME, NAMESPACE, TRAIN_JOB, status_of
from triton_operator.api.status import TritonDeploymentStatus
from triton_plugin.progress import Display, is_ready, stalled_seconds

POLL_SECONDS = 1.0
TRAIN_SECONDS = 300
READY_SECONDS = 900
STALL_SECONDS = 60
"""How long an object may say that it is stalled: a source that is not there yet is looked for again."""


class DemoError(Exception):
    """The demonstration cannot go on; the message says why."""


class Watcher:
    """Looks at the example once a second through one connection, which costs the measured server next to nothing."""

    def __init__(self, kubeconfig: str, console: Console) -> None:
        api = config.new_client_from_config(kubeconfig)
        self.batch = client.BatchV1Api(api)
        self.custom = client.CustomObjectsApi(api)
        self.console = console

    def trained(self) -> float:
        """Wait for the training Job; returns the seconds it took. Raises DemoError where it fails or is too slow."""
        start = time.monotonic()
        while not self._job_is_complete():
            if time.monotonic() - start > TRAIN_SECONDS:
                raise DemoError(f"Job {TRAIN_JOB} did not finish within {TRAIN_SECONDS} s")
            time.sleep(POLL_SECONDS)
        return time.monotonic() - start

    def ready(self) -> TritonDeploymentStatus:
        """Wait until the object is ready for its generation, and return its status.

        Raises DemoError where it stays stalled, or is not ready in time.
        """
        start = time.monotonic()
        with Display(self.console) as display:
            while True:
                resource = self._object()
                status = status_of(resource)
                elapsed = time.monotonic() - start
                display.show(status, elapsed)
                if is_ready(status, resource["metadata"]["generation"]):
                    return status
                if stalled_seconds(status, datetime.now(UTC)) > STALL_SECONDS:
                    raise DemoError(f"TritonDeployment {NAME} has been stalled for more than {STALL_SECONDS} s")
                if elapsed > READY_SECONDS:
                    raise DemoError(f"TritonDeployment {NAME} was not ready within {READY_SECONDS} s")
                time.sleep(POLL_SECONDS)

    def _object(self) -> dict[str, Any]:
        return dict(
            _call(
                lambda: self.custom.get_namespaced_custom_object(
                    "triton-operator.dev", "v1alpha1", NAMESPACE, "tritondeployments", NAME
                )
            )
        )

    def _job_is_complete(self) -> bool:
        job = _call(lambda: self.batch.read_namespaced_job(TRAIN_JOB, NAMESPACE))
        conditions = {found.type: found for found in job.status.conditions or [] if found.status == "True"}
        if "Failed" in conditions:
            raise DemoError(f"Job {TRAIN_JOB} failed: {conditions['Failed'].message}")
        return "Complete" in conditions


def _call(request: Callable[[], Any]) -> Any:
    try:
        return request()
    except ApiException as error:
        raise DemoError(f"the API server answered {error.status} {error.reason}: {error.body}") from error
