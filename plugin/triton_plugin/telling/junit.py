"""The outcome of an object as JUnit's XML, which CI systems show. Pure."""

from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element, SubElement, tostring

from triton_converters.contract.text import printable
from triton_plugin.reading.subject import Subject
from triton_plugin.telling.progress import GOES_ON, conditions_by_type, overdue, stages


def junit(subject: Subject, *, is_late: bool = False) -> str:
    """Return a suite with a case for each stage and for each candidate. ``is_late``: the time to wait was over."""
    return _suite(subject.name, [*_stages(subject, is_late), *_candidates(subject)])


def junit_of_error(name: str, message: str) -> str:
    """Return a suite whose only case says why nothing could be checked."""
    case = Element("testcase", classname=name, name="Ready")
    _tell(case, "error", message, "CommandError")
    return _suite(name, [case])


def _suite(name: str, cases: Sequence[Element]) -> str:
    tags = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    counts = {each: str(sum(case.find(tag) is not None for case in cases)) for each, tag in tags.items()}
    suite = Element("testsuite", {"name": name, "tests": str(len(cases)), **counts})
    suite.extend(cases)
    text = tostring(suite, encoding="unicode")
    # XML has no form for what a terminal would obey.
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + printable(text, "\N{REPLACEMENT CHARACTER}") + "\n"


def _tell(case: Element, tag: str, message: str, kind: str = "") -> None:
    """Say why a case has not passed: some CI systems show the attribute, others the text."""
    SubElement(case, tag, {"message": message, **({"type": kind} if kind else {})}).text = message


def _stages(subject: Subject, is_late: bool) -> Iterator[Element]:
    for stage in ("Ready", *stages(conditions_by_type(subject.status))):
        found = subject.condition(stage)
        case = Element("testcase", classname=subject.name, name=stage)
        if is_late and stage == "Ready":
            _tell(case, "failure", overdue(subject.status), "TimedOut")
        elif found is not None and found.status == "True":
            SubElement(case, "system-out").text = f"{found.reason}: {found.message}"
        elif found is not None and (
            stage == "Ready" or (found.status == "False" and not (is_late and found.reason in GOES_ON))
        ):
            _tell(case, "failure", found.message, found.reason)
        else:
            _tell(case, "skipped", found.message if found is not None else "not reached")
        yield case


def _candidates(subject: Subject) -> Iterator[Element]:
    for each in subject.status.candidates:
        case = Element("testcase", classname=f"{subject.name}.candidates", name=each.name)
        # One that fails is refused, as it should be: only the object's own outcome is a failure.
        if each.state in ("Failed", "Skipped") or not each.throughput:
            _tell(case, "skipped", ": ".join(filter(None, (each.reason or each.state, each.message))))
        else:
            p99 = f", p99 {each.p99_latency}" if each.p99_latency is not None else ""
            SubElement(case, "system-out").text = (
                f"{each.state}: {each.throughput} inferences/s{p99}, {each.load};"
                f" largest error {each.max_absolute_error}"
            )
        yield case
