"""What is written about passes: each kind of object and each record once, and in a case only what differs from them.

Nothing of a plan is left out: page and differences together are the object, so any change of it changes a text.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import yaml

from tests.golden import shown as shown_by
from tests.golden.record_names import readable
from tests.simulation.deployments import a_spec
from tests.states.passes import Report
from triton_converters.contract.records import ACTIVE, HISTORY
from triton_operator import names
from triton_operator.observed.revision import Revision
from triton_operator.planning.plan import Event, Plan

Body = dict[str, Any]
Pages = dict[str, Any]
"""By the name of a file in objects/: the object that it shows; in RECORDS, the text of each record."""
RECORDS = "records"
ABSENT = "(absent)"
TEMPLATE = names.TEMPLATE_ANNOTATION
COMPACT: Any = {"sort_keys": True, "separators": (",", ":")}
"""How documents are written as JSON."""


class Plain(yaml.CSafeDumper):
    """No anchors: a golden file is for reading."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write what is shared twice."""
        return True


def dumped(value: Any, flow: bool | None = False) -> str:
    """As YAML. ``flow``: None writes lists and maps of plain values into one line."""
    return yaml.dump(value, Dumper=Plain, sort_keys=False, width=120, allow_unicode=True, default_flow_style=flow)


def pages(planned: Callable[[str], Plan]) -> Pages:
    """The pages of all objects, each from the plan of the case that shown.py names."""
    records: dict[str, str] = {}
    for name, text in (each for case in shown_by.RECORDS for each in texts(planned(case)).items()):
        records.setdefault(name, text)
    return {page: _first(page, planned(case)) for page, case in shown_by.OBJECTS.items()} | {
        RECORDS: dict(sorted(records.items()))
    }


def _first(page: str, wanted: Plan) -> Any:
    return shown(next(body for body in wanted.objects if page_of(body) == page))


def texts(wanted: Plan) -> dict[str, str]:
    """The records of a plan, as they are shown."""
    return {name: text for body in wanted.objects for name, text in _records(body)}


def page_of(body: Body) -> str:
    """The name of an object's page: Jobs of a stage share one, and servers do; any other object has its own."""
    name = body["metadata"]["name"]
    shared = {"Job": body["metadata"]["labels"].get(names.STAGE_LABEL), "Deployment": "server"}
    return f"{body['kind']}-{shared.get(body['kind'], name)}"


def case(wanted: Plan, known: Pages, status: Mapping[str, Any], spec: Body, jobs: Iterable[Body]) -> str:
    """The text about one pass.

    ``status``: what it writes. ``spec``: what is asked for. ``jobs``: those that were there before the pass.
    """
    records = texts(wanted)
    told = readable(records, [*jobs, *(each for each in wanted.objects if each["kind"] == "Job")])
    head = {
        "objects": [_named(f"{each['kind']} {each['metadata']['name']}", each, known) for each in wanted.objects],
        "records": sorted(
            (told[name] if known[RECORDS].get(name) == text else {told[name]: text} for name, text in records.items()),
            key=lambda each: each if isinstance(each, str) else next(iter(each)),
        ),
        "deletions": [f"{each.kind} {each.name}" for each in wanted.deletions],
        "events": list(map(_event, wanted.events)),
        "requeueAfter": wanted.requeue_after,
    }
    return _asked(spec) + dumped(head) + dumped({"status": status}, flow=None)


def report(made: Report) -> str:
    """The text about one pass that the Reconciler reported itself."""
    head = {
        "writes": list(made.writes),
        "events": list(map(_event, made.events)),
        "failed": made.result.failed,
        "requeueAfter": made.result.again_after,
    }
    return _asked(made.spec) + dumped(head) + dumped({"status": made.status}, flow=None)


def _asked(spec: Body) -> str:
    """What is asked for that `a_spec()` is not, by the place."""
    return dumped({"spec": dict(differences(a_spec(), spec))}, flow=None)


def _event(event: Event) -> str:
    return f"{event.type} {event.reason}: {event.message}"


def _records(body: Body) -> Iterator[tuple[str, str]]:
    """Yield the records as they are shown."""
    for name, text in body.get("data", {}).items():
        yield name, _shortened(text, _SHORTENED[name]) if name in _SHORTENED else text


def _shortened(text: str, shorten: Callable[[Body], None]) -> str:
    """A record with less in it; as it is, if it is no JSON."""
    try:
        document = json.loads(text)
    except ValueError:
        return text
    shorten(document)
    return json.dumps(document, separators=(",", ":"))


def _shorten_history(document: Body) -> None:
    """Put a digest in place of what the history keeps compressed, because how that looks depends on zlib."""
    others = ((document.get(name) or {}).get("revision") for name in ("trial", "anchor"))
    for each in filter(None, [*document.get("revisions", ()), *others]):
        revision = Revision.from_value(each)
        each["parts"] = names.digest([revision.template, revision.status], 16)


def _shorten_active(document: Body) -> None:
    """Put a digest in place of the active server's Deployment, which a case of another pass shows."""
    document |= {part: names.digest(document[part], 16) for part in ("deployment", "status") if part in document}


_SHORTENED = {HISTORY: _shorten_history, ACTIVE: _shorten_active}


def _named(name: str, body: Body, known: Pages) -> str | Body:
    """The object's name, and what differs from its page; its name apart."""
    found = dict(differences(known.get(page_of(body), {}), shown(body)))
    found.pop("metadata.name", None)
    return {name: found} if found else name


def shown(body: Body) -> Body:
    """An object as its page has it: no records, JSON as data, and for a copy of its pod template `spec.template`."""
    found: Body = _plain({key: each for key, each in body.items() if key != "data"})
    notes = found["metadata"].get("annotations", {})
    if TEMPLATE in notes and notes[TEMPLATE] == _data(json.dumps(body["spec"]["template"], **COMPACT)):
        notes[TEMPLATE] = "spec.template"
    return found


def _plain(value: Any) -> Any:
    """The value, with the requests in containers' arguments as data."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return _data(value) if isinstance(value, str) and value.startswith("{") else value


def _data(text: str) -> Any:
    """The data of a JSON text, if that text is written in the one way that documents are; otherwise the text."""
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return found if json.dumps(found, **COMPACT) == text else text


def differences(page: Any, body: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The places where an object is another than its page, with what it has there; ABSENT: nothing."""
    if isinstance(page, dict) and isinstance(body, dict):
        for key in [*page, *(each for each in body if each not in page)]:
            yield from differences(page.get(key, ABSENT), body.get(key, ABSENT), _step(path, key))
    elif isinstance(page, list) and isinstance(body, list) and _steps(page) == _steps(body):
        for step, old, new in zip(_steps(page), page, body, strict=True):
            yield from differences(old, new, f"{path}[{step}]")
    elif page != body:
        yield path, body


def _step(path: str, key: str) -> str:
    return f"{path}[{key}]" if "." in key else f"{path}.{key}".removeprefix(".")


def _steps(items: list[Any]) -> list[Any]:
    """What items of a list go by: their names if all have one, or else their numbers."""
    named = [each.get("name") if isinstance(each, dict) else None for each in items]
    return named if all(named) and len(set(named)) == len(named) else list(range(len(items)))
