"""The command line of `kubectl triton`: its commands, and what each of them takes.

The module of a command, `commands.NAME`, is imported once the command runs. So help and completion, which read this
table alone, come at once.
"""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from triton_converters.contract.stages import STAGES
from triton_plugin import argument_groups
from triton_plugin.argument_groups import Parser
from triton_plugin.argument_types import named_path

DESCRIPTION = "Put files on a claim, inspect a TritonDeployment and its results, or check a file."
EPILOG = """\
Instead of a NAME, report, explain, history and compare also take a file with the output of
`kubectl get td/NAME configmap/NAME-results -o yaml`.
"""
NAME_OR_FILE = "name of a TritonDeployment, or a saved file: a name with a dot or a slash is one"
OBJECT_ENDINGS = (".yaml", ".yml")
"""How a file with an object is told from a model's."""
REPORT_FORMS = ("html", "md", "csv", "json")
LOG_LINES = 50
"""How many of the last lines of each container are printed: an exception and what led to it."""


def parser() -> Parser:
    """Return the parser of the whole command line; what it finds has the command's name in ``command``."""
    found = Parser(prog="kubectl triton", description=DESCRIPTION, epilog=EPILOG)
    found.add_argument("--version", action=_Version, nargs=0, help="print the version of this plugin")
    found.set_defaults(namespace=None, context=None, kubeconfig=None)
    argument_groups.location(found)
    subparsers = found.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (text, add_arguments) in COMMANDS.items():
        command = subparsers.add_parser(name, help=text, description=text)
        add_arguments(command)
        argument_groups.location(command)
    return found


class _Version(argparse.Action):
    """Prints the version of the installed package; of a source tree, that it is one."""

    def __call__(self, parser: Parser, *_: Any) -> None:
        # It takes as long to import as everything else here.
        from importlib import metadata

        try:
            print(metadata.version("triton-operator"))
        except metadata.PackageNotFoundError:
            print("a source tree, not installed")
        parser.exit()


