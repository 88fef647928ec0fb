"""Tells the user what became of a pass: by one status, if it differs, and then by the Events."""

import logging
from datetime import datetime

from triton_operator.api.status import TritonDeploymentStatus
from triton_operator.api.triton_deployment import parse_status
from triton_operator.kube.bodies import event_body, status_body
from triton_operator.kube.errors import ClusterError, NotFoundError, NotLeaderError, RefusedError
from triton_operator.kube.kinds import TRITON_DEPLOYMENT
from triton_operator.names import Body
from triton_operator.planning import setbacks
from triton_operator.planning.plan import Event, Plan
from triton_operator.planning.setbacks import Report, Setback
from triton_operator.runtime.outside import ApiServer, PassStore
from triton_operator.runtime.store import Key
from triton_operator.runtime.writing import Writer

log = logging.getLogger(__name__)


class UnwrittenStatusError(ClusterError):
    """The status of a pass could not be written. The pass has no other one."""

    def __init__(self, cause: ClusterError) -> None:
        """Return the error that tells of another one, which is the one to count."""
        super().__init__(str(cause), cause.retry_after)
        self.counted: ClusterError = cause


class StatusRefusedError(UnwrittenStatusError, RefusedError):
    """The API server refuses the status of a pass, or refused that of the pass before."""

    def __init__(self, cause: RefusedError) -> None:
        """Return the error that tells of a refusal, and is counted apart from those of other objects."""
        super().__init__(cause)
        self.counted = self


class Reporter:
    """Writes at most one status a pass, and posts Events.

    So the refusal of a status is told by the next pass. While it lasts, passes take turns: one tries its own status.
    """

    def __init__(self, cluster: ApiServer, store: PassStore, writer: Writer) -> None:
        self._cluster = cluster
        self._store = store
        self._writer = writer
        self._failing_since: dict[Key, datetime] = {}
        """Since when every pass over an object fails, as far as this process knows."""
        self._refused: dict[Key, StatusRefusedError] = {}
        """The refusals of the statuses that the last passes wrote."""

    def forget(self, key: Key) -> None:
        """Forget an object that is gone or goes."""
        self._failing_since.pop(key, None)
        self._refused.pop(key, None)

    def report(self, key: Key, owner: Body, report: Report, now: datetime) -> bool:
        """Report a pass that did not fail. Return whether a status was written.

        Raises StatusRefusedError, UnwrittenStatusError for what may pass by itself, and NotLeaderError.
        """
        told = self._tell(key, owner, report, now)
        self._failing_since.pop(key, None)
        return told

    def fails(self, key: Key, owner: Body, setback: Setback, planned: Plan | None, now: datetime) -> None:
        """Report what kept a pass from being done, if it is time to. Raises as `report` does.

        ``planned``: the plan that could not be carried out; None: there was none.
        """
        since = self._fails_since(key, owner, now)
        if setbacks.is_told(setback.hindrance, since, now):
            self._tell(key, owner, setbacks.report(owner, setback, planned, now), now)

    def post(self, owner: Body, event: Event, now: datetime) -> None:
        """Post an Event. It is a courtesy, so a failure is only logged: the status or the log says the same."""
        try:
            self._cluster.create_event(event_body(owner, event.type, event.reason, event.message, now))
        except ClusterError as error:
            log.warning("Event %s was not created: %s", event.reason, error)

    def _fails_since(self, key: Key, owner: Body, now: datetime) -> datetime:
        """Return since when every pass fails, this one too."""
        return self._failing_since.setdefault(key, setbacks.failing_since(owner, now))

    def _tell(self, key: Key, owner: Body, report: Report, now: datetime) -> bool:
        """Tell the report; or that the last pass's status was refused, once passes fail for long, and raise that."""
        refusal = self._refused.pop(key, None)
        if refusal is not None:
            setback = setbacks.status_refused(refusal)
            if setbacks.is_told(setback.hindrance, self._failing_since[key], now):
                self._write(key, owner, setbacks.report(owner, setback, None, now), now)
                raise refusal
        return self._write(key, owner, report, now)

    def _write(self, key: Key, owner: Body, report: Report, now: datetime) -> bool:
        """Write the status if it differs, then post the Events. Return whether the status was written."""
        if report.status == parse_status(owner) or not self._apply(key, owner, report.status, now):
            return False
        ready = next((item for item in report.status.conditions if item.type == "Ready"), None)
        self._writer.wrote(owner, "status", owner, f"Ready {ready.status}, {ready.reason}" if ready else "")
        for event in report.events:
            self.post(owner, event, now)
        return True

    def _apply(self, key: Key, owner: Body, status: TritonDeploymentStatus, now: datetime) -> bool:
        """Apply the status. Return whether there is a TritonDeployment, which may have been deleted in the meantime."""
        try:
            written = self._cluster.apply_status(status_body(owner, status))
        except NotFoundError:
            return False
        except RefusedError as error:
            self._fails_since(key, owner, now)
            self._refused[key] = StatusRefusedError(error)
            raise self._refused[key] from error
        except NotLeaderError:
            raise
        except ClusterError as error:
            raise UnwrittenStatusError(error) from error
        self._store.put(TRITON_DEPLOYMENT, written)
        return True
