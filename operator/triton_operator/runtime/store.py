"""The latest known TritonDeployments and their children, in memory: written by watch events and by our own writes.

Passes read it from other threads, hence the lock. A body is packed, and parsed for each pass, so it never changes and
gives the garbage collector nothing to scan.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from triton_operator.kube.kinds import CONFIG_MAP, DEPLOYMENT, EVENT, HTTP_ROUTE, JOB, POD, TRITON_DEPLOYMENT, ApiKind
from triton_operator.names import TRITON_DEPLOYMENT_LABEL, results
from triton_operator.observed.routes import Host, shared
from triton_operator.observed.turn import Measurement
from triton_operator.runtime.index import Index
from triton_operator.runtime.known_jobs import KnownJobs
from triton_operator.runtime.packing import PackedObject, Packer
from triton_operator.runtime.store_facts import Facts, facts_of, version_of

REMEMBERED_DELETIONS = 10_000
"""How many deleted objects are known by their uids, so that an event or an answer that comes late brings none back.
Nothing is as late as the deletion of so many others, and they take about 2 MB."""
MOST_BYTES = 16 * 1024 * 1024
"""The most compressed bytes that the children of one TritonDeployment may take, and all children without one together:
who may make objects in a namespace may give them any name as their owner's. An object's own take some hundred KiB, of
which the results are the most."""
MOST_UNPACKED = 40 * 1024 * 1024
"""The most memory, in bytes, that the children of one TritonDeployment may take once a pass unpacks them. Eight passes
run at a time, and 16 MiB compressed may be gigabytes. 200 pods of servers, the most that there are, take half of it."""
SHARE_OF_PODS = 0.75
"""How much of that Pods and Events may take, which more people may make; a pass would take the others for missing."""
FEW = 4
"""How many others on a claim are woken when one comes or goes: more than the condition ClaimShared names."""

log = logging.getLogger(__name__)


class OtherHistoryError(Exception):
    """A list contradicts what is known of an object: etcd was put back to an older copy."""


class Key(NamedTuple):
    """Namespace and name of a TritonDeployment."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class _Member(NamedTuple):
    """An object of a family by its name; of a TritonDeployment itself the name is empty."""

    owner: Key
    name: str


@dataclass
class _Family:
    """A TritonDeployment and its children, as last known."""

    key: Key
    members: dict[tuple[ApiKind, str], PackedObject] = field(default_factory=dict)
    """The objects by kind and name."""
    packed: int = 0
    """Compressed bytes of all members."""
    unpacked: int = 0
    """About how much memory the children take once a pass unpacks them, in bytes."""


