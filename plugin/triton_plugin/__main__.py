"""`kubectl triton COMMAND`: put files on a claim, inspect a TritonDeployment and its results, or check a file."""

import argparse
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import yaml

from triton_plugin import tables
from triton_plugin.compare import Comparison, compare
from triton_plugin.explain import explain
from triton_plugin.first_object import Known, object_name
from triton_plugin.found_models import FORMATS as SOURCE_FORMATS
from triton_plugin.history import chosen, patch
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
from triton_plugin.retry import asked, refused
from triton_plugin.run import CLAIM, apply, complete, start, valid
from triton_plugin.source import Cluster, is_file, read_file
from triton_plugin.subject import Subject, SubjectError
from triton_plugin.terminal import console, say
from triton_plugin.update_images import outdated, table
from triton_plugin.validation.hints import hint
from triton_plugin.validation.validate import check, deployments, schema
from triton_plugin.watch import watch

FORMATS = ("html", "md", "csv", "json")
OK, FAILED = 0, 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    options = _parser().parse_args(argv)
    try:
        return int(options.command(options))
    except (SubjectError, FolderError, PushError, OSError) as error:
        say(f"kubectl triton: {error}", sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kubectl triton",
        description=__doc__,
        epilog="Instead of a NAME, report, explain and compare also accept a file with the output of"
        " `kubectl get td/NAME configmap/NAME-results -o yaml`.",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text)
        made.set_defaults(command=run)
        return made

    made = command("report", _report, "Write all measurements and the reasons for the selection as a document.")
    made.add_argument("name")
    made.add_argument(
        "-o",
        choices=FORMATS,
        dest="form",
        help="form of the document; default: the suffix of the file, or html",
    )
    made.add_argument(
        "--output", type=Path, help="file to write; md also writes its plots next to it. Default: standard output"
    )
    _add_place(made)
    made = command(
        "watch", _watch, "Show progress until the object is ready (exit status 0), stalled or waiting for you (1)."
    )
    made.add_argument("name")
    _add_place(made)
    made = command("explain", _explain, "Say why this candidate was selected, why not the others, and what to do.")
    made.add_argument("name")
    _add_place(made)
    made = command(
        "retry",
        _retry,
        "Try again what failed, measure again if figures stalled the object, or roll out again what a soak undid.",
    )
    made.add_argument("name")
    _add_place(made)
    made = command(
        "update-images",
        _update_images,
        "List the objects that keep other images than the installation has, and ask the operator to take these.",
    )
    made.add_argument("names", nargs="*", metavar="NAME", help="objects to update; none: only list them all")
    made.add_argument("--all", action="store_true", help="update every object of the namespace that is listed")
    made.add_argument("--dry-run", action="store_true", help="list, and ask for nothing")
    _add_place(made)
    made = command("history", _history, "List the revisions that served, to which one can go back.")
    made.add_argument("name")
    _add_place(made)
    made = command(
        "rollback", _rollback, "Serve a revision that served before, whatever the source says, until you clear that."
    )
    made.add_argument("name")
    which = made.add_mutually_exclusive_group()
    which.add_argument("revision", nargs="?", metavar="REVISION", help="its name; default: that of the one before")
    which.add_argument("--to-latest", action="store_true", help="serve what the rest of the spec asks for again")
    _add_place(made)
    made = command("compare", _compare, "Compare two objects; figures are shown only if they were measured alike.")
    made.add_argument("left", metavar="A")
    made.add_argument("right", metavar="B")
    _add_place(made)
    made = command(
        "validate", _validate, "Check files for what the API server and the operator would refuse; needs no cluster."
    )
    made.add_argument("files", nargs="+", type=Path, metavar="FILE")
    made = command("init", _init, "Write a first TritonDeployment for a model folder to standard output.")
    made.add_argument("folder", type=Path, metavar="FOLDER|FILE", help="folder with the model, or the model's file")
    _add_model(made)
    made.add_argument("--source", default="", metavar="URI", help="where the cluster finds the folder's files")
    made = command("push", _push, "Copy a folder or a file to a claim, and print what spec.source takes.")
    made.add_argument(
        "path", type=Path, metavar="FOLDER|FILE", help="what to copy; a file becomes a folder of one file"
    )
    made.add_argument("uri", metavar="pvc://CLAIM/PATH", help="the folder that it becomes; what is there is replaced")
    _add_claim(made)
    _add_place(made)
    made = command(
        "run",
        _run,
        "Push a model folder, write a first TritonDeployment for it, apply it, and watch it until it is ready.",
    )
    made.add_argument(
        "model_files",
        metavar="FOLDER|FILE|URI",
        help="folder with the model, or the model's file; or where the cluster finds them, such as s3://BUCKET/PREFIX",
    )
    _add_model(made)
    made.add_argument("--name", default="", help="name of the object; default: after the folder")
    made.add_argument("--secret", default="", metavar="NAME", help="Secret with the credentials for a URI")
    made.add_argument("--dry-run", action="store_true", help="print the object, and do nothing else")
    made.add_argument("--force", action="store_true", help="write the object's file even if it exists")
    _add_claim(made)
    _add_place(made)
    return parser


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model", default="", metavar="PATH", help="path of the model below the folder, if there are several"
    )
    parser.add_argument(
        "--format", choices=SOURCE_FORMATS, default="", help="format of the model, if its file does not show it"
    )
    parser.add_argument(
        "--data", default="", metavar="URI", help="where the cluster finds the data that the dataloader reads"
    )
    parser.add_argument("--gpu", default="", metavar="PRODUCT", help="product of the nodes' GPUs; default: run on CPU")
    parser.add_argument(
        "--max-batch-size", type=int, metavar="N", help="largest batch; 0: the model has no batch dimension"
    )


