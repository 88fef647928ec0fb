"""Talks to the receiver through a program that runs commands elsewhere, which is `kubectl exec`."""

import os
import subprocess
import tarfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Thread
from typing import IO, TypeVar

from triton_converters.contract.document import Document, DocumentError
from triton_plugin.drafting.push.files import PushedFile
from triton_plugin.drafting.push.objects import PROGRAM
from triton_plugin.errors import PushError

Answer = TypeVar("Answer", bound=Document)
BUFFER = 1 << 18
MOST_WORDS = 4096
"""Bytes that are kept of what the pod says."""


@dataclass(frozen=True)
class Room(Document):
    """The receiver's answer about the file system."""

    free: int
    """In bytes."""


@dataclass(frozen=True)
class Received(Document):
    """The receiver's answer after it put the files in place; they had the digest that it was given."""

    replaced: bool
    """Whether something was there before."""


@dataclass(frozen=True)
class Remote:
    """A place where the receiver runs."""

    prefix: Sequence[str]
    """Command line that runs what follows it in that place, with this process' standard input and output."""
    folder: str
    """Absolute path there of the folder that the files go to."""

    def free(self) -> int:
        """Return the free bytes of the folder's file system. Raises PushError."""
        return _answer(Room, self._run("room", self.folder)).free

    def send(self, files: Iterable[PushedFile], digest: str, sent: Callable[[int], None]) -> bool:
        """Send the files and return whether they replaced something; ``sent`` is told of each part's bytes.

        Raises PushError; what was there before is there still.
        """
        said = self._run("receive", self.folder, digest, write=lambda stdin: _write(files, stdin, sent))
        return _answer(Received, said).replaced

    def _run(self, *arguments: str, write: Callable[[IO[bytes]], None] | None = None) -> bytes:
        """Run the receiver and return what it printed. Raises PushError with the last words if it failed."""
        out = bytearray()
        try:
            with running([*self.prefix, *PROGRAM, *arguments], out) as process, suppress(BrokenPipeError):
                # A receiver that ends early says why.
                if write is not None:
                    assert process.stdin is not None
                    write(process.stdin)
        except ProgramError as error:
            raise PushError(f"the pod did not take the files: {error}; nothing on the claim was changed") from error
        return bytes(out)


class ProgramError(Exception):
    """A program failed; the message is the last that it said."""


@contextmanager
def running(command: Sequence[str], out: bytearray | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program with pipes until the block, and then the program, ends.

    ``out``: takes the last that it prints; None: the block reads all of that. Raises PushError if there is no such
    program, ProgramError if it fails.
    """
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
    except FileNotFoundError as error:
        raise PushError(f"{command[0]} is not on the PATH, and it carries the files; install it") from error
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    errors = bytearray()
    tails = [(process.stderr, errors), *([(process.stdout, out)] if out is not None else [])]
    readers = [Thread(target=_tail, args=each, daemon=True) for each in tails]
    try:
        for reader in readers:
            reader.start()
        yield process
        with suppress(BrokenPipeError):
            process.stdin.close()
        status = process.wait()
    except BaseException:
        process.kill()
        raise
    finally:
        for reader in readers:
            reader.join()
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
        process.stderr.close()
        process.wait()
    if status:
        raise ProgramError(errors.decode(errors="replace").strip() or f"exit status {status}")


def _write(files: Iterable[PushedFile], stdin: IO[bytes], sent: Callable[[int], None]) -> None:
    """Write the files as a tar: readable by everybody, with their times, without their owners."""
    with tarfile.open(fileobj=stdin, mode="w|", format=tarfile.PAX_FORMAT, bufsize=BUFFER) as tar:
        for file in files:
            entry = tarfile.TarInfo(file.name)
            entry.size, entry.mode, entry.mtime = file.size, 0o644, int(file.path.stat().st_mtime)
            with file.path.open("rb") as content:
                try:
                    tar.addfile(entry, _CountedFile(content, sent))
                except BrokenPipeError:
                    raise
                except OSError as error:
                    raise PushError(f"{file.path} cannot be sent: {error}; push again") from error


@dataclass(frozen=True)
class _CountedFile:
    """A file that tells how much of it was read."""

    content: IO[bytes]
    count: Callable[[int], None]

    def read(self, size: int = -1, /) -> bytes:
        part = self.content.read(size)
        self.count(len(part))
        return part


def _tail(stream: IO[bytes], kept: bytearray) -> None:
    """Read all of a stream and keep its end: a pod may say more than fits."""
    while part := os.read(stream.fileno(), MOST_WORDS):
        kept += part
        del kept[:-MOST_WORDS]


def _answer(kind: type[Answer], said: bytes) -> Answer:
    try:
        return kind.from_json(said.decode())
    except (DocumentError, UnicodeDecodeError) as error:
        raise PushError(f"the pod gave no valid answer: {error}; pass an image with Python 3.11 (--image)") from error
