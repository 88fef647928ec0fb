"""`kubectl triton run` up to the apply: what is pushed, written and said, and what is refused before that."""

import ast
import json
import pickle
import shlex
import struct
import sys
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tritonclient.grpc
import yaml

from tests.report.model_folders import FOLDERS, LOADER, write
from tests.report.repositories import ALONE
from tests.report.subjects import ready
from triton_operator.api.source import UserEntrypoint
from triton_operator.api.status import SignatureStatus, TensorStatus
from triton_operator.kube.kinds import ApiKind
from triton_plugin.__main__ import main
from triton_plugin.commands import run as commands
from triton_plugin.drafting.first_object import ObjectOptions
from triton_plugin.drafting.model_folder import read
from triton_plugin.drafting.push.files import collect, digest
from triton_plugin.drafting.run import start, update
from triton_plugin.drafting.validation.validate import check
from triton_plugin.errors import FolderError
from triton_plugin.exits import Exit
from triton_plugin.reading.subject import Subject
from triton_plugin.telling.request import first_request

SHA256 = "ab" * 32
NET = ObjectOptions(name="net", source="pvc://models/net")


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """An ONNX file, which needs nothing else."""
    (tmp_path / "Net.onnx").write_bytes(b"graph")
    return tmp_path / "Net.onnx"


class Namespace:
    """A namespace with objects of these names."""

    namespace = "shared"

    def __init__(self, there: Collection[str]) -> None:
        self.there = there

    def child(self, kind: ApiKind, name: str) -> dict[str, Any] | None:
        return {} if name in self.there else None


def started(folder: Path, file: Path, overwrite: bool = False) -> list[str]:
    """What happens, in its order."""
    events: list[str] = []

    def push() -> str:
        events.append("push")
        return SHA256

    def apply(written: Path) -> str:
        events.append(f"apply {written.name}")
        return "net created"

    start(read(folder), NET, file, push, apply, events.append, overwrite)
    return events


def test_the_file_that_is_applied_has_the_digest_of_what_was_pushed(net: Path, tmp_path: Path) -> None:
    file = tmp_path / "net.yaml"
    assert started(net, file) == ["push", f"wrote {file}", "apply net.yaml", "net created"]
    body = yaml.safe_load(file.read_text())
    assert check(body) == []
    assert body["metadata"]["name"] == "net"
    assert body["spec"]["source"] == {"uri": NET.source, "sha256": SHA256}
    assert body["spec"]["models"][0]["path"] == "Net.onnx"


def test_a_file_that_exists_is_kept_unless_told_otherwise(net: Path, tmp_path: Path) -> None:
    file = tmp_path / "net.yaml"
    started(net, file)
    mine = file.read_text().replace("throughput", "latency")
    file.write_text(mine)
    with pytest.raises(FolderError, match="exists; pass --update"):
        started(net, file)
    assert file.read_text() == mine
    assert started(net, file, overwrite=True)[0] == "push"
    assert "throughput" in file.read_text()


def test_an_object_of_the_namespace_is_kept_unless_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A repository's own folder names the object, so its author could choose which one is replaced."""
    folder = tmp_path / "downloaded"
    write(folder, {**ALONE, "dataloader.py": LOADER})
    there, applied = {"counter"}, list[str]()
    monkeypatch.setattr(commands, "cluster", lambda _: Namespace(there))
    monkeypatch.setattr(commands, "start", lambda *given: applied.append(given[1].name))
    monkeypatch.setattr(commands, "watch_object", lambda *_: Exit.FAILED)
    assert main(["run", str(folder)]) == Exit.FAILED
    assert "the TritonDeployment counter of namespace shared exists; pass --update" in capsys.readouterr().err
    assert applied == []
    for more in (["--force"], ["--name", "mine"]):
        main(["run", str(folder), *more])
    assert applied == ["counter", "mine"]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"model.py": "import torch\ndef get_model(classes): ...\n", "data.py": LOADER}, 'classes: "TODO"'),
        ({"model.py": "import torch\ndef get_model(): ...\n"}, "no file defines get_dataloader_fn"),
        ({"model.py": "import torch\ndef get_model(): ...\n", "data.py": LOADER}, "--dataset URI"),
    ],
    ids=["an argument", "a dataloader", "data"],
)
def test_what_is_missing_is_said_before_anything_is_pushed(tmp_path: Path, files: dict[str, str], words: str) -> None:
    write(tmp_path / "net", files)
    with pytest.raises(FolderError, match="cannot run before this is filled in") as error:
        started(tmp_path / "net", tmp_path / "net.yaml")
    assert words in str(error.value)
    assert not (tmp_path / "net.yaml").exists()


