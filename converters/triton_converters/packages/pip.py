"""Runs pip: it resolves the requirements over what the image has, and installs what is missing into a directory."""

import json
import subprocess
import sys
import sysconfig
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pip
from packaging.version import Version

from triton_converters.contract.text import printable
from triton_converters.packages import pip_alone
from triton_converters.packages.image import ADVICE, Package, constraints, describe
from triton_converters.packages.index import Index
from triton_converters.packages.pip_words import failure
from triton_converters.packages.requirements_file import Line

OPTIONS = (
    *("--only-binary", ":all:", "--no-compile", "--no-cache-dir", "--no-input", "--no-color"),
    *("--no-warn-script-location", "--disable-pip-version-check", "--root-user-action", "ignore"),
    *("--progress-bar", "off", "--keyring-provider", "disabled"),
)
SINCE_TRUSTSTORE = ("--use-deprecated", "legacy-certs")
"""An option of pip 24.2 and later. Otherwise they trust the system's authorities too, and fail at an index that is
named by its address."""
LAST_LINES = 200
LONGEST_LINE = 64 * 1024
"""In bytes; what a line has beyond them is not shown."""
LOG_BYTES = 4 * 2**20
"""How much of the end of pip's own log is looked at for the reason of a failure."""
PROGRESS = {"Downloading ": "download ", "Collecting ": "resolve "}
"""How pip's lines begin that tell its progress, and how ours do."""


@dataclass(frozen=True)
class Installation:
    """What pip installed."""

    site: Path
    """The directory for the import path; it may be missing if nothing was installed."""
    packages: tuple[str, ...]
    """Each as NAME==VERSION, in the order of their names."""


def install(
    lines: Iterable[Line], image: Mapping[str, Package], index: Index, place: Path, advice: str = ADVICE
) -> Installation:
    """Install what the image lacks below ``place``. Raises StageError with the reason that pip's words give.

    ``place``: a directory with room for what pip downloads and unpacks. pip's log stays off it. ``advice``: what else
    to do about versions that do not fit than to change the requirements.
    """
    with tempfile.TemporaryDirectory() as own:
        return _install(lines, image, index, place, Path(own), advice)


def _install(
    lines: Iterable[Line], image: Mapping[str, Package], index: Index, place: Path, own: Path, advice: str
) -> Installation:
    # Not --target: with it, pip would install what the image has once more.
    there, prefix, report, log = own / "image", place / "prefix", own / "report.json", own / "pip.log"
    describe(image, there)
    (own / "requirements.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (own / "constraints.txt").write_text(constraints(image), encoding="utf-8")
    command = [
        *(sys.executable, "-I", "-u", str(Path(pip_alone.__file__).resolve())),
        *(str(Path(pip.__file__).parent.parent), str(there), "install", *OPTIONS),
        *(SINCE_TRUSTSTORE if Version(pip.__version__) >= Version("24.2") else ()),
        *("--prefix", str(prefix), "--report", str(report), "--log", str(log)),
        *("--requirement", "requirements.txt", "--constraint", "constraints.txt"),
    ]
    code, printed = _run(command, index, own, place)
    if code != 0:
        raise failure(printed, _scrubbed(end_of(log), index), index.host, advice)
    site = sysconfig.get_path("purelib", "posix_prefix", {"base": str(prefix), "platbase": str(prefix)})
    return Installation(Path(site), tuple(sorted(_reported(report))))


def _reported(report: Path) -> Iterable[str]:
    """Yield what pip installed."""
    for each in json.loads(report.read_text(encoding="utf-8"))["install"]:
        yield printable(f"{each['metadata']['name']}=={each['metadata']['version']}")


def _run(command: list[str], index: Index, own: Path, place: Path) -> tuple[int, str]:
    """Run pip to its end and show what it prints; return its exit code and its last lines."""
    last = deque[str](maxlen=LAST_LINES)
    with subprocess.Popen(
        command,
        cwd=own,
        env={**index.environment(own), "TMPDIR": str(place)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        assert process.stdout is not None
        try:
            for text in lines(process.stdout, index):
                last.append(text)
                print(_told(text), flush=True)
        except BaseException:
            process.kill()
            raise
    return process.returncode, "\n".join(last)


def lines(output: IO[bytes], index: Index) -> Iterator[str]:
    """Yield what pip prints by lines, without the index's password, of which a line that is cut shows no part."""
    longest_secret = max((len(each.encode()) for each in index.secrets), default=0)
    while line := output.readline(LONGEST_LINE):
        text = _scrubbed(line.decode(errors="replace"), index)
        while not line.endswith(b"\n") and (line := output.readline(LONGEST_LINE)):
            text = text[: LONGEST_LINE - longest_secret]
        yield text.rstrip()


def _told(text: str) -> str:
    """Return a line for the log, in the words of a download if it tells of one."""
    plain = printable(text).strip()
    found = next((begin for begin in PROGRESS if plain.startswith(begin)), None)
    return PROGRESS[found] + plain.removeprefix(found) if found else plain


def _scrubbed(text: str, index: Index) -> str:
    """Return the text without the index's password, which pip itself leaves out of what it prints."""
    for each in index.secrets:
        text = text.replace(each, "****")
    return text


def end_of(log: Path) -> str:
    """Return the last whole lines of pip's log; empty if there are none."""
    try:
        with log.open("rb") as file:
            if file.seek(max(0, log.stat().st_size - LOG_BYTES)):
                file.readline()
            return file.read().decode(errors="replace")
    except OSError:
        return ""
