"""Explains an object in sentences: the outcome, the selection, the other candidates, and what to do. Pure."""

import json
from collections.abc import Iterator

from triton_converters.contract.reasons import Reason
from triton_operator.api.resolved import FromRepository
from triton_operator.api.search_status import SearchStatus
from triton_operator.api.status import NOTICES, RISKS, CandidateStatus, Condition, ServingStatus
from triton_plugin.advice import advice
from triton_plugin.columns import SWEEPS
from triton_plugin.progress import STAGES, picture
from triton_plugin.report.document import environment_lines
from triton_plugin.saturation import sentence
from triton_plugin.subject import Subject
from triton_plugin.tables import margin, ranked

GOES_ON = {Reason.ROLLING_OUT, Reason.WAITING, Reason.RUNNING}
"""Reasons of a condition that is False although nothing is wrong: no revision is active yet."""
HELD = {Reason.SUSPENDED, Reason.AWAITING_APPROVAL}
"""Reasons of what waits for its user, without anything being wrong."""
DOCS = {str(reason): reason.doc for reason in Reason}


def explain(subject: Subject) -> str:
    """Return the whole explanation, without a newline at its end."""
    outcome = _outcome(subject)
    paragraphs = [
        outcome,
        # What serves, with the figures of its Service.
        _serving(subject),
        _last_source(subject),
        _autoscaling(subject),
        _route(subject),
        _soak(subject, outcome),
        # How it was chosen, with the figures of private servers.
        _resolved(subject),
        _unjudged(subject),
        _choice(subject),
        _searches(subject),
        _others(subject, outcome),
        _saturation(subject),
        _measured(subject),
    ]
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def _outcome(subject: Subject) -> str:
    name = f"TritonDeployment {subject.namespace}/{subject.name}"
    if subject.status.observed_generation < 0:
        pods = "kubectl get pods --all-namespaces --selector app.kubernetes.io/name=triton-operator"
        return f"The operator has not seen {name} yet. Check that the operator runs: {pods}"
    lines = []
    if subject.status.observed_generation != subject.generation:
        seen = subject.status.observed_generation
        lines.append(
            f"The operator has not processed generation {subject.generation} of the spec yet;"
            f" what follows describes generation {seen}."
        )
    held = subject.rolled_back
    if subject.holds("Ready"):
        state, words = ("rolled back", held.message) if held else ("ready", _message(subject, "Ready"))
        lines.append(_sentence(f"{name} is {state}: {words}"))
        lines += _to_do(subject, held.reason) if held else _newer(subject)
    elif subject.holds("Stalled"):
        lines.append(f"{name} is stalled: it cannot become ready until something is changed.")
        lines += list(_trouble(subject))
    elif subject.status.failing is not None:
        lines.append(f"{name} is in progress.")
    else:
        now = picture(subject.status)
        found = subject.condition(now.stage)
        if not subject.is_paused and found and found.status == "False" and found.reason not in GOES_ON:
            lines.append(f"{name} is in progress, but something is in the way:")
            lines += list(_trouble(subject))
        else:
            waits = subject.is_paused or now.reason == Reason.ROLLOUT_HELD
            state = "is waiting for you" if waits else "is in progress"
            lines.append(_sentence(f"{name} {state}: {now.stage}: {now.reason}: {now.message}"))
            if waits:
                lines += _to_do(subject, now.reason)
    return "\n".join([*lines, *_failing(subject), *_notices(subject)])


def _newer(subject: Subject) -> Iterator[str]:
    """What becomes of something newer than the active revision."""
    if subject.newer is None:
        return
    words = f"{subject.newer.reason}: {subject.newer.message}"
    if subject.status.failing is not None:
        yield _sentence(f"Something newer does not serve yet: {words}")
    elif subject.stopped is None:
        yield _sentence(f"Something newer is worked on: {words}")
    elif subject.newer.reason in HELD:
        yield _sentence(f"Something newer waits for you: {words}")
        yield from _to_do(subject, subject.newer.reason)
    else:
        yield "Something newer does not serve, until something is changed."
        yield from _trouble(subject)


def _failing(subject: Subject) -> Iterator[str]:
    """Why passes of the operator fail, which changes nothing of what serves."""
    if subject.status.failing is not None:
        yield "The operator cannot get on with it, and tries again:"
        yield from _told_of(subject, subject.status.failing)


def _notices(subject: Subject) -> Iterator[str]:
    """What the user should know, whatever becomes of the object."""
    for each in filter(None, (subject.condition(kind) for kind in NOTICES)):
        kind = "Warning" if each.type in RISKS else "Note"
        yield _sentence(f"{kind}: {each.reason}: {each.message}")
        yield from _to_do(subject, each.reason)


