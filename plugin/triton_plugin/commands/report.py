"""`kubectl triton report`."""

import argparse
import sys
from pathlib import Path

from triton_plugin.arguments import add_names_or_files, subject
from triton_plugin.errors import SubjectError
from triton_plugin.exits import Exit
from triton_plugin.report.document import Report, report
from triton_plugin.terminal import say

FORMATS = ("html", "md", "csv", "json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the object, and the document's form and place."""
    add_names_or_files(parser)
    parser.add_argument(
        "-o",
        "--output",
        choices=FORMATS,
        dest="form",
        help="form of the document; default: the ending of the file, or html for standard output",
    )
    parser.add_argument(
        "--file", type=Path, help="file to write; md also writes its plots next to it. Default: standard output"
    )


def run(options: argparse.Namespace) -> Exit:
    """Write the report. Raises CommandError and OSError."""
    ending = options.file.suffix.removeprefix(".") if options.file else FORMATS[0]
    form = options.form or ending
    if form not in FORMATS:
        raise SubjectError(
            f"{options.file} does not end with .{', .'.join(FORMATS)}: say which form it has, by -o FORM"
        )
    text = _document(report(subject(options, options.name)), form, options.file)
    if options.file is None:
        sys.stdout.write(text)
    else:
        options.file.write_text(text, encoding="utf-8")
        say(f"wrote {options.file}", sys.stderr)
    return Exit.OK


def _document(content: Report, form: str, output: Path | None) -> str:
    """Return the text of a report. The drawing library is imported only for forms with plots."""
    if form == "json":
        return content.model_dump_json(by_alias=True, indent=2) + "\n"
    if form == "csv":
        from triton_plugin.report.as_csv import as_csv

        return as_csv(content)
    if form == "html":
        from triton_plugin.report.as_html import as_html

        return as_html(content)
    from triton_plugin.report.as_markdown import as_markdown, drawings

    if output is not None:
        for path, drawing in drawings(content).items():
            place = output.parent / path
            place.parent.mkdir(exist_ok=True)
            place.write_text(drawing, encoding="utf-8")
    return as_markdown(content, with_plots=output is not None)