def test_a_dry_run_prints_the_object_and_needs_no_cluster(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(net), "--dry-run", "--name", "mine"]) == 0
    body = yaml.safe_load(capsys.readouterr().out)
    assert check(body) == []
    assert body["metadata"]["name"] == body["spec"]["models"][0]["name"] == "mine"
    sha256 = digest(collect(net).files, lambda _: None)
    assert body["spec"]["source"] == {"uri": "pvc://models/mine", "sha256": sha256}
    assert list(net.parent.iterdir()) == [net]


@pytest.mark.parametrize(
    ("arguments", "name", "path"),
    [
        (["s3://models/ocr/v3", "--model", "detect/model.onnx", "--name", "ocr", "--secret", "bucket"], "ocr", ""),
        (["s3://models/ocr/net.onnx", "--secret", "bucket"], "net", "net.onnx"),
        (["https://models.example/Net.v2.onnx"], "net-v2", "Net.v2.onnx"),
        (["hf://acme/text-onnx", "--model", "onnx/model.onnx"], "text-onnx", ""),
        (["oci://registry.example/acme/ocr:v3", "--model", "ocr", "--format", "triton-repository"], "ocr", "ocr"),
        (["pvc://models/pictures", "--model", "saved", "--format", "tf-savedmodel"], "pictures", "saved"),
    ],
)
def test_a_uri_needs_no_file_of_this_machine(
    arguments: list[str], name: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *arguments, "--dry-run"]) == 0
    body = yaml.safe_load(capsys.readouterr().out)
    assert check(body) == []
    source: dict[str, Any] = {"uri": arguments[0]}
    assert body["spec"]["source"] == source | ({"secretRef": {"name": "bucket"}} if "--secret" in arguments else {})
    assert body["metadata"]["name"] == body["spec"]["models"][0]["name"] == name
    assert body["spec"]["models"][0]["path"] == (path or arguments[arguments.index("--model") + 1])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["s3://models/ocr/v3"], "s3://models/ocr/v3 does not show which of its files is the model"),
        (["hf://acme/ocr.onnx"], "--model PATH"),
        (
            ["s3://models/ocr", "--model", "saved"],
            "choose --format lightgbm or --format onnx or --format sklearn or --format tf-savedmodel or",
        ),
        (["s3://models/ocr", "--model", "net.pt", "--format", "ts-script"], "download the files"),
        (["ftp://models/net.onnx"], "the URI must be one of pvc://CLAIM/PATH"),
        (["https://me:word@models.example/net.onnx"], "put credentials into a Secret"),
    ],
)
def test_what_a_uri_does_not_show_is_said(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *arguments, "--dry-run"]) == 1
    said = capsys.readouterr().err
    assert words in said
    assert "me:word" not in said


def test_credentials_are_for_a_uri_alone(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(net), "--dry-run", "--secret", "bucket"]) == 1
    assert "--secret is for a URI" in capsys.readouterr().err


def test_a_name_that_kubernetes_refuses_is_refused(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(net), "--dry-run", "--name", "My Net"]) == 1
    assert "an object cannot have the name My Net; choose one such as my-net: --name NAME" in capsys.readouterr().err


def test_an_update_changes_the_digest_alone(tmp_path: Path, net: Path) -> None:
    file, said = tmp_path / "net.yaml", list[str]()
    start(read(net), NET, file, lambda: SHA256, lambda _: "created", said.append)
    edited = file.read_text(encoding="utf-8").replace("objectives: [{metric: throughput}]", "objectives: []  # mine")
    file.write_text(edited, encoding="utf-8")
    update(NET, file, lambda: "cd" * 32, lambda _: "configured", said.append)
    assert file.read_text(encoding="utf-8") == edited.replace(SHA256, "cd" * 32)
    assert said[-2:] == [f"wrote the new digest into {file}", "configured"]


