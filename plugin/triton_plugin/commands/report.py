"""`kubectl triton report`."""

import argparse
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeGuard

from triton_converters.contract import layout
from triton_plugin.command_line import REPORT_FORMS
from triton_plugin.commands.arguments import cluster, subject
from triton_plugin.drafting.push import outputs
from triton_plugin.drafting.push.cluster import Claims, pod_name
from triton_plugin.errors import SubjectError
from triton_plugin.exits import Exit
from triton_plugin.reading.cluster import is_file
from triton_plugin.reading.subject import Subject
from triton_plugin.telling.report import overview
from triton_plugin.telling.report.document import Report, report
from triton_plugin.terminal import say

INDEX = "index.html"
OFFLINE_CSV, ONLINE_CSV, METRICS_CSV = (
    "triton_performance_offline.csv",
    "triton_performance_online.csv",
    "accuracy_metrics.csv",
)
"""The files that NVIDIA's READMEs end with, by their names there."""

CLAIMS = "claims"
"""Folder of a check that stands for the claims that it makes."""


def run(options: argparse.Namespace) -> Exit:
    """Write the report. Raises SubjectError and PushError, which are CommandErrors, and OSError."""
    into_folder = options.form is None and _is_folder(options.file)
    if options.outputs and (options.name is None or not into_folder):
        raise SubjectError("--outputs writes many files of one object: name the object, and a folder by --file FOLDER")
    if options.name is None:
        return _all(options)
    if into_folder:
        found = subject(options, options.name)
        write_folder(report(found), options.file)
        if options.outputs:
            _write_outputs(options, found)
        return Exit.OK
    ending = options.file.suffix.removeprefix(".") if options.file else REPORT_FORMS[0]
    form = options.form or ending
    if form not in REPORT_FORMS:
        raise SubjectError(
            f"{options.file} does not end with .{', .'.join(REPORT_FORMS)}: say which form it has, by -o FORM"
        )
    _write(document(report(subject(options, options.name)), form, options.file), options.file)
    return Exit.OK


def _all(options: argparse.Namespace) -> Exit:
    """Write the page of all objects and, into a folder, a report of each."""
    file: Path | None = options.file
    if options.form not in {None, "html"}:
        raise SubjectError(f"the page of all objects has no form {options.form}: leave -o out, or name one object")
    if file is not None and file.suffix not in {"", ".html"} and not file.is_dir():
        raise SubjectError(f"{file} does not end with .html and is no folder: the page of all objects is HTML")
    source = cluster(options)
    folder = file if _is_folder(file) else None
    now, rows = datetime.now(UTC), []
    for body in source.deployments(everywhere=options.all_namespaces):
        metadata = body["metadata"]
        found = overview.read(body, source.results(metadata["name"], metadata["namespace"]) if folder else None)
        if isinstance(found, Subject):
            found = overview.row(found, now, _linked(found, folder))
        rows.append(found)
    place = "all namespaces" if options.all_namespaces else f"namespace {source.namespace}"
    text = overview.as_html(overview.overview(rows, place, now))
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    _write(text, folder / INDEX if folder is not None else file)
    return Exit.OK


def _is_folder(file: Path | None) -> TypeGuard[Path]:
    """Whether a path is that of a folder: one that is there, or a name without an ending."""
    return file is not None and (file.is_dir() or not file.suffix)


def write_folder(content: Report, folder: Path) -> None:
    """Write a report in each form into a folder, and the tables that NVIDIA's READMEs end with. Raises OSError."""
    from triton_plugin.telling.report.as_csv import as_csv, metrics_csv

    folder.mkdir(parents=True, exist_ok=True)
    for form in ("html", "md", "json"):
        _write(document(content, form, folder / f"report.{form}"), folder / f"report.{form}")
    tables = {
        OFFLINE_CSV: as_csv(content, ("Offline",)),
        ONLINE_CSV: as_csv(content, ("Online", "RequestRate")),
        METRICS_CSV: metrics_csv(content),
    }
    for name, text in tables.items():
        if text:
            _write(text, folder / name)


def _write_outputs(options: argparse.Namespace, found: Subject) -> None:
    """Write the outputs of the framework and of each candidate. Raises PushError, SubjectError, OSError."""
    if found.spec.metrics is None:
        say("No candidate's outputs are kept, only the framework's: the object has no spec.metrics", sys.stderr)
    if is_file(options.name):
        root = Path(options.name).parent / CLAIMS / outputs.claim_name(found) / layout.ROOT.name
        if not root.is_dir():
            raise SubjectError(
                f"{root} is not there, so there are no outputs: name an object of a cluster, or a check's objects.json"
            )
        _fetch([], found, root, options.file / outputs.FOLDER)
        return
    images = found.status.images
    if images is None:
        raise SubjectError(f"the operator has not seen {found.name} yet, so there are no outputs")
    # Before a pod starts: there may be none.
    outputs.places(found, outputs.IN_POD)
    # As Ctrl-C does, it ends the copy in order, and the pod with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(Exit.FAILED))
    pod = outputs.reader(pod_name(), found, images.converter)
    with Claims(cluster(options)).within(pod, partial(say, stream=sys.stderr)) as prefix:
        _fetch(prefix, found, outputs.IN_POD, options.file / outputs.FOLDER)


def _fetch(prefix: Sequence[str], found: Subject, root: Path, folder: Path) -> None:
    for name, place in outputs.places(found, root).items():
        outputs.fetch(prefix, place, folder / name)
        say(f"wrote {folder / name}", sys.stderr)
    for target in outputs.fetch_converted(prefix, found, root, folder):
        say(f"wrote {target}", sys.stderr)


def _linked(found: Subject, folder: Path | None) -> str:
    """Write an object's report into the folder; return its name there, or nothing if there is none."""
    name = overview.file_name(found) if folder is not None else ""
    if folder is not None and name:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(document(report(found), "html", None), encoding="utf-8")
    return name


def _write(text: str, file: Path | None) -> None:
    if file is None:
        sys.stdout.write(text)
        return
    file.write_text(text, encoding="utf-8")
    say(f"wrote {file}", sys.stderr)


def document(content: Report, form: str, output: Path | None) -> str:
    """Return the text of a report. The drawing library is imported only for forms with plots."""
    if form == "json":
        return content.model_dump_json(by_alias=True, indent=2) + "\n"
    if form == "csv":
        from triton_plugin.telling.report.as_csv import as_csv

        return as_csv(content)
    if form == "html":
        from triton_plugin.telling.report.as_html import as_html

        return as_html(content)
    from triton_plugin.telling.report.as_markdown import as_markdown, drawings

    if output is not None:
        for path, drawing in drawings(content).items():
            place = output.parent / path
            place.parent.mkdir(exist_ok=True)
            place.write_text(drawing, encoding="utf-8")
    return as_markdown(content, with_plots=output is not None)
