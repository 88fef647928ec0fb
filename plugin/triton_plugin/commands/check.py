"""`kubectl triton check`: a model, or an object, checked and measured by processes of this machine."""

import argparse
import os
import re
import shutil
import signal
import socket
import sys
import time
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from triton_converters.contract.publishing import is_loop, target
from triton_local.alone import PodError
from triton_local.fields import lacking, on_one_machine
from triton_local.gpus import gpus
from triton_local.images import Images
from triton_local.install import ENVIRONMENT, share
from triton_local.interpreter import InstallError, Python
from triton_local.publishing import Place, Publishing, Signing, publish
from triton_local.runtime import Image, Runtime
from triton_local.session import OBJECTS, Given, Session, SessionError, ours_alone, session
from triton_local.versions import versioned
from triton_operator import names
from triton_operator.jobs.attestation import NotPassedError, Passed
from triton_plugin.command_line import OBJECT_ENDINGS
from triton_plugin.commands.arguments import model_folder, moment, object_options
from triton_plugin.commands.machine import CACHE, in_words_of_here, installation, interpreter, runtime
from triton_plugin.commands.machine import settings as settings_of
from triton_plugin.commands.report import document
from triton_plugin.drafting.first_object import misspelled, notices, object_name, undemanded
from triton_plugin.drafting.push.files import Files, collect, digest
from triton_plugin.drafting.push.outputs import claim_name, reference_key
from triton_plugin.drafting.run import CLAIM, PATH, complete_yaml
from triton_plugin.drafting.validation.files import faults_in_words
from triton_plugin.drafting.validation.validate import Loader, deployments
from triton_plugin.errors import CheckError, CommandError
from triton_plugin.exits import Exit
from triton_plugin.reading import bounded_yaml
from triton_plugin.reading.job_log import LOGGED_STAGES, JobLog, job_log
from triton_plugin.reading.subject import Subject, parse
from triton_plugin.telling.junit import junit, junit_of_error
from triton_plugin.telling.report.document import report
from triton_plugin.telling.request import first_request
from triton_plugin.telling.watch import Reads, watch
from triton_plugin.terminal import console, say

REPORT, OBJECT = "report.html", "object.yaml"
HOST, PORTS = "127.0.0.1", (8000, 8001, 8002)
"""Where --serve answers: the ports that a Service has."""
LOOK_SECONDS = 1.0
"""How often a command that serves looks whether its engine still works."""
CONFIG_MAP_KEY = re.compile(r"\.?[-\w][-.\w]{0,251}", re.ASCII)
"""A key that an API server takes (IsConfigMapKey in k8s.io/apimachinery)."""


@dataclass(frozen=True)
class _Wanted:
    """What is checked."""

    body: dict[str, Any]
    """The TritonDeployment."""
    config_maps: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    text: str = ""
    """YAML of the object that was written for a model; empty: the user wrote it."""
    files: Files | None = None
    """The files of that model."""


def run(options: argparse.Namespace) -> Exit:
    """Check and measure, and say where the report is. Raises CheckError, other CommandErrors and OSError."""
    name = options.name or options.path.resolve().stem
    if options.junit is not None:
        try:
            options.junit.parent.mkdir(parents=True, exist_ok=True)
            # Whatever ends this command, the outcome of an earlier one is gone.
            options.junit.write_text(junit_of_error(name, "the check ended before its outcome"), encoding="utf-8")
        except OSError as error:
            raise CheckError(f"--junit {options.junit} cannot be written: {error.strerror}") from error
    signal.signal(signal.SIGTERM, _end)
    try:
        return _run(options)
    except (CommandError, OSError) as error:
        _write_junit(options.junit, junit_of_error(name, str(error)))
        raise
    except (KeyboardInterrupt, SystemExit):
        say("\nThe check was interrupted; the same command goes on from there", sys.stderr)
        raise


def _end(*_: object) -> None:
    """Unwind as Ctrl-C does, once."""
    signal.signal(signal.SIGTERM, lambda *_: None)
    sys.exit(Exit.TERMINATED)


