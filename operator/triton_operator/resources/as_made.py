"""A revision's Deployment keeps the pod template it was made with, whatever a newer operator would write. Pure.

Its name is a hash of the spec and the pinned images. So another template under the same name comes either from another
version of the operator, which must not restart servers, or from a manual change, which is undone. A profile that was
made again, after the image's tag moved, does not change the image either.
"""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from triton_converters.contract.document import DocumentError, decode
from triton_operator.names import TEMPLATE_ANNOTATION
from triton_operator.observed.server import ServerView

NO_NOTES: Mapping[str, str] = MappingProxyType({})


def as_made(body: dict[str, Any], observed: ServerView | None, notes: Mapping[str, str] = NO_NOTES) -> dict[str, Any]:
    """The Deployment with the template that it was made with, which an annotation keeps.

    ``notes``: other annotations.
    """
    template = _noted(observed) or body["spec"]["template"]
    annotations = {TEMPLATE_ANNOTATION: json.dumps(template, sort_keys=True, separators=(",", ":"))}
    return body | {
        "metadata": body["metadata"] | {"annotations": {**annotations, **notes}},
        "spec": body["spec"] | {"template": template},
    }


def scaled(observed: ServerView, replicas: int, notes: Mapping[str, str] = NO_NOTES) -> dict[str, Any] | None:
    """The observed Deployment with another number of replicas; None if no annotation keeps its template.

    ``notes``: its other annotations.
    """
    template, metadata, spec = _noted(observed), observed.body["metadata"], observed.body["spec"]
    if template is None:
        return None
    body = {
        "apiVersion": observed.body["apiVersion"],
        "kind": observed.body["kind"],
        "metadata": {key: metadata[key] for key in ("name", "namespace", "labels", "ownerReferences")},
        "spec": {key: spec[key] for key in ("progressDeadlineSeconds", "selector") if key in spec}
        | {"replicas": replicas, "template": template},
    }
    return as_made(body, observed, notes)


def _noted(observed: ServerView | None) -> dict[str, Any] | None:
    """The template that the annotation keeps; None: there is none, or it is no JSON object."""
    annotations = {} if observed is None else observed.body["metadata"].get("annotations", {})
    try:
        template = decode(annotations.get(TEMPLATE_ANNOTATION, ""))
    except DocumentError:
        return None
    # Who may edit a Deployment may let it run anything, so it is not compared with what the operator builds: another
    # version builds something else, and a server must not restart for that.
    return template if isinstance(template, dict) else None
