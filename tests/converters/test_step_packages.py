"""Packages of Python steps: what is installed for the server's Python, and how a step finds it there."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy
import pytest

from tests.converters import test_packages, test_python_ensemble
from tests.converters.conversions import ensemble_conversion
from tests.converters.package_index import PackageIndex, wheel
from tests.converters.run_stage import run_convert, run_packages
from tests.converters.test_packages import KEY, published, site
from triton_converters.claim_store import python_step
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import PackagesRequest, RequirementsFile
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.python_backend import user_step
from triton_converters.stages.packages import prepare

index, source = test_packages.index, test_python_ensemble.source


def asked(text: str) -> PackagesRequest:
    sha256 = published(text)
    return PackagesRequest(KEY, sha256, "requirements.txt", sha256)


def test_a_server_shares_numpy_alone(index: PackageIndex) -> None:
    """The image has `packaging` too, but no step sees it."""
    index.files.update([wheel("packaging", "99.0"), wheel("reader", requires=["packaging", "numpy"])])
    assert run_packages(replace(asked("reader\n"), served=True)).packages == ("packaging==99.0", "reader==1.0")
    assert "packaging.py" in site()


def test_another_numpy_than_the_servers_is_refused_without_advice_to_build_an_image(index: PackageIndex) -> None:
    index.files.update([wheel("relic", requires=["numpy<1.20"])])
    for text in ("numpy<1.20\n", "relic\n"):
        with pytest.raises(StageError) as error:
            run_packages(replace(asked(text), served=True))
        assert error.value.reason is Reason.PACKAGE_NOT_FOUND
        assert f"the image has numpy {numpy.__version__}" in error.value.message
        assert "spec.conversion.image" not in error.value.message


def test_files_are_resolved_together_and_a_line_names_its_own(index: PackageIndex) -> None:
    request = asked("compass\n")
    other = layout.source_directory(request.source) / "steps.txt"
    other.write_text("surveyor\n")
    second = RequirementsFile("steps.txt", _sha256(other))
    assert run_packages(replace(request, others=(second,))).packages == ("compass==1.1", "surveyor==1.2")
    other.write_text("\nnumpy<1.20\n")
    second = RequirementsFile("steps.txt", _sha256(other))
    with pytest.raises(StageError, match=r"steps\.txt:2 asks for numpy<1\.20"):
        run_packages(replace(request, key="f" * 16, others=(second,)))
    with pytest.raises(StageError, match=r"steps\.txt on the repository claim is not what was published"):
        run_packages(replace(request, key="e" * 16, others=(replace(second, sha256="0" * 64),)))


def _sha256(path: Path) -> str:
    return published(path.read_text())


def test_pip_runs_in_an_image_that_has_python_alone(tmp_path: Path) -> None:
    """Without the site packages of this interpreter, as in a server's image."""
    prepare.copy_tools(tmp_path)
    (tmp_path / "triton_converters").symlink_to(Path(python_step.__file__).parents[1])
    code = "import triton_converters.__main__, triton_converters.stages.packages.produce, pip, sys; print(pip.__file__)"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(
        [sys.executable, "-S", "-c", code], env=environment, check=False, capture_output=True, text=True
    )
    assert ran.stdout == f"{tmp_path / 'pip' / '__init__.py'}\n", ran.stderr


def test_a_revision_holds_the_packages_of_its_step(source: Path) -> None:
    modules = layout.installed_packages("a" * 16)
    (modules / "reader-1.0.dist-info").mkdir(parents=True)
    (modules / "reader.py").write_text("VERSION = 1")
    (modules / "reader-1.0.dist-info" / "METADATA").write_text("Name: reader")
    test_python_ensemble.refer()
    whole = ensemble_conversion(test_python_ensemble.WHOLE, "words", test_python_ensemble.KEY, key="f" * 16,
                                source=test_python_ensemble.SOURCE)  # fmt: skip
    count, *others = whole.members
    run_convert(replace(whole, members=(replace(count, step_packages="a" * 16), *others)))
    models = layout.model_repository("f" * 16)
    found = {each.relative_to(models).as_posix() for each in models.rglob("*") if user_step.PACKAGES in each.parts[:-1]}
    assert found == {
        "count/1/packages/reader.py",
        "count/1/packages/reader-1.0.dist-info",
        "count/1/packages/reader-1.0.dist-info/METADATA",
    }
    assert (models / "count/1/packages/reader.py").samefile(modules / "reader.py")


def test_a_source_that_the_kubelet_made_anew_is_a_missing_result(source: Path) -> None:
    test_python_ensemble.refer()
    whole = ensemble_conversion(test_python_ensemble.WHOLE, "words", test_python_ensemble.KEY, key="f" * 16,
                                source="0" * 64)  # fmt: skip
    layout.source_directory(whole.source).mkdir()
    with pytest.raises(StageError, match="is no longer on the repository claim") as error:
        run_convert(whole)
    assert (error.value.reason, error.value.final) == (Reason.INPUT_MISSING, False)


def test_packages_that_are_gone_are_a_missing_result(source: Path) -> None:
    test_python_ensemble.refer()
    whole = ensemble_conversion(test_python_ensemble.WHOLE, "words", test_python_ensemble.KEY, key="f" * 16,
                                source=test_python_ensemble.SOURCE)  # fmt: skip
    members = tuple(replace(each, step_packages="a" * 16) for each in whole.members)
    with pytest.raises(StageError, match="is no longer on the repository claim") as error:
        run_convert(replace(whole, members=members))
    assert (error.value.reason, error.value.final) == (Reason.INPUT_MISSING, False)


