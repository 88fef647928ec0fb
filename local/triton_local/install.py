"""The programs of the images, installed by pip into a folder of the user: no root, no Docker.

What is installed has the same paths in a container as in the images. The rest of a container's files are this machine's
own system, read-only.
"""

import fcntl
import os
import platform
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import triton_converters
from triton_local.interpreter import InstallError, Python, text
from triton_local.runtime import Image, Mount

RECIPE = Path(__file__).with_name("recipe")
"""What the images' Dockerfiles install and copy, and what older systems need instead."""
CONVERTER, TENSORFLOW, TREES, SERVER, ENVIRONMENT = (
    f"triton-operator.local/{name}"
    for name in ("converter", "converter-tensorflow", "converter-trees", "tritonserver", "python")
)
"""The repositories of the images that stand for what is installed: of no registry, as the name shows. The last one is
the interpreter's own environment."""
NUMPY_2 = (3, 12)
"""The first Python whose stub `numpy2_stub.py` corrects."""
NEWER_GLIBC = (2, 38)
"""The least glibc of the perf_analyzer of the converters' lock."""
SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ld.so.cache"),
    *("/etc/alternatives", "/etc/nsswitch.conf", "/etc/passwd", "/etc/group", "/etc/resolv.conf"),
)
"""What a container sees of this machine."""
VENV, TRITONSERVER, CONVERTERS = "/opt/venv", "/opt/tritonserver", "/opt/triton-operator/converters"
LIBRARIES = "/opt/trees"
PATH = "/usr/local/bin:/usr/bin:/bin"
VARIABLES = {
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "OMP_WAIT_POLICY": "passive",
    "ORT_DISABLE_TELEMETRY": "1",
    "TF_CPP_MIN_LOG_LEVEL": "1",
    "HOME": "/tmp",  # noqa: S108 - a folder of the container's own
}
"""Variables of all images."""
PACKAGES = "TRITON_PACKAGES"
"""The variable that names the folders with the user's packages to the server's Python."""
SELDOM_IMPORTED = "/(sympy|mpmath|tests?)/"
"""A pattern of packages that are not compiled, which takes longer than all others: INT8 alone imports the first two."""
PIP_WORDS = 2000
"""How much is shown of what a failed pip printed."""


