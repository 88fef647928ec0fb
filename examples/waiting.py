"""Waits for an example's Jobs and for its server, and shows progress."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from rich.console import Console

from examples.example import Example, status_of
from triton_operator.api.status import TritonDeploymentStatus
from triton_plugin.telling.progress import Display, is_ready, stalled_seconds

POLL_SECONDS = 1.0
TRAIN_SECONDS = 900
READY_SECONDS = 1800
STALL_SECONDS = 60
"""How long an object may be stalled: the operator looks again for a source that does not exist yet."""


class ExampleError(Exception):
    """The example cannot continue, or is not as its manifest says; the message says why."""


class Watcher:
    """Reads the example once a second through one connection, which costs the measured server next to nothing."""

    def __init__(self, kubeconfig: str, example: Example, console: Console) -> None:
        self.example = example
        api = config.new_client_from_config(kubeconfig)
        self.batch = client.BatchV1Api(api)
        self.custom = client.CustomObjectsApi(api)
        self.console = console

    def trained(self) -> float:
        """Wait for the Jobs and return the seconds that they took. Raises ExampleError if one fails or is too slow."""
        start = time.monotonic()
        for job in self.example.jobs:
            while not self._is_complete(job):
                if time.monotonic() - start > TRAIN_SECONDS:
                    raise ExampleError(f"Job {job} did not finish within {TRAIN_SECONDS} s")
                time.sleep(POLL_SECONDS)
        return time.monotonic() - start

    def ready(self) -> TritonDeploymentStatus:
        """Wait until the object is ready for its generation, and return its status. Raises as ``until``."""
        return self.until("ready", is_ready)

    def until(self, what: str, is_it: Callable[[TritonDeploymentStatus, int], bool]) -> TritonDeploymentStatus:
        """Wait until the object is ``what``, and return its status. ``is_it`` tells by the status and the generation.

        Raises ExampleError if the object stays stalled or is not that in time.
        """
        start, name = time.monotonic(), self.example.name
        with Display(self.console) as display:
            while True:
                resource = self.resource()
                status = status_of(resource)
                elapsed = time.monotonic() - start
                display.show(status, elapsed)
                if is_it(status, resource["metadata"]["generation"]):
                    return status
                if stalled_seconds(status, datetime.now(UTC)) > STALL_SECONDS:
                    raise ExampleError(f"TritonDeployment {name} has been stalled for more than {STALL_SECONDS} s")
                if elapsed > READY_SECONDS:
                    raise ExampleError(f"TritonDeployment {name} was not {what} within {READY_SECONDS} s")
                time.sleep(POLL_SECONDS)

    def resource(self) -> dict[str, Any]:
        """Return the current TritonDeployment."""
        name = ("triton-operator.dev", "v1alpha1", self.example.namespace, "tritondeployments", self.example.name)
        return dict(_call(lambda: self.custom.get_namespaced_custom_object(*name)))

    def _is_complete(self, name: str) -> bool:
        job = _call(lambda: self.batch.read_namespaced_job(name, self.example.namespace))
        conditions = {found.type: found for found in job.status.conditions or [] if found.status == "True"}
        if "Failed" in conditions:
            raise ExampleError(f"Job {name} failed: {conditions['Failed'].message}")
        return "Complete" in conditions


def _call(request: Callable[[], Any]) -> Any:
    try:
        return request()
    except ApiException as error:
        raise ExampleError(f"the API server answered {error.status} {error.reason}: {error.body}") from error