def test_too_many_files_of_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("source/step.py", "site/one.py", "site/two.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    monkeypatch.setattr(python_step, "MOST_PACKAGED", 1)
    with pytest.raises(StageError, match="have 2 files, but a Python step's at most 1: require fewer") as error:
        python_step.write(tmp_path / "source", "step.py", tmp_path, tmp_path / "site")
    assert error.value.reason is Reason.SOURCE_INVALID


TOLD = "\n    def execute(self, requests):\n        return None\n"
ASKED = """
import importlib.metadata as metadata
assert metadata.version("numpy") == metadata.version("NumPy") == "1.2.3"
assert sorted(each.metadata["Name"] for each in metadata.distributions()) == ["numpy", "reader"]
try:
    print(metadata.version("other"))
except metadata.PackageNotFoundError:
    pass
"""
READ = """
from pathlib import Path
words = Path(__file__).with_name("words.txt").read_text()
assert words == "gr\\xfcn", words
print(words, file=__import__("sys").stderr)
"""
HUB = """
import os
from pathlib import Path
place = Path(__file__).with_name("huggingface")
assert os.environ["HF_HUB_CACHE"] == os.environ["HUGGINGFACE_HUB_CACHE"] == str(place), os.environ
assert os.environ["HF_HUB_OFFLINE"] == os.environ["TRANSFORMERS_OFFLINE"] == "1"
"""
STEPS = {
    "hub": (HUB, ""),
    "metadata": (ASKED, ""),
    "text": (READ, ""),
    "killed": ("print('it printed')\n__import__('os')._exit(0)", "it printed"),
    "fine": ("import json, numpy, reader\nassert not hasattr(numpy, 'FALSE')\nassert json.dumps(reader.VERSION)", ""),
    "named as ours": ("import guard, model\nassert (guard.VERSION, model.VERSION) == (2, 3)", ""),
    "hidden": ("import wheel_of_the_image", "No module named 'wheel_of_the_image'; a step sees NumPy, its folder and"),
    "module": ("import lame", "; the package lame of the model's requirements does not import here"),
    "broken": (
        "import broken",
        "step.py:1: ImportError: libnothing.so: cannot open shared object file; the package broken of the model's"
        " requirements does not import here",
    ),
}


@pytest.mark.parametrize("case", STEPS)
def test_a_step_imports_its_packages_after_what_python_and_the_server_have(tmp_path: Path, case: str) -> None:
    text, words = STEPS[case]
    version, image, server = (tmp_path / each for each in ("1", "dist-packages", "backend"))
    utils = "class TritonModelException(Exception): pass\nInferenceResponse = dict"
    files = {
        server / "triton_python_backend_utils.py": utils,
        image / "wheel_of_the_image.py": "",
        image / "numpy-1.2.3.dist-info/METADATA": "Name: numpy\nVersion: 1.2.3",
        image / "other-1.0.dist-info/METADATA": "Name: other\nVersion: 1.0",
        version / "packages/reader-1.0.dist-info/METADATA": "Name: reader\nVersion: 1.0",
        # Wheels may hold modules of any names.
        version / "packages/json.py": "raise SystemExit('hides a module of Python')",
        version / "packages/triton_python_backend_utils.py": "raise SystemExit('hides the module of the server')",
        version / "packages/numpy.py": "FALSE = True",
        version / "packages/reader.py": "VERSION = 1",
        version / "packages/lame.py": "raise ImportError('undefined symbol: x')",
        version / "packages/guard.py": "VERSION = 2",
        version / "packages/model/__init__.py": "VERSION = 3",
        version / "packages/broken/__init__.py": "raise ImportError('libnothing.so: cannot open shared object file')",
        version / "source/huggingface/models--me--net/refs/main": "0" * 40,
        version / "source/words.txt": "gr\xfcn",
        version / "source/step.py": f"{text}\nclass TritonPythonModel:{TOLD}",
    }
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    for name, program in python_step.PROGRAMS.items():
        (version / name).write_bytes(program.read_bytes())
    python_step.write_settings(version, "step.py", 1)
    (image / "numpy").symlink_to(Path(numpy.__file__).parent)
    libraries = Path(numpy.__file__).parent.with_name("numpy.libs")
    if libraries.exists():
        (image / "numpy.libs").symlink_to(libraries)
    code = (
        f"import sys; sys.path[:0] = [{str(server)!r}]\n"
        f"sys.path += [{str(image)!r}, {str(version)!r}, {str(tmp_path)!r}]\n"
        # The backend calls it so.
        "import model; del sys.modules['model']\n"
        "try:\n"
        "    model.user_step.Loaded('step', model.FILES)\n"
        "except model.user_step.StepError as error:\n"
        "    print(error)\n"
    )
    # The backend's interpreter takes no locale, whatever the variables say, and so speaks ASCII.
    alone = {"PATH": "/usr/bin", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    argv = [sys.executable, "-S", "-X", "utf8=0", "-c", code]
    ran = subprocess.run(argv, check=False, capture_output=True, text=True, encoding="utf-8", env=alone)
    assert ran.returncode == 0, ran.stderr
    assert (words in ran.stdout) if words else (ran.stdout == ""), ran.stdout
