"""The outcome of an object as JUnit's XML, which CI systems show. Pure."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element, SubElement, tostring

from triton_converters.contract.text import printable
from triton_plugin.reading.subject import Subject
from triton_plugin.telling.progress import STAGES


def junit(subject: Subject) -> str:
    """Return a suite with a case for each stage and for each candidate."""
    cases = [*_stages(subject), *_candidates(subject)]
    failures, skipped = (str(sum(each.find(tag) is not None for each in cases)) for tag in ("failure", "skipped"))
    suite = Element("testsuite", name=subject.name, tests=str(len(cases)), failures=failures, skipped=skipped)
    suite.extend(cases)
    text = tostring(suite, encoding="unicode")
    # XML has no form for what a terminal would obey.
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + printable(text, "\N{REPLACEMENT CHARACTER}") + "\n"


def _stages(subject: Subject) -> Iterator[Element]:
    for stage in ("Ready", *STAGES):
        found = subject.condition(stage)
        case = Element("testcase", classname=subject.name, name=stage)
        if found is not None and found.status == "True":
            SubElement(case, "system-out").text = f"{found.reason}: {found.message}"
        elif found is not None and (stage == "Ready" or found.status == "False"):
            SubElement(case, "failure", type=found.reason, message=found.message)
        else:
            SubElement(case, "skipped", message=found.message if found is not None else "not reached")
        yield case


def _candidates(subject: Subject) -> Iterator[Element]:
    for each in subject.status.candidates:
        case = Element("testcase", classname=f"{subject.name}.candidates", name=each.name)
        # One that fails is refused, as it should be: only the object's own outcome is a failure.
        if each.state in ("Failed", "Skipped"):
            SubElement(case, "skipped", message=f"{each.reason}: {each.message}")
        else:
            SubElement(case, "system-out").text = (
                f"{each.state}: {each.throughput} inferences/s, p99 {each.p99_latency}, {each.load};"
                f" largest error {each.max_absolute_error}"
            )
        yield case
