"""Explains an object in sentences: the outcome, the selection, the other candidates, and what to do. Pure."""

import json
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pydantic import ValidationError

from triton_converters.contract.reasons import Reason
from triton_operator.api.resolved import FromRepository, Resolved
from triton_operator.api.search_status import SearchStatus
from triton_operator.api.status import NOTICES, RISKS, CandidateStatus, Condition, ServingStatus
from triton_plugin.reading.subject import AGAIN, Subject, one_line
from triton_plugin.telling.advice import advice
from triton_plugin.telling.columns import SWEEPS, load_of_figures, search_summary
from triton_plugin.telling.mixed_shapes import sentences
from triton_plugin.telling.progress import GOES_ON, conditions_by_type, picture, stages, unfinished_stage
from triton_plugin.telling.report.document import environment_lines
from triton_plugin.telling.saturation import sentence
from triton_plugin.telling.steps import lines
from triton_plugin.telling.tables import by_rank, int8, margin
from triton_plugin.telling.versions import versions

DOCS = {str(reason): reason.doc for reason in Reason}


class _Line(NamedTuple):
    """A line of the outcome."""

    text: str
    shows: Condition | None = None
    """The condition whose message the line has."""
    advises: str = ""
    """The reason that the line says what to do about."""


def explain(subject: Subject) -> str:
    """Return the whole explanation, without a newline at its end."""
    outcome = list(_outcome(subject))
    paragraphs = [
        "\n".join(each.text for each in outcome),
        # What serves, with the figures of its Service.
        _serving(subject),
        versions(subject.status),
        _steps(subject),
        _regression_check(subject),
        _autoscaling(subject),
        _route(subject),
        _soak(subject, outcome),
        _image(subject, outcome),
        # How it was chosen, with the figures of private servers.
        _filled_fields(subject),
        _verified(subject),
        _choice(subject),
        _searches(subject),
        _other_candidates(subject, outcome),
        _int8(subject),
        _saturation(subject),
        _mixed_shapes(subject),
        _environment(subject),
    ]
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def _outcome(subject: Subject) -> Iterator[_Line]:
    """Yield how far the object is, why it is no further, and what to do."""
    name = f"TritonDeployment {subject.namespace}/{subject.name}"
    if subject.status.observed_generation < 0:
        selector = ("--selector", "app.kubernetes.io/name=triton-operator")
        pods = shlex.join(["kubectl", "get", "pods", "--all-namespaces", *selector, *subject.options])
        yield _Line(f"The operator has not seen {name} yet. Check that the operator runs: {pods}")
        return
    if subject.status.observed_generation != subject.generation:
        seen_generation = subject.status.observed_generation
        yield _Line(
            f"The operator has not processed generation {subject.generation} of the spec yet;"
            f" what follows describes generation {seen_generation}."
        )
    yield from _state(subject, name)
    if subject.is_local and not (subject.holds("Ready") or subject.holds("Stalled") or subject.is_paused):
        yield _Line(f"It goes on only while kubectl triton check runs; once that has ended, run {AGAIN}.")
    if subject.status.failing is not None:
        # What serves goes on serving meanwhile.
        yield _Line("The operator cannot get on with it, and tries again:")
        yield from _condition_lines(subject, subject.status.failing)
    for each in filter(None, (subject.condition(kind) for kind in NOTICES)):
        yield _shown("Warning" if each.type in RISKS else "Note", each)
        yield from _advice_lines(subject, each.reason)


def _state(subject: Subject, name: str) -> Iterator[_Line]:
    """Yield whether the object is ready, stalled or in progress."""
    rollback, ready = subject.rollback_condition, subject.condition("Ready")
    if ready is not None and subject.holds("Ready"):
        state, condition = ("rolled back", rollback) if rollback else ("ready", ready)
        yield _Line(_sentence(f"{name} is {state}: {condition.message}"), condition)
        yield from _advice_lines(subject, rollback.reason) if rollback else _newer_work(subject)
    elif subject.holds("Stalled"):
        yield _Line(f"{name} is stalled: {_stalled_until(subject)}.")
        yield from _trouble(subject)
    elif subject.status.failing is not None:
        yield _Line(f"{name} is in progress.")
    else:
        current = picture(subject.status)
        stage = subject.condition(current.stage)
        if not subject.is_paused and stage and stage.status == "False" and stage.reason not in GOES_ON:
            yield _Line(f"{name} is in progress, but something is in the way:")
            yield from _trouble(subject)
        else:
            is_waiting = subject.is_paused or current.reason == Reason.ROLLOUT_HELD
            state = "is waiting for you" if is_waiting else "is in progress"
            yield _Line(_sentence(f"{name} {state}: {current.stage}: {current.reason}: {current.message}"), stage)
            if is_waiting:
                yield from _advice_lines(subject, current.reason)