class Installation:
    """All that an interpreter installs, each part when an image of it is first asked for."""

    def __init__(
        self, folder: Path, interpreter: Python, say: Callable[[str], None], *, has_packages: bool = False
    ) -> None:
        """``folder``: keeps it, for all engines of the user. ``say``: is told before something takes long.

        ``has_packages``: the interpreter's own packages run the user's code, and load models in the server.
        """
        self._folder = folder
        self._python = interpreter
        self._say = say
        self._has_packages = has_packages

    def name(self, repository: str) -> str:
        """The name of an image, REPOSITORY@sha256:DIGEST: another one once anything that it is made from differs."""
        own = repr(self._python) if self._has_packages else ""
        return f"{repository}@sha256:{sha256((self._recipe + self._code + own).encode()).hexdigest()}"

    def place(self, part: str) -> Path:
        """The folder of a part, which is there once it is whole."""
        return self._folder / f"{part}-{self._recipe[:16]}"

    def image(self, name: str) -> Image | None:
        """Return what stands for an image, which is installed first; None: it is none of these.

        Raises InstallError, OSError.
        """
        repository = name.partition("@")[0]
        made = {
            SERVER: self._server,
            CONVERTER: lambda: self._converter("base"),
            TENSORFLOW: lambda: self._converter("tensorflow"),
            TREES: self._of_trees,
            ENVIRONMENT: self._environment,
        }.get(repository)
        return replace(made(), id=name) if made is not None and name == self.name(repository) else None

    def _environment(self) -> Image:
        """The user's own environment; the operator puts the converters beside it, as into any image of a user's."""
        return self._of_converters((), PATH=f"{self._python.prefix}/bin:{PATH}")

    def _converter(self, part: str) -> Image:
        code = Path(triton_converters.__file__).parent
        own = (Mount(self._part(part) / "venv", VENV, True), Mount(code, f"{CONVERTERS}/{code.name}", True))
        places = {"PATH": f"{VENV}/bin:{PATH}", "LD_LIBRARY_PATH": f"{VENV}/perf", "PYTHONPATH": CONVERTERS}
        return self._of_converters(own, **places)

    def _of_trees(self) -> Image:
        """The converter with XGBoost, LightGBM and scikit-learn, which the image of a cluster has in one."""
        base = self._converter("base")
        own = Mount(self._part("trees") / "packages", LIBRARIES, read_only=True)
        path = f"{CONVERTERS}:{LIBRARIES}"
        return replace(base, mounts=(*base.mounts, own), environment={**base.environment, "PYTHONPATH": path})

    def _of_converters(self, own: tuple[Mount, ...], **variables: str) -> Image:
        return Image(
            id="",
            mounts=(*self._system(), *own),
            links=_links(),
            environment=VARIABLES | variables | {"USER": "converter"},
            entrypoint=("python3", "-m", "triton_converters"),
            directory="/tmp",  # noqa: S108 - a folder of the container's own
        )

    def _server(self) -> Image:
        path = f"{TRITONSERVER}/bin:{TRITONSERVER}/venv/bin:{PATH}"
        packages = {PACKAGES: os.pathsep.join(map(str, self._python.packages))} if self._has_packages else {}
        return Image(
            id="",
            mounts=(*self._system(), Mount(self._part("base") / "tritonserver", TRITONSERVER, read_only=True)),
            links=_links(),
            environment=VARIABLES
            | {"PATH": path, "LD_LIBRARY_PATH": f"{TRITONSERVER}/lib", "USER": "triton-server"}
            | packages,
            entrypoint=(f"{TRITONSERVER}/start.sh",),
            directory=TRITONSERVER,
        )

    def _system(self) -> Iterator[Mount]:
        links = _links()
        for path in SYSTEM:
            if path not in links and Path(path).exists():
                # What is a link, such as /etc/resolv.conf on some systems, is shown as what it leads to.
                yield Mount(Path(path).resolve(), path, read_only=True)
        own = (self._python.home, *([self._python.prefix] if self._has_packages else []))
        for folder in dict.fromkeys(own):
            if not folder.is_relative_to("/usr"):
                yield Mount(folder, str(folder), read_only=True)

    @cached_property
    def _recipe(self) -> str:
        """The digest of all that is installed, and of how."""
        interpreter = self._python
        found = sha256(repr((interpreter.executable, interpreter.version, interpreter.library, _glibc())).encode())
        for path in (Path(__file__), *sorted(each for each in _files(RECIPE) if each.suffix != ".pyc")):
            found.update(path.read_bytes())
        return found.hexdigest()

    @cached_property
    def _code(self) -> str:
        """The digest of the converters, which are mounted as they are."""
        found = sha256()
        for path in sorted(Path(triton_converters.__file__).parent.rglob("*.py")):
            found.update(path.read_bytes())
        return found.hexdigest()

    def _part(self, name: str) -> Path:
        """The folder of a part, which is whole. Raises InstallError, OSError."""
        folder = self.place(name)
        self._folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder.with_suffix(".lock")):
            if not folder.exists():
                self._say(f"installs {PARTS[name][0]} into {folder}, once")
                new = folder.with_suffix(".new")
                shutil.rmtree(new, ignore_errors=True)
                new.mkdir()
                PARTS[name][1](new, self._python)
                new.rename(folder)
        return folder


