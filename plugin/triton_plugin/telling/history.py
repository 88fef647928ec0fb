"""Lists the revisions that served, and says which one a rollback takes. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from triton_operator.api.status import ON_TRIAL
from triton_operator.names import results
from triton_operator.observed.revision import Revision
from triton_plugin.errors import SubjectError
from triton_plugin.reading.subject import Subject, one_line
from triton_plugin.telling.tables import Grid

HEADINGS = ("Name", "Candidate", "Measured (UTC)")
LAST_HEADINGS = ("Source", "Server image", "State")
"""The headings after those of the metrics."""
ACTIVE, HELD, DAMAGED, ANCHOR = "active", "held", "damaged", "anchor"
MEANINGS = {
    HELD: "spec.rollout.revision names it",
    ANCHOR: "new models are held against it, besides the last one; it is kept whatever spec.revisionHistoryLimit says",
    DAMAGED: "its files on the claim are not what was published; `rollback` takes it only by its name",
}
"""What the words of the column State mean, of those that need an explanation."""
MOST_METRICS = 4
"""Columns of metrics, unless more have a threshold."""
DIGITS = 8
"""Digits of a digest that are enough to tell it from the others."""


def table(subject: Subject) -> Grid:
    """Return the revisions, the one that served last first. Raises SubjectError if there are none."""
    rows = list(_rows(subject))
    if not rows:
        cause = "none served yet"
        if subject.status.active is not None:
            cause = f"ConfigMap {results(subject.name)} is missing"
        raise SubjectError(f"no revision of TritonDeployment {subject.name} is recorded: {cause}")
    headings = (*HEADINGS, *one_line(_metrics(subject)), *LAST_HEADINGS)
    return Grid("Revisions that served, the last one first", headings, rows)


def notes(subject: Subject) -> list[str]:
    """Return the metrics that have no column, and what the words of the column State mean that are there."""
    states = {state for each in subject.history.revisions.values() for state in _states(subject, each)}
    meanings = [f"{word}: {meaning}" for word, meaning in MEANINGS.items() if word in states]
    left = one_line(_all_metrics(subject)[len(_metrics(subject)) :])
    return [*([f"without a column, as they have no threshold: {', '.join(left)}"] if left else []), *meanings]


def figures_before(subject: Subject) -> list[str]:
    """Return how the metrics of the active revision differ from those of the one that served before it, in sentences.

    They do not say which is better: for some metrics that is the lower one. Also returned is that a metric that
    differs has no threshold, or that none has one.
    """
    metrics = {each.metric: each.served for each in subject.status.accuracy}
    active, revisions = _active_revision(subject), subject.history.revisions.items()
    name, before = next(((name, each) for name, each in revisions if each != active), ("", None))
    earlier = one_line(before.metrics) if before is not None else {}
    changed = [metric for metric, value in metrics.items() if earlier.get(metric, value) != value]
    lines = [
        f"{each} {metrics[each]}; revision {name}, which served before, had {earlier[each]} when it was measured."
        for each in changed
    ]
    is_asked = not subject.spec.rollout.revision and not _unsettled_change(subject)
    is_kept = before is not None and before.key not in subject.damaged
    if changed and is_asked and is_kept and not subject.is_local:
        lines.append(f"If the earlier one is better, serve it again: {subject.command('rollback', subject.name, name)}")
    bounded = {each.metric for each in subject.spec.accuracy.thresholds}
    if unbounded := [each for each in metrics if each not in bounded and (each in changed or not bounded)]:
        named = ", ".join(unbounded)
        lines.append(f"No threshold bounds {named}, so any figure is served: set spec.accuracy.thresholds.")
    return lines


def rollback_revision(subject: Subject, name: str | None) -> str:
    """Return the name of the revision to go back to. Raises SubjectError, also if KEY stands for several servers.

    ``name``: KEY or KEY.SERVER. None stands for what served before the active one, is older, and is not damaged. What
    is newer was left by somebody who went back, and is not chosen by itself. Nothing is chosen either while something
    else than the active revision is asked for: who sees it fail would go back too far.
    """
    if name is None:
        return _previous_revision(subject)
    if subject.history.revision_named(name, _active_revision(subject)) is None:
        names = ", ".join(subject.history.revisions) or "none is recorded"
        raise SubjectError(
            f"TritonDeployment {subject.name} has no record of revision {name}; name one of these: {names}"
        )
    servers = [each for each, revision in subject.history.revisions.items() if revision.key == name]
    if len(servers) > 1:
        active = _active_name(subject)
        marked = (f"{each} (active)" if each == active else each for each in servers)
        raise SubjectError(
            f"key {name} of TritonDeployment {subject.name} had several servers, and alone it stands for the active one"
            f" if that has this key; name the server too: {', '.join(marked)}"
        )
    return name


def rollback_effect(subject: Subject, name: str) -> str:
    """Return what serving a revision does to clients, in a sentence. ``name``: what `rollback_revision` returned."""
    active = _active_revision(subject)
    revision = subject.history.revision_named(name, active)
    soaked = subject.condition("Soaked")
    on_trial = soaked is not None and soaked.reason in ON_TRIAL
    if revision is not None and revision == active:
        trial = " Its soak or canary ends without a verdict." if on_trial else ""
        return f"Revision {name} is the active one, so it stays, and what is newer is not served.{trial}"
    if on_trial:
        return "If its servers still run, as during a soak, the Service moves at once; else as soon as one is ready."
    return (
        "Its servers start first, and the Service moves when they are ready. Where no GPU is free for them, a single"
        " server of the active revision ends first, and nothing answers until the other one has loaded the model."
    )


def left_revision(subject: Subject) -> str:
    """Return the name of what serves again once spec.rollout.revision is removed; empty: what is asked for has to pass.

    That is the last one to serve with the source that the spec names, apart from the revision that is held.
    """
    source, kept = subject.spec.source, _held_revision(subject) or _active_revision(subject)
    digest = f"sha256:{source.sha256}" if source.sha256 else ""
    served = (
        name
        for name, each in subject.history.revisions.items()
        if each != kept
        and digest in ("", each.source_digest)
        and (digest or source.version in ("", each.source_version))
    )
    return next(served, "")


def latest_effect(subject: Subject) -> str:
    """Return which revision serves once spec.rollout.revision is removed, in sentences."""
    held, source = subject.spec.rollout.revision or "", subject.spec.source
    if not (left := left_revision(subject)):
        digest = f"sha256:{source.sha256}" if source.sha256 else ""
        named = _short(digest) or source.version or source.uri
        return (
            f"No other revision of the source that the spec names ({named}) is recorded, so the active one serves"
            " until what the spec asks for has passed."
        )
    back = subject.command("rollback", subject.name, held)
    mended = subject.command("run", "FOLDER", "--name", subject.name, "--update", "--to-latest")
    named = one_line(f"{left} (source {_short_source(subject.history.revisions[left])})")
    return (
        f"What the spec asks for has served before, unless it was edited since: revision {named}. It serves again as"
        f" soon as its server is ready, and is not measured again. To stay with {held}, type: {back}."
        f" From there you serve a mended folder by: {mended}."
    )


def holds(subject: Subject, sha256: str) -> bool:
    """Whether spec.rollout.revision names a revision of the source with that digest."""
    revision = _held_revision(subject)
    return revision is not None and revision.source_digest == f"sha256:{sha256}"


def _previous_revision(subject: Subject) -> str:
    name, current = f"TritonDeployment {subject.name}", _current_revision(subject)
    if current is None:
        raise SubjectError(f"no revision of {name} is active; name the one to go back to")
    older_names = (
        key
        for key, each in subject.history.revisions.items()
        if "" < each.measured_at < current.measured_at
        and each.server != current.server
        and each.key not in subject.damaged
    )
    previous = next(older_names, "")
    if change := _unsettled_change(subject):
        back = subject.command("rollback", subject.name, _active_name(subject) or current.key)
        further_back = subject.command("rollback", subject.name, previous)
        further = f"; to go further back, type: {further_back}" if previous else ""
        raise SubjectError(
            f"{name} serves revision {current.key}, and {change}. To stay with the active revision, revert the edit, or"
            f" type: {back}{further}"
        )
    if not previous:
        raise SubjectError(
            f"no revision of {name} that is older than the active one, {current.key}, is recorded. One that is newer is"
            f" not chosen by itself: name it, as {subject.command('history', subject.name)} lists it"
        )
    return previous


def _active_name(subject: Subject) -> str:
    """The name under which history lists the active revision; empty: it is not recorded."""
    active = _active_revision(subject)
    return next((name for name, each in subject.history.revisions.items() if each == active), "")


@dataclass(frozen=True)
class _CurrentRevision:
    """The revision that a rollback leaves."""

    key: str
    server: str
    measured_at: str


def _current_revision(subject: Subject) -> _CurrentRevision | None:
    """The revision that the spec holds, or else the active one, which may not be recorded."""
    status, active = subject.status, _active_revision(subject)
    revision = _held_revision(subject) or active
    if revision is not None:
        return _CurrentRevision(revision.key, revision.server, revision.measured_at)
    if status.active is None or status.performance is None:
        return None
    return _CurrentRevision(status.active.revision, subject.server, status.performance.measured_at)


def _active_revision(subject: Subject) -> Revision | None:
    """The active revision; None: it is not recorded, or nothing tells which of several servers of its key it is."""
    key = subject.status.active.revision if subject.status.active is not None else ""
    revisions = [each for each in subject.history.revisions.values() if each.key == key]
    return next((each for each in revisions if subject.server in ("", each.server)), None)


def _held_revision(subject: Subject) -> Revision | None:
    """The revision that the spec names; None: it names none, or one that is not recorded."""
    return subject.history.revision_named(subject.spec.rollout.revision or "", _active_revision(subject))


def _unsettled_change(subject: Subject) -> str:
    """Return the change that is asked for and does not serve yet; empty: there is none, or the active one is down."""
    active, target = subject.status.active, subject.status.target
    if subject.status.observed_generation != subject.generation:
        return f"the operator has not looked at generation {subject.generation} of the spec yet"
    condition = subject.newer_condition or subject.condition("Ready")
    if condition is None or active is None or (condition.type == "Ready" and subject.holds("Ready")):
        return ""
    if target is not None and target.revision != active.revision:
        return f"revision {target.revision} is on its way ({condition.reason})"
    if condition.type == "Ready" and not subject.holds("Available"):
        return ""
    return f"what is asked for does not serve ({condition.reason})"


def _rows(subject: Subject) -> Iterator[tuple[str, ...]]:
    metrics = _metrics(subject)
    for name, each in subject.history.revisions.items():
        time = each.measured_at.replace("T", " ")[: len("2026-11-21 00:00")]
        values = [each.metrics.get(metric, "") for metric in metrics]
        last = (_short_source(each), _short(each.image), ", ".join(_states(subject, each)))
        yield tuple(one_line([name, each.candidate, time, *values, *last]))


def _states(subject: Subject, revision: Revision) -> list[str]:
    anchor = subject.history.anchor
    states = {
        ACTIVE: revision == _active_revision(subject),
        HELD: revision == _held_revision(subject),
        DAMAGED: revision.key in subject.damaged,
        ANCHOR: anchor is not None and revision == anchor.revision,
    }
    return [word for word, holds in states.items() if holds]


def _metrics(subject: Subject) -> list[str]:
    """Return the metrics that have a column: those with a threshold in any of the revisions, and a few others."""
    bounded = {metric for each in subject.history.revisions.values() for metric in each.bounded}
    return _all_metrics(subject)[: max(MOST_METRICS, len(bounded))]


def _all_metrics(subject: Subject) -> list[str]:
    """Return the metrics of all revisions, first those that had a threshold in any of them."""
    revisions = subject.history.revisions.values()
    bounded = (metric for each in revisions for metric in each.bounded)
    return list(dict.fromkeys([*bounded, *(metric for each in revisions for metric in each.metrics)]))


def _short_source(revision: Revision) -> str:
    return revision.source_label or _short(revision.source_digest)


def _short(reference: str) -> str:
    """A digest without most of its digits, or an image's name and tag without its registry."""
    _, marker, digest = reference.rpartition("sha256:")
    return f"{marker}{digest[:DIGITS]}" if marker else reference.rpartition("/")[2]