def _write_junit(file: Path | None, text: str) -> None:
    """Write the outcome for a CI system, if one is asked for; a fault of that changes no exit status."""
    try:
        if file is not None:
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        say(f"--junit {file} cannot be written: {error.strerror}", sys.stderr)


def _run(options: argparse.Namespace) -> Exit:
    path: Path = options.path
    wanted = _object_file(path) if path.suffix in OBJECT_ENDINGS else _drafted(path, options)
    # Programs start in other folders than this one.
    beside = path.resolve().parent / f"{_name(wanted.body)}-check"
    folder: Path = (options.folder or beside).resolve()
    if path.is_dir() and folder.is_relative_to(path.resolve()):
        raise CheckError(f"{folder} lies in the folder of the model; name another one by --folder")
    for claim, place in options.claim:
        if folder.is_relative_to(place.resolve()):
            raise CheckError(f"{folder} lies in the folder of --claim {claim}; name another one by --folder")
    if options.folder is None and beside.is_symlink():
        raise CheckError(f"{beside} is a link, which may have come with the model; name the folder by --folder")
    publishing = _publishing(options, wanted.body)
    if options.unboxed and options.image:
        raise CheckError("--image needs isolation: without it, programs have this machine's own system; use --python")
    try:
        own = interpreter(options.python)
        boxes = runtime(options, own)
        with ours_alone(folder, CACHE / "folders"):
            return _checked(folder, wanted, own, boxes, options, publishing)
    except (SessionError, InstallError) as error:
        raise CheckError(str(error)) from error


def _write(folder: Path, text: str, subject: Subject) -> None:
    """Write what is to be read of the outcome, and say where it is. Raises OSError.

    ``text``: of the object; empty: the user wrote it.
    """
    if text:
        (folder / OBJECT).write_text(text, encoding="utf-8")
    (folder / REPORT).write_text(document(report(subject), "html", None), encoding="utf-8")
    say(f"\nThe report is {folder / REPORT}; explain, history and compare read {folder / OBJECTS}")


def _publishing(options: argparse.Namespace, body: Mapping[str, Any]) -> Publishing | None:
    """Return what is to be published; None: nothing is. Raises CheckError, OSError."""
    # No program that is started from here on gets it.
    password = os.environ.pop("COSIGN_PASSWORD", "")
    if not options.publish:
        if options.signing_key is not None or options.publish_samples:
            raise CheckError("--signing-key and --publish-samples are of --publish: name there where the image goes")
        return None
    source = body["spec"]["source"]
    try:
        if is_loop(options.publish, source["uri"], followed="interval" in source):
            raise CheckError(
                "the image would become a newer version of spec.source, from which it is made: publish it elsewhere"
            )
    except ValueError as error:
        raise CheckError(f"--publish: {error}") from error
    key = options.signing_key
    signing = Signing(key.read_bytes(), password.encode()) if key is not None else None
    return Publishing(options.publish, signing, options.publish_samples)


def _publish(subject: Subject, publishing: Publishing, place: Place, claims: Mapping[str, Path]) -> None:
    """Push what passed, and say where it is. Raises CheckError, OSError.

    ``claims``: the folders that the user gave.
    """
    claim = claim_name(subject)
    try:
        passed = Passed(
            namespace=subject.namespace,
            name=subject.name,
            uid=subject.uid,
            generation=subject.generation,
            spec=subject.spec,
            status=subject.status,
            records=subject.records,
            reference=reference_key(subject),
        )
        request = publishing.request(passed)
        result = publish(request, claims.get(claim, place.folder / "claims" / claim), publishing.signing, place)
    except (NotPassedError, PodError) as error:
        raise CheckError(f"nothing was published: {in_words_of_here(str(error))}") from error
    host = target(request.uri)
    by = f"signed by the key sha256:{result.signer}" if result.signer else "not signed: name a key by --signing-key"
    say(f"\nPublished {host.host}/{host.name}@{result.digest}, tag {result.tag}, {by}")