def _stalled_until(subject: Subject) -> str:
    """Return what ends a stall. What passes by itself is recorded with the time of its last try."""
    stalled = subject.condition("Stalled")
    if subject.is_local:
        return f"nothing goes on by itself; do what is said below, and run {AGAIN}"
    if any(stalled is not None and each.at and each.reason == stalled.reason for each in subject.failures.values()):
        return "the operator tries again by itself"
    return "it cannot become ready until something is changed"


def _newer_work(subject: Subject) -> Iterator[_Line]:
    """Yield the state of what is newer than the active revision, and what to do about it."""
    newer = subject.newer_condition
    up_to_date = subject.condition("UpToDate")
    if up_to_date is not None and up_to_date.status == "Unknown":
        yield _shown("It is not known whether something newer is there", up_to_date)
        yield from _advice_lines(subject, up_to_date.reason)
    if newer is None:
        return
    if subject.status.failing is not None:
        yield _shown("Something newer does not serve yet", newer)
    elif subject.stop_condition is None:
        yield _shown("Something newer is worked on", newer)
    elif subject.waits_for_its_user:
        yield _shown("Something newer waits for you", newer)
        yield from _advice_lines(subject, newer.reason)
    else:
        yield _Line("Something newer does not serve, until something is changed.")
        yield from _trouble(subject)


def _trouble(subject: Subject) -> Iterator[_Line]:
    """Yield the lines of the condition that has failed: what it says, what that means, and what to do."""
    stage = unfinished_stage(subject.status)
    known = stages(conditions_by_type(subject.status))
    first = [stage] if stage in known else []
    conditions = (subject.condition(each) for each in (*first, *known, "Stalled", "UpToDate"))
    failed = (each for each in conditions if each and (each.status == "False") == (each.type != "Stalled"))
    condition = next(failed, None)
    if condition is not None:
        yield from _condition_lines(subject, condition)


def _condition_lines(subject: Subject, condition: Condition) -> Iterator[_Line]:
    """Yield what a condition says, what that means, and what to do."""
    yield _Line(f"  what:  {condition.type}: {condition.reason}: {condition.message}", condition)
    if condition.reason in DOCS:
        yield _Line(f"  means: {DOCS[condition.reason]}")
    yield from _advice_lines(subject, condition.reason)


def _advice_lines(subject: Subject, reason: str) -> Iterator[_Line]:
    """Yield a line with what to do about a reason, if there is anything to do, and it is known."""
    source = subject.spec.source
    name, place, is_local = subject.name, subject.place, subject.is_local
    if text := advice(reason, name, place, source=source, is_explained=True, is_local=is_local):
        yield _Line(f"  to do: {text}", advises=reason)


def _shown(words: str, condition: Condition) -> _Line:
    """Return what a condition says, behind ``words``."""
    return _Line(_sentence(f"{words}: {condition.reason}: {condition.message}"), condition)


def _paragraph(subject: Subject, words: str, condition: Condition, *, is_advised: bool) -> str:
    """Return what a condition says and, if that is wanted, what to do about it."""
    advised = _advice_lines(subject, condition.reason) if is_advised else ()
    return "\n".join(each.text for each in (_shown(words, condition), *advised))


def _serving(subject: Subject) -> str:
    serving = subject.status.active
    if serving is None:
        return "No revision is active."
    is_served = subject.spec.serving.serves
    role = "The active revision is" if is_served else "Nothing is to serve. The revision that passed last is"
    line = f"{role} {serving.candidate} ({serving.format}, {serving.precision})"
    if serving.throughput:
        load = load_of_figures(serving, subject.status.performance.online if subject.status.performance else ())
        figures = f"{_figures_text(serving)}{f' at {load}' if load else ''}"
        sweep = "What clients get, by the online sweep through its Service" if is_served else "On a private server"
        line += f". {sweep}: {figures}"
    accuracy = (f"{each.metric} {each.served} ({each.framework} in the framework)" for each in subject.status.accuracy)
    line = "; ".join([line, *accuracy]) + "."
    target = subject.status.target
    if target is not None and target.revision != serving.revision:
        line += f" The target revision is {target.candidate}; the active one serves until the target has passed."
    return line


