"""The Deployment of a server, whatever it is made of: a new revision, a recorded one, or the template it has. Pure.

A revision's Deployment keeps the pod template that it was made with, whatever a newer operator would write. Its name is
a hash of the spec and the pinned images. So another template under the same name comes either from another version of
the operator, which must not restart servers, or from a manual change, which is undone. A profile that was made again,
after the image's tag moved, does not change the image either.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from triton_converters.contract.document import DocumentError, decode
from triton_operator import names
from triton_operator.context import Context
from triton_operator.observed.server import ServerView

NO_NOTES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Parts:
    """What a server's Deployment is made of; all else follows from the object that it belongs to."""

    name: str
    """Name of the Deployment."""
    revision_key: str
    """Key of the revision that the server serves."""
    template: dict[str, Any]
    """The template of the Deployment's pods, with the labels by which it selects them."""
    replicas: int
    """How many pods the Deployment is to have."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Annotations of the Deployment besides the one that keeps its template."""


def deployment(context: Context, parts: Parts) -> dict[str, Any]:
    """The Deployment of these parts, which an annotation of it keeps the template of."""
    name = parts.name
    template = json.dumps(parts.template, sort_keys=True, separators=(",", ":"))
    metadata = context.metadata(name, "server", **names.server_labels(name, parts.revision_key))
    annotations = {**metadata.get("annotations", {}), names.TEMPLATE_ANNOTATION: template, **parts.notes}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata | {"annotations": annotations},
        "spec": {
            "replicas": parts.replicas,
            "progressDeadlineSeconds": context.spec.serving.progress_deadline_seconds,
            "selector": {"matchLabels": names.server_pods(context.name, name)},
            "template": parts.template,
        },
    }


def from_record(context: Context, name: str, revision_key: str, template: Mapping[str, Any]) -> Parts:
    """The parts of a Deployment of that name, from the template that is recorded of it."""
    return Parts(name, revision_key, dict(template), context.spec.serving.replicas)


def as_made(parts: Parts, observed: ServerView | None) -> Parts:
    """The parts with the template that the observed Deployment was made with, if an annotation of it keeps that."""
    return replace(parts, template=_kept(observed) or parts.template)


def scaled(
    context: Context, observed: ServerView, replicas: int, notes: Mapping[str, str] = NO_NOTES
) -> dict[str, Any] | None:
    """The observed Deployment with another number of replicas; None if no annotation keeps its template.

    ``notes``: its other annotations.
    """
    template = _kept(observed)
    if template is None:
        return None
    return deployment(context, Parts(observed.name, observed.revision_key, template, replicas, notes))


def _kept(observed: ServerView | None) -> dict[str, Any] | None:
    """The template that an annotation keeps; None: there is none, or it is no JSON object, or an empty one."""
    annotations = {} if observed is None else observed.body["metadata"].get("annotations", {})
    try:
        template = decode(annotations.get(names.TEMPLATE_ANNOTATION, ""))
    except DocumentError:
        return None
    # Who may edit a Deployment may let it run anything, so it is not compared with what the operator builds: another
    # version builds something else, and a server must not restart for that.
    return template if isinstance(template, dict) and template else None
