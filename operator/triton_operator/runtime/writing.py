"""Writes the objects of one TritonDeployment: only what drifts, only what is its own, and the store knows at once."""

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from triton_operator.kube import ownership
from triton_operator.kube.drift import drift
from triton_operator.kube.errors import ClusterError, ConflictError, DisconnectedError, RefusedError
from triton_operator.kube.kinds import JOB, ApiKind, kind_of
from triton_operator.kube.managed_fields import is_applied, trimmed
from triton_operator.kube.ownership import Control
from triton_operator.names import MANAGED_BY_LABEL, STAGE_LABEL, Body
from triton_operator.runtime.bounds import check_bounds
from triton_operator.runtime.metrics import Metrics
from triton_operator.runtime.outside import ApiServer, PassStore

Children = Mapping[tuple[ApiKind, str], Body]
"""The observed children by kind and name."""
Written = list[str]
"""What a pass wrote, each as "KIND NAME"."""
log = logging.getLogger(__name__)


class ForeignError(RefusedError):
    """An object with the name belongs to somebody else; it is left alone."""


class NotYetError(ClusterError):
    """An object with the name is about to be deleted."""


class Failures(list[ClusterError]):
    """The objects that one pass could not write: each error names its object."""

    @property
    def refused(self) -> "Failures":
        """The failures that come back with each try until somebody changes something."""
        return Failures(each for each in self if isinstance(each, RefusedError))

    @property
    def retry_after(self) -> float:
        """Seconds to wait before the next try, as the API server asks; 0: it did not."""
        return max((each.retry_after for each in self), default=0.0)

    def __str__(self) -> str:
        """Return the distinct messages."""
        return "; ".join(dict.fromkeys(map(str, self)))


