"""What stands for the images: named by all that it is made from, with the machine's system, and without homes."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from triton_local import install, interpreter
from triton_local.install import CONVERTER, ENVIRONMENT, RECIPE, SERVER, TREES, Installation
from triton_local.interpreter import InstallError, Python, python

OWN = Python(
    executable=Path("/usr/bin/python3"),
    home=Path("/usr"),
    prefix=Path("/usr"),
    packages=(Path("/usr/lib/python3/dist-packages"),),
    version=(3, 13, 5),
    library=Path("/usr/lib/libpython3.13.so.1.0"),
    installed=("torch==2.6.0",),
)


def installation(folder: Path, interpreter: Python = OWN, *, has_packages: bool = False) -> Installation:
    return Installation(folder, interpreter, lambda _: None, has_packages=has_packages)


def an_interpreter(folder: Path, version: tuple[int, ...], library: str) -> str:
    """A program that says this of itself."""
    said = json.dumps(["/p", "/home", "/home", ["/home/packages"], version, library, []])
    program = folder / "python3"
    program.write_text(f"#!/bin/sh\necho '{said}'\n", encoding="utf-8")
    program.chmod(0o755)
    return str(program)


def test_this_interpreter_says_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Not every interpreter that tests run on has its library.
    library = tmp_path / "libpython.so"
    library.touch()
    monkeypatch.setattr(
        interpreter, "_FACTS", interpreter._FACTS.replace("library = ", f"library = {str(library)!r} or ")
    )
    found = python(sys.executable)
    assert found.version[:2] == sys.version_info[:2]
    assert found.home == Path(sys.base_prefix)
    assert found.prefix == Path(sys.prefix)
    assert any(each.startswith("pytest==") for each in found.installed)


def test_an_environment_with_the_system_s_packages_has_its_own_first(tmp_path: Path) -> None:
    for options, count in (["--system-site-packages"], 2), ([], 1):
        folder = tmp_path / f"env-{count}"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", *options, folder], check=True)
        argv = [str(folder / "bin/python3"), "-I", "-c", interpreter._FACTS]
        said = json.loads(subprocess.run(argv, check=True, capture_output=True).stdout)[3]
        assert Path(said[0]).is_relative_to(folder)
        assert len(said) >= count
        assert (len(said) == 1) == (count == 1)


@pytest.mark.parametrize(
    ("version", "words"),
    [((3, 10, 2), "is Python 3.10.2; install with one from 3.11.1 to 3.13"), ((3, 14, 0), "is Python 3.14.0")],
)
def test_an_interpreter_that_does_not_serve_is_refused(version: tuple[int, ...], words: str, tmp_path: Path) -> None:
    with pytest.raises(InstallError, match=words):
        python(an_interpreter(tmp_path, version, "/lib"))


def test_an_interpreter_without_its_library_is_told_with_the_package(tmp_path: Path) -> None:
    with pytest.raises(InstallError, match=r"apt-get install libpython3\.12"):
        python(an_interpreter(tmp_path, (3, 12, 4), str(tmp_path / "nowhere")))


def test_what_is_no_interpreter_is_told(tmp_path: Path) -> None:
    with pytest.raises(InstallError, match="is no Python that runs"):
        python(str(tmp_path / "nowhere"))


def test_another_interpreter_or_recipe_or_converter_is_another_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = installation(tmp_path).name(CONVERTER)
    assert first == installation(tmp_path).name(CONVERTER)
    assert installation(tmp_path, replace(OWN, version=(3, 12, 1))).name(CONVERTER) != first
    # Its packages matter only where they run something.
    assert installation(tmp_path, replace(OWN, installed=())).name(CONVERTER) == first
    own = installation(tmp_path, has_packages=True).name(ENVIRONMENT)
    assert installation(tmp_path, replace(OWN, installed=()), has_packages=True).name(ENVIRONMENT) != own
    monkeypatch.setattr(install, "_glibc", lambda: (2, 99))
    assert installation(tmp_path).name(CONVERTER) != first


def test_a_name_of_another_release_is_none_of_these(tmp_path: Path) -> None:
    assert installation(tmp_path).image(f"{CONVERTER}@sha256:{'0' * 64}") is None
    assert installation(tmp_path).image("nvcr.io/nvidia/tritonserver:26.07-py3") is None


def test_containers_see_the_system_and_no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(install.PARTS, "base", ("nothing", lambda folder, _: None))
    made = installation(tmp_path)
    for repository in (CONVERTER, SERVER):
        image = made.image(made.name(repository))
        assert image is not None
        assert all(each.read_only for each in image.mounts)
        seen = {each.target for each in image.mounts}
        assert "/usr" in seen
        assert not {each for each in seen if each.startswith(("/home", "/root", "/tmp"))}
        assert image.id == made.name(repository)


def test_the_libraries_of_trees_are_installed_for_the_image_that_has_them_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed: list[str] = []
    monkeypatch.setitem(install.PARTS, "base", ("nothing", lambda folder, _: installed.append("base")))
    monkeypatch.setitem(install.PARTS, "trees", ("nothing", lambda folder, _: installed.append("trees")))
    made = installation(tmp_path)
    made.image(made.name(CONVERTER))
    assert installed == ["base"]
    image = made.image(made.name(TREES))
    assert image is not None
    assert installed == ["base", "trees"]
    assert install.LIBRARIES in {each.target for each in image.mounts}
    assert image.environment["PYTHONPATH"] == f"{install.CONVERTERS}:{install.LIBRARIES}"


def test_an_installation_that_fails_is_not_taken_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(folder: Path, _: Python) -> None:
        (folder / "venv").mkdir()
        raise InstallError("no network")

    monkeypatch.setitem(install.PARTS, "base", ("nothing", failing))
    made = installation(tmp_path)
    for _ in range(2):
        with pytest.raises(InstallError, match="no network"):
            made.image(made.name(CONVERTER))


def test_one_installation_serves_each_python_its_own_packages_after_the_server_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other, site = tmp_path / "own", tmp_path / "other", Path("tritonserver/site-packages")

    def base(folder: Path, interpreter: Python) -> None:
        _modules(folder / site, "numpy")
        (folder / "tritonserver/lib").mkdir()
        (folder / "tritonserver/lib/libpython3-1234.13.so.1.0").touch()
        install.tie(folder, interpreter)

    monkeypatch.setitem(install.PARTS, "base", ("nothing", base))
    for folder in (own, other):
        _modules(folder, "numpy", "torch")
        found = replace(OWN, executable=Path(sys.executable), packages=(tmp_path / "nowhere", folder))
        for has_packages in (True, False):
            made = installation(tmp_path / "local", found, has_packages=has_packages)
            image = made.image(made.name(SERVER))
            assert image is not None
            # As containers and folders of pods show it elsewhere.
            server = tmp_path / "moved"
            server.unlink(missing_ok=True)
            server.symlink_to(made.place("base") / "tritonserver")
            program = (
                "import numpy, importlib.util as u; t = u.find_spec('torch'); print(numpy.__file__, t and t.origin)"
            )
            argv = [str(server / "venv/bin/python3"), "-I", "-B", "-c", program]
            done = subprocess.run(argv, check=True, capture_output=True, text=True, env=dict(image.environment))
            numpy, torch = done.stdout.split()
            assert Path(numpy).resolve() == made.place("base") / site / "numpy.py"
            assert torch == (str(folder / "torch.py") if has_packages else "None")


def _modules(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True)
    for name in names:
        (folder / f"{name}.py").touch()


def test_what_is_made_with_one_python_is_tied_to_another(tmp_path: Path) -> None:
    library = tmp_path / "tritonserver/lib/libpython3-1234.13.so.1.0"
    for folder in (library.parent, tmp_path / "tritonserver/site-packages"):
        folder.mkdir(parents=True)
    library.touch()
    # As a part that was made on one machine is tied to the Python of another.
    for each in (OWN, replace(OWN, library=Path("/opt/lib/libpython3.13.so.1.0"))):
        install.tie(tmp_path, replace(each, executable=Path(sys.executable)))
        assert library.readlink() == each.library
        assert library.with_name(each.library.name).readlink() == each.library
    assert (tmp_path / "venv/bin/python3").exists()


def test_what_a_program_says_last_is_in_the_error() -> None:
    with pytest.raises(InstallError, match=r"(?s)failed:.*it is broken\nsudo make me one"):
        install._run(["sh", "-c", "echo it is broken; exit 3"], "sudo make me one")


def test_no_package_of_the_user_s_python_is_taken_for_an_installed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/somewhere/site-packages")
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.example/simple")
    install._run(["sh", "-c", 'test -z "$PYTHONPATH" && test -n "$PIP_INDEX_URL"'])


def test_a_lock_without_a_package_has_all_others_with_their_hashes() -> None:
    lock = "a==1 \\\n    --hash=sha256:0\n    # via b\nb==2 \\\n    --hash=sha256:1\n    --hash=sha256:2\n"
    assert install._without("a", lock) == "b==2 \\\n    --hash=sha256:1\n    --hash=sha256:2\n"
    assert install._without("b", lock) == "a==1 \\\n    --hash=sha256:0\n    # via b\n"
    assert install._without("c", lock) == lock


def test_what_the_server_shares_with_the_converters_is_of_the_version_of_its_own_lock() -> None:
    locks = [(RECIPE / f"image-{name}.txt").read_text(encoding="utf-8") for name in ("converter", "tritonserver-cpu")]
    (own,), (servers,) = (re.findall(r"^onnxruntime==\S+", lock, re.MULTILINE) for lock in locks)
    assert own == servers


def test_the_recipe_is_that_of_the_images() -> None:
    root = Path(__file__).parents[2]
    for part in ("converter", "converter-tensorflow", "converter-trees", "tritonserver-cpu"):
        name = f"image-{part}.txt"
        assert (RECIPE / name).samefile(root / "requirements" / name)
    for name in ("backends", "runtimes", "start.sh", "numpy2_stub.py"):
        assert (RECIPE / name).samefile(root / "images/tritonserver-cpu" / name)
    tracked = subprocess.run(["git", "check-ignore", str(RECIPE)], cwd=root, capture_output=True, check=False)
    assert tracked.returncode == 1
