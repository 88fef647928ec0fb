"""The pod specs of all golden cases, and of what tests/e2e/test_attacks.py starts; none is chosen."""

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from hashlib import sha256

from tests.conformance import shell
from tests.conformance.cases import SYSTEM, Body, Case, runnable
from tests.e2e import attacks, last_words, possessing, stepping
from tests.e2e.manifests import changed, read
from tests.hostile_messages import messages
from tests.simulation.cluster import Cluster
from tests.states.deployment import a_deployment_of
from tests.states.moments import MOMENTS
from tests.states.passes import objects, reached
from triton_operator import names

HEX = re.compile(r"\b[0-9a-f]{16}(?:[0-9a-f]{48})?\b")
"""A key or a digest, by which specs that are otherwise alike differ."""
PODS = ("Job", "Deployment")
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
ENDS_BY = "trap 'exit 0' TERM; while :; do sleep 0.2; done"
KEY = "0" * 16
DIGEST = "0" * 64
TARGETS = "{}"


def made_at(cluster: Cluster) -> Iterator[Body]:
    """Yield the objects with pods that a cluster has."""
    for kind in PODS:
        yield from cluster.of_kind(kind)


def of_golden_cases() -> Iterator[Body]:
    """Yield the Jobs and Deployments that exist at the moments, and that their passes want."""
    for name in MOMENTS:
        yield from made_at(reached(name))
        yield from (each for each in objects(name) if each["kind"] in PODS)


def of_attacks() -> Iterator[Body]:
    """Yield the Jobs and Deployments of the objects that the attacks apply."""
    for manifest, changes in (
        ("classifier", {}),
        *(("classifier", each) for each in attacks.every_change(TARGETS)),
        *(("step", each) for each in stepping.every_change(TARGETS)),
        *(("classifier", each) for each in possessing.thefts(DIGEST)),
    ):
        cluster = a_deployment_of(changed(read(manifest), "digits", changes)["spec"]).cluster()
        for _ in cluster.steps(60):
            yield from made_at(cluster)


def speakers() -> Iterator[Case]:
    """Yield the pods that leave each hostile message."""
    job: Body = {"metadata": {"name": "", "uid": ""}, "spec": {"template": {"metadata": {"labels": {}}}}}
    for number, (what, message) in enumerate(messages(last_words.STAGE, KEY).items()):
        spec = runnable(last_words.speaker(SYSTEM, job, what, message))
        for each in Case("", spec).containers:
            each["image"] = SYSTEM
        yield Case(f"says-{number}", spec, plain=False)


@cache
def templates() -> dict[str, Body]:
    """The templates that differ in more than keys, by a name of what they are."""
    found: dict[str, Body] = {}
    seen = set()
    for body in (*of_golden_cases(), *of_attacks()):
        template = body["spec"]["template"]
        text = json.dumps(runnable(template), sort_keys=True)
        if (told := HEX.sub("KEY", text)) not in seen:
            seen.add(told)
            stage = body["metadata"]["labels"].get(names.STAGE_LABEL, "server")
            found[f"{stage}-{sha256(told.encode()).hexdigest()[:8]}"] = template
    return found


def as_they_are() -> Iterator[Case]:
    """Yield each template, with claims of its own that are empty."""
    for name, template in templates().items():
        yield Case(name, runnable(template), template["metadata"]["labels"])


def views() -> Iterator[Case]:
    """Yield each template with programs that tell what they see, once for all that differ in their programs alone."""
    seen = set()
    for name, template in templates().items():
        spec = viewed(runnable(template))
        text = HEX.sub("KEY", json.dumps(spec, sort_keys=True))
        if text not in seen:
            seen.add(text)
            yield Case(f"sees-{name}", spec, template["metadata"]["labels"], plain=False)


def viewed(spec: Body) -> Body:
    """The spec of a pod that ends once each container has told what it sees."""
    found = {**deepcopy(spec), "restartPolicy": "Never"}
    for each in (*found.get("initContainers", []), *found["containers"]):
        paths = [mount["mountPath"] for mount in each.get("volumeMounts", [])]
        stays = f"\n{ENDS_BY}" if each.get("restartPolicy") == "Always" else ""
        each |= {"image": SYSTEM, "command": ["sh", "-c", shell.VIEW + stays, "view", *paths], "args": []}
        each.pop("lifecycle", None)
        for probe in PROBES:
            if probe in each:
                each[probe] = {"exec": {"command": ["true"]}, **shell.EVERY_SECOND}
    return found
