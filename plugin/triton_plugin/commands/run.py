"""`kubectl triton run`."""

import argparse
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from triton_operator.kube.kinds import TRITON_DEPLOYMENT
from triton_plugin.argument_groups import WRITE
from triton_plugin.commands.arguments import cluster, model_folder, object_options
from triton_plugin.commands.push import push_files
from triton_plugin.commands.watch import watch_object
from triton_plugin.drafting.first_object import misspelled, notices, object_name, undemanded
from triton_plugin.drafting.model_folder import ModelFolder
from triton_plugin.drafting.push.files import collect, digest
from triton_plugin.drafting.remote_model import is_uri
from triton_plugin.drafting.remote_model import read as read_uri
from triton_plugin.drafting.run import CLAIM, apply, complete_yaml, following, replacement, start, update
from triton_plugin.drafting.validation.validate import deployments
from triton_plugin.errors import FolderError, SubjectError
from triton_plugin.exits import Exit
from triton_plugin.reading.cluster import Cluster
from triton_plugin.reading.subject import Subject, parse
from triton_plugin.telling.history import holds, left_revision
from triton_plugin.telling.request import first_request
from triton_plugin.terminal import say

SAID_BY_FILE = ("dataset", "gpu", "max_batch_size", "p99_latency", "threshold")
"""Options that say what is in the object."""


def run(options: argparse.Namespace) -> Exit:
    """Serve the model and print a first request. Raises CommandError, such as FolderError, and OSError."""
    uri = options.model_files if is_uri(options.model_files) else ""
    path = Path(options.model_files)
    _check_options(options, uri)
    folder = read_uri(uri, options.model, options.format) if uri else model_folder(options, path)
    name = _name(folder, options)
    wanted = replace(object_options(options), name=name, source=uri or f"pvc://{CLAIM}/{name}", secret=options.secret)
    if options.dry_run:
        _warn(folder, options)
        sha256 = "" if uri else digest(collect(path).files, lambda _: None)
        sys.stdout.write(complete_yaml(folder, replace(wanted, sha256=sha256)))
        return Exit.OK
    there = _Object(cluster(options), name, options)
    there.read()
    _warn(folder, options)
    # Never inside the folder: it would be pushed the next time.
    file = (Path.cwd() if uri else path.resolve().parent) / f"{name}.yaml"

    def push() -> str:
        return "" if uri else there.push(path, wanted.source)

    if options.update:
        update(wanted, file, push, there.apply, say, folder.pipeline)
    else:
        start(folder, wanted, file, push, there.apply, say, options.force)
    status = watch_object(there.source, name, options.timeout)
    if status == Exit.OK:
        subject = there.served()
        here = None if uri or not path.is_dir() else path.resolve()
        say(f"\n{first_request(subject, here)}")
    return status


class _Object:
    """The object in the cluster, which others may change while the files are pushed, and later."""

    def __init__(self, source: Cluster, name: str, options: argparse.Namespace) -> None:
        self.source = source
        self._name = name
        self._options = options
        self._body: Mapping[str, Any] = {}
        self._pushed = ""
        """The digest of what was pushed; empty: nothing was."""

    @property
    def revision(self) -> str:
        """The revision to which it was rolled back when it was read last; empty: to none."""
        return ((self._body.get("spec") or {}).get("rollout") or {}).get("revision") or ""

    def read(self) -> None:
        """Read it. Raises FolderError if the options do not say what becomes of such an object."""
        found, options = self.source.child(TRITON_DEPLOYMENT, self._name), self._options
        self._body = found or {}
        # The name may be that of a folder within a repository that somebody else wrote.
        if not (options.force or options.update) and found is not None:
            raise FolderError(
                f"the TritonDeployment {self._name} of namespace {self.source.namespace} exists; pass --update to push"
                " its files again, --force to replace its spec, too, or choose another name: --name NAME"
            )
        # It is Ready, and serves nothing newer.
        if self.revision and options.update and not options.to_latest:
            raise FolderError(
                f"the TritonDeployment {self._name} is rolled back to revision {self.revision}, so what --update pushes"
                " would not be served; add --to-latest: that revision then serves until what is pushed has passed"
            )

    def push(self, path: Path, uri: str) -> str:
        """Push the files, read it again, and return their digest. Raises CommandError and OSError."""
        self._pushed = push_files(self.source, self._options, path, uri).sha256
        self._read_again()
        if self._options.to_latest and self.revision:
            subject = parse(self._body, self.source.results(self._name), self.source.options)
            if self._pushed == subject.spec.source.sha256 and left_revision(subject):
                raise FolderError(
                    f"the folder still holds the files that the rollback of {self._name} left"
                    f" (sha256:{self._pushed[:8]}), which would serve again at once, so nothing is applied; mend them."
                    " If you mended the object's file alone, apply it, and type"
                    f" `{subject.command('rollback', self._name, '--to-latest')}`"
                )
        return self._pushed

    def _read_again(self) -> None:
        """Read it, and raise FolderError for what nobody knew of who typed the command."""
        known = self.revision
        self.read()
        if self.revision not in ("", known):
            raise FolderError(
                f"the TritonDeployment {self._name} was rolled back to revision {self.revision} while the files were"
                " pushed, so nothing is applied; to serve them all the same, type the command again"
            )

    def apply(self, object_file: Path) -> str:
        """Make it what the file says, and return what kubectl said. Raises CommandError."""
        if self._body:
            self._read_again()
        if self._body and self._options.force:
            self._patch(replacement(_spec(object_file), self._body.get("spec", {})))
        # kubectl apply removes only what it has set: not the revision that `rollback` names.
        elif self._options.to_latest and self.revision:
            self._patch(following(_spec(object_file)))
            say(f"spec.rollout.revision is removed; revision {self.revision} serves until what is pushed has passed")
        return apply(self.source.kubectl, object_file)

    def _patch(self, spec: dict[str, Any]) -> None:
        """Change its spec. Raises SubjectError, also if it was changed since it was read."""
        version = self._body.get("metadata", {}).get("resourceVersion", "")
        self.source.patch_spec(self._name, version, spec)

    def served(self) -> Subject:
        """Return it with its results, once it is ready. Raises FolderError if it is so by what others asked for."""
        results = None
        # Not everybody who may read the object may read its results.
        with suppress(SubjectError):
            results = self.source.results(self._name)
        subject = parse(self.source.triton_deployment(self._name), results, self.source.options)
        change = ""
        if held := subject.spec.rollout.revision:
            change = "" if holds(subject, self._pushed) else f"was rolled back to revision {held} meanwhile"
        elif self._pushed not in ("", subject.spec.source.sha256):
            change = "got another spec.source.sha256 meanwhile"
        if change:
            raise FolderError(
                f"the TritonDeployment {self._name} {change}, so what this command asks for is not served"
            )
        return subject


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