def _steps(subject: Subject) -> str:
    """Return where the time of a request to an ensemble goes."""
    steps = subject.status.performance.steps if subject.status.performance else None
    return "\n".join(["By model of the ensemble:", *(f"  {each}" for each in lines(steps))]) if steps else ""


def _filled_fields(subject: Subject) -> str:
    """Return the fields that the spec leaves out and that the operator filled in, after a rollback for its revision."""
    lines = []
    resolved = _recorded_choice(subject) if subject.rollback_condition else subject.status.resolved
    for each in resolved.models if resolved else ():
        fields = [f"format {each.format}"] if each.format else []
        fields += [f"maxBatchSize {each.max_batch_size}"] if each.max_batch_size is not None else []
        fields += list(_config_settings(each.repository)) if each.repository else []
        fields += [f"candidates {', '.join(one.name for one in each.candidates)}"] if each.candidates else []
        lines.append(f"  {each.name}: {'; '.join(fields)}")
    of_active = "when the active revision was made" if subject.rollback_condition else "because the spec leaves it out"
    return "\n".join([f"Filled in, {of_active}:", *lines]) if lines else ""


def _recorded_choice(subject: Subject) -> Resolved | None:
    """Return what the active revision was made with: the status tells of the spec. None: no record tells."""
    revision = subject.history.revision_of_server(subject.server)
    try:
        return Resolved.model_validate(one_line(subject.history.state(revision).resolved)) if revision else None
    except ValidationError:
        return None


def _config_settings(repository: FromRepository) -> Iterator[str]:
    """Yield the settings that the operator takes from the user's config.pbtxt."""
    yield f"file {repository.file}"
    for side, tensors in (("input", repository.inputs), ("output", repository.outputs)):
        yield from (f"{side} {each.name} {each.data_type}{each.request_dims or each.dims}" for each in tensors)
    for name, value in repository.config.model_dump(by_alias=True, exclude_unset=True).items():
        # It is named before, with those that the graph shows.
        if name != "maxBatchSize":
            yield f"{name} {' '.join(value.split()) if isinstance(value, str) else json.dumps(value)}"
    yield from (f"without {each}" for each in repository.left_out)


def _verified(subject: Subject) -> str:
    """Return what passed the gates, what these could not judge, and what the reference warned of; empty: none has."""
    condition = subject.condition("Verified")
    return _sentence(f"Verified: {condition.message}") if condition is not None and condition.status == "True" else ""


def _choice(subject: Subject) -> str:
    if rollback := subject.rollback_condition:
        return "" if subject.holds("Ready") else _sentence(f"Why another revision serves: {rollback.message}")
    selection = subject.spec.selection
    objectives = selection.objectives
    weights = ", ".join(f"{each.metric} (weight {each.weight})" for each in objectives) or "throughput"
    bounds = ", ".join(selection.constraints.words()) or "none"
    text = f"Candidates are ranked by the {_sweep(subject)} sweep on their private servers.\n"
    text += f"Objectives: {weights}.\nConstraints: {bounds}."
    selected = subject.condition("Selected")
    selected_candidate = next((each for each in subject.status.candidates if each.state == "Selected"), None)
    if selected_candidate is None or selected is None:
        return text
    text += "\n" + _sentence(f"Why {selected_candidate.name}: {selected.message}")
    if selected_candidate.stable is False:
        text += "\nIts measurement is unstable: no three windows agreed."
    if margin_text := margin(selected_candidate):
        text += f"\nIts {margin_text}."
    front = [each.name for each in by_rank(subject.status.candidates) if each.pareto]
    if front:
        figures = "all objectives at once" if len(objectives) > 1 else "both throughput and p99 latency"
        text += f"\nPareto-optimal (no other candidate is better in {figures}): {', '.join(front)}."
    return text


def _sweep(subject: Subject) -> str:
    """Return the name of the sweep that candidates are ranked by."""
    return SWEEPS[subject.spec.selection.scenario]


def _searches(subject: Subject) -> str:
    lines = []
    for each in subject.status.search:
        lines.append(f"  {each.candidate}: {search_summary(each)}")
        if each.message:
            lines.append(f"    {each.message}")
        if each.config is not None:
            figures = f"{_figures_text(each)} at {each.load}"
            lines.append(f"    best: {each.config}: {figures}")
    return "\n".join(["Configuration searches:", *lines]) if lines else ""