def _add_claim(parser: argparse.ArgumentParser) -> None:
    size = Options.size
    parser.add_argument("--size", default=size, help=f"size of the claim, if it does not exist yet; default: {size}")
    parser.add_argument(
        "--storage-class", default="", metavar="NAME", help="StorageClass of such a claim; default: the cluster's"
    )
    parser.add_argument("--image", default="", help="image of the pod that takes the files; default: the converter's")


def _add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", "--namespace", help="namespace; default: the context's")
    parser.add_argument("--context", help="context of the kubeconfig; default: the current one")


def _subject(options: argparse.Namespace, name: str) -> Subject:
    return read_file(name) if is_file(name) else Cluster(options.context, options.namespace).subject(name)


def _report(options: argparse.Namespace) -> int:
    made = report(_subject(options, options.name))
    ending = options.output.suffix.removeprefix(".") if options.output else ""
    text = _written(made, options.form or (ending if ending in FORMATS else FORMATS[0]), options.output)
    if options.output is None:
        sys.stdout.write(text)
    else:
        options.output.write_text(text, encoding="utf-8")
        say(f"wrote {options.output}", sys.stderr)
    return OK


def _written(made: Report, form: str, output: Path | None) -> str:
    """Return the text of a report. The drawing library is imported only for forms with plots."""
    if form == "json":
        return made.model_dump_json(by_alias=True, indent=2) + "\n"
    if form == "csv":
        from triton_plugin.report.as_csv import as_csv

        return as_csv(made)
    if form == "html":
        from triton_plugin.report.as_html import as_html

        return as_html(made)
    from triton_plugin.report.as_markdown import as_markdown, drawings

    if output is not None:
        for path, drawing in drawings(made).items():
            place = output.parent / path
            place.parent.mkdir(exist_ok=True)
            place.write_text(drawing, encoding="utf-8")
    return as_markdown(made, with_plots=output is not None)


def _watch(options: argparse.Namespace) -> int:
    return _watched(Cluster(options.context, options.namespace), options.name)


def _watched(cluster: Cluster, name: str) -> int:
    return watch(
        lambda: cluster.deployment(name), lambda: cluster.measured(name), console(), time.monotonic, time.sleep
    )


def _explain(options: argparse.Namespace) -> int:
    say(explain(_subject(options, options.name)))
    return OK


def _retry(options: argparse.Namespace) -> int:
    cluster = Cluster(options.context, options.namespace)
    subject = cluster.subject(options.name)
    words = asked(subject)
    if not words:
        raise SubjectError(refused(subject))
    cluster.retry(options.name, datetime.now(UTC).isoformat(timespec="seconds"))
    say(f"TritonDeployment {options.name}: the operator was asked for another try: {words}")
    return OK


def _update_images(options: argparse.Namespace) -> int:
    cluster = Cluster(options.context, options.namespace)
    named = [cluster.subject(each) for each in options.names] if options.names and not options.all else None
    behind = outdated(cluster.subjects() if named is None else named)
    if not behind:
        say("No object keeps other images than the installation has.")
        return OK
    console().print(table(behind))
    if options.dry_run or not (options.all or options.names):
        say("Nothing was asked for. To update objects, name them, or type --all, without --dry-run.")
        return OK
    moment = datetime.now(UTC).isoformat(timespec="seconds")
    for each in behind:
        cluster.update_images(each.name, moment)
        say(
            f"TritonDeployment {each.name}: the operator was asked for these images: every model is converted and"
            f" verified with them, while the active revision serves; to follow it: kubectl triton watch {each.name}"
        )
    return OK


def _history(options: argparse.Namespace) -> int:
    console().print(revisions(_subject(options, options.name)))
    return OK