def _trouble(subject: Subject) -> Iterator[str]:
    """What is in the way, what it means, and what to do."""
    observed = (subject.condition(each) for each in (*STAGES, "Stalled", "UpToDate"))
    wrong = (each for each in observed if each and (each.status == "False") == (each.type != "Stalled"))
    found = next(wrong, None)
    if found is not None:
        yield from _told_of(subject, found)


def _told_of(subject: Subject, found: Condition) -> Iterator[str]:
    """What a condition says, what that means, and what to do."""
    yield f"  what:  {found.type}: {found.reason}: {found.message}"
    if found.reason in DOCS:
        yield f"  means: {DOCS[found.reason]}"
    yield from _to_do(subject, found.reason)


def _to_do(subject: Subject, reason: str) -> list[str]:
    """A line with what to do about a reason; none if there is nothing to do or nothing is known."""
    words = advice(reason, subject.name, subject.namespace)
    # Who reads this has typed the command.
    this = f"kubectl triton explain {subject.name} --namespace {subject.namespace}"
    words = words.replace(f": {this}", " below").replace(f" ({this})", " below")
    return [f"  to do: {words}"] if words else []


def _serving(subject: Subject) -> str:
    serving = subject.status.active
    if serving is None:
        return "No revision is active."
    line = f"The active revision is {serving.candidate} ({serving.format}, {serving.precision})"
    if serving.throughput:
        figures = _told(serving)
        line += (
            f". What clients get, by the online sweep through its Service: {figures}{_measured_at(subject, serving)}"
        )
    accuracy = (f"{each.metric} {each.served} ({each.framework} in the framework)" for each in subject.status.accuracy)
    line = "; ".join([line, *accuracy]) + "."
    target = subject.status.target
    if target is not None and target.revision != serving.revision:
        line += f" The target revision is {target.candidate}; the active one serves until the target has passed."
    return line


def _measured_at(subject: Subject, serving: ServingStatus) -> str:
    """The load at which the active revision did so, and whether its windows agreed; empty if no row tells."""
    for row in subject.status.performance.online if subject.status.performance else ():
        if (row.throughput, row.p99_latency) == (serving.throughput, serving.p99_latency):
            return f" at batch {row.batch_size}, concurrency {row.concurrency}{'' if row.stable else ' (unstable)'}"
    return ""


def _resolved(subject: Subject) -> str:
    """What the operator filled in for what the spec leaves out."""
    lines = []
    for each in subject.status.resolved.models if subject.status.resolved else ():
        words = [f"format {each.format}"] if each.format else []
        words += [f"maxBatchSize {each.max_batch_size}"] if each.max_batch_size is not None else []
        words += list(_taken(each.repository)) if each.repository else []
        words += [f"candidates {', '.join(one.name for one in each.candidates)}"] if each.candidates else []
        lines.append(f"  {each.name}: {'; '.join(words)}")
    return "\n".join(["Filled in, because the spec leaves it out:", *lines]) if lines else ""


def _taken(found: FromRepository) -> Iterator[str]:
    """What was taken of the user's config.pbtxt."""
    yield f"file {found.file}"
    for side, tensors in (("input", found.inputs), ("output", found.outputs)):
        yield from (f"{side} {each.name} {each.data_type}{each.dims}" for each in tensors)
    for name, value in found.config.model_dump(by_alias=True, exclude_unset=True).items():
        # It is named before, with those that the graph shows.
        if name != "maxBatchSize":
            yield f"{name} {' '.join(value.split()) if isinstance(value, str) else json.dumps(value)}"


def _unjudged(subject: Subject) -> str:
    """What was not verified, if inputs were generated."""
    found = subject.condition("Verified")
    generated = found is not None and found.reason == Reason.GENERATED_INPUTS
    return _sentence(f"Verified: {_message(subject, 'Verified')}") if generated else ""


def _choice(subject: Subject) -> str:
    if held := subject.rolled_back:
        return "" if subject.holds("Ready") else _sentence(f"Why another revision serves: {held.message}")
    selection = subject.spec.selection
    objectives = selection.objectives
    wanted = ", ".join(f"{each.metric} (weight {each.weight})" for each in objectives) or "throughput"
    bounds = ", ".join(selection.constraints.words()) or "none"
    text = f"Candidates are ranked by the {_sweep(subject)} sweep on their private servers.\n"
    text += f"Objectives: {wanted}.\nConstraints: {bounds}."
    selected = subject.condition("Selected")
    chosen = next((each for each in subject.status.candidates if each.state == "Selected"), None)
    if chosen is None or selected is None:
        return text
    text += "\n" + _sentence(f"Why {chosen.name}: {selected.message}")
    if words := margin(chosen):
        text += f"\nIts {words}."
    front = [each.name for each in ranked(subject.status.candidates) if each.pareto]
    if front:
        figures = "all objectives at once" if len(objectives) > 1 else "both throughput and p99 latency"
        text += f"\nPareto-optimal (no other candidate is better in {figures}): {', '.join(front)}."
    return text


