"""Two objects with `spec.gpu`, checked on a bare machine that has PyTorch and fetches nothing.

``python3 -m hack.gpumachine pack FOLDER PYTHON``: put what such a machine lacks into one file of the folder; its Python
has the version of this one.
``python3 -m hack.gpumachine run FOLDER OUT``: there, in this working tree, with the Python that has PyTorch: check the
objects, and leave in OUT what became of them. ``run-on-cpu`` rehearses it with the same objects without `spec.gpu`.
"""

import os
import shutil
import subprocess
import sys
import tarfile
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path

from triton_local.install import SERVER, Installation, tie
from triton_local.interpreter import Python, python

ROOT = Path(__file__).resolve().parents[2]
PACKED, MOST_BYTES = "packed.tar.xz", 48 * 2**20
"""The file that travels beside the working tree, and how large it may be."""
CHECK_SECONDS = 210.0
"""How long one check may take; what else is done takes less than a minute, so all ends within 8."""
HAS = "numpy numpy.libs onnx onnxruntime onnxscript ml_dtypes safetensors sympy mpmath pip matplotlib mpl_toolkits PIL"
"""Packages that such a machine has."""
NEEDED = "google protobuf pillow.libs contourpy fontTools kiwisolver pyparsing"
"""Packages that these need: protobuf in a version of theirs, which reads what tritonclient has."""
USELESS = "obstore PyInstaller _pyinstaller_hooks_contrib aiohttp bin"
"""What nothing here imports."""
LEFT_OUT = [form for name in f"{HAS} {NEEDED} {USELESS}".split() for form in (name, f"{name}-*.dist-info")]
TWICE = ("tritonclient", "grpc", "rapidjson.*", "perf_*", "setuptools", "pkg_resources")
FACTS = "nvidia-smi; nvidia-smi -q; python3 -m pip list; ldd --version; uname -a; echo $LD_LIBRARY_PATH"
WATCH = "exec nvidia-smi --query-gpu=timestamp,utilization.gpu,memory.used --format=csv --loop=1"


def installation(interpreter: Python) -> Installation:
    """What `kubectl triton check` installs."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return Installation(cache / "triton-operator/local", interpreter, print)


def pack(folder: Path, executable: str) -> int:
    """Make the file that travels, and return its size."""
    made, site = installation(python(executable)), folder / "site"
    made.image(made.name(SERVER))
    lock = ("--require-hashes", "--requirement", str(ROOT / "requirements/plugin-archive.txt"))
    pip = [executable, "-m", "pip", "install", "--quiet", "--only-binary=:all:", "--target", str(site), *lock]
    subprocess.run(pip, check=True)
    with tarfile.open(folder / PACKED, "w:xz") as packed:
        for place, part in ((made.place("base"), "base"), (site, "site")):
            for path in sorted(path.relative_to(place) for path in place.rglob("*")):
                if travels(path, part) and ((place / path).is_symlink() or not (place / path).is_dir()):
                    packed.add(place / path, f"{part}/{path}")
    shutil.rmtree(site)
    return (folder / PACKED).stat().st_size


def travels(path: Path, part: str) -> bool:
    """Whether a file is one that the other machine lacks and cannot make."""
    if "__pycache__" in path.parts or path.is_relative_to("tritonserver/venv") or path.match("venv/bin/python*"):
        return False
    _, inside, package = (f"site-packages/{path}" if part == "site" else str(path)).partition("site-packages/")
    patterns = (*LEFT_OUT, *TWICE) if part == "site" else LEFT_OUT
    return not (inside and any(fnmatch(package.partition("/")[0], each) for each in patterns))


def run(folder: Path, out: Path, *, gpu: bool) -> int:
    """Check the objects on this machine, and return how many are not Ready."""
    out.mkdir(parents=True, exist_ok=True)
    shell(FACTS, out / "machine.txt").wait()
    path = os.pathsep.join((os.environ["PYTHONPATH"], *laid_out(folder)))
    watching = shell(WATCH, out / "gpu.csv")
    try:
        return sum(not checked(folder, out, precision, path, gpu=gpu) for precision in ("fp32", "fp16"))
    finally:
        watching.kill()


def shell(words: str, file: Path) -> "subprocess.Popen[bytes]":
    """Start a command of the shell, which writes all into a file."""
    with file.open("wb") as said:
        return subprocess.Popen(["sh", "-c", words], stdout=said, stderr=said)


def laid_out(folder: Path) -> tuple[str, str]:
    """Make an installation of what travelled, for this Python, and return the folders with the command's packages."""
    interpreter = python(sys.executable)
    with tarfile.open(folder / PACKED) as packed:
        packed.extractall(folder, filter="tar")
    base = installation(interpreter).place("base")
    base.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(base, ignore_errors=True)
    shutil.move(folder / "base", base)
    tie(base, interpreter)
    (packages,) = base.glob("venv/lib/python*/site-packages")
    (packages / "own.pth").write_text("".join(f"{each}\n" for each in interpreter.packages), encoding="utf-8")
    return str(folder / "site"), str(packages)


def checked(folder: Path, out: Path, precision: str, path: str, *, gpu: bool) -> bool:
    """Check the object in a precision within its time, keep what was written, and return whether it is Ready."""
    text = Path(__file__).with_name("net.yaml").read_text(encoding="utf-8").replace("fp32", precision)
    file, work = folder / f"{precision}.yaml", folder / f"{precision}-check"
    file.write_text(text if gpu else text.replace("gpu: {}", ""), encoding="utf-8")
    argv = [sys.executable, "-m", "triton_plugin", "check", str(file), "--unboxed", "--python", sys.executable]
    outcome = "no exit status in time"
    with (out / f"{precision}.txt").open("w", encoding="utf-8") as said, suppress(subprocess.TimeoutExpired):
        own = os.environ | {"PYTHONPATH": path}
        done = subprocess.run(
            [*argv, "--folder", str(work)], env=own, stdout=said, stderr=said, timeout=CHECK_SECONDS, check=False
        )
        outcome = f"exit status {done.returncode}"
    with tarfile.open(out / f"{precision}.tar.gz", "w:gz") as kept:
        for each in (*work.glob("*.*"), *work.glob("pods/*/*.log")):
            kept.add(each, str(each.relative_to(folder)))
    print((out / f"{precision}.txt").read_text(encoding="utf-8"), f"{precision}: {outcome}", sep="\n", flush=True)
    return outcome == "exit status 0"


def main(argv: list[str]) -> str | None:
    """Do what the arguments say, and return what is wrong."""
    match argv:
        case ["pack", folder, executable]:
            size = pack(Path(folder).resolve(), executable)
            print(f"{PACKED}: {size / 2**20:.1f} MiB")
            return None if size <= MOST_BYTES else f"no more than {MOST_BYTES / 2**20:g} MiB may travel"
        case ["run" | "run-on-cpu", folder, out]:
            failed = run(Path(folder).resolve(), Path(out).resolve(), gpu=argv[0] == "run")
            return f"{failed} of 2 are not Ready" if failed else None
    return __doc__


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