def _base(folder: Path, interpreter: Python) -> None:
    pip = _pip(folder, interpreter)
    venv = _venv(folder, interpreter)
    site = folder / "tritonserver/site-packages"
    alone = [*pip, "install", "--no-deps", "--no-compile", "--target", site, "--require-hashes"]
    older, lock = folder / "older", folder / "server.txt"
    has_numpy_2 = interpreter.version[:2] >= NUMPY_2
    lock.write_text(_without("onnxruntime", (RECIPE / "image-tritonserver-cpu.txt").read_text(encoding="utf-8")))

    def server() -> None:
        numpy: Sequence[str | Path] = () if has_numpy_2 else ("--requirement", RECIPE / "server-numpy.txt")
        _run([*alone, "--requirement", lock, *numpy])
        _compile(interpreter.executable, site)

    def client() -> None:
        if _glibc() < NEWER_GLIBC:
            lock = RECIPE / "perf-analyzer-older.txt"
            _run([*pip, "download", "--no-deps", "--dest", older, "--require-hashes", "--requirement", lock])

    with ThreadPoolExecutor() as pool:
        packages = pool.submit(_packages, pip, venv, "image-converter.txt")
        for each in (packages, pool.submit(server), pool.submit(client)):
            each.result()
    (own,) = venv.glob("lib/python3*/site-packages")
    for name in ("onnxruntime", *(("numpy", "numpy.libs") if has_numpy_2 else ())):
        shutil.copytree(own / name, site / name, copy_function=share)
    _arrange_server(folder / "tritonserver", interpreter)
    tie(folder, interpreter)
    _arrange_client(venv, folder / "tritonserver/lib", older)
    shutil.rmtree(older, ignore_errors=True)
    shutil.rmtree(folder / "pip")
    lock.unlink()


def _tensorflow(folder: Path, interpreter: Python) -> None:
    pip = _pip(folder, interpreter)
    _packages(pip, _venv(folder, interpreter), "image-converter-tensorflow.txt")
    shutil.rmtree(folder / "pip")


def _trees(folder: Path, interpreter: Python) -> None:
    pip = _pip(folder, interpreter)
    lock = RECIPE / "image-converter-trees.txt"
    packages = folder / "packages"
    _run(
        [*pip, "install", "--no-deps", "--no-compile", "--target", packages, "--require-hashes", "--requirement", lock]
    )
    _compile(interpreter.executable, packages)
    shutil.rmtree(folder / "pip")


PARTS: dict[str, tuple[str, Callable[[Path, Python], None]]] = {
    "base": ("the converters' packages, tritonserver and perf_analyzer (500 MB)", _base),
    "tensorflow": ("TensorFlow and its converters (2 GB)", _tensorflow),
    "trees": ("XGBoost, LightGBM and scikit-learn (220 MB)", _trees),
}
"""What each part is, and how it is made in an empty folder."""


def _pip(folder: Path, interpreter: Python) -> Sequence[str | Path]:
    """A pip of its own, which no user's package changes. Raises InstallError."""
    place = folder / "pip"
    _run([interpreter.executable, "-m", "venv", place], "on Debian and Ubuntu: sudo apt-get install python3-venv")
    return [place / "bin/python3", "-m", "pip", "--disable-pip-version-check", "--quiet", "--no-cache-dir"]


def _venv(folder: Path, interpreter: Python) -> Path:
    _run([interpreter.executable, "-m", "venv", "--without-pip", folder / "venv"])
    return folder / "venv"


def _packages(pip: Sequence[str | Path], venv: Path, lock: str) -> None:
    """Install the packages of a lock. Raises InstallError."""
    install = [*pip, "--python", venv / "bin/python3", "install", "--no-compile"]
    _run([*install, "--require-hashes", "--requirement", RECIPE / lock])
    _compile(venv / "bin/python3", venv / "lib")


def _compile(own: Path, folder: Path) -> None:
    """Compile packages next to their files, where containers look, whatever this process's environment says to pip."""
    # Some packages have files that no Python compiles.
    subprocess.run([own, "-I", "-m", "compileall", "-qq", "-x", SELDOM_IMPORTED, folder], check=False)


def _without(package: str, lock: str) -> str:
    """A lock without one of its packages."""
    packages = re.split(r"^(?=\w)", lock, flags=re.MULTILINE)
    return "".join(each for each in packages if not each.startswith(f"{package}=="))


