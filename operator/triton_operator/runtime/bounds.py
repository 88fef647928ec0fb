"""What a pass may write: objects of its own TritonDeployment, in its namespace, of the kinds that it makes. Pure.

The plan makes no other body, whatever a tenant wrote into what it reads. This is the second wall: it stands between
any plan and the API server, because the operator's rights reach further than those of the author of one object.
"""

from collections.abc import Mapping
from typing import Any

from triton_operator.kube.kinds import CHILDREN, CLAIM, OPTIONAL, POD, ApiKind, kind_named

WRITTEN: frozenset[ApiKind] = frozenset({*CHILDREN, *OPTIONAL} - {POD})
"""The kinds of which a pass makes objects. Pods are those of Jobs and Deployments."""


class OutOfBoundsError(RuntimeError):
    """A pass wants to write an object that is not its TritonDeployment's: a bug of the operator."""


def check_bounds(owner: Mapping[str, Any], body: Mapping[str, Any]) -> None:
    """Raise OutOfBoundsError unless ``body`` is an object that a pass over ``owner`` may write.

    It is of one of ``WRITTEN``, in the owner's namespace, and the owner is its only owner and its controller. A claim
    may have no owner, because one that is retained stays when the object goes.
    """
    kind, metadata = f"{body.get('apiVersion')} {body.get('kind')}", body["metadata"]
    namespace, owners = owner["metadata"]["namespace"], metadata.get("ownerReferences") or []
    unowned = not owners and kind == f"{CLAIM.api_version} {CLAIM.kind}"
    faults = {
        "is of a kind that no pass writes": not _is_written(body),
        f"is in namespace {metadata.get('namespace')}": metadata.get("namespace") != namespace,
        "is not owned by it alone": not unowned and owners != [_reference(owner)],
    }
    if found := [words for words, holds in faults.items() if holds]:
        raise OutOfBoundsError(
            f"a pass over TritonDeployment {namespace}/{owner['metadata']['name']} wants to write {kind}"
            f" {metadata.get('name')}, which {' and '.join(found)}; nothing was written: report this as a vulnerability"
        )


def _is_written(body: Mapping[str, Any]) -> bool:
    try:
        return kind_named(body["apiVersion"], body["kind"]) in WRITTEN
    except KeyError:
        return False


def _reference(owner: Mapping[str, Any]) -> dict[str, Any]:
    """The owner reference that makes the owner the controller."""
    named = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], **named, "controller": True}
