"""`kubectl triton COMMAND`: put files on a claim, inspect a TritonDeployment and its results, or check a file."""

import argparse
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote

from triton_plugin import tables
from triton_plugin.arguments import add_claim, add_location, add_model, add_name, add_names_or_files
from triton_plugin.compare import Comparison, compare
from triton_plugin.explain import explain
from triton_plugin.first_object import ObjectOptions, object_name
from triton_plugin.history import notes, patch, rollback_revision
from triton_plugin.history import table as revisions
from triton_plugin.model_folder import read as read_folder
from triton_plugin.push.cluster import Claims
from triton_plugin.push.command import Options, Pushed, push
from triton_plugin.push.files import collect, digest
from triton_plugin.push.objects import PushError
from triton_plugin.python_files import FolderError
from triton_plugin.remote_model import is_uri
from triton_plugin.remote_model import read as read_uri
from triton_plugin.report.document import Report, report
from triton_plugin.request import first_request
from triton_plugin.retry import retry_effect, retry_refusal
from triton_plugin.run import CLAIM, apply, complete_yaml, start, valid_yaml
from triton_plugin.source import Cluster, is_file, read_file
from triton_plugin.subject import Subject, SubjectError
from triton_plugin.terminal import console, say
from triton_plugin.update_images import refusal, table, with_other_images
from triton_plugin.validation.files import validate
from triton_plugin.watch import watch