def share(source: str | Path, target: str | Path) -> None:
    """Have two places share a file, or copy it where the file system cannot. Raises OSError."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _arrange_server(server: Path, interpreter: Python) -> None:
    """Give tritonserver the layout that its image has. Raises OSError."""
    site = server / "site-packages"
    wheel = site / "pytriton/tritonserver"
    for name in ("bin", "backends", "caches"):
        (wheel / name).rename(server / name)
    stub = server / "backends/python/triton_python_backend_stub"
    (wheel / "python_backend_stubs" / text(interpreter.version[:2]) / stub.name).rename(stub)
    (site / "nvidia_pytriton.libs").rename(server / "lib")
    if interpreter.version[:2] >= NUMPY_2:
        _run([interpreter.executable, "-I", RECIPE / "numpy2_stub.py", stub])
    for name in ("backends", "runtimes"):
        shutil.copytree(RECIPE / name, server / name, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(RECIPE / "start.sh", server)
    for path in (*(server / "bin").iterdir(), stub, server / "start.sh", *(server / "lib").glob("libtritonserver-*")):
        path.chmod(0o755)
    for path in (*site.glob("pytriton"), *site.glob("nvidia_pytriton-*"), *site.glob("bin")):
        shutil.rmtree(path)


def tie(folder: Path, interpreter: Python) -> None:
    """Have an interpreter run what lies in a base part, which may have been made with another one of its version.

    Raises InstallError, OSError.
    """
    server = folder / "tritonserver"
    (own,) = (server / "lib").glob("libpython3-*.so.1.0")
    # The wheel's own lacks modules of the standard library. Some stubs look for it by its name, others by the wheel's.
    for link in (own, own.with_name(interpreter.library.name)):
        link.unlink(missing_ok=True)
        link.symlink_to(interpreter.library)
    _venv(folder, interpreter)
    # The stub takes no PYTHONPATH: it has the packages of the first `python3` on its PATH. So it gets one that finds
    # the server's NumPy, then the packages of the user's of this run.
    shutil.rmtree(server / "venv", ignore_errors=True)
    (packages,) = (_venv(server, interpreter) / "lib").glob("python*/site-packages")
    shutil.rmtree(packages)
    packages.symlink_to("../../../site-packages")
    line = f"import os, sys; sys.path.extend(filter(None, os.environ.get({PACKAGES!r}, '').split(os.pathsep)))\n"
    (server / "site-packages/own.pth").write_text(line, encoding="utf-8")


def _arrange_client(venv: Path, libraries: Path, older: Path) -> None:
    """Put perf_analyzer's libraries beside it, by the names that it looks for. Raises OSError."""
    program = venv / "bin/perf_analyzer"
    for wheel in older.glob("*.whl"):
        with zipfile.ZipFile(wheel) as files:
            (name,) = (each for each in files.namelist() if each.endswith("/bin/perf_analyzer"))
            program.write_bytes(files.read(name))
        program.chmod(0o755)
    (venv / "bin/perf_client").unlink(missing_ok=True)
    own = venv / "perf"
    own.mkdir()
    for pattern, names in {
        "libb64-*.so.0d": ("libb64.so.0d",),
        "libcudart-*.so.12*": ("libcudart.so", "libcudart.so.12"),
    }.items():
        (library,) = libraries.glob(pattern)
        for name in names:
            shutil.copy2(library, own / name)


def _run(argv: Sequence[str | Path], advice: str = "") -> None:
    """Run a program. Raises InstallError with the end of what it printed, and the advice."""
    # By a PYTHONPATH pip would find packages that are somewhere else, and leave them out.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        argv,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        errors="replace",
    )
    if done.returncode:
        words = " ".join(map(str, argv))
        raise InstallError("\n".join(filter(None, (f"{words} failed:", done.stdout[-PIP_WORDS:].strip(), advice))))


def _links() -> dict[str, str]:
    """The links at the root, such as /lib."""
    return {path: str(Path(path).readlink()) for path in SYSTEM if path.count("/") == 1 and Path(path).is_symlink()}


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, through links to folders too."""
    for place, _, names in os.walk(folder, followlinks=True):
        yield from (Path(place, name) for name in names)


def _glibc() -> tuple[int, ...]:
    return tuple(int(each) for each in platform.libc_ver()[1].split(".") if each.isdigit())


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    with file.open("w") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