def _name(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the TritonDeployment")


def _name_or_file(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help=NAME_OR_FILE)


def _run(parser: Parser) -> None:
    parser.add_argument(
        "model_files",
        metavar="FOLDER|FILE|URI",
        help="folder with the model, or the model's file; or where the cluster finds them, such as s3://BUCKET/PREFIX",
    )
    argument_groups.model(parser)
    parser.add_argument("--name", default="", help="name of the object; default: after the folder")
    parser.add_argument("--secret", default="", metavar="NAME", help="Secret with the credentials for a URI")
    parser.add_argument("--dry-run", action="store_true", help="print the object, and do nothing else")
    again = parser.add_mutually_exclusive_group()
    again.add_argument(
        "--update", action="store_true", help="push the files again, and serve them by the object's file as it is"
    )
    again.add_argument("--force", action="store_true", help="replace the object, or its file, if it exists")
    parser.add_argument(
        "--to-latest",
        action="store_true",
        help="with --update: end a rollback by the same write; the earlier revision serves until the files have passed",
    )
    argument_groups.timeout(parser)
    argument_groups.claim(parser)


def _init(parser: Parser) -> None:
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument(
        "folder", type=Path, nargs="?", metavar="FOLDER|FILE", help="folder with the model, or the model's file"
    )
    group.add_argument(
        "--from",
        type=Path,
        dest="other",
        metavar="FILE|-",
        help="file with KServe's InferenceServices, or standard input",
    )
    parser.add_argument(
        "--listing",
        type=Path,
        metavar="FILE|FOLDER",
        help="of --from: the URIs of the sources' files, one a line; or a folder with the files of its one source",
    )
    argument_groups.model(parser)
    parser.add_argument("--source", default="", metavar="URI", help="where the cluster finds the folder's files")


def _check(parser: Parser) -> None:
    parser.add_argument(
        "path",
        type=Path,
        metavar="FOLDER|FILE|OBJECT",
        help="folder with the model, the model's file, or a YAML file with one TritonDeployment",
    )
    argument_groups.model(parser)
    parser.add_argument("--name", default="", help="name of the object that is written for a model; default: its own")
    parser.add_argument(
        "--folder",
        type=Path,
        help="folder that keeps all; the same one goes on. Default: NAME-check, where the model is",
    )
    for name, what in {
        "claim": "folder that is a PersistentVolumeClaim of the object",
        "secret": "folder that is a Secret of the object, with a file for each key",
        "image": "archive that is an image of the object, as `docker save` writes it",
    }.items():
        metavar = f"{name.upper()}={'ARCHIVE' if name == 'image' else 'FOLDER'}"
        parser.add_argument(f"--{name}", type=named_path, action="append", default=[], metavar=metavar, help=what)
    argument_groups.programs(parser)
    parser.add_argument(
        "--publish",
        default="",
        metavar="URI",
        help="once ready, push it as an image to oci://REGISTRY/REPOSITORY[:TAG], by the account of docker login",
    )
    parser.add_argument(
        "--signing-key",
        type=Path,
        metavar="FILE",
        help="with --publish: sign the image, and a report on it, by a key of cosign or PEM; COSIGN_PASSWORD opens it",
    )
    parser.add_argument(
        "--publish-samples",
        action="store_true",
        help="with --publish: the image also holds the samples and the framework's answers, for kubectl triton replay",
    )
    parser.add_argument(
        "--serve",
        action="store_true",
        help="once it is ready, answer requests on ports 8000 (HTTP), 8001 (gRPC) and 8002 of 127.0.0.1, until Ctrl-C",
    )
    parser.add_argument("--junit", type=Path, metavar="FILE", help="file for the outcome as JUnit's XML")
    argument_groups.timeout(parser)


def _replay(parser: Parser) -> None:
    parser.add_argument("image", metavar="IMAGE", help="a published image, as REGISTRY/REPOSITORY@sha256:DIGEST")
    parser.add_argument(
        "--key", type=Path, required=True, metavar="FILE", help="public key in PEM that must have signed it"
    )
    argument_groups.programs(parser)


def _validate(parser: Parser) -> None:
    text = "files, folders with all below, or standard input"
    parser.add_argument("files", nargs="*", type=Path, default=[], metavar="FOLDER|FILE|-", help=text)
    parser.add_argument(
        "-f", "--filename", action="append", type=Path, default=[], metavar="FILE", help="the same, as kubectl takes it"
    )


def _push(parser: Parser) -> None:
    parser.add_argument("path", type=Path, metavar="FOLDER|FILE", help="what to copy; a file becomes a folder of one")
    parser.add_argument("uri", metavar="pvc://CLAIM/PATH", help="the folder that it becomes; what is there is replaced")
    argument_groups.claim(parser)


def _watch(parser: Parser) -> None:
    _name(parser)
    argument_groups.timeout(parser)


def _logs(parser: Parser) -> None:
    _name(parser)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--stage", choices=sorted(STAGES), help="only the Jobs of this stage")
    group.add_argument("--server", action="store_true", help="only the servers")
    parser.add_argument("--candidate", metavar="NAME", help="only the Jobs of this candidate")
    parser.add_argument(
        "-p", "--previous", action="store_true", help="of containers that were started again: the log before that"
    )
    parser.add_argument("--since", metavar="TIME", help="only what is newer, such as 5m or 2h")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what comes, until Ctrl-C")
    parser.add_argument(
        "--tail",
        type=int,
        default=LOG_LINES,
        metavar="N",
        help=f"last lines of each container; -1: all; default: {LOG_LINES}",
    )


def _report(parser: Parser) -> None:
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("name", nargs="?", metavar="NAME", help=NAME_OR_FILE)
    group.add_argument("--all", action="store_true", help="one page with a row for each object of the namespace")
    group.add_argument(
        "-A",
        "--all-namespaces",
        action="store_true",
        help="the same for all namespaces, which needs the right to list in them",
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=REPORT_FORMS,
        dest="form",
        help="form of the document; default: the ending of the file, or html for standard output",
    )
    parser.add_argument(
        "--file",
        type=Path,
        metavar="FILE",
        help="file to write; md also writes its plots next to it. Or a folder, which gets each form, and tables of the"
        " sweeps and metrics as CSV; with --all or -A, a report of each object. Default: standard output",
    )
    parser.add_argument(
        "--outputs",
        action="store_true",
        help="also write the framework's outputs and those that each candidate served into the folder, as npz files; a"
        " pod reads them from the claim",
    )


def _compare(parser: Parser) -> None:
    parser.add_argument("names", nargs="+", metavar="NAME", help=f"{NAME_OR_FILE}, such as a report.json")
    parser.add_argument(
        "--file",
        type=Path,
        metavar="FILE",
        help="Markdown file to write, of any number of objects: a section for each scenario, GPU or CPU, and candidate,"
        " as NVIDIA's READMEs have them",
    )


def _approve(parser: Parser) -> None:
    _name(parser)
    parser.add_argument(
        "candidate",
        nargs="?",
        metavar="CANDIDATE|KEY",
        help="name of the candidate, or key of its revision, as explain lists them. Only one that passed is taken."
        " Default: the one that waits for the approval",
    )


def _rollback(parser: Parser) -> None:
    _name(parser)
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "revision",
        nargs="?",
        metavar="REVISION",
        help="KEY or KEY.SERVER, as history lists it, also one that is newer or damaged. Default: the last one to serve"
        " that was measured before the active one; refused while what the spec asks for is not active",
    )
    group.add_argument(
        "--to-latest",
        action="store_true",
        help="clear that: what the rollback left serves again at once, if it served before",
    )


