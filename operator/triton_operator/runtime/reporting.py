"""Tells the user what became of a pass: the status, if it differs, and then the Events."""

import logging
from datetime import datetime

from triton_operator.api.deployment import parse_status
from triton_operator.kube.bodies import event_body, status_body
from triton_operator.kube.cluster import ClusterError, NotFoundError, RefusedError
from triton_operator.kube.kinds import TRITON_DEPLOYMENT
from triton_operator.planning.plan import Event
from triton_operator.planning.setbacks import Report
from triton_operator.runtime.outside import ApiServer, PassStore
from triton_operator.runtime.writing import Body, Writer

log = logging.getLogger(__name__)


class StatusRefusedError(RefusedError):
    """The API server refuses the status that a pass wrote."""


class Reporter:
    """Writes statuses and posts Events."""

    def __init__(self, cluster: ApiServer, store: PassStore, writer: Writer) -> None:
        self._cluster = cluster
        self._store = store
        self._writer = writer

    def report(self, owner: Body, report: Report, now: datetime) -> bool:
        """Write the status if it differs, then post the Events. Return whether the status was written.

        Of a TritonDeployment that was deleted in the meantime nothing is written. Raises StatusRefusedError, and
        ClusterError for what may pass by itself.
        """
        if report.status == parse_status(owner):
            return False
        try:
            written = self._cluster.apply_status(status_body(owner, report.status))
        except NotFoundError:
            return False
        except RefusedError as error:
            raise StatusRefusedError(str(error), error.retry_after) from error
        self._store.put(TRITON_DEPLOYMENT, written)
        ready = next((item for item in report.status.conditions if item.type == "Ready"), None)
        self._writer.wrote(owner, "status", owner, f"Ready {ready.status}, {ready.reason}" if ready else "")
        for event in report.events:
            self.post(owner, event, now)
        return True

    def post(self, owner: Body, event: Event, now: datetime) -> None:
        """Post an Event. It is a courtesy, so a failure is only logged: the status or the log says the same."""
        try:
            self._cluster.create_event(event_body(owner, event.type, event.reason, event.message, now))
        except ClusterError as error:
            log.warning("Event %s was not created: %s", event.reason, error)
