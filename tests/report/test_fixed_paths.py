"""Absolute paths in the code of a Python step, as init makes fields of them."""

from pathlib import Path
from typing import Any

import pytest

from tests.report.model_folders import write
from tests.report.repositories import CLASSIFIER, PLAIN_STEP
from triton_plugin.drafting.model_folder import read

STEP = "models/labels/1/model.py"
OTHERS = {"models/labels/1/data/words.txt": "", "models/labels/names.txt": "", "models/tokenizer/1/vocab.txt": ""}


def found(root: Path, lines: str, **files: str) -> tuple[dict[str, Any], list[str]]:
    """The paths of the step with these lines, and what init says of any."""
    write(root, {**CLASSIFIER, **OTHERS, STEP: f"import os\nfrom pathlib import Path\n{lines}\n{PLAIN_STEP}", **files})
    folder = read(root)
    assert folder.pipeline is not None
    (entry,) = (each for each in folder.pipeline.models if each["name"] == "labels")
    fields = {name: each for name, each in entry.items() if name in ("mountPath", "scratchPaths")}
    return fields, [each for _, each in folder.pipeline.doubts if each.startswith(("it names '/", "it makes '/"))]


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("x = '/models/labels/1/data/words.txt'", "/models/labels/1"),
        ("x = '/models/labels/1/data'", "/models/labels/1"),
        ("x = os.path.join('/models/labels/1', 'data')", "/models/labels/1"),
        ("x = '/workspace/repo/models/labels/1/data/'", "/workspace/repo/models/labels/1"),
        ("x = ['/models/labels/1/data', '/models/labels/1/data/words.txt']", "/models/labels/1"),
        ("x = '/labels/1/labels/1/data'", "/labels/1/labels/1"),
    ],
)
def test_a_path_of_the_steps_own_folder_is_where_it_is_mounted(tmp_path: Path, line: str, path: str) -> None:
    assert found(tmp_path, line) == ({"mountPath": path}, [])


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("x = '/workspace/words.txt'", "/workspace"),
        ("x = '/workspace/data'", "/workspace"),
        ("x = '/workspace/1/words.txt'", "/workspace/1"),
        ("x = '/repo/labels/words.txt'", "/repo/labels"),
        ("x = ['/workspace/words.txt', '/workspace/data/words.txt']", "/workspace"),
        ("x = ['/a/data/words.txt', '/a/data/data/words.txt']", "/a/data"),
        ("ROOT = '/workspace'\nx = os.path.join(ROOT, '.', 'words.txt')", "/workspace"),
        ("x = os.path.join('/workspace', 'words.txt')", "/workspace"),
        ("ROOT = '/workspace'\nx = ROOT + '/words.txt'", "/workspace"),
        ("ROOT = '/workspace'\nx = f'{ROOT}/words.txt'", "/workspace"),
        ("ROOT = Path('/workspace')\nx = ROOT / 'words.txt'", "/workspace"),
        ("x = Path('/workspace') / 'words.txt'", "/workspace"),
        ("ROOT = '/workspace'\nx = Path(ROOT) / 'words.txt'", "/workspace"),
    ],
)
def test_a_folder_of_another_name_with_the_steps_files_is_where_it_is_mounted(
    tmp_path: Path, line: str, path: str
) -> None:
    assert found(tmp_path, line, **{"models/labels/1/words.txt": ""}) == ({"mountPath": path}, [])


@pytest.mark.parametrize(
    ("line", "mounts"),
    [
        ("x = '/a/data/words.txt'", ["/a", "/a/data"]),
        ("x = ['/a/data/words.txt', '/b/words.txt']", ["/a", "/a/data", "/b"]),
        ("x = ['/a/words.txt', '/models/tokenizer/1/words.txt']", ["/a"]),
    ],
)
def test_where_several_folders_may_be_meant_the_field_is_named(tmp_path: Path, line: str, mounts: list[str]) -> None:
    near = {"models/labels/1/words.txt": "", "models/labels/1/names.txt": ""}
    fields, said = found(tmp_path, line, **near)
    assert fields == {}
    assert f"write mountPath into its model, such as {', '.join(map(repr, mounts))}, or" in said[0]


@pytest.mark.parametrize(
    "path", ["tokenizer/1/words.txt", "tokenizer/words.txt", "labels/2/words.txt", "labels/names.txt"]
)
def test_another_models_folder_is_no_place_for_a_step_s(tmp_path: Path, path: str) -> None:
    near = {"models/labels/1/words.txt": "", "models/labels/1/names.txt": ""}
    fields, (said,) = found(tmp_path, f"x = '/models/{path}'", **near)
    assert fields == {}
    assert said.startswith(f"it names '/models/{path}': on a server the step's files lie elsewhere")


def test_a_folder_that_the_code_makes_is_not_that_of_its_files(tmp_path: Path) -> None:
    fields, said = found(tmp_path, "x = ['/work/data/words.txt', '/work/data']\nos.makedirs('/work/new')")
    assert fields == {"scratchPaths": ["/work/new"]}
    assert "'/work/data/words.txt': on a server" in said[0]
    _, (said_of_mixed,) = found(tmp_path, "x = '/work/data/words.txt'\nos.makedirs('/work/data/new')")
    assert "mountPath" not in said_of_mixed