def test_a_threshold_is_in_the_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "net.onnx").write_bytes(b"graph")
    loader = "def get_dataloader_fn(batch_size: int): ...\n"
    write(tmp_path, {"loader.py": loader, "metrics.py": "class MetricsCalculator:\n    pass\n"})
    assert main(["run", str(tmp_path), "--dry-run", "--threshold", "accuracy=0.9", "--threshold", "f1=1e-2"]) == 0
    (body,) = yaml.safe_load_all(capsys.readouterr().out)
    assert body["spec"]["accuracy"]["thresholds"] == [{"metric": "accuracy", "min": 0.9}, {"metric": "f1", "min": 0.01}]


def test_run_tells_that_no_threshold_bounds_the_metrics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "net.onnx").write_bytes(b"graph")
    loader = "def get_dataloader_fn(batch_size: int): ...\n"
    write(tmp_path, {"loader.py": loader, "metrics.py": "class MetricsCalculator:\n    pass\n"})
    words = "No threshold bounds the metrics of metrics.py, so any figure is served: demand a --threshold METRIC=MIN."
    for options, told in ([], True), (["--threshold", "accuracy=0.9"], False):
        assert main(["run", str(tmp_path), "--dry-run", *options]) == 0
        assert (words in capsys.readouterr().err) == told


@pytest.mark.parametrize("least", ["0.9999999", "1234567.5", "1e-07", "1000000.0", "-3.0"])
def test_a_threshold_keeps_all_its_digits(least: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "net.onnx").write_bytes(b"graph")
    loader = "def get_dataloader_fn(batch_size: int): ...\n"
    write(tmp_path, {"loader.py": loader, "metrics.py": "class MetricsCalculator:\n    pass\n"})
    assert main(["run", str(tmp_path), "--dry-run", "--threshold", f"accuracy={least}"]) == 0
    assert f"min: {least}}}" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["run", "init"])
def test_a_threshold_that_the_metrics_file_spells_otherwise_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    (tmp_path / "net.onnx").write_bytes(b"graph")
    metrics = (
        "class MetricsCalculator:\n    def calc(self, **given):\n        return {'accuracy': 1.0, f'top{5}': 1.0}\n"
    )
    loader = "def get_dataloader_fn(batch_size: int): ...\n"
    write(tmp_path, {"loader.py": loader, "metrics.py": metrics, "other.py": "NAMES = ['accuracies']\n"})
    asked = [command, str(tmp_path), *(["--dry-run"] if command == "run" else [])]
    for name in ("accuracy", "accuracies", "top5", "f1"):
        assert main([*asked, "--threshold", f"{name}=0.9"]) == 0
        told = capsys.readouterr()
        assert "spelled" not in told.out + told.err, "it may be computed, or come from another file"
    assert main([*asked, "--threshold", "Acuracy=0.9"]) == 0
    told = capsys.readouterr()
    words = "Check the threshold 'Acuracy': metrics.py does not name it, but has 'accuracy'; is it spelled right?"
    assert words in told.err
    assert f"# {words}" in told.out


def test_a_threshold_needs_metrics_and_a_number(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(net), "--dry-run", "--threshold", "accuracy=0.9"]) == 1
    assert "a threshold needs a Python file that defines MetricsCalculator" in capsys.readouterr().err
    for text in ("accuracy", "accuracy=", "=0.9", "accuracy=nan", "accuracy=high"):
        with pytest.raises(SystemExit):
            main(["run", str(net), "--threshold", text])
        assert f"{text!r} is no threshold such as accuracy=0.9" in capsys.readouterr().err


