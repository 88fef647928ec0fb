"""`kubectl triton run`."""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from triton_operator.kube.kinds import TRITON_DEPLOYMENT
from triton_plugin.arguments import add_claim, add_model, cluster, model_folder, object_options
from triton_plugin.commands.push import push_files
from triton_plugin.commands.watch import add_timeout, watch_object
from triton_plugin.errors import FolderError
from triton_plugin.exits import Exit
from triton_plugin.first_object import misspelled, notices, object_name, undemanded
from triton_plugin.location import add_location
from triton_plugin.model_folder import ModelFolder
from triton_plugin.push.files import collect, digest
from triton_plugin.remote_model import is_uri
from triton_plugin.remote_model import read as read_uri
from triton_plugin.request import first_request
from triton_plugin.run import CLAIM, apply, complete_yaml, following, replacement, start, update
from triton_plugin.terminal import say
from triton_plugin.triton_repository.packages import WRITE
from triton_plugin.validation.validate import deployments

SAID_BY_FILE = ("dataset", "gpu", "max_batch_size", "p99_latency", "threshold")
"""Options that say what is in the object."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the model, the object's name and what goes into it."""
    parser.add_argument(
        "model_files",
        metavar="FOLDER|FILE|URI",
        help="folder with the model, or the model's file; or where the cluster finds them, such as s3://BUCKET/PREFIX",
    )
    add_model(parser)
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
    add_timeout(parser)
    add_claim(parser)
    add_location(parser)


def run(options: argparse.Namespace) -> Exit:
    """Serve the model and print a first request. Raises CommandError, such as FolderError, and OSError."""
    uri = options.model_files if is_uri(options.model_files) else ""
    path = Path(options.model_files)
    _check_options(options, uri)
    folder = read_uri(uri, options.model, options.format) if uri else model_folder(options, path)
    _warn(folder, options)
    name = _name(folder, options)
    wanted = replace(object_options(options), name=name, source=uri or f"pvc://{CLAIM}/{name}", secret=options.secret)
    if options.dry_run:
        sha256 = "" if uri else digest(collect(path).files, lambda _: None)
        sys.stdout.write(complete_yaml(folder, replace(wanted, sha256=sha256)))
        return Exit.OK
    source = cluster(options)
    known = source.child(TRITON_DEPLOYMENT, name)
    # The name may be that of a folder within a repository that somebody else wrote.
    if not (options.force or options.update) and known is not None:
        raise FolderError(
            f"the TritonDeployment {name} of namespace {source.namespace} exists; pass --update to push its files"
            " again, --force to replace its spec, too, or choose another name: --name NAME"
        )
    # Never inside the folder: it would be pushed the next time.
    file = (Path.cwd() if uri else path.resolve().parent) / f"{name}.yaml"

    def push() -> str:
        return "" if uri else push_files(source, options, path, wanted.source).sha256

    kept = _kept_revision(known or {}, name, options)

    def apply_file(object_file: Path) -> str:
        if options.force and (there := source.child(TRITON_DEPLOYMENT, name)) is not None:
            source.patch(name, {"spec": replacement(_spec(object_file), there.get("spec", {}))})
        # kubectl apply removes only what it has set: not the revision that `rollback` names.
        elif kept:
            source.patch(name, {"spec": following(_spec(object_file))})
            say(f"spec.rollout.revision is removed; revision {kept} serves until what is pushed has passed")
        return apply(source.kubectl, object_file)

    if options.update:
        update(wanted, file, push, apply_file, say, kept and _digest(known or {}), folder.pipeline)
    else:
        start(folder, wanted, file, push, apply_file, say, options.force)
    status = watch_object(source, name, options.timeout)
    if status == Exit.OK:
        here = None if uri or not path.is_dir() else path.resolve()
        say(f"\n{first_request(source.subject(name), here)}")
    return status


def _name(folder: ModelFolder, options: argparse.Namespace) -> str:
    """Return the object's name. Raises FolderError for one that no object can have."""
    name: str = options.name or object_name(folder.name)
    if name != object_name(name):
        raise FolderError(f"an object cannot have the name {name}; choose one such as {object_name(name)}: --name NAME")
    return name


def _warn(folder: ModelFolder, options: argparse.Namespace) -> None:
    """Say what an object of the folder would lack; --update keeps the object's file, which may hold it."""
    if not options.update:
        wanted = object_options(options)
        for each in (*notices(folder), *misspelled(folder, wanted), *undemanded(folder, wanted)):
            say(each, sys.stderr)


def _spec(object_file: Path) -> Mapping[str, Any]:
    """Return the spec of an object's file."""
    (body,) = deployments(object_file.read_text(encoding="utf-8"))
    spec: Mapping[str, Any] = body["spec"]
    return spec


def _kept_revision(known: Mapping[str, Any], name: str, options: argparse.Namespace) -> str:
    """Return the revision to which an object is rolled back, which --to-latest ends; empty: there is none.

    Empty also for --force, which replaces the whole spec. Raises FolderError for --update without --to-latest: the
    object is Ready, and serves nothing newer.
    """
    kept: str = ((known.get("spec") or {}).get("rollout") or {}).get("revision") or ""
    if options.force:
        return ""
    if kept and not options.to_latest:
        raise FolderError(
            f"the TritonDeployment {name} is rolled back to revision {kept}, so what --update pushes would not be"
            " served; add --to-latest: that revision then serves until what is pushed has passed"
        )
    return kept


def _digest(known: Mapping[str, Any]) -> str:
    """Return the SHA-256 of an object's source; empty: the object has none."""
    return ((known.get("spec") or {}).get("source") or {}).get("sha256") or ""


def _check_options(options: argparse.Namespace, uri: str) -> None:
    """Raise FolderError for options that do not fit what is to be served; ``uri``: empty for files of this machine."""
    if options.secret and not uri:
        raise FolderError("--secret is for a URI: a folder of this machine is pushed to a claim")
    if options.write_requirements and (uri or options.dry_run):
        raise FolderError(f"{WRITE} writes into a folder of this machine, and so not to a URI, nor with --dry-run")
    if options.to_latest and not options.update:
        raise FolderError("--to-latest is for --update, which without it serves nothing by a rolled back object")
    if options.update and uri:
        raise FolderError(
            "--update is for files of this machine; for a URI, set spec.source.version and apply the file"
        )
    if options.update and (given := [each for each in SAID_BY_FILE if getattr(options, each) not in ("", None, [])]):
        named = ", ".join(f"--{each.replace('_', '-')}" for each in given)
        raise FolderError(f"--update serves by the object's file as it is: write into that file what {named} says")