FORMATS = ("html", "md", "csv", "json")
OK, FAILED = 0, 1
"""Exit statuses of a command that did what was asked, and of one that could not, as a shell reads them."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    options = _parser().parse_args(argv)
    try:
        return int(options.command(options))
    except (SubjectError, FolderError, PushError) as error:
        say(f"kubectl triton: {error}", sys.stderr)
        return FAILED
    except OSError as error:
        message = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
        say(f"kubectl triton: {message}", sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kubectl triton",
        description=__doc__,
        epilog="Instead of a NAME, report, explain, history and compare also take a file with the output of"
        " `kubectl get td/NAME configmap/NAME-results -o yaml`.",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        subparser = commands.add_parser(name, help=text, description=text)
        subparser.set_defaults(command=run)
        return subparser

    subparser = command("report", _report, "Write all measurements and the reasons for the selection as a document.")
    add_names_or_files(subparser)
    subparser.add_argument(
        "-o",
        "--output",
        choices=FORMATS,
        dest="form",
        help="form of the document; default: the ending of the file, or html for standard output",
    )
    subparser.add_argument(
        "--file", type=Path, help="file to write; md also writes its plots next to it. Default: standard output"
    )
    subparser = command(
        "watch", _watch, "Show progress until the object is ready (exit status 0), stalled or waiting for you (1)."
    )
    add_name(subparser)
    subparser = command("explain", _explain, "Say why this candidate was selected, why not the others, and what to do.")
    add_names_or_files(subparser)
    subparser = command(
        "retry",
        _retry,
        "Try again what failed, measure again if figures stalled the object, or roll out again what a soak undid.",
    )
    add_name(subparser)
    subparser = command(
        "update-images",
        _update_images,
        "List the objects that keep other images than the installation has, and ask the operator to take these.",
    )
    group = subparser.add_mutually_exclusive_group()
    group.add_argument(
        "names", nargs="*", default=[], metavar="NAME", help="objects to update; none: only list them all"
    )
    group.add_argument("--all", action="store_true", help="update every object of the namespace that is listed")
    subparser.add_argument("--dry-run", action="store_true", help="list, and ask for nothing")
    add_location(subparser)
    subparser = command("history", _history, "List the revisions that served, to which one can go back.")
    add_names_or_files(subparser)
    subparser = command(
        "rollback", _rollback, "Serve a revision that served before, whatever the source says, until you clear that."
    )
    add_name(subparser)
    group = subparser.add_mutually_exclusive_group()
    group.add_argument(
        "revision",
        nargs="?",
        metavar="REVISION",
        help="KEY or KEY.SERVER, as history lists it; default: that of the last older one",
    )
    group.add_argument("--to-latest", action="store_true", help="serve what the rest of the spec asks for again")
    subparser = command("compare", _compare, "Compare two objects; figures are shown only if they were measured alike.")
    add_names_or_files(subparser, "A", "B")
    subparser = command(
        "validate", _validate, "Check files for what the API server and the operator would refuse; needs no cluster."
    )
    subparser.add_argument(
        "files", nargs="+", type=Path, metavar="FOLDER|FILE|-", help="files, folders with all below, or standard input"
    )
    subparser = command("init", _init, "Write a first TritonDeployment for a model folder to standard output.")
    subparser.add_argument(
        "folder", type=Path, metavar="FOLDER|FILE", help="folder with the model, or the model's file"
    )
    add_model(subparser)
    subparser.add_argument("--source", default="", metavar="URI", help="where the cluster finds the folder's files")
    subparser = command("push", _push, "Copy a folder or a file to a claim, and print what spec.source takes.")
    subparser.add_argument(
        "path", type=Path, metavar="FOLDER|FILE", help="what to copy; a file becomes a folder of one file"
    )
    subparser.add_argument(
        "uri", metavar="pvc://CLAIM/PATH", help="the folder that it becomes; what is there is replaced"
    )
    add_claim(subparser)
    add_location(subparser)
    subparser = command(
        "run",
        _run,
        "Push a model folder, write a first TritonDeployment for it, apply it, and watch it until it is ready.",
    )
    subparser.add_argument(
        "model_files",
        metavar="FOLDER|FILE|URI",
        help="folder with the model, or the model's file; or where the cluster finds them, such as s3://BUCKET/PREFIX",
    )
    add_model(subparser)
    subparser.add_argument("--name", default="", help="name of the object; default: after the folder")
    subparser.add_argument("--secret", default="", metavar="NAME", help="Secret with the credentials for a URI")
    subparser.add_argument("--dry-run", action="store_true", help="print the object, and do nothing else")
    subparser.add_argument("--force", action="store_true", help="write the object's file even if it exists")
    add_claim(subparser)
    add_location(subparser)
    return parser


def _subject(options: argparse.Namespace, name: str) -> Subject:
    return read_file(name) if is_file(name) else Cluster(options.context, options.namespace).subject(name)


def _report(options: argparse.Namespace) -> int:
    ending = options.file.suffix.removeprefix(".") if options.file else FORMATS[0]
    form = options.form or ending
    if form not in FORMATS:
        raise SubjectError(
            f"{options.file} does not end with .{', .'.join(FORMATS)}: say which form it has, by -o FORM"
        )
    text = _document(report(_subject(options, options.name)), form, options.file)
    if options.file is None:
        sys.stdout.write(text)
    else:
        options.file.write_text(text, encoding="utf-8")
        say(f"wrote {options.file}", sys.stderr)
    return OK


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


def _watch(options: argparse.Namespace) -> int:
    return _watch_object(Cluster(options.context, options.namespace), options.name)


def _watch_object(cluster: Cluster, name: str) -> int:
    return watch(
        lambda: cluster.triton_deployment(name),
        lambda: cluster.last_measurement(name),
        console(),
        time.monotonic,
        time.sleep,
    )


def _explain(options: argparse.Namespace) -> int:
    say(explain(_subject(options, options.name)))
    return OK


def _retry(options: argparse.Namespace) -> int:
    cluster = Cluster(options.context, options.namespace)
    subject = cluster.subject(options.name)
    effect = retry_effect(subject)
    if not effect:
        raise SubjectError(retry_refusal(subject))
    cluster.retry(options.name, datetime.now(UTC).isoformat(timespec="seconds"))
    say(f"TritonDeployment {options.name}: the operator was asked for another try: {effect}")
    return OK


def _update_images(options: argparse.Namespace) -> int:
    cluster = Cluster(options.context, options.namespace)
    subjects = [cluster.subject(each) for each in options.names] if options.names else None
    outdated = with_other_images(cluster.subjects() if subjects is None else subjects)
    if not outdated:
        say("No object keeps other images than the installation has.")
        return OK
    console().print(table(outdated))
    if options.dry_run or not (options.all or options.names):
        say("Nothing was asked for. To update objects, name them, or type --all, without --dry-run.")
        return OK
    moment = datetime.now(UTC).isoformat(timespec="seconds")
    for each in outdated:
        if reason := refusal(each):
            say(f"TritonDeployment {each.name}: {reason}; to see why, type: kubectl triton explain {quote(each.name)}")
            continue
        cluster.update_images(each.name, moment)
        say(
            f"TritonDeployment {each.name}: the operator was asked for these images: what they make is made, verified"
            " and measured again, while the active revision serves; to follow it: kubectl triton watch"
            f" {quote(each.name)}"
        )
    return OK


def _history(options: argparse.Namespace) -> int:
    _print_history(_subject(options, options.name))
    return OK


def _print_history(subject: Subject) -> None:
    console().print(revisions(subject))
    for each in notes(subject):
        say(each)


def _rollback(options: argparse.Namespace) -> int:
    cluster = Cluster(options.context, options.namespace)
    subject = cluster.subject(options.name)
    if not options.to_latest:
        _print_history(subject)
    name = None if options.to_latest else rollback_revision(subject, options.revision)
    cluster.patch(options.name, patch(name))
    change = f"is set to {name}" if name else "is removed"
    say(
        f"TritonDeployment {options.name}: spec.rollout.revision {change}. If a GitOps tool applies this object, make"
        " the same change in Git: the tool may take this one back. To follow it: kubectl triton watch"
        f" {quote(options.name)}"
    )
    return OK


def _compare(options: argparse.Namespace) -> int:
    left, right = (report(_subject(options, name)) for name in (options.a, options.b))
    _print_comparison(left.name, right.name, compare(left, right))
    return OK


def _print_comparison(left: str, right: str, comparison: Comparison) -> None:
    out = console()
    if left == right:
        left, right = f"{left} (A)", f"{right} (B)"
    out.print(tables.Grid("Differences", ("Parameter", left, right), comparison.parameters))
    out.print(tables.Grid("Served accuracy", ("Metric", left, right), comparison.accuracy))
    if comparison.obstacles:
        out.print("Figures are not compared, because they were not measured alike:", markup=False)
        for each in comparison.obstacles:
            out.print(f"  {each}", markup=False, soft_wrap=True)
        return
    headings = ("Scenario", "Load", "Figure", left, right, "Change")
    out.print(tables.Grid("Measured alike", headings, comparison.rows))
    if comparison.unmatched_loads:
        out.print(
            f"Left out: {comparison.unmatched_loads} loads that only one of the two was measured at", markup=False
        )


def _validate(options: argparse.Namespace) -> int:
    return OK if validate(options.files, say) else FAILED


def _init(options: argparse.Namespace) -> int:
    folder = read_folder(options.folder, options.model, options.format)
    sys.stdout.write(valid_yaml(folder, replace(_object_options(options), source=options.source)))
    return OK


def _object_options(options: argparse.Namespace) -> ObjectOptions:
    return ObjectOptions(dataset=options.dataset, gpu=options.gpu, max_batch_size=options.max_batch_size)


def _run(options: argparse.Namespace) -> int:
    uri = options.model_files if is_uri(options.model_files) else ""
    path = Path(options.model_files)
    if options.secret and not uri:
        raise FolderError("--secret is for a URI: a folder of this machine is pushed to a claim")
    folder = read_uri(uri, options.model, options.format) if uri else read_folder(path, options.model, options.format)
    name = options.name or object_name(folder.name)
    if name != object_name(name):
        raise FolderError(f"an object cannot have the name {name}; choose one such as {object_name(name)}: --name NAME")
    object_options = replace(
        _object_options(options), name=name, source=uri or f"pvc://{CLAIM}/{name}", secret=options.secret
    )
    if options.dry_run:
        sha256 = "" if uri else digest(collect(path).files, lambda _: None)
        sys.stdout.write(complete_yaml(folder, replace(object_options, sha256=sha256)))
        return OK
    cluster = Cluster(options.context, options.namespace)
    # Never inside the folder: it would be pushed the next time.
    file = (Path.cwd() if uri else path.resolve().parent) / f"{name}.yaml"
    start(
        folder,
        object_options,
        file,
        lambda: "" if uri else _push_files(cluster, options, path, object_options.source).sha256,
        lambda object_file: apply(cluster.kubectl, object_file),
        say,
        options.force,
    )
    status = _watch_object(cluster, name)
    if status == OK:
        say(f"\n{first_request(cluster.subject(name))}")
    return status


def _push(options: argparse.Namespace) -> int:
    result = _push_files(Cluster(options.context, options.namespace), options, options.path, options.uri)
    say(f"source:\n  uri: {result.uri}\n  sha256: {result.sha256}")
    return OK


def _push_files(cluster: Cluster, options: argparse.Namespace, path: Path, uri: str) -> Pushed:
    # As Ctrl-C does, it ends the push in order, and the pod with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(FAILED))
    push_options = Options(options.size, options.storage_class, options.image)
    return push(Claims(cluster), path, uri, push_options, console(stderr=True))


if __name__ == "__main__":
    sys.exit(main())
