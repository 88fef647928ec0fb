"""`kubectl triton replay`: whether a published image still answers as its signed report says."""

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from triton_converters.contract import uris
from triton_converters.contract.replaying import ReplayRequest
from triton_local.alone import PodError
from triton_local.interpreter import InstallError
from triton_local.publishing import Place
from triton_local.replaying import replay
from triton_local.runtime import Image
from triton_plugin.commands.machine import in_words_of_here, installation, interpreter, runtime, settings
from triton_plugin.errors import ReplayError
from triton_plugin.exits import Exit
from triton_plugin.telling.replay import told
from triton_plugin.terminal import say


def run(options: argparse.Namespace) -> Exit:
    """Replay an image, and say what came of it. Raises ReplayError, CheckError, OSError."""
    request = _request(options.image)
    key = options.key.read_bytes()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(Exit.TERMINATED))
    folder = Path(tempfile.mkdtemp(prefix="triton-replay-"))
    try:
        own = interpreter(options.python)
        boxes = runtime(options, own)
        installed = installation(own, has_packages=options.python is not None)
        place = Place(folder, boxes, _image(installed.image), settings(installed))
        result, predicate = replay(request, key, place)
    except (InstallError, PodError) as error:
        raise ReplayError(f"{options.image} was not replayed: {in_words_of_here(str(error))}") from error
    if predicate is None:
        shutil.rmtree(folder, ignore_errors=True)
        raise ReplayError(f"{options.image} was not replayed: {in_words_of_here(result.message)}")
    for line in told(options.image, predicate, result):
        say(line)
    if result.repeats:
        shutil.rmtree(folder, ignore_errors=True)
        return Exit.OK
    say(f"What was fetched, and the logs, are in {folder}", sys.stderr)
    return Exit.FAILED


def _image(find: Callable[[str], Image | None]) -> Callable[[str], Image]:
    def image(name: str) -> Image:
        found = find(name)
        if found is None:
            raise LookupError(name)
        return found

    return image


def _request(image: str) -> ReplayRequest:
    """Return what is asked of the image. Raises ReplayError for what names no digest."""
    try:
        uri = uris.split(f"oci://{image.removeprefix('oci://')}")
    except ValueError:
        uri = None
    name, at, digest = uri.path.partition("@") if uri is not None else ("", "", "")
    if uri is None or not at:
        raise ReplayError(
            "an image is replayed by its digest, as a signature binds no tag: REGISTRY/REPOSITORY@sha256:DIGEST"
        )
    return ReplayRequest(uri.host, name, digest)
