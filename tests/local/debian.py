"""`python3 -m tests.local.debian [RELEASE...]`: type what the README says on a bare Debian, and print how long it took.

It needs root and debootstrap. A release is installed into the cache once; each run has a layer of its own above that,
in which an ordinary user has this commit's files, and pip the settings and certificates of this machine.
"""

import argparse
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hack.devcluster.paths import cache_home
from tests.local import refusing
from tests.zoo.fetch import fetch
from tests.zoo.models import MODELS, ZooModel

ROOT = Path(__file__).resolve().parents[2]
CACHE = cache_home()
RELEASES = ("bookworm", "trixie")
MIRROR = "http://deb.debian.org/debian"
USER = "1000"
HOME = "home/someone"
ZOO = 10
"""Number of models of the zoo for the median: the first ONNX file of a package for each of so many kinds."""
MODEL = "manifests/samples/digits/digits.onnx"
ENTER = """
cd "$1"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs -o mode=1777 tmpfs tmp
/usr/sbin/pivot_root . mnt
umount -l /mnt
cd /
"""
"""A root of its own and no chroot: a program in a chroot may not make user namespaces."""
REFUSED = {"swift-f0"}
"""Models of the zoo whose answers to made-up values are NaN (docs/zoo.md)."""
ANSWERED = {"installed": "not observed yet", "gates": "gates: Passed"}
"""What the command prints when a phase is over, by the phase."""
DOWNLOAD = re.compile(r"Downloading \S+ \(([\d.]+) (bytes|kB|MB)\)")
BYTES = {"bytes": 1, "kB": 10**3, "MB": 10**6}


class TypingError(Exception):
    """Something did not go as the README says; the message has what was printed."""