def test_two_steps_cannot_have_their_folders_at_one_path(tmp_path: Path) -> None:
    step = f"x = '/workspace/vocab.txt'\n{PLAIN_STEP}"
    found(tmp_path, "x = '/workspace/data/words.txt'", **{"models/tokenizer/1/model.py": step})
    folder = read(tmp_path)
    assert folder.pipeline is not None
    mounts = {each["name"]: each["mountPath"] for each in folder.pipeline.models if "mountPath" in each}
    assert list(mounts.values()) == ["/workspace"]
    (other,) = {"labels", "tokenizer"} - set(mounts)
    assert any(
        "'/workspace', which a server cannot have" in words for each, words in folder.pipeline.doubts if each == other
    )


@pytest.mark.parametrize("path", ["/var/lib/labels/data/words.txt", "/usr/share/data/words.txt", "/etc/data"])
def test_a_file_of_its_own_in_a_folder_of_the_system_is_told(tmp_path: Path, path: str) -> None:
    fields, said = found(tmp_path, f"x = {path!r}")
    assert fields == {}
    assert f"it names {path!r}: on a server" in said[0]
    assert "mountPath" not in said[0]


@pytest.mark.parametrize(("path", "is_named"), [("/models/none.txt", True), ("/opt/none.txt", False)])
def test_the_field_is_named_for_a_file_that_is_to_be_added_if_it_takes_the_path(
    tmp_path: Path, path: str, is_named: bool
) -> None:
    _, (said,) = found(tmp_path, f"x = {path!r}")
    assert ("mountPath" in said) == is_named


@pytest.mark.parametrize(
    "path",
    [
        "/models/labels/1/data/none.txt",
        "/models/labels/names.txt",
        "/models/labels/2/data",
        "/models/tokenizer/1/vocab.txt",
        "/opt/models/labels/1/data",
        "/home/me/models/labels/1/data",
        "/data/labels/1/data",
        "/.models/labels/1/data",
        "/models/labels/1/../1/data",
        "/a/b/c/d/e/f/g/labels/1/data",
    ],
)
def test_any_other_path_is_left_to_its_author(tmp_path: Path, path: str) -> None:
    fields, said = found(tmp_path, f"x = {path!r}")
    assert fields == {}
    assert len(said) == 1
    assert repr(path) in said[0]


def test_of_two_places_one_is_mounted(tmp_path: Path) -> None:
    fields, said = found(tmp_path, "x = ['/m/labels/1/data', '/models/labels/1/data']")
    assert fields == {"mountPath": "/m/labels/1"}
    assert "'/models/labels/1/data'" in said[0]
    assert "'/m/labels/1/data'" not in said[0]


@pytest.mark.parametrize(
    "line",
    [
        "os.makedirs('/cache')",
        "os.makedirs('/cache/', exist_ok=True)",
        "os.mkdir('/cache')",
        "Path('/cache').mkdir(parents=True)",
        "CACHE = '/cache'\nos.makedirs(CACHE)",
        "CACHE = '/cache'\nPath(CACHE).mkdir(parents=True, exist_ok=True)",
        "os.environ['HF_HOME'] = '/cache'\nos.makedirs(os.environ['HF_HOME'], exist_ok=True)",
        "from os import environ, makedirs\nenviron['HF_HOME'] = '/cache'\nmakedirs(environ['HF_HOME'])",
        "class A:\n    def b(self):\n        self.cache = '/cache'\n        os.makedirs(self.cache)",
        "os.makedirs('/cache')\nos.makedirs('/cache/hub')\nx = '/cache/hub/file.txt'",
    ],
)
def test_a_folder_that_the_code_makes_is_there(tmp_path: Path, line: str) -> None:
    assert found(tmp_path, line) == ({"scratchPaths": ["/cache"]}, [])


@pytest.mark.parametrize(
    "line",
    [
        "x = '/cache'",
        "os.makedirs('/opt/cache')",
        "os.makedirs('/repository/cache')",
        "os.makedirs('/home/cache')",
        "os.makedirs(x); x = '/cache'; x = '/other'",
        "os.environ['A'] = '/cache'\nos.makedirs(os.environ['B'])",
        "os.makedirs(*['/cache'])",
        "os.makedirs()",
    ],
)
def test_a_folder_that_it_does_not_make_or_may_not_is_left_to_its_author(tmp_path: Path, line: str) -> None:
    fields, said = found(tmp_path, line)
    assert fields == {}
    assert len(said) == ("'/" in line)