def _other_candidates(subject: Subject, outcome: Sequence[_Line]) -> str:
    """Return the state of each other candidate. ``outcome``: what the user has read, which is not repeated."""
    lines: list[str] = []
    shown = {(each.shows.reason, each.shows.message) for each in outcome if each.shows}
    advised = {each.advises for each in outcome}
    selected = subject.condition("Selected")
    awaits_approval = selected is not None and selected.reason == Reason.AWAITING_APPROVAL
    for each in by_rank(subject.status.candidates):
        if each.state == "Selected":
            continue
        message = "the message is above" if (each.reason, each.message) in shown else each.message
        description = f"{each.reason}: {message}" if each.message else DOCS.get(each.reason or "", "")
        lines.append(f"  {each.name}: {each.state}{f': {description}' if description else ''}")
        if each.throughput:
            lines.append(f"    best of the {_sweep(subject)} sweep: {_best_figures(each)}")
        if description := margin(each):
            lines.append(f"    constraint: {description}")
        if awaits_approval and each.rank:
            lines.append(f"    revision: {each.revision}")
        if each.state == "Failed" and each.reason not in advised:
            lines += [f"  {one.text}" for one in _advice_lines(subject, each.reason or "")]
            advised.add(each.reason or "")
    return "\n".join(["Other candidates:", *lines]) if lines else ""


def _int8(subject: Subject) -> str:
    """Return what the INT8 graphs of the candidates are like."""
    found = [f"  {each.name}: {words}." for each in by_rank(subject.status.candidates) if (words := int8(each))]
    return "\n".join(["INT8 graphs:", *found]) if found else ""


def _regression_check(subject: Subject) -> str:
    """Return what performance.regression found, if the new source became active all the same."""
    condition = subject.condition("PerformanceMeasured")
    if condition is None or condition.status != "True":
        return ""
    if condition.reason not in (Reason.PERFORMANCE_REGRESSED, Reason.NOT_COMPARED):
        return ""
    return _paragraph(subject, "Regression check", condition, is_advised=True)


def _saturation(subject: Subject) -> str:
    performance = subject.status.performance
    if performance is None or performance.saturation is None:
        return ""
    text = sentence(performance.saturation)
    return f"Saturation in the online sweep on its private server: {text}"


def _mixed_shapes(subject: Subject) -> str:
    performance = subject.status.performance
    return sentences(performance.mixed_shapes) if performance is not None and performance.mixed_shapes else ""


def _autoscaling(subject: Subject) -> str:
    """Whether KEDA scales the object, and what is missing if not."""
    condition = subject.condition("Autoscaling")
    if condition is None:
        return ""
    replicas = subject.status.serving.replicas if subject.status.serving else 0
    counted = condition.model_copy(update={"message": f"{condition.message}; there are {replicas} replicas"})
    return _paragraph(subject, "Autoscaling", counted, is_advised=condition.status == "False")


def _route(subject: Subject) -> str:
    """Whether Gateways lead requests to the object, and what is missing if not."""
    condition = subject.condition("Routed")
    if condition is None:
        return ""
    return _paragraph(subject, "Route", condition, is_advised=condition.status == "False")


def _soak(subject: Subject, outcome: Sequence[_Line]) -> str:
    """The state of the active revision's soak. ``outcome``: what the user has read, which is not repeated."""
    condition = subject.condition("Soaked")
    if condition is None or subject.rollback_condition or subject.holds("Stalled"):
        return ""
    if condition.reason in {Reason.SOAK_FAILED, *(each.shows.reason for each in outcome if each.shows)}:
        return ""
    return _paragraph(subject, "Soak", condition, is_advised=condition.reason not in GOES_ON)


def _image(subject: Subject, outcome: Sequence[_Line]) -> str:
    """The image that the active revision is published as, or why there is none."""
    condition = subject.condition("Published")
    if condition is None or any(each.shows is not None and each.shows.type == "Published" for each in outcome):
        return ""
    return _paragraph(subject, "Image", condition, is_advised=condition.status == "False")


def _environment(subject: Subject) -> str:
    performance = subject.status.performance
    if performance is None or performance.environment is None:
        return ""
    values = "; ".join(f"{name.lower()}: {value}" for name, value in environment_lines(performance.environment))
    return f"Measured at {performance.measured_at}. Environment: {values}."


def _figures_text(item: CandidateStatus | ServingStatus | SearchStatus) -> str:
    return f"{item.throughput} inferences/s, p99Latency {item.p99_latency}"


def _best_figures(candidate: CandidateStatus) -> str:
    text = f"{_figures_text(candidate)} at {candidate.load}"
    return text if candidate.stable is not False else f"{text} (unstable)"


def _sentence(text: str) -> str:
    """The text with one period at its end: some messages have one."""
    return f"{text.rstrip('.')}."
