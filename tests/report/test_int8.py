"""What people read of an INT8 graph, wherever they look."""

from collections.abc import Callable

import pytest
from rich.console import Console

from tests.report.subjects import expected, golden
from triton_plugin.reading.subject import Subject, parse
from triton_plugin.telling import tables
from triton_plugin.telling.explain import explain
from triton_plugin.telling.report.as_html import as_html
from triton_plugin.telling.report.as_markdown import as_markdown
from triton_plugin.telling.report.document import report

WORDS = (
    "38 of 41 convolutions and matrix products run in INT8 (Static, 32 calibration samples), 3.06 times as fast as fp32"
    " in the conversion Job, with a signal-to-noise ratio of 39.6 dB"
)


def quantized() -> Subject:
    """Two candidates, of which the one in INT8 serves."""
    body, results = golden("int8")
    body["status"] = expected("int8")
    return parse(body, results)


def printed(subject: Subject) -> str:
    console = Console(width=1000)
    with console.capture() as capture:
        console.print(tables.reasons(subject.status.candidates))
    return capture.get()


FORMS: dict[str, Callable[[Subject], str]] = {
    "explain": explain,
    "table": printed,
    "HTML": lambda subject: as_html(report(subject)),
    "Markdown": lambda subject: as_markdown(report(subject), with_plots=False),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_says_how_much_runs_in_int8(form: str) -> None:
    assert WORDS in FORMS[form](quantized()).replace("\\", "")


def test_the_report_counts_the_samples_that_the_metrics_were_computed_of() -> None:
    """Of 64 samples, half may calibrate; as many are asked for by default."""
    assert {each.samples for one in report(quantized()).candidates for each in one.accuracy} == {32}