JUNK = {
    "a web page": (b"<!doctype html><html>", "a page that a web server answered with"),
    "git lfs": (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    "empty": (b"", "an empty file"),
    "a pickle": (pickle.dumps([1.0]), "a pickle of Python objects"),
}


@pytest.mark.parametrize(("content", "words"), JUNK.values(), ids=JUNK)
def test_what_is_no_graph_for_all_its_name_is_refused_before_it_is_pushed(
    tmp_path: Path, content: bytes, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(content)
    for place in (file, tmp_path):
        assert main(["run", str(place), "--dry-run"]) == 1
        assert f"model.onnx is {words}" in (said := capsys.readouterr().err) or words in said


def test_a_folder_with_one_pickle_says_what_to_do_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.pkl").write_bytes(pickle.dumps([1.0]))
    (tmp_path / "notes.json").write_text("{}", encoding="utf-8")
    assert main(["run", str(tmp_path), "--dry-run"]) == 1
    said = capsys.readouterr().err
    assert "contains no model; model.pkl is a pickle of Python objects, which cannot be served: load it in" in said


@pytest.mark.parametrize("form", ["onnx", "ts-script"])
def test_a_file_alone_is_read_as_a_folder_with_that_file(tmp_path: Path, form: str) -> None:
    FOLDERS[form](tmp_path)
    (file,) = [each for each in tmp_path.iterdir() if each.name in ("net.onnx", "net.pt")]
    found = read(file)
    assert (found.name, found.model.path) == ("net", file.name)
    assert found.dataloaders == ()
    assert set(found.checkpoints) <= {file.name}


def test_code_alone_is_read_too(tmp_path: Path) -> None:
    write(tmp_path, {"model.py": "import torch\ndef get_model(): ...\n", "other.py": "def get_model("})
    assert read(tmp_path / "model.py").model.format == "pyt"


# The request --------------------------------------------------------------------------------------------------------


def subject(max_batch_size: int, *inputs: tuple[str, str, list[int]]) -> Subject:
    """A Ready object with these inputs."""
    tensors = [TensorStatus(name=name, data_type=kind, dims=dims) for name, kind, dims in inputs]
    found = ready()
    signature = SignatureStatus(inputs=tensors, outputs=[], max_batch_size=max_batch_size)
    return replace(found, status=found.status.model_copy(update={"signature": signature}))


def sent(text: str) -> Any:
    """The JSON that curl sends."""
    return json.loads(shlex.split(text.splitlines()[-1])[-1])


def test_a_request_has_a_zero_for_each_element() -> None:
    text = first_request(subject(8, ("x", "FP32", [2]), ("length", "INT64", [-1]), ("text", "STRING", [1])))
    assert "kubectl port-forward --namespace vision service/digits 8000 &" in text
    assert "http://localhost:8000/v2/models/digits/infer" in text
    assert sent(text)["inputs"] == [
        {"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [0.0, 0.0]},
        {"name": "length", "shape": [1, 1], "datatype": "INT64", "data": [0]},
        {"name": "text", "shape": [1, 1], "datatype": "BYTES", "data": [""]},
    ]


def test_without_a_batch_dimension_a_request_has_the_shapes_of_the_model() -> None:
    assert sent(first_request(subject(0, ("x", "BOOL", [3]))))["inputs"][0]["shape"] == [3]


def test_an_open_first_dimension_is_one_also_if_no_batch_dimension_was_found() -> None:
    assert "[('x', [1, 64, 64, 3], 'FP32')]" in first_request(subject(0, ("x", "FP32", [-1, -1, -1, 3])))


@pytest.mark.parametrize(
    ("inputs", "sizes"),
    [
        (("x", "FP32", [3, 224, 224]), [1, 3, 224, 224]),
        (("x", "FP32", [3, -1, -1]), [1, 3, 64, 64]),
        (("x\n'; rm -r ~; '", "FP32", [1]), [1, 1]),
    ],
    ids=["long", "of any size", "quoted"],
)
def test_other_inputs_are_sent_from_python(inputs: tuple[str, str, list[int]], sizes: list[int]) -> None:
    text = first_request(subject(8, inputs))
    script = text.partition("<<'END'\n")[2].removesuffix("\nEND")
    (given,) = [each.iter for each in ast.walk(ast.parse(script)) if isinstance(each, ast.For)][:1]
    assert ast.literal_eval(given) == [(inputs[0], sizes, "FP32")]
    assert "END" not in script.splitlines()


def loading(max_batch_size: int, *inputs: tuple[str, str, list[int]], **arguments: str) -> Subject:
    """A Ready object with these inputs, whose dataloader has these arguments."""
    found = subject(max_batch_size, *inputs)
    loader = UserEntrypoint(entrypoint="data/files.py", arguments=arguments)
    return replace(found, spec=found.spec.model_copy(update={"dataloader": loader}))


SAMPLES = """
import pathlib, numpy

def get_dataloader_fn(batch_size):
    assert pathlib.Path("data/files.py").exists(), "the folder is the working directory, as in a Job"
    x = numpy.arange(6.0).reshape(3, 2) / 4
    return lambda: iter([([1, 2, 3], {"x": x, "text": numpy.array([["one"], ["two"], ["three"]]), "n": numpy.arange(3)},
                          {"label": numpy.array([7, 8, 9])})])
"""


@pytest.mark.parametrize("folder", ["here", "here's a folder"])
def test_the_first_sample_of_the_dataloader_is_sent_and_its_label_printed(
    tmp_path: Path, folder: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / folder
    (place / "data").mkdir(parents=True)
    (place / "data" / "files.py").write_text(SAMPLES, encoding="utf-8")
    tensors: tuple[tuple[str, str, list[int]], ...] = (("x", "FP32", [2]), ("text", "STRING", [1]), ("n", "INT64", [1]))
    text = first_request(loading(8, *tensors), place)
    assert text.startswith("To send the first sample of data/files.py, where what it imports is installed")
    assert "a request may have up to 8 rows:" in text.splitlines()[0]
    assert "kubectl port-forward --namespace vision service/digits 8001 &" in text
    asked: list[Any] = []

    class Client:
        def __init__(self, url: str) -> None:
            assert url == "localhost:8001"

        def infer(self, model: str, inputs: list[Any]) -> None:
            asked.extend([model, *inputs])

    monkeypatch.setattr(tritonclient.grpc, "InferenceServerClient", Client)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    script = text.partition("<<'END'\n")[2].removesuffix("\nEND")
    assert "END" not in script.splitlines()
    exec(compile(script, "script", "exec"), {})  # noqa: S102 - it is what is tested
    model, x, words, n = asked
    assert model == "digits"
    assert [(each.name(), each.datatype(), each.shape()) for each in (x, words, n)] == [
        ("x", "FP32", [1, 2]),
        ("text", "BYTES", [1, 1]),
        ("n", "INT64", [1, 1]),
    ]
    assert (x._get_content(), words._get_content()[4:]) == (struct.pack("<2f", 0, 0.25), b"one")
    assert capsys.readouterr().out == "the dataloader's label label [7]\n"
    del sys.modules["files"]


def test_a_dataloader_that_is_not_here_or_needs_what_the_cluster_has_is_not_asked(tmp_path: Path) -> None:
    tensors: tuple[str, str, list[int]] = ("x", "FP32", [2])
    assert "zeros stand for real inputs; a request may have up to 8 rows" in first_request(
        loading(8, tensors), tmp_path
    )
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "files.py").write_text(SAMPLES, encoding="utf-8")
    assert "first sample" in first_request(loading(8, tensors), tmp_path)
    assert "zeros" in first_request(loading(8, tensors, data_dir="$(DATASET)"), tmp_path)
    assert "zeros" in first_request(loading(8, tensors))


def test_what_json_does_not_hold_is_sent_from_python() -> None:
    text = first_request(subject(8, ("x", "FP16", [2])))
    assert "curl" not in text
    assert "Triton's JSON holds no FP16" in text.splitlines()[0]
    assert "[('x', [1, 2], 'FP16')]" in text


def test_without_a_signature_the_server_tells_the_inputs() -> None:
    last = first_request(subject(8)).splitlines()[-1]
    assert last.strip() == "curl --retry 9 --retry-connrefused http://localhost:8000/v2/models/digits"