def _checked(
    folder: Path,
    wanted: _Wanted,
    own: Python,
    boxes: Runtime,
    options: argparse.Namespace,
    publishing: Publishing | None,
) -> Exit:
    """Work on the object until there is an outcome, and show how far it is.

    Raises CheckError, SessionError, InstallError, OSError.
    """
    (folder / REPORT).unlink(missing_ok=True)
    body = wanted.body
    name, metadata = _name(body), body["metadata"]
    installed = installation(own, has_packages=options.python is not None)
    settings = settings_of(installed)
    images = Images(CACHE / "unpacked")
    pinned = {each: _added(images, each, archive) for each, archive in options.image}
    if options.python is not None:
        body["spec"].setdefault("conversion", {}).setdefault("image", ENVIRONMENT)
        pinned[ENVIRONMENT] = installed.name(ENVIRONMENT)
    found = gpus() if body["spec"].get("gpu") is not None else ()
    claims, secrets = dict(options.claim), dict(options.secret)
    given = Given(claims, wanted.config_maps, secrets, pinned, found, isolates=not options.unboxed)
    if wanted.files is not None:
        given.claims[CLAIM] = _claim(folder / "model", name, wanted.files)
    for claim, place in given.claims.items():
        if not place.is_dir():
            raise CheckError(f"--claim {claim}={place}: there is no such folder")
    spec, said = on_one_machine(body["spec"], given)
    for line in (*said, "Limits of memory and CPU have no effect: nothing enforces them here"):
        say(line, sys.stderr)
    if missing := list(lacking(body["spec"], given)):
        raise CheckError("\n  ".join(("this machine lacks what the object names:", *missing)))
    if wanted.files is None:
        spec = versioned(spec, given)
    # An earlier run may have been of another release, or have failed for a reason that has passed.
    asked = {names.UPDATE_IMAGES_ANNOTATION: settings.converter_image, names.RETRY_ANNOTATION: moment()}
    annotations = {"annotations": {**(metadata.get("annotations") or {}), **asked}}

    def image(name: str) -> Image:
        return installed.image(name) or images.image(name)

    for each in (settings.converter_image, settings.server_image):
        image(each)
    desired = {**body, "spec": spec, "metadata": metadata | annotations}
    with _reserved(options.serve) as bound, session(folder, desired, given, image, settings, boxes) as work:
        reads = Reads(work.body, lambda: _log(work), lambda: work.objects.find("ConfigMap", names.results(name)))
        status = watch(reads, console(), time.monotonic, time.sleep, options.timeout)
        work.settle()
        subject = parse(reads.body(), reads.results())
        _write_junit(options.junit, junit(subject, is_late=status == Exit.TIMED_OUT))
        _write(folder, wanted.text, subject)
        if publishing is not None and status == Exit.OK:
            _publish(subject, publishing, Place(folder, boxes, image, settings), given.claims)
        if options.serve and status == Exit.OK:
            _serve(work, bound, first_request(subject, options.path if options.path.is_dir() else None))
    return status


def _added(images: Images, name: str, archive: Path) -> str:
    """Return the name of an image that an archive holds, with its digest. Raises CheckError, OSError."""
    try:
        return images.add(name, archive)
    except ValueError as error:
        raise CheckError(
            f"--image {name}: {archive} is no archive of an image; write it by docker save --output {archive} {name}"
        ) from error


@contextmanager
def _reserved(is_asked: bool) -> Iterator[Sequence[socket.socket]]:
    """Have the ports that clients will come to, if they are asked for. Raises CheckError for one that is taken."""
    with ExitStack() as stack:
        bound = [stack.enter_context(socket.socket()) for _ in PORTS if is_asked]
        for each, port in zip(bound, PORTS, strict=False):
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                each.bind((HOST, port))
            except OSError as error:
                raise CheckError(f"--serve needs port {port} of {HOST}, which another program has") from error
        yield bound


def _serve(work: Session, bound: Sequence[socket.socket], request: str) -> None:
    """Lead clients to the server until Ctrl-C. Raises SessionError, RuntimeError if the engine ends by itself."""
    with work.served(bound), suppress(KeyboardInterrupt):
        say(f"\nServing on {HOST}, ports {', '.join(map(str, PORTS))}, until Ctrl-C. {request}")
        while True:
            work.body()
            time.sleep(LOOK_SECONDS)