@pytest.mark.parametrize(
    "line",
    [
        "os.makedirs('/var/mycache')",
        "CACHE = '/var/mycache'\nos.makedirs(CACHE, exist_ok=True)\nx = CACHE + '/a.npy'",
        "CACHE = Path('/var/mycache')\nCACHE.mkdir()",
        "CACHE = Path('/opt/cache')\nx = CACHE / 'a.npy'\nCACHE.mkdir()",
        "os.makedirs('/home/me/cache')",
        "os.makedirs('/var/tmp/cache')",
        "os.makedirs('/dev/cache')",
    ],
)
def test_a_folder_that_it_makes_where_none_may_be_is_told(tmp_path: Path, line: str) -> None:
    fields, said = found(tmp_path, line)
    assert fields == {}
    assert len(said) == 1
    assert said[0].startswith("it makes '/")
    assert "a path in /tmp, or one that scratchPaths takes, such as '/cache'" in said[0]


def test_a_path_of_pathlib_that_it_makes_is_there(tmp_path: Path) -> None:
    line = "CACHE = Path('/cache')\nCACHE.mkdir(exist_ok=True)"
    assert found(tmp_path, line) == ({"scratchPaths": ["/cache"]}, [])


@pytest.mark.parametrize("path", ["/tmp", "/tmp/cache", "/dev/shm/cache"])
def test_a_folder_of_every_system_is_there_without_a_word(tmp_path: Path, path: str) -> None:
    assert found(tmp_path, f"os.makedirs({path!r})") == ({}, [])


def test_four_folders_are_there_and_a_fifth_is_left_to_its_author(tmp_path: Path) -> None:
    fields, said = found(tmp_path, "".join(f"os.makedirs('/c{number}')\n" for number in range(5)))
    assert fields == {"scratchPaths": ["/c0", "/c1", "/c2", "/c3"]}
    assert "'/c4'" in said[0]


@pytest.mark.parametrize("path", ["/models/labels/1/new", "/models"])
def test_a_folder_that_it_makes_where_its_own_is_mounted_is_left_to_its_author(tmp_path: Path, path: str) -> None:
    fields, said = found(tmp_path, f"x = '/models/labels/1/data'\nos.makedirs({path!r})")
    assert fields == {"mountPath": "/models/labels/1"}
    assert f"it makes {path!r}, which" in said[0]


def test_a_file_next_to_the_step_counts_too(tmp_path: Path) -> None:
    near = {"models/labels/1/near.py": "import os\nos.makedirs('/cache')\nx = '/models/labels/1/data'"}
    fields, said = found(tmp_path, "import near", **near)
    assert (fields, said) == ({"mountPath": "/models/labels/1", "scratchPaths": ["/cache"]}, [])


def test_each_step_names_the_folder_that_several_make(tmp_path: Path) -> None:
    making = f"import os\nos.makedirs('/cache')\nos.makedirs('/second')\n{PLAIN_STEP}"
    line = "os.makedirs('/cache/hub')\nos.makedirs('/cache/xet')"
    fields, said = found(tmp_path, line, **{"models/tokenizer/1/model.py": making})
    folder = read(tmp_path)
    assert folder.pipeline is not None
    assert [each.get("scratchPaths") for each in folder.pipeline.models] == [["/cache", "/second"], None, ["/cache"]]
    assert fields == {"scratchPaths": ["/cache"]}
    assert said == []


@pytest.mark.parametrize(
    ("made", "mounting", "said"),
    [
        ("/models", "", ("tokenizer", "/models", "/models/labels/1")),
        ("/models/labels/1/x", "", ("tokenizer", "/models/labels/1/x", "/models/labels/1")),
        ("/labels/1", "x = '/labels/1/labels/1/data'", ("tokenizer", "/labels/1", "/labels/1/labels/1")),
    ],
)
def test_a_folder_to_write_to_where_another_steps_is_mounted_is_left_to_its_author(
    tmp_path: Path, made: str, mounting: str, said: tuple[str, str, str]
) -> None:
    """The CRD takes no such object, so init writes none, and says why."""
    making = f"import os\nos.makedirs({made!r})\n{PLAIN_STEP}"
    found(tmp_path, mounting or "x = '/models/labels/1/data'", **{"models/tokenizer/1/model.py": making})
    folder = read(tmp_path)
    assert folder.pipeline is not None
    name, path, mount = said
    assert [each.get("mountPath") for each in folder.pipeline.models if each["name"] == "labels"] == [mount]
    assert not any("scratchPaths" in each for each in folder.pipeline.models)
    (sentence,) = (words for each, words in folder.pipeline.doubts if each == name)
    assert f"it names {path!r}, which a server cannot have" in sentence
    assert f"is at {mount!r}" in sentence


def test_a_model_that_is_served_twice_has_its_folder_mounted_once(tmp_path: Path) -> None:
    name = "models/classifier/config.pbtxt"
    mapped = 'input_map { key: "logits" value: "LOGITS" } output_map { key: "score" value: "S" }'
    again = f'{{ model_name: "labels" {mapped} }}'
    found(tmp_path, "x = '/models/labels/1/data'", **{name: CLASSIFIER[name].replace("step [", f"step [ {again},")})
    folder = read(tmp_path)
    assert folder.pipeline is not None
    mounts = {each["name"]: each.get("mountPath") for each in folder.pipeline.models}
    assert (mounts["labels"], mounts["labels_2"]) == ("/models/labels/1", None)
    assert not any("cannot have" in words for _, words in folder.pipeline.doubts)
