"""`kubectl triton push`: from a folder to a claim, with a progress bar."""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from triton_converters.contract.text import printable
from triton_plugin.argument_groups import CLAIM_SIZE
from triton_plugin.drafting.push.cluster import Claims
from triton_plugin.drafting.push.files import Files, collect, digest
from triton_plugin.drafting.push.objects import Target, target
from triton_plugin.drafting.push.sending import Remote
from triton_plugin.errors import PushError

MOST_LEFT_OUT = 10
"""Entries that are named one by one."""
BLOCK = 4096
"""Bytes that a file may use on a disk beyond its size."""


@dataclass(frozen=True)
class Options:
    """What the user may choose."""

    size: str = CLAIM_SIZE
    """Size of a claim that is made."""
    storage_class: str = ""
    """StorageClass of a claim that is made; empty: the cluster's default."""
    image: str = ""
    """Image of the pod; empty: the installation's converter image."""


@dataclass(frozen=True)
class Pushed:
    """What spec.source takes."""

    uri: str
    sha256: str
    replaced: bool
    """Whether something was at the URI before."""


def push(claims: Claims, path: Path, uri: str, options: Options, console: Console) -> Pushed:
    """Put the files in the place of what was at the URI, and say on the console what goes on.

    Raises FolderError, PushError, SubjectError or OSError; then what was at the URI is there still.
    """

    def say(text: str) -> None:
        console.print(printable(text, "\N{REPLACEMENT CHARACTER}"), markup=False, highlight=False, soft_wrap=True)

    where = target(uri)
    files = collect(path)
    for line in left_out(files):
        say(line)
    image = options.image or claims.converter_image()
    if claims.make(where.claim, options.size, options.storage_class):
        say(f"made PersistentVolumeClaim {where.claim} of {options.size} in namespace {claims.namespace}")
    with claims.opened(where, image, say) as remote:
        sha256, replaced = transfer(files, remote, where, console)
    number = f"{len(files.files)} file{'s' if len(files.files) > 1 else ''}"
    say(f"pushed {number}, {decimal(files.size)}{', in the place of what was there' if replaced else ''}")
    return Pushed(where.uri, sha256, replaced)


def transfer(files: Files, remote: Remote, where: Target, console: Console) -> tuple[str, bool]:
    """Check that there is room, send the files, and return their digest and whether they replaced something.

    Raises PushError or OSError.
    """
    free, needed = remote.free(), files.size + BLOCK * len(files.files)
    if needed > free:
        raise PushError(
            f"{where.uri} has no room: the files need {decimal(needed)}, and the claim has {decimal(free)} free;"
            " what they replace is deleted only afterwards. Delete something there, or enlarge the claim"
        )
    with _progress(console) as bars:
        reading = bars.add_task("digest", total=files.size)
        sha256 = digest(files.files, lambda size: bars.advance(reading, size))
        sending = bars.add_task("send", total=files.size)
        replaced = remote.send(files.files, sha256, lambda size: bars.advance(sending, size))
    return sha256, replaced


def left_out(files: Files) -> list[str]:
    """Return a line for each entry that is not pushed, as far as they are few."""
    lines = [f"left out: {each}" for each in files.left_out[:MOST_LEFT_OUT]]
    more = len(files.left_out) - len(lines)
    return [*lines, f"left out: {more} more"] if more else lines


def _progress(console: Console) -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