def _log(work: Session) -> JobLog:
    """What a Job waits for, or else the log of the newest one that has something to show."""
    if work.engine.waits:
        return JobLog(words="waits until another check on this machine has measured: both at once would disturb both")
    pods = [each for each in work.objects.of_kind("Pod") if _labels(each).get(names.STAGE_LABEL) in LOGGED_STAGES]
    pod = max(pods, key=lambda each: str(each["metadata"]["creationTimestamp"]), default=None)
    return job_log(work.objects.key.name, _name(pod), _labels(pod), work.log(pod)) if pod is not None else JobLog()


def _labels(pod: Mapping[str, Any]) -> Mapping[str, str]:
    labels: Mapping[str, str] = pod["metadata"]["labels"]
    return labels


def _name(body: Mapping[str, Any]) -> str:
    name: str = body["metadata"]["name"]
    return name


def _object_file(path: Path) -> _Wanted:
    """Return a file's one object, and its ConfigMaps. Raises CheckError, OSError."""
    with path.open(encoding="utf-8") as opened:
        text = bounded_yaml.text_of(opened)
    try:
        documents = [each for each in bounded_yaml.documents(text, Loader) if isinstance(each, dict)]
        found = list(deployments(text))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise CheckError(f"{path} is not valid YAML: {error}") from error
    if len(found) != 1:
        raise CheckError(f"{path} has {len(found)} objects of kind {names.KIND}; it needs one")
    if faults := list(faults_in_words(found[0])):
        raise CheckError("\n  ".join((f"{path} is invalid:", *faults)))
    maps = [each for each in documents if each.get("kind") == "ConfigMap"]
    try:
        return _Wanted(found[0], dict(map(_config_map, maps)))
    except (AttributeError, KeyError, TypeError, ValueError):
        message = f"{path} has a ConfigMap that an API server refuses: its name, its keys or its values"
        raise CheckError(message) from None


def _config_map(body: Mapping[str, Any]) -> tuple[str, dict[str, bytes]]:
    """Return the name and the content of a ConfigMap.

    Raises AttributeError, KeyError, TypeError and ValueError if it is none: a key has to be a file's name.
    """
    content = {key: text.encode() for key, text in (body.get("data") or {}).items()}
    content |= {key: b64decode(text, validate=True) for key, text in (body.get("binaryData") or {}).items()}
    name = body["metadata"]["name"]
    if not isinstance(name, str) or not all(map(CONFIG_MAP_KEY.fullmatch, content)):
        raise ValueError
    return name, content


def _drafted(path: Path, options: argparse.Namespace) -> _Wanted:
    """Return an object for a model. Raises CommandError, OSError."""
    folder = model_folder(options, path)
    name: str = options.name or object_name(folder.name)
    wanted = replace(object_options(options), name=name, source=f"pvc://{CLAIM}/{name}")
    for each in (*notices(folder), *misspelled(folder, wanted), *undemanded(folder, wanted)):
        say(each, sys.stderr)
    files = collect(path)
    if path.is_file() and not PATH.fullmatch(path.name):
        file_name = f"{object_name(path.stem)}{path.suffix}"
        say(f"In the object, {path.name} is named {file_name}: no object has a file of that name", sys.stderr)
        folder = replace(folder, model=replace(folder.model, path=file_name))
        files = replace(files, files=tuple(replace(each, name=file_name) for each in files.files))
    text = complete_yaml(folder, replace(wanted, sha256=digest(files.files, lambda _: None)))
    (body,) = deployments(text)
    return _Wanted(body, text=text, files=files)


def _claim(claim: Path, name: str, files: Files) -> Path:
    """Make a claim's folder with the files that a push would send, as links where that can be. Raises OSError."""
    shutil.rmtree(claim, ignore_errors=True)
    for each in files.files:
        place = claim / name / each.name
        place.parent.mkdir(parents=True, exist_ok=True)
        share(each.path, place)
    return claim
