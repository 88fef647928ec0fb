"""The packages of a repository's Python steps: what is told of them, and the requirements file that is written."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from tests.report.model_folders import write
from tests.report.repositories import CLASSIFIER, PLAIN_STEP
from triton_plugin.__main__ import main
from triton_plugin.drafting.first_object import ObjectOptions, first_object, notices
from triton_plugin.drafting.model_folder import read
from triton_plugin.drafting.run import complete_yaml, update
from triton_plugin.drafting.triton_repository import requirement_lines
from triton_plugin.drafting.triton_repository.distributions import DISTRIBUTIONS, HEADLESS, OF_TORCH, module, normal
from triton_plugin.errors import FolderError

STEP = "models/labels/1/model.py"
FILE = "models/labels/requirements.txt"
OPTIONS = ObjectOptions(source="pvc://models/x")


def folder(place: Path, imports: str, more: Mapping[str, str] | None = None) -> Path:
    """The classifier, whose last step imports something."""
    loader = {"dataloader.py": "def get_dataloader_fn(batch_size: int): ...\n"}
    write(place, {**loader, **CLASSIFIER, STEP: imports + PLAIN_STEP, **(more or {})})
    return place


def said(place: Path) -> list[str]:
    return [each for each in notices(read(place, "models/classifier")) if "labels: " in each]


def written(place: Path) -> list[str]:
    """The lines of the file that init writes, without their comments."""
    assert main(["init", str(place), "--model", "models/classifier", "--write-requirements"]) == 0
    return [line.partition("  #")[0] for line in (place / FILE).read_text().splitlines() if not line.startswith("# W")][
        1:
    ]


def test_a_known_import_is_a_line_of_the_file_that_init_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = folder(tmp_path, "import cv2, json\nfrom PIL import Image\n")
    assert said(place) == [
        "TODO: labels: it imports 'cv2', 'PIL' ('models/labels/1/model.py', line 1): list the packages in"
        " 'models/labels/requirements.txt': opencv-python-headless, pillow (--write-requirements does it)."
    ]
    assert main(["init", str(place)]) == 0
    assert not (place / FILE).exists()
    assert written(place) == ["opencv-python-headless", "pillow"]
    printed = capsys.readouterr()
    assert f"wrote {place / FILE}: opencv-python-headless, pillow\n" in printed.err
    assert "Not pinned: opencv-python-headless, pillow." in printed.err
    # Nothing is open any more, and the object names the file.
    assert said(place) == []
    body = yaml.safe_load(complete_yaml(read(place), OPTIONS))
    assert [each.get("requirements") for each in body["spec"]["models"]] == [None, None, FILE]


def test_an_unknown_import_is_never_guessed(tmp_path: Path) -> None:
    place = folder(tmp_path, "import numpy\nimport fastdeploy as fd, cv2\n")
    assert any(
        each.startswith(
            "TODO: labels: it imports 'fastdeploy' ('models/labels/1/model.py', line 2), and which package has it is"
            " not known: write the package's name into 'models/labels/requirements.txt'"
        )
        for each in said(place)
    )
    lines = written(place)
    assert lines[0] == "opencv-python-headless"
    assert lines[1].startswith("# TODO: write the name of the package with 'fastdeploy'")
    # What the file leaves open is still open.
    (open_line,) = said(place)
    assert (
        open_line == "TODO: labels: 'models/labels/requirements.txt', line 4 says what is to be filled in: replace it."
    )
    with pytest.raises(FolderError, match="cannot run before this is filled in"):
        complete_yaml(read(place), OPTIONS)
    text = (place / FILE).read_text()
    (place / FILE).write_text(text.replace(lines[1], "fastdeploy-python"))
    assert not any(each.startswith("TODO") for each in said(place))
    complete_yaml(read(place), OPTIONS)


@pytest.mark.parametrize(
    ("imports", "lines"),
    [
        ("try:\n    import ujson\nexcept ImportError:\n    import json\n", ["ujson"]),
        ("def late():\n    import yaml\n", ["pyyaml"]),
        ("import google.protobuf.message\n", ["protobuf"]),
        ("from google import protobuf\n", ["protobuf"]),
        ("import words\n", ["pandas", "scipy"]),
        ("from .words import x\n", ["pandas", "scipy"]),
    ],
)
def test_all_that_a_step_imports_counts(tmp_path: Path, imports: str, lines: list[str]) -> None:
    near = {"models/labels/1/words.py": "import pandas\nfrom scipy.special import softmax\n"}
    assert written(folder(tmp_path, imports, near)) == lines


def test_what_a_step_goes_on_without_is_no_obstacle(tmp_path: Path) -> None:
    place = folder(tmp_path, "try:\n    import fancy\nexcept ImportError:\n    fancy = None\n")
    assert said(place) == [
        "Check: labels: it goes on without 'fancy' ('models/labels/1/model.py', line 2), whose package is not known."
    ]
    complete_yaml(read(place), OPTIONS)


SERVER = "FROM nvcr.io/nvidia/tritonserver:24.05-py3\n"


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("Dockerfile", SERVER + "RUN pip install opencv-python==4.10 wheel\n", "opencv-python-headless==4.10"),
        ("docker/Dockerfile", SERVER + "RUN pip3 install -U \\\n  'opencv_python_headless>=4'\n",
         "opencv_python_headless>=4"),
        ("triton.Dockerfile", SERVER + "RUN apt-get update && python3 -m pip install -i x cv2==1\n", "cv2==1"),
        ("Dockerfile", SERVER + "RUN pip install -r deps.txt\n", "opencv-python-headless==4.9.0.80"),
        ("Dockerfile", "FROM python:3.12\nRUN pip install opencv-python==4.10.0.84\n", "opencv-python-headless"),
        ("Dockerfile", SERVER + "RUN pip install git+https://x/opencv-python\n", "opencv-python-headless"),
        ("requirements.txt", "opencv-python-headless==4; python_version > '3'\x1b[2J\n", "opencv-python-headless"),
        ("requirements.txt", "opencv-python-headless==4; python_version > '3'\n-e .\n",
         "opencv-python-headless==4; python_version > '3'"),
        (".hidden/Dockerfile", SERVER + "RUN pip install opencv-python==4.10.0.84\n", "opencv-python-headless"),
        ("requirements.txt", "opencv-python-headless==4.8.0.76\n-f https://x\n", "opencv-python-headless==4.8.0.76"),
        ("models/requirements.txt", "tritonclient\nopencv-python<5\n-e .\n", "opencv-python-headless<5"),
    ],
)  # fmt: skip
def test_a_version_that_the_repository_names_comes_first(tmp_path: Path, name: str, text: str, line: str) -> None:
    place = folder(tmp_path, "import cv2\n", {"deps.txt": "opencv-python-headless==4.9.0.80\n", name: text})
    assert written(place) == [line]


def test_a_file_above_is_taken_whole_if_it_names_all(tmp_path: Path) -> None:
    place = folder(
        tmp_path, "import cv2, yaml\n", {"requirements.txt": "opencv-python-headless\nPyYAML==6.0.2\nwheel\n"}
    )
    assert said(place) == []
    assert read(place).pipeline.models[2]["requirements"] == "requirements.txt"  # type: ignore[union-attr]  # it is a repository
    (place / "requirements.txt").write_text("PyYAML==6.0.2\n")
    assert written(place) == ["opencv-python-headless", "PyYAML==6.0.2"]


@pytest.mark.parametrize("line", ["numpy==1.23.0", "numpy<2", "NumPy ~= 1.26", "numpy>=1.20,<2; python_version > '3'"])
def test_a_file_above_that_bounds_numpy_is_not_taken_whole(tmp_path: Path, line: str) -> None:
    # NumPy is the server's, so that a packages Job would end with PackageNotFound.
    place = folder(tmp_path, "import yaml\n", {"requirements.txt": f"PyYAML==6.0.2\n{line}\n"})
    assert written(place) == ["PyYAML==6.0.2"]
    place = folder(tmp_path, "import yaml\n", {FILE: f"PyYAML==6.0.2\n{line}\n"})
    assert said(place) == [
        f"Check: labels: {FILE!r}, line 2 asks for {line!r}: a step gets the server's NumPy, and another version ends"
        " with PackageNotFound: leave its version open."
    ]


@pytest.mark.parametrize("line", ["numpy", "numpy>=1.20", "numpy!=1.24.0"])
def test_a_file_above_that_leaves_numpy_open_is_taken_whole(tmp_path: Path, line: str) -> None:
    place = folder(tmp_path, "import yaml\n", {"requirements.txt": f"PyYAML==6.0.2\n{line}\n"})
    assert said(place) == []
    assert read(place).pipeline.models[2]["requirements"] == "requirements.txt"  # type: ignore[union-attr]  # it is a repository


@pytest.mark.parametrize(
    ("imports", "needed"), [("", False), ("import json, numpy, words\n", False), ("import yaml\n", True)]
)
def test_a_repositorys_file_is_the_dataloaders_if_it_imports_a_package(
    tmp_path: Path, imports: str, needed: bool
) -> None:
    # It may ask for versions of a client or of another server: each of its lines could end with PackageNotFound.
    loader = f"{imports}def get_dataloader_fn(batch_size: int): ...\n"
    more = {"dataloader.py": loader, "words.py": "", "requirements.txt": "lightning==2.4.0\ntorch==2.5\n"}
    body = yaml.safe_load(complete_yaml(read(folder(tmp_path, "", more)), OPTIONS))
    assert body["spec"]["conversion"].get("requirements") == ("requirements.txt" if needed else None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("scipy\n", "Check: labels: it imports 'cv2' ('models/labels/1/model.py', line 1), which no line of"
         " 'models/labels/requirements.txt' names: add opencv-python-headless, unless a package of that file brings"
         " it."),
        ("opencv-python\n-e .\n", "TODO: labels: 'models/labels/requirements.txt', line 2: '-e .' is no plain"
         " requirement, such as timm==1.0.9: replace it."),
    ],
)  # fmt: skip
def test_the_steps_own_file_is_compared_with_its_imports(tmp_path: Path, text: str, words: str) -> None:
    place = folder(tmp_path, "import cv2\n", {FILE: text})
    assert said(place) == [words]
    # It is the author's, and stays as it is.
    assert main(["init", str(place), "--write-requirements"]) == 0
    assert (place / FILE).read_text() == text


def test_pytorch_is_told_to_be_large(tmp_path: Path) -> None:
    (check,) = [each for each in said(folder(tmp_path, "import torchvision\n")) if each.startswith("Check")]
    assert check.startswith("Check: labels: PyTorch is installed with its libraries for GPUs")
    assert "index of builds for CPUs in spec.conversion.indexSecretRef" in check


def test_nothing_is_written_where_a_link_leads_nor_without_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = folder(tmp_path / "given", "import cv2\n")
    (place / FILE).symlink_to(tmp_path / "elsewhere")
    assert main(["init", str(place), "--write-requirements"]) == 1
    assert "File exists" in capsys.readouterr().err
    assert not (tmp_path / "elsewhere").exists()
    (place / FILE).unlink()
    for arguments in (["run", str(place), "--dry-run"], ["run", "pvc://x/y"], ["init", "--from", "-"]):
        assert main([*arguments, "--write-requirements"]) == 1
        assert "--write-requirements" in capsys.readouterr().err
    assert not (place / FILE).exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("open('labels.txt')\n", "it opens 'labels.txt' ('models/labels/1/model.py', line 1) from the working"),
        ("os.path.join(here, 'a', 'words.txt')\n", "it names 'a/words.txt' ('models/labels/1/model.py', line 1), which"
         " 'models/labels' lacks"),
        ("here / 'words.txt'\n", "it names 'words.txt' ('models/labels/1/model.py', line 1), which 'models/labels'"),
        ("x = here + '/data/words.txt', f'{here}/words.txt'\n", "it names 'data/words.txt' ('models/labels/1/"),
        ("open(here + '/there.txt'), open('out.txt', 'w'), ', '.join(['x.txt', y]), here / 'there.txt'\n", ""),
        ("os.path.join(here, '..', 'near.txt'), here / 'data' / 'there.txt', a / b / 2\n", ""),
    ],
)  # fmt: skip
def test_files_that_a_step_names_are_looked_for(tmp_path: Path, text: str, words: str) -> None:
    there = {"models/labels/1/data/there.txt": "", "models/labels/near.txt": ""}
    found = said(folder(tmp_path, text, there))
    assert [each.startswith(f"Check: labels: {words}") for each in found] == ([True] if words else [])


def test_the_table_has_packages_as_an_index_names_them() -> None:
    packages = [each for names in DISTRIBUTIONS.values() for each in names]
    assert len(packages) == len(set(packages))
    assert all(normal(each) == each for each in packages)
    assert HEADLESS.keys() | set(HEADLESS.values()) <= set(packages)
    assert DISTRIBUTIONS.keys() >= OF_TORCH
    assert all(name == module(f"{name}.more") for name in DISTRIBUTIONS)
    assert all(part.isidentifier() for name in DISTRIBUTIONS for part in name.split("."))


@pytest.mark.parametrize("text", [
    "FROM tritonserver\n" + "RUN pip install " + "a" * 60_000, "\n" * 60_000, "FROM x\\ \n" * 8000,
    "FROM tritonserver\nRUN pip install '" + " " * 60_000 + "x'", "pip" * 20_000, "x " * 30_000,
    "x" + " " * 60_000 + "!",
])  # fmt: skip
def test_hostile_texts_are_read_at_once(text: str) -> None:
    requirement_lines.of_dockerfile(text)
    list(requirement_lines.lines(text))


def test_all_that_is_open_is_printed_in_the_order_of_the_object(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = folder(tmp_path, "import cv2\n")
    (place / "dataloader.py").unlink()
    assert main(["init", str(place)]) == 0
    printed = capsys.readouterr()
    in_object = [line.strip().removeprefix("# ") for line in printed.out.splitlines() if "TODO" in line]
    assert [line for line in printed.err.splitlines() if "TODO" in line] == in_object
    assert [each.split(":")[1].split()[0] for each in in_object] == ["where", "labels", "no"]
    file = tmp_path.parent / f"{tmp_path.name}.yaml"
    file.write_text(printed.out)
    assert main(["validate", str(file)]) == 1
    said_lines = capsys.readouterr().out.splitlines()
    lines = [number for number, line in enumerate(printed.out.splitlines(), 1) if "TODO" in line]
    assert said_lines[-1].endswith(": valid apart from what is to be filled in")
    assert said_lines[:-1] == [
        f"{file}:{number}: is to be filled in: {text}" for number, text in zip(lines, in_object, strict=True)
    ]
    # Without the comments it is the author's object.
    file.write_text("".join(line for line in printed.out.splitlines(keepends=True) if "TODO" not in line))
    assert main(["validate", str(file)]) == 0


def test_a_step_of_two_versions_gets_one_file(tmp_path: Path) -> None:
    second = """step [ { model_name: "labels" model_version: 2
      input_map { key: "logits" value: "LOGITS" } output_map { key: "score" value: "SCORE" } },"""
    score = '\noutput [ { name: "SCORE" data_type: TYPE_FP32 dims: [ 1 ] },'
    ensemble = CLASSIFIER["models/classifier/config.pbtxt"].replace("step [", second).replace("\noutput [", score)
    more = {
        "models/classifier/config.pbtxt": ensemble.replace('"labels" model_version: -1', '"labels" model_version: 1'),
        "models/labels/2/model.py": "import yaml\n" + PLAIN_STEP,
    }
    place = folder(tmp_path, "import cv2\n", more)
    assert len(read(place).pipeline.requirements_files) == 1  # type: ignore[union-attr]  # it is a repository
    assert written(place) in (["pyyaml"], ["opencv-python-headless"])
    # What the other version lacks is still told.
    assert any("it imports" in each for each in said(place))


@pytest.mark.parametrize("state", ["open", "written", "covered"])
def test_an_update_pushes_no_step_whose_imports_the_object_does_not_cover(tmp_path: Path, state: str) -> None:
    """The first push had a step without them, so the object's file names no requirements."""
    options = ObjectOptions(name="net", source="pvc://models/net", sha256="ab" * 32)
    place = folder(tmp_path / "repository", "import yaml\n")
    if state != "open":
        (place / FILE).write_text("pyyaml\n")
    found, file = read(place, "models/classifier"), tmp_path / "net.yaml"
    text = first_object(found, options)
    bare = "".join(line for line in text.splitlines(keepends=True) if "requirements: " not in line)
    file.write_text(text if state == "covered" else bare)
    pushed: list[str] = []

    def push() -> str:
        pushed.append("pushed")
        return "cd" * 32

    words = {
        "open": "TODO: labels: it imports 'yaml' ('models/labels/1/model.py', line 1)",
        "written": 'TODO: labels: write `requirements: "models/labels/requirements.txt"` into its model',
    }
    if state == "covered":
        update(options, file, push, lambda _: "", lambda _: None, pipeline=found.pipeline)
    else:
        with pytest.raises(FolderError) as refused:
            update(options, file, push, lambda _: "", lambda _: None, pipeline=found.pipeline)
        assert words[state] in str(refused.value)
    assert pushed == (["pushed"] if state == "covered" else [])