class Store:
    """An informer's cache: the last known version of every object.

    An older version never replaces a newer one or undoes a deletion, because a write's response and the watch event of
    a later change arrive in any order.
    """

    def __init__(self, failed: Callable[[Exception], None] = lambda _: None) -> None:
        """`failed` is told of each bug that left an object out; the log is told too, so by default nobody else is."""
        self._failed = failed
        self._lock = threading.Lock()
        self._families: dict[Key, _Family] = {}
        self._family_of: dict[str, _Family] = {}
        """The family by a child's uid, which Events refer to and which stays if a child's label changes."""
        self._packer = Packer()
        self._deleted: dict[str, int] = {}
        self._reasons: dict[Key, str] = {}
        self._strays = 0
        """Compressed bytes of all families without a TritonDeployment."""
        self._claims = Index[_Member, Key]()
        """The claim, by namespace and name, that each TritonDeployment and each of their Deployments uses."""
        self._leaving: set[Key] = set()
        """The TritonDeployments that are being deleted."""
        self._routes: dict[_Member, tuple[str, frozenset[Host]]] = {}
        """What each HTTPRoute takes and when it was made."""
        self._hosts = Index[_Member, tuple[str, str]]()
        """The host names that each HTTPRoute takes, by Gateway and name."""
        self._jobs = KnownJobs()

    def take_in(self, kind: ApiKind, event_type: str | None, body: dict[str, Any]) -> Key | None:
        """Take in a watch event (type None: an object of a list). Return the TritonDeployment it concerns; None: none.

        It never raises for an object that a bug keeps out: that one stays as it was known, and the others go on.
        """
        try:
            return self.remove(kind, body) if event_type == "DELETED" else self.put(kind, body)
        except Exception as error:
            log.exception("%s %s is left out because of a bug; report it", kind.kind, _key(body))
            self._failed(error)
            return None

    def seen(self, kind: ApiKind, event_type: str | None, body: dict[str, Any]) -> list[Key]:
        """Take in an object as `take_in` does. Return the TritonDeployments that it concerns.

        If one begins or ends to use a claim, these are the others on that claim too, unless they are many: then each
        says already that it shares the claim, and need not know at once with whom. One that cleans the claim has to
        know: its Job may wait for long, and then removes what none of the records that it mounts names.
        """
        before = self._claim_of(_key(body))
        key = self.take_in(kind, event_type, body)
        if key is None:
            return []
        after, claims = self._claim_of(key), frozenset[Key]()
        if kind is TRITON_DEPLOYMENT:
            claims = before ^ after
        elif not after:
            # With this child the last of what one that is being deleted had on its claim may be gone.
            with self._lock:
                claims = self._claims.places(_Member(key, ""))
        groups = [self._on_claim(key, claim) for claim in sorted(claims)]
        return [key, *(other for group in groups for other in group if len(group) <= FEW or self._jobs.cleans(other))]

    def put(self, kind: ApiKind, body: dict[str, Any]) -> Key | None:
        """Take in an object. Return the TritonDeployment it is or belongs to; None if nothing is new."""
        with self._lock:
            return self._put(kind, body)

    def remove(self, kind: ApiKind, body: dict[str, Any]) -> Key | None:
        """Forget a deleted object. Return the TritonDeployment it was or belonged to.

        The object may still exist without the label that the watch selects by; a later version is taken in again.
        """
        with self._lock:
            return self._remove(kind, _key(body), body["metadata"]["uid"], version_of(body))

    def replace(
        self, kind: ApiKind, namespace: str | None, bodies: Iterable[dict[str, Any]], resource_version: str
    ) -> set[Key]:
        """Take in a complete list of a kind (in a namespace, or in all) at a resource version.

        An object that is not in the list and not newer is gone; a watch that was interrupted for long never says so.
        Return the TritonDeployments that are concerned. Raises OtherHistoryError if the list lacks a change that was
        seen, and that came before it.
        """
        changed: set[Key] = set()
        listed, version = set(), int(resource_version)
        for body in bodies:
            if self._lacks_change(kind, body, version):
                what = f"{kind.kind} {_key(body)} is older than it was, or was deleted, before that"
                raise OtherHistoryError(f"has version {version}, and {what}")
            listed.add(body["metadata"]["uid"])
            changed.update(self.seen(kind, None, body))
        with self._lock:
            gone = [
                {"namespace": family.key.namespace, "name": name, "uid": known.uid, "resourceVersion": resource_version}
                for family in self._families.values()
                if namespace in (None, family.key.namespace)
                for (other, name), known in family.members.items()
                if other is kind and known.uid not in listed and known.version <= version
            ]
        for metadata in gone:
            changed.update(self.seen(kind, "DELETED", {"metadata": metadata}))
        return changed

    def owner(self, key: Key) -> dict[str, Any] | None:
        """A TritonDeployment's body; None if it does not exist."""
        with self._lock:
            known = self._known(self._families.get(key), TRITON_DEPLOYMENT, key.name)
        return None if known is None else self._packer.unpack(TRITON_DEPLOYMENT, known)

    def ready_reasons(self) -> list[str]:
        """The reason of each TritonDeployment's Ready condition; Pending if it has none yet."""
        with self._lock:
            return list(self._reasons.values())

    def keys(self) -> list[Key]:
        """The keys of all TritonDeployments."""
        with self._lock:
            return list(self._reasons)

    def others_on_claim(self, key: Key, claim: str) -> list[str]:
        """Names of the other TritonDeployments of the namespace that use a claim, or still serve from it.

        ``claim``: the one that the pass plans for; the object may name another one by now.
        """
        return [other.name for other in self._on_claim(key, Key(key.namespace, claim))]

    def host_holder(self, key: Key, wanted: frozenset[Host]) -> str:
        """NAMESPACE/NAME of another TritonDeployment whose HTTPRoute has a host name that this one's route asks for.

        Of two HTTPRoutes that Gateways accept, the older one has it. Empty: nobody else has. ``wanted``: what the route
        that the pass plans for asks for.
        """
        with self._lock:
            own = self._routes.get(_Member(key, key.name))
            takers = {taker for host in wanted for taker in self._hosts.users((host.gateway, host.name))}
            # Anybody may make an HTTPRoute with our labels; without an object it is nobody's.
            known = [(taker.owner, *self._routes[taker]) for taker in sorted(takers) if taker.owner in self._reasons]
        for other, made, taken in known:
            first = own is None or not shared(own[1], taken) or (made, str(other)) < (own[0], str(key))
            if other != key and first and shared(wanted, taken):
                return str(other)
        return ""

    def _claim_of(self, key: Key) -> frozenset[Key]:
        """The claim of a TritonDeployment that may need files on it."""
        with self._lock:
            return self._claims.places(_Member(key, "")) if self._is_user(key) else frozenset()

    def _on_claim(self, key: Key, claim: Key) -> set[Key]:
        """The other TritonDeployments on a claim."""
        with self._lock:
            return {user.owner for user in self._claims.users(claim) if self._is_user(user.owner)} - {key}

    def _is_user(self, key: Key) -> bool:
        """Whether a TritonDeployment may need files on its claim: nobody records any more what one that leaves needs.

        So a Job that waits for the record of one without children would wait for as long as its finalizers do.
        """
        if key not in self._leaving:
            return key in self._reasons
        return any(kind in (CONFIG_MAP, DEPLOYMENT) for kind, _ in self._families[key].members)

    def _lacks_change(self, kind: ApiKind, body: dict[str, Any], version: int) -> bool:
        """Whether an object in a list of that version lacks a change, or its deletion, of at most that version.

        A change of a later version came while the list was read. An object without the label of a TritonDeployment
        counts as deleted at its own version, at which it is listed too.
        """
        metadata = body["metadata"]
        uid = metadata["uid"]
        with self._lock:
            family = self._families.get(_key(body)) if kind is TRITON_DEPLOYMENT else self._family_of.get(uid)
            known = self._known(family, kind, metadata["name"])
            seen = [self._deleted.get(uid, -1), known.version if known is not None and known.uid == uid else -1]
        return any(version_of(body) < each <= version for each in seen)

    def looks_beside(self, key: Key) -> int:
        """How many Jobs of other TritonDeployments of the namespace that are there look at their sources."""
        return sum(key != each in self._reasons for each in self._jobs.looking(key.namespace))

    def measuring(self) -> list[Measurement]:
        """The Jobs of all TritonDeployments that measure, or may begin to at any time."""
        return [each for each in self._jobs.measuring() if each.owner in self._reasons]

    def children(self, key: Key) -> list[dict[str, Any]]:
        """The objects with the label of a TritonDeployment, whoever controls them."""
        with self._lock:
            members = list(self._families[key].members.items()) if key in self._families else []
        return [self._packer.unpack(kind, known) for (kind, _), known in members if kind is not TRITON_DEPLOYMENT]

    def _put(self, kind: ApiKind, body: dict[str, Any]) -> Key | None:
        """Take an object in and return the TritonDeployment that it belongs to; None: nothing has changed for any.

        A body that is older than what is known, or than the object's deletion, changes nothing.
        """
        key, uid, version = _key(body), body["metadata"]["uid"], version_of(body)
        owner = self._owner(kind, body)
        former = self._family_of.get(uid) or (None if owner is None else self._families.get(owner))
        known = self._known(former, kind, key.name)
        if version <= self._deleted.get(uid, -1) or (known is not None and known.version >= version):
            return None
        # All that reads the body comes before the first change, so a body that cannot be read changes nothing.
        packed = self._packer.pack(kind, body, uid, version) if owner is not None else None
        has_room = packed is None or owner is None or self._has_room(kind, owner, packed, known)
        facts = facts_of(kind, body)
        if owner is None or packed is None or not has_room:
            # It is somebody else's, or an Event about such an object. Losing the label counts as a deletion. What has
            # no room exists, and stays as it is known: a later list may find room for it.
            is_left = kind is EVENT or (not has_room and (former is None or former.key == owner))
            return None if is_left else self._remove(kind, key, uid, version)
        self._link(former, owner, kind, key.name, packed)
        self._note(kind, key, owner, facts)
        return owner

    def _note(self, kind: ApiKind, key: Key, owner: Key, facts: Facts) -> None:
        """Keep what is asked of an object without unpacking it."""
        if kind is TRITON_DEPLOYMENT:
            if key not in self._reasons:
                self._strays -= self._families[key].packed
            self._reasons[key] = facts.reason
            (self._leaving.add if facts.leaves else self._leaving.discard)(key)
            self._use(_Member(key, ""), facts.claim)
        if kind is DEPLOYMENT:
            self._use(_Member(owner, key.name), facts.claim)
        if kind is HTTP_ROUTE:
            self._take(_Member(owner, key.name), facts.created_at, facts.hosts)
        if kind in (JOB, POD):
            self._jobs.put(owner, kind, key.name, facts.load)

    def _remove(self, kind: ApiKind, key: Key, uid: str, version: int) -> Key | None:
        """Forget an object and return the TritonDeployment that it belonged to; None: it was not known, or is newer.

        The uid is remembered, so that an older body that comes late does not bring the object back.
        """
        self._deleted[uid] = version
        if len(self._deleted) > REMEMBERED_DELETIONS:
            del self._deleted[next(iter(self._deleted))]
        family = self._families.get(key) if kind is TRITON_DEPLOYMENT else self._family_of.get(uid)
        known = self._known(family, kind, key.name)
        if family is None or known is None or known.uid != uid or known.version > version:
            return None
        if kind is TRITON_DEPLOYMENT:
            del self._reasons[key]
            self._leaving.discard(key)
            self._strays += family.packed
            self._use(_Member(key, ""), None)
        self._unlink(family, kind, key.name)
        return family.key

    def _use(self, user: "_Member", claim: str | None) -> None:
        """Record the claim that a TritonDeployment or a Deployment uses; None: it is gone, or uses none."""
        self._claims.put(user, frozenset() if claim is None else frozenset({Key(user.owner.namespace, claim)}))

    def _take(self, route: "_Member", made: str, taken: frozenset[Host]) -> None:
        """Record what an HTTPRoute takes; nothing: it is gone, or no Gateway accepts it."""
        self._routes.pop(route, None)
        if taken:
            self._routes[route] = (made, taken)
        self._hosts.put(route, frozenset((host.gateway, host.name) for host in taken))

    @staticmethod
    def _known(family: _Family | None, kind: ApiKind, name: str) -> PackedObject | None:
        return None if family is None else family.members.get((kind, name))

    def _link(self, former: _Family | None, owner: Key, kind: ApiKind, name: str, new: PackedObject) -> None:
        """Make an object a member of its family, and no longer of the former one, or in another's place."""
        known = self._known(former, kind, name)
        if former is not None and known is not None and (former.key != owner or known.uid != new.uid):
            self._unlink(former, kind, name)
        family = self._families.setdefault(owner, _Family(owner))
        if (replaced := family.members.get((kind, name))) is not None:
            self._count(family, kind, replaced, -1)
        family.members[kind, name] = new
        self._count(family, kind, new, 1)
        if kind is not TRITON_DEPLOYMENT:
            self._family_of[new.uid] = family

    def _unlink(self, family: _Family, kind: ApiKind, name: str) -> None:
        gone = family.members.pop((kind, name))
        self._family_of.pop(gone.uid, None)
        self._count(family, kind, gone, -1)
        if kind is HTTP_ROUTE:
            self._take(_Member(family.key, name), "", frozenset())
        if kind is DEPLOYMENT:
            self._use(_Member(family.key, name), None)
        if kind in (JOB, POD):
            self._jobs.remove(family.key, kind, name)
        if not family.members:
            del self._families[family.key]

    def _count(self, family: _Family, kind: ApiKind, member: PackedObject, sign: int) -> None:
        """Count the bytes of a family's member in; out again, if ``sign`` is -1."""
        size = sign * len(member.packed)
        family.packed += size
        if family.key not in self._reasons:
            self._strays += size
        if kind is not TRITON_DEPLOYMENT:
            family.unpacked += sign * member.unpacked

    def _has_room(self, kind: ApiKind, owner: Key, new: PackedObject, known: PackedObject | None) -> bool:
        """Whether an object is taken in, in the place of the one that is known."""
        if kind is TRITON_DEPLOYMENT:
            return True
        family, share = self._families.get(owner, _Family(owner)), SHARE_OF_PODS if kind in (POD, EVENT) else 1.0
        taken = family.packed if owner in self._reasons else self._strays
        packed, unpacked = (len(known.packed), known.unpacked) if known else (0, 0)
        fits = taken + len(new.packed) - packed <= MOST_BYTES * share
        return fits and family.unpacked + new.unpacked - unpacked <= MOST_UNPACKED * share

    def _owner(self, kind: ApiKind, body: dict[str, Any]) -> Key | None:
        if kind is TRITON_DEPLOYMENT:
            return _key(body)
        if kind is EVENT:
            family = self._family_of.get(body["involvedObject"].get("uid", ""))
            # Whoever may see an object's uid can make Events about it in a namespace of their own.
            return None if family is None or family.key.namespace != _key(body).namespace else family.key
        name = body["metadata"].get("labels", {}).get(TRITON_DEPLOYMENT_LABEL)
        # Of ConfigMaps an object has one, and each may hold a MiB of entries.
        if name is None or (kind is CONFIG_MAP and _key(body).name != results(name)):
            return None
        return Key(body["metadata"]["namespace"], name)


def _key(body: dict[str, Any]) -> Key:
    return Key(body["metadata"]["namespace"], body["metadata"]["name"])