def _sweep(subject: Subject) -> str:
    """The sweep that candidates are ranked by."""
    return SWEEPS[subject.spec.selection.scenario]


def _searches(subject: Subject) -> str:
    lines = []
    for each in subject.status.search:
        words = each.ended or "running"
        space = f"a space of {each.size or '?'} points"
        lines.append(f"  {each.candidate}: {words}, {each.measurements} measurements in {space}")
        if each.message:
            lines.append(f"    {each.message}")
        if each.config is not None:
            figures = f"{_told(each)} at {each.load}"
            lines.append(f"    best: {each.config}: {figures}")
    return "\n".join(["Configuration searches:", *lines]) if lines else ""


def _others(subject: Subject, above: str) -> str:
    """Each other candidate. ``above``: text that the user has read, which is not repeated."""
    lines: list[str] = []
    selected = subject.condition("Selected")
    awaited = selected is not None and selected.reason == Reason.AWAITING_APPROVAL
    for each in ranked(subject.status.candidates):
        if each.state == "Selected":
            continue
        message = "the message is above" if each.message in above else each.message
        words = f"{each.reason}: {message}" if each.message else (DOCS.get(each.reason or "") or each.state)
        lines.append(f"  {each.name}: {each.state}: {words}")
        if each.throughput:
            lines.append(f"    best of the {_sweep(subject)} sweep: {_figures(each)}")
        if words := margin(each):
            lines.append(f"    constraint: {words}")
        if awaited and each.rank:
            lines.append(f"    revision: {each.revision}")
        to_do = advice(each.reason or "", subject.name, subject.namespace) if each.state == "Failed" else ""
        if to_do and to_do not in "\n".join([above, *lines]):
            lines.append(f"    to do: {to_do}")
    return "\n".join(["Other candidates:", *lines]) if lines else ""


def _last_source(subject: Subject) -> str:
    """The result of performance.regression for a source that became active in spite of it."""
    found = subject.condition("PerformanceMeasured")
    if found is None or found.status != "True":
        return ""
    if found.reason not in (Reason.PERFORMANCE_REGRESSED, Reason.NOT_COMPARED):
        return ""
    line = _sentence(f"Regression check: {found.reason}: {found.message}")
    return "\n".join([line, *_to_do(subject, found.reason)])


def _saturation(subject: Subject) -> str:
    performance = subject.status.performance
    if performance is None or performance.saturation is None:
        return ""
    words = sentence(performance.saturation)
    return f"Saturation in the online sweep on its private server: {words}"


def _autoscaling(subject: Subject) -> str:
    """Whether KEDA scales the object, and what is missing if not."""
    found = subject.condition("Autoscaling")
    if found is None:
        return ""
    replicas = subject.status.serving.replicas if subject.status.serving else 0
    line = _sentence(f"Autoscaling: {found.reason}: {found.message}; there are {replicas} replicas")
    return "\n".join([line, *(_to_do(subject, found.reason) if found.status == "False" else [])])


def _route(subject: Subject) -> str:
    """Whether Gateways lead requests to the object, and what is missing if not."""
    found = subject.condition("Routed")
    if found is None:
        return ""
    line = _sentence(f"Route: {found.reason}: {found.message}")
    return "\n".join([line, *(_to_do(subject, found.reason) if found.status == "False" else [])])


def _soak(subject: Subject, above: str) -> str:
    """What became of the active revision's soak. ``above``: text that the user has read, which is not repeated."""
    found = subject.condition("Soaked")
    if found is None or subject.rolled_back or subject.holds("Stalled") or found.reason == Reason.SOAK_FAILED:
        return ""
    if found.message.rstrip(".") in above:
        return ""
    line = _sentence(f"Soak: {found.reason}: {found.message}")
    return "\n".join([line, *(_to_do(subject, found.reason) if found.reason not in GOES_ON else [])])


def _measured(subject: Subject) -> str:
    performance = subject.status.performance
    if performance is None or performance.environment is None:
        return ""
    where = "; ".join(f"{name.lower()}: {value}" for name, value in environment_lines(performance.environment))
    return f"Measured at {performance.measured_at}. Environment: {where}."


def _told(measured: CandidateStatus | ServingStatus | SearchStatus) -> str:
    return f"{measured.throughput} inferences/s, p99Latency {measured.p99_latency}"


def _figures(candidate: CandidateStatus) -> str:
    text = f"{_told(candidate)} at {candidate.load}"
    return text if candidate.stable is not False else f"{text} (unstable)"


def _sentence(text: str) -> str:
    """The text with one period at its end: some messages have one."""
    return f"{text.rstrip('.')}."


def _message(subject: Subject, kind: str) -> str:
    found = subject.condition(kind)
    return found.message if found else ""
