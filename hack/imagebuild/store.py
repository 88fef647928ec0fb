"""Images and archives below the user's cache folder: built once per hash of inputs, the oldest removed."""

import contextlib
import fcntl
import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from hack import progress
from hack.imagebuild import base, inputs, machine
from hack.imagebuild.engine import Buildah, Engine, Run
from hack.imagebuild.inputs import Image

KEPT_ARCHIVES = 6  # of each image: several checkouts may share this cache
USUAL = {
    "base": "1 min",
    "operator": "1 min",
    "converter": "3 min",
    "converter-tensorflow": "2 min",
    "tritonserver-cpu": "20 s",
    "digits-trainer": "30 s",
}
"""How long a step takes; the images after the converter share its large layer."""
DIGEST = re.compile(r"(?:^|digest: )(sha256:[0-9a-f]{64})")
"""A file with the digest alone, or what docker prints."""
MOST_PRINTED = 2**20
"""Bytes of a push's log."""


class BuildError(Exception):
    """An image could not be built or pushed; the message holds the end of the log."""


@dataclass(frozen=True)
class Built:
    """An image that exists: its reference, and its archive in docker's format."""

    name: str
    reference: str
    archive: str


class Store:
    """Where images are built and kept; `cache` is a folder of this store alone."""

    def __init__(self, engine: Engine, cache: Path) -> None:
        self.engine = engine
        self.cache = cache
        self.base = base.reference(engine)

    def image(self, name: str) -> Image:
        """Read the inputs of an image. Raises FileNotFoundError if one is missing."""
        return inputs.read(name, self.base)

    def archive(self, image: Image) -> Path:
        """Path of an image's archive, whether it is there or not."""
        return self.cache / f"{image.name}-{image.digest}.tar"

    def build(self, name: str) -> Built:
        """Return the image, built and archived if it is not yet. Raises BuildError, FileNotFoundError."""
        image = self.image(name)
        archive = self.archive(image)
        if not archive.is_file():
            with self.lock():
                if not archive.is_file():
                    self._build(image)
                    self._save(image, archive)
                    self._prune(name)
        os.utime(archive)
        return Built(name, image.reference, str(archive))

    def ensure(self, name: str) -> Image:
        """Return the image, built if the engine does not have it. Raises BuildError, FileNotFoundError."""
        image = self.image(name)
        if not self._exists(image.reference):
            with self.lock():
                if not self._exists(image.reference):
                    self._build(image)
        return image

    def push(self, name: str, target: str, *, plain_http: bool) -> str:
        """Push the image to a registry as `target`, built if need be; return the digest of its manifest, `sha256:...`.

        The digest is what this machine computed. Raises BuildError, FileNotFoundError.
        """
        image = self.ensure(name)
        self.cache.mkdir(parents=True, exist_ok=True)
        with self._step(f"{name} push") as (work, log):
            digest = work / "digest"
            for argv in self.engine.push(image.reference, target, digest, plain_http=plain_http):
                subprocess.run(argv, check=True, stdout=log, stderr=log)
            written = digest.read_bytes() if digest.is_file() else os.pread(log, MOST_PRINTED, 0)
        found = DIGEST.search(written.decode(errors="replace"))
        if found is None:
            raise BuildError(f"{name}: pushed as {target}, but {self.engine.program} names no digest: see {self.cache}")
        return found.group(1)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Let one process at a time build in this cache."""
        self.cache.mkdir(parents=True, exist_ok=True)
        with (self.cache / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                progress.say("images: waiting for another process that builds images")
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _exists(self, reference: str) -> bool:
        done = subprocess.run(self.engine.exists(reference), check=False, capture_output=True)
        return done.returncode == 0

    def _build(self, image: Image) -> None:
        self._remove_abandoned()
        if image.base == self.base and base.is_made_here(self.engine) and not self._exists(self.base):
            with self._step("base") as (work, log):
                base.make(self.engine, self.base, work, log)
        with self._step(image.name) as (work, log):
            context = work / "context"
            secrets = work / "secrets"
            for folder in (context, secrets):
                folder.mkdir(mode=0o700)
            inputs.stage(image, context)
            argv = self.engine.build(
                image.reference,
                image.base,
                context,
                context / inputs.dockerfile(image.name),
                machine.write_secrets(secrets),
            )
            subprocess.run(argv, check=True, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def _save(self, image: Image, archive: Path) -> None:
        partial = archive.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        with self._step(f"{image.name} archive") as (_, log):
            subprocess.run(self.engine.save(image.reference, partial), check=True, stdout=log, stderr=log)
        partial.rename(archive)

    @contextlib.contextmanager
    def _step(self, what: str) -> Iterator[tuple[Path, int]]:
        """Give a step a folder to work in and a log; say how long it takes, or raise BuildError with the log's end."""
        log = self.cache / f"{what.replace(' ', '-')}.log"
        words = progress.step(f"images: {what}", USUAL.get(what, ""))
        with words, tempfile.TemporaryDirectory(dir=self.cache, prefix="work-") as work, log.open("w+b") as file:
            try:
                yield Path(work), file.fileno()
            except subprocess.CalledProcessError as error:
                file.seek(0)
                tail = b"\n".join(file.read().splitlines()[-30:]).decode(errors="replace")
                raise BuildError(
                    f"{what}: {error.cmd[0]} exited with {error.returncode}; {log} ends:\n{tail}"
                ) from None

    def _prune(self, name: str) -> None:
        """Remove all but the most recently used archives of an image, and their images."""
        archives = sorted(
            self.cache.glob(f"{name}-{'[0-9a-f]' * inputs.DIGEST_LENGTH}.tar"), key=lambda path: -path.stat().st_mtime
        )
        for archive in archives[KEPT_ARCHIVES:]:
            reference = f"{inputs.REPOSITORY}/{name}:{archive.stem.removeprefix(f'{name}-')}"
            subprocess.run(self.engine.remove(reference), check=False, capture_output=True)
            archive.unlink(missing_ok=True)

    def run(self, run: Run) -> int:
        """Run a command in an image that exists, and return its exit status (128 + N after signal N).

        SIGTERM and SIGINT are passed on to the command, whose container is removed after it in any case.
        """
        if not isinstance(self.engine, Buildah):
            return supervise(self.engine.run(run))
        container = f"run-{os.getpid()}"
        make = [*self.engine.command, "from", "--pull-never", "--name", container, run.reference]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
        try:
            return supervise(self.engine.run_in(container, run))
        finally:
            subprocess.run([*self.engine.command, "rm", container], check=False, capture_output=True)

    def _remove_abandoned(self) -> None:
        """Remove the containers of `run` whose process was killed before it could do so."""
        if not isinstance(self.engine, Buildah):
            return
        listing = [*self.engine.command, "containers", "--format", "{{.ContainerName}}"]
        for name in subprocess.run(listing, check=True, capture_output=True, text=True).stdout.split():
            if name.startswith("run-") and not Path("/proc", name.removeprefix("run-")).exists():
                subprocess.run([*self.engine.command, "rm", name], check=False, capture_output=True)


def supervise(argv: list[str]) -> int:
    """Run a command to its end, passing on SIGTERM and SIGINT, and return its exit status."""
    with subprocess.Popen(argv) as process:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda received, _: os.kill(contained(process.pid), received))
        status = process.wait()
    return status if status >= 0 else 128 - status


def contained(pid: int) -> int:
    """Find the first descendant that is not buildah, which kills its command (SIGKILL) instead of passing signals on.

    For other engines, and if there is no such descendant yet, that is the process itself.
    """
    first = pid
    while "buildah" in Path(f"/proc/{pid}/comm").read_text():
        threads = Path(f"/proc/{pid}/task").glob("*/children")
        children = [child for thread in threads for child in thread.read_text().split()]
        if not children:
            return first
        pid = int(children[0])
    return pid


def as_json(images: list[Built]) -> str:
    """Render the images as a JSON list of objects with `name`, `reference` and `archive`."""
    return json.dumps([asdict(image) for image in images], indent=2)