def _eject(parser: Parser) -> None:
    _name(parser)
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="folder for the files; default: NAME-ejected")
    parser.add_argument("--force", action="store_true", help="write the files even if the folder exists")


def _update_images(parser: Parser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "names",
        nargs="*",
        default=[],
        metavar="NAME",
        help="objects to update; the active revision of each serves until the new one was measured; none: list all",
    )
    group.add_argument("--all", action="store_true", help="update every object that is listed, all at the same time")
    parser.add_argument("--dry-run", action="store_true", help="list, and change nothing")


COMMANDS: Mapping[str, tuple[str, Callable[[Parser], None]]] = {
    "run": (
        "Push a model folder, write a first TritonDeployment for it, apply it, and watch it until it is ready.",
        _run,
    ),
    "check": (
        "Check and measure a model, or an object, on this Linux machine: without a cluster, Docker or root.",
        _check,
    ),
    "replay": (
        "Serve a published image on this Linux machine, and say whether it answers as its signed report says.",
        _replay,
    ),
    "init": ("Write a first TritonDeployment for a model folder to standard output.", _init),
    "validate": ("Check files for what the API server and the operator would refuse; needs no cluster.", _validate),
    "push": ("Copy a folder or a file to a claim, and print what spec.source takes.", _push),
    "watch": (
        "Show progress until the object is ready, stalled or waiting for you; the exit status says which.",
        _watch,
    ),
    "explain": (
        "Say which revision is active, why this candidate and no other, what is in the way, and what to do.",
        _name_or_file,
    ),
    "logs": (
        "Print the logs of the Jobs and servers of an object; those of the operator are in its own namespace.",
        _logs,
    ),
    "report": ("Write all measurements and the reasons for the selection as a document.", _report),
    "compare": (
        "Compare two objects, with figures if they were measured alike; or write the results of several as a document.",
        _compare,
    ),
    "approve": (
        "Let a candidate serve that passed, where spec.selection.approval is Manual, or one that is worse than before.",
        _approve,
    ),
    "retry": (
        "Run failed Jobs again, measure again what missed a limit, or roll out again what a soak undid; the active"
        " revision serves meanwhile.",
        _name,
    ),
    "history": ("List the revisions that served, to which one can go back.", _name_or_file),
    "rollback": (
        "Serve a revision that served before, without a soak, until you clear that; on a single GPU nothing answers"
        " while its server starts.",
        _rollback,
    ),
    "eject": ("Write the server of an object as plain files, which run without the operator.", _eject),
    "update-images": (
        "List the objects that keep other images than the installation has; those that you name take these: they are"
        " measured again, and their servers replaced.",
        _update_images,
    ),
}
"""What each command does, and how its arguments are added, by its name, in the order in which a user meets them."""