def _rollback(options: argparse.Namespace) -> int:
    cluster = Cluster(options.context, options.namespace)
    subject = cluster.subject(options.name)
    name = None if options.to_latest else chosen(subject, options.revision)
    if name is not None:
        console().print(revisions(subject))
    cluster.patch(options.name, patch(name))
    what = f"is set to {name}" if name else "is removed"
    say(
        f"TritonDeployment {options.name}: spec.rollout.revision {what}. If a GitOps tool applies this object, make the"
        f" same change in Git, or it takes this one back. To follow it: kubectl triton watch {options.name}"
    )
    return OK


def _compare(options: argparse.Namespace) -> int:
    left, right = (report(_subject(options, name)) for name in (options.left, options.right))
    _print_comparison(left.name, right.name, compare(left, right))
    return OK


def _print_comparison(left: str, right: str, found: Comparison) -> None:
    out = console()
    if left == right:
        left, right = f"{left} (A)", f"{right} (B)"
    out.print(tables.Grid("Differences", ("Parameter", left, right), found.parameters))
    out.print(tables.Grid("Served accuracy", ("Metric", left, right), found.accuracy))
    if found.obstacles:
        out.print("Figures are not compared, because they were not measured alike:", markup=False)
        for each in found.obstacles:
            out.print(f"  {each}", markup=False, soft_wrap=True)
        return
    headings = ("Scenario", "Load", "Figure", left, right, "Change")
    out.print(tables.Grid("Measured alike (latencies in µs)", headings, found.rows))
    if found.unmatched:
        out.print(f"Left out: {found.unmatched} loads that only one of the two was measured at", markup=False)


def _validate(options: argparse.Namespace) -> int:
    faulty = False
    for path in options.files:
        try:
            found = list(deployments(path.read_text(encoding="utf-8")))
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            say(f"{path}: not valid YAML: {error}")
            faulty = True
            continue
        if not found:
            say(f"{path}: contains no TritonDeployment")
            faulty = True
        for body in found:
            metadata = body.get("metadata")
            name = metadata.get("name", "(no name)") if isinstance(metadata, dict) else "(no name)"
            faults = check(body)
            faulty = faulty or bool(faults)
            for fault in faults:
                words = hint(fault, schema(old_names=False))
                say(f"{path}: {name}: {fault}{'. ' if words else ''}{words}")
            if not faults:
                say(f"{path}: {name}: valid")
    return FAILED if faulty else OK


def _init(options: argparse.Namespace) -> int:
    found = read_folder(options.folder, options.model, options.format)
    sys.stdout.write(valid(found, replace(_known(options), source=options.source)))
    return OK


def _known(options: argparse.Namespace) -> Known:
    return Known(data=options.data, gpu=options.gpu, max_batch_size=options.max_batch_size)


def _run(options: argparse.Namespace) -> int:
    uri = options.model_files if is_uri(options.model_files) else ""
    path = Path(options.model_files)
    if options.secret and not uri:
        raise FolderError("--secret is for a URI: a folder of this machine is pushed to a claim")
    found = read_uri(uri, options.model, options.format) if uri else read_folder(path, options.model, options.format)
    name = options.name or object_name(found.name)
    if name != object_name(name):
        raise FolderError(f"an object cannot have the name {name}; choose one such as {object_name(name)}: --name NAME")
    known = replace(_known(options), name=name, source=uri or f"pvc://{CLAIM}/{name}", secret=options.secret)
    if options.dry_run:
        sha256 = "" if uri else digest(collect(path).files, lambda _: None)
        sys.stdout.write(complete(found, replace(known, sha256=sha256)))
        return OK
    cluster = Cluster(options.context, options.namespace)
    # Never inside the folder: it would be pushed the next time.
    file = (Path.cwd() if uri else path.resolve().parent) / f"{name}.yaml"
    start(
        found,
        known,
        file,
        lambda: "" if uri else _pushed(cluster, options, path, known.source).sha256,
        lambda written: apply(cluster.kubectl, written),
        say,
        options.force,
    )
    status = _watched(cluster, name)
    if status == OK:
        say(f"\n{first_request(cluster.subject(name))}")
    return status


def _push(options: argparse.Namespace) -> int:
    pushed = _pushed(Cluster(options.context, options.namespace), options, options.path, options.uri)
    say(f"source:\n  uri: {pushed.uri}\n  sha256: {pushed.sha256}")
    return OK


def _pushed(cluster: Cluster, options: argparse.Namespace, path: Path, uri: str) -> Pushed:
    # As Ctrl-C does, it ends the push in order, and the pod with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(FAILED))
    chosen = Options(options.size, options.storage_class, options.image)
    return push(Claims(cluster), path, uri, chosen, console(stderr=True))


if __name__ == "__main__":
    sys.exit(main())