class Writer:
    """Applies and deletes objects of TritonDeployments, and logs and counts each write."""

    def __init__(self, cluster: ApiServer, store: PassStore, metrics: Metrics) -> None:
        self._cluster = cluster
        self._store = store
        self._metrics = metrics

    def apply_all(self, owner: Body, children: Children, objects: Iterable[Body], failures: Failures) -> Written:
        """Apply what drifts; an object that fails stops no other. Return what was written.

        Raises DisconnectedError if nothing gets through to the API server.
        """
        written: Written = []
        for desired in objects:
            try:
                if self._apply(owner, desired, children.get(key_of(desired))):
                    written.append(named(desired))
            except DisconnectedError:
                raise
            except ClusterError as error:
                failures.append(_about(named(desired), error))
        return written

    def delete_all(self, owner: Body, bodies: Iterable[Body], failures: Failures) -> Written:
        """Delete objects; one that fails stops no other. Return what was deleted.

        Raises DisconnectedError if nothing gets through to the API server.
        """
        deleted: Written = []
        for body in bodies:
            try:
                self.delete(owner, body)
                deleted.append(named(body))
            except DisconnectedError:
                raise
            except ClusterError as error:
                failures.append(_about(f"deleting {named(body)}", error))
        return deleted

    def delete(self, owner: Body, body: Body, why: str = "") -> None:
        """Delete an object. Raises ClusterError."""
        self._cluster.delete(body)
        self.wrote(owner, "delete", body, why)

    def wrote(self, owner: Body, verb: str, body: Body, difference: str) -> None:
        """Log and count a write."""
        name = f"{owner['metadata']['namespace']}/{owner['metadata']['name']}"
        what = f"{verb} {named(body)}"
        stage = body["metadata"].get("labels", {}).get(STAGE_LABEL)
        extra = {"stage": stage} if stage else {}
        log.info("%s: %s%s", name, what, f" ({difference})" if difference else "", extra=extra)
        self._metrics.writes.labels(verb, body["kind"]).inc()

    def _apply(self, owner: Body, desired: Body, observed: Body | None) -> bool:
        """Apply an object if it drifts. Return whether that changed it."""
        if observed is None:
            # The store does not have it: it is missing, or belongs to somebody else.
            try:
                self._write(owner, desired, "missing", self._cluster.apply_new)
                return True
            except ConflictError:
                observed = self._found(owner, desired)
                if kind_of(desired) is not JOB and ownership.has_labels(owner, observed):
                    # All was planned without it. One that lost its labels gets them back first.
                    self._store.put(kind_of(desired), observed)
                    raise NotYetError("it was there already; the next pass plans with it") from None
        return self._change(owner, desired, observed)

    def _found(self, owner: Body, desired: Body) -> Body:
        """The object that has the name already. Raises ForeignError or NotYetError if it is not the owner's."""
        kind, metadata = kind_of(desired), desired["metadata"]
        found = self._cluster.get(kind, metadata["namespace"], metadata["name"])
        if found is None:
            raise NotYetError("it was deleted just now")
        found = trimmed(kind, found)
        _check_control(owner, found)
        return found

    def _change(self, owner: Body, desired: Body, observed: Body) -> bool:
        """Make an observed object what is desired. Return whether that changed it."""
        kind = kind_of(desired)
        if kind is JOB and MANAGED_BY_LABEL not in observed["metadata"].get("labels", {}):
            # No watch would tell of its end.
            self.delete(owner, observed, "not watched")
            return True
        if kind is JOB or "deletionTimestamp" in observed["metadata"]:
            # The name of a Job says what it does, and what admission webhooks or Kueue changed in it is theirs. An
            # object that is being deleted wakes the TritonDeployment when it is gone, and a pass then makes it again.
            return False
        difference = drift(desired, observed)
        return difference is not None and self._mend(owner, desired, observed, difference)

    def _mend(self, owner: Body, desired: Body, observed: Body, difference: str) -> bool:
        """Apply an object over the one that was observed. Return whether that changed it."""
        kind, version = kind_of(desired), observed["metadata"]["resourceVersion"]
        versioned = {**desired, "metadata": {**desired["metadata"], "resourceVersion": version}}
        # Before all else of the claim, which may be refused, such as its size.
        outlives = desired["metadata"].get("ownerReferences") == [] and observed["metadata"].get("ownerReferences")
        write = self._cluster.apply
        if outlives:
            write = partial(self._cluster.disown, handed_on=_handed_on(owner, desired, observed))
        applied = self._write(owner, versioned, difference, write)
        if not kind.created and not is_applied(applied):
            # It was created, as by a restore. The next pass removes what of that is no longer desired.
            self._store.put(kind, self._cluster.own(applied))
        return bool(applied["metadata"]["resourceVersion"] != version)

    def _write(self, owner: Body, desired: Body, difference: str, write: Callable[[Body], Body]) -> Body:
        check_bounds(owner, desired)
        applied = write(desired)
        self._store.put(kind_of(desired), applied)
        self.wrote(owner, "apply", desired, difference)
        return applied


def by_key(children: Iterable[Body]) -> Children:
    """Return objects by kind and name."""
    return {key_of(child): child for child in children}


def key_of(body: Body) -> tuple[ApiKind, str]:
    """Return the kind and name of an object."""
    return kind_of(body), body["metadata"]["name"]


def named(body: Body) -> str:
    """Return "KIND NAME"."""
    return f"{body['kind']} {body['metadata']['name']}"


def _about(what: str, error: ClusterError) -> ClusterError:
    """The error with what it is about. Its class is not called: one may take other arguments."""
    told = type(error).__new__(type(error), f"{what}: {error}")
    vars(told).update(vars(error))
    return told


def _handed_on(owner: Body, desired: Body, observed: Body) -> dict[str, dict[str, None]]:
    """Return the labels and annotations of an object that it has from its owner, and is to have no more."""

    def keys(body: Body, field: str) -> set[str]:
        return set(body["metadata"].get(field) or ())

    fields = ("labels", "annotations")
    gone = {each: (keys(owner, each) & keys(observed, each)) - keys(desired, each) for each in fields}
    return {field: dict.fromkeys(sorted(names)) for field, names in gone.items() if names}


def _check_control(owner: Body, found: Body) -> None:
    whose = ownership.control(owner, found)
    if whose is Control.PREDECESSOR:
        raise NotYetError("it belongs to a deleted TritonDeployment of the same name and still exists")
    if whose is Control.FOREIGN:
        raise ForeignError("it exists and is not this TritonDeployment's; rename one of the two, or delete it")