class Debian:
    """A Debian with nothing but what the docs name."""

    def __init__(self, release: str, layer: Path, *, counts: bool) -> None:
        """``counts``: pip keeps a log, from which `downloaded` counts."""
        self._below = _installed(release)
        self._layer = layer
        for name in ("upper", "work", "root"):
            (layer / name).mkdir(parents=True)
        self.home = layer / "upper" / HOME
        checkout = self.home / "triton-operator"
        checkout.mkdir(parents=True)
        archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", checkout], input=archive.stdout, check=True)
        for name in ("model.onnx", "second.onnx"):
            shutil.copy(ROOT / MODEL, checkout / name)
        shutil.copy(refusing.__file__, checkout)
        subprocess.run(["chown", "-R", f"{USER}:{USER}", self.home], check=True)
        self._environment = _passed_on() | ({"PIP_LOG": f"/{HOME}/pip.log"} if counts else {})
        for value in ("/etc/resolv.conf", *self._environment.values()):
            if Path(value).is_file():
                (layer / f"upper{value}").parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(value, layer / f"upper{value}")

    def type(self, command: str, status: int = 0) -> Iterator[str]:
        """Yield the lines that a command of the user prints. Raises TypingError if it ends with another status."""
        own = {"HOME": f"/{HOME}", "PATH": "/usr/local/bin:/usr/bin:/bin"}
        options = f"lowerdir={self._below},upperdir={self._layer}/upper,workdir={self._layer}/work"
        script = f"""
            mount -t overlay -o {options} overlay "$1"
            {ENTER}
            cd /{HOME}/triton-operator
            exec setpriv --reuid={USER} --regid={USER} --clear-groups sh -c "$2"
        """
        argv = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-euc", script, "sh"]
        with subprocess.Popen(
            [*argv, self._layer / "root", command],
            env=self._environment | own,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            said = []
            for line in process.stdout or ():
                said.append(line)
                yield line
        if process.returncode != status:
            raise TypingError(f"{command}: exit status {process.returncode}\n{''.join(said)}")

    def downloaded(self) -> float:
        """How many megabytes pip has downloaded."""
        return megabytes((self.home / "pip.log").read_text(encoding="utf-8", errors="replace"))

    def kept(self) -> float:
        """How many megabytes the installations take."""
        folders = [self.home / each for each in ("triton", ".cache/triton-operator/local")]
        done = subprocess.run(["du", "-c", "-B1", "-s", *folders], check=True, capture_output=True, text=True)
        return int(done.stdout.splitlines()[-1].split()[0]) / 10**6


def megabytes(log: str) -> float:
    """How many megabytes are downloaded by what pip logs."""
    return sum(float(number) * BYTES[unit] for number, unit in DOWNLOAD.findall(log)) / 10**6


def main() -> int:
    """Run the releases, and return the exit status: 0 if all went as the README says."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.local.debian", description=__doc__)
    parser.add_argument("releases", nargs="*", choices=[[], *RELEASES], metavar="RELEASE", help="default: all of them")
    parser.add_argument("--downloads", action="store_true", help="count what pip downloads; its log makes it slower")
    parser.add_argument("--zoo", action="store_true", help=f"check {ZOO} models of other projects too: half an hour")
    options = parser.parse_args()
    failed = False
    for release in options.releases or RELEASES:
        try:
            with _debian(release, counts=options.downloads) as debian:
                _try(release, debian)
                if options.zoo:
                    _median(debian)
                if options.downloads:
                    print(f"  {debian.downloaded():.0f} MB downloaded")
        except (TypingError, OSError, subprocess.CalledProcessError) as error:
            print(f"{release}: {error}", file=sys.stderr)
            failed = True
    return int(failed)


class Watch:
    """The time since its start, in seconds: on the clock, and of all processors for programs that have ended."""

    def __init__(self) -> None:
        self._clock, self._used = time.monotonic(), _used()

    def say(self, words: str) -> float:
        """Print how long it took until now, and return it."""
        seconds = time.monotonic() - self._clock
        print(f"  {seconds:5.0f} s  {words}", flush=True)
        return seconds

    def end(self, words: str) -> float:
        """Print how long it took, and how much of the processors; return the seconds."""
        return self.say(f"{words}, {_used() - self._used:.0f} s CPU")


def _used() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def _try(release: str, debian: Debian) -> None:
    """Type all that a stranger would, and print how long it took. Raises TypingError."""
    install, check = commands()
    print(f"{release}, load {os.getloadavg()[0]:.1f}", flush=True)
    whole = Watch()
    for _ in debian.type(install):
        pass
    whole.end(install)
    for model in ("model.onnx", "second.onnx"):
        _check(debian, check, model)
        if model == "model.onnx":
            whole.end(f"in all, {debian.kept():.0f} MB kept")
    without = f"python3 refusing.py no-namespaces {check} --folder"
    said = "".join(debian.type(f"{without} refused", status=1))
    if "--unboxed" not in said or (debian.home / "triton-operator/refused").exists():
        raise TypingError(f"where namespaces are refused, the command says {said}")
    for _ in debian.type(f"{without} unboxed --unboxed"):
        pass
    print(f"  refused without namespaces, passed with --unboxed; load {os.getloadavg()[0]:.1f}", flush=True)


def _check(debian: Debian, command: str, model: str) -> tuple[float, float]:
    """Check a model, and return the seconds to the first candidate's gates and to the end. Raises TypingError."""
    watch = Watch()
    seconds: dict[str, float] = {}
    for line in debian.type(command.replace("model.onnx", model)):
        for phase, words in ANSWERED.items():
            if words in line and phase not in seconds:
                seconds[phase] = watch.say(f"{model}: {phase}")
    return seconds["gates"], watch.end(f"{model}: figures")


def _median(debian: Debian) -> None:
    """Check models of other projects, each as a second file, and print the medians. Raises TypingError."""
    chosen = zoo()
    for model in chosen:
        with tempfile.TemporaryDirectory() as folder:
            fetched = Path(folder, fetch(model, Path(folder)))
            shutil.copy(fetched, debian.home / f"triton-operator/{model.name}.onnx")
    found = [_check(debian, commands()[1], f"{model.name}.onnx") for model in chosen]
    gates, figures = (statistics.median(each) for each in zip(*found, strict=True))
    print(
        f"  median of {len(found)} models: gates {gates:.0f} s, figures {figures:.0f} s; load {os.getloadavg()[0]:.1f}"
    )


def zoo() -> list[ZooModel]:
    """The models for the median, in the zoo's order; one that the zoo refuses by itself is left out."""
    of_kind: dict[str, ZooModel] = {}
    for model in MODELS:
        if model.path.endswith(".onnx") and not model.maker and not model.code and model.name not in REFUSED:
            of_kind.setdefault(model.kind, model)
    return list(of_kind.values())[:ZOO]


@contextmanager
def _debian(release: str, *, counts: bool) -> Iterator[Debian]:
    layer = CACHE / f"debian-{release}-layer"
    shutil.rmtree(layer, ignore_errors=True)
    try:
        yield Debian(release, layer, counts=counts)
    finally:
        shutil.rmtree(layer, ignore_errors=True)


def _installed(release: str) -> Path:
    """The folder with a minimal Debian, what the docs tell to install, and a user."""
    folder = CACHE / f"debian-{release}"
    if not folder.exists():
        new = folder.with_suffix(".new")
        shutil.rmtree(new, ignore_errors=True)
        _run("debootstrap", "--variant=minbase", release, new, MIRROR)
        shutil.copy("/etc/resolv.conf", new / "etc/resolv.conf")
        _run("chroot", new, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "--yes", *_packages())
        _run("chroot", new, "useradd", "--uid", USER, "--create-home", "--home-dir", f"/{HOME}", "someone")
        new.rename(folder)
    return folder


def _packages() -> list[str]:
    page = (ROOT / "docs/check.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"`sudo apt-get install([^`]+)`", page)
    return found.split()


def commands() -> list[str]:
    """The first commands of the README, without their comments."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    block = page.partition("\n## Try it\n")[2].split("```")[1]
    return [line.partition(" #")[0].strip() for line in block.strip().splitlines()]


def _passed_on() -> dict[str, str]:
    """What pip knows of this machine's network; a folder of files is not there."""
    proxies = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
    return {
        name: value
        for name, value in os.environ.items()
        if (name.startswith("PIP_") and not Path(value).is_dir()) or name.upper() in proxies
    }


def _run(*argv: str | Path) -> None:
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise TypingError(f"{' '.join(map(str, argv))}: exit status {done.returncode}\n{done.stdout[-2000:]}")


if __name__ == "__main__":
    sys.exit(main())
