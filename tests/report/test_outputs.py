"""The outputs that a claim keeps, copied to a folder: tar runs here, as in the pod; only kubectl is left out."""

import copy
import csv
import io
import json
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy
import pytest

from tests.report.subjects import golden
from triton_converters.claim_store.dump import Batch, write_batch
from triton_converters.claim_store.served_outputs import CHUNK, FOLDER, write_outputs
from triton_converters.contract import layout
from triton_plugin.__main__ import main
from triton_plugin.drafting.push.outputs import IN_POD, fetch, places, reader
from triton_plugin.errors import PushError
from triton_plugin.reading.subject import parse

PAGE = Path(__file__).parents[2] / "docs/report.md"
REFERENCE = "8e04f7da213f1650"
SAMPLES = CHUNK + 1
Body = dict[str, Any]


def outputs_of(sample: int) -> dict[str, Any]:
    return {"OUTPUT__0": numpy.full(10, sample, numpy.float32)}


def check(folder: Path, body: Body, results: Body) -> str:
    """A check's folder: the object and, on its claim, the outputs of a candidate are 0.5 from the framework's."""
    root = folder / "claims/digits-repository" / layout.ROOT.name
    for number, samples in enumerate((range(SAMPLES - 1), range(SAMPLES - 1, SAMPLES))):
        stacked = numpy.stack([outputs_of(each)["OUTPUT__0"] for each in samples])
        batch = Batch(numpy.array(samples), {"INPUT__0": stacked}, {}, {"OUTPUT__0": stacked})
        write_batch(layout.reference_directory(REFERENCE, root), number, batch)
    for each in parse(body, results).status.candidates:
        directory = layout.measurement_directory(each.profile_key, root)
        directory.mkdir(parents=True)
        write_outputs(
            directory / FOLDER, [{"OUTPUT__0": outputs_of(each)["OUTPUT__0"] + 0.5} for each in range(SAMPLES)]
        )
    (folder / "objects.json").write_text(json.dumps({"kind": "List", "items": [body, results]}), encoding="utf-8")
    return str(folder / "objects.json")


def documented() -> str:
    (program,) = re.findall(r"```python\n(import glob.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return program


def archive(*members: tarfile.TarInfo) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for each in members:
            tar.addfile(each, io.BytesIO(bytes(each.size)))
    return made.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.linkname = kind, link
    return found


def printing(content: bytes, folder: Path) -> list[str]:
    """A pod that answers with this, whatever it is asked."""
    (folder / "answer").write_bytes(content)
    return ["sh", "-c", f"cat {folder / 'answer'}", "sh"]


def test_the_framework_s_outputs_and_those_of_each_candidate_are_read_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = check(tmp_path / "digits-check", *golden("ready"))
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert main(["report", saved, "--file", "digits", "--outputs"]) == 0
    assert {each.name for each in (tmp_path / "digits/outputs").iterdir()} == {
        *("reference", "ts-trace-fp32", "ts-script-fp32", "onnx-fp32", "onnx-fp16")
    }
    assert [each.name for each in sorted((tmp_path / "digits/outputs/onnx-fp16").iterdir())] == [
        *("000000.npz", "000001.npz")
    ]
    assert (tmp_path / "digits/report.html").exists()
    said = capsys.readouterr()
    assert "wrote digits/outputs/reference\n" in said.err
    assert subprocess.check_output([sys.executable, "-c", documented()], text=True) == "0.5\n"


def test_the_outputs_of_a_converted_file_lie_beside_those_that_were_served(tmp_path: Path) -> None:
    body, results = golden("ready")
    saved = check(tmp_path / "digits-check", body, results)
    ran, *_ = (each for each in body["status"]["candidates"] if each["name"] == "onnx-fp32")
    name = f"metrics.{ran['metricsKey']}"
    record = json.loads(results["data"][name])
    record["result"]["candidates"] = [
        [*row, [0.75]] if row[0] == ran["profileKey"] else row for row in record["result"]["candidates"]
    ]
    results["data"][name] = json.dumps(record)
    Path(saved).write_text(json.dumps({"kind": "List", "items": [body, results]}), encoding="utf-8")
    root = tmp_path / "digits-check/claims/digits-repository" / layout.ROOT.name
    measurement = layout.measurement_directory(ran["metricsKey"], root)
    write_outputs(measurement / layout.CONVERTED / ran["profileKey"], [outputs_of(3)])
    for _ in range(2):
        assert main(["report", saved, "--file", str(tmp_path / "out"), "--outputs"]) == 0
    (kept,) = (tmp_path / "out/outputs/onnx-fp32-outside-triton").iterdir()
    assert numpy.load(kept)["0/OUTPUT__0"][0] == 3
    assert not (tmp_path / "out/outputs/onnx-fp16-outside-triton").exists()
    with (tmp_path / "out/accuracy_metrics.csv").open() as file:
        rows = {row["Outputs of"]: row["accuracy"] for row in csv.DictReader(file)}
    assert (rows["onnx-fp32, outside Triton"], rows["onnx-fp32"]) == ("0.75", "0.98")


def test_without_metrics_only_the_framework_s_outputs_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body, results = golden("ready")
    del body["spec"]["metrics"], body["spec"]["accuracy"]
    saved = check(tmp_path, body, results)
    assert main(["report", saved, "--file", str(tmp_path / "out"), "--outputs"]) == 0
    assert [each.name for each in (tmp_path / "out/outputs").iterdir()] == ["reference"]
    assert "the object has no spec.metrics" in capsys.readouterr().err


def test_what_has_no_outputs_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = check(tmp_path, *golden("new-object"))
    out = ["--file", str(tmp_path / "out"), "--outputs"]
    assert main(["report", saved, *out]) == 1
    assert "no outputs of digits are recorded yet" in capsys.readouterr().err
    file = tmp_path / "digits.json"
    file.write_text(json.dumps({"kind": "List", "items": [*golden("ready")]}))
    (tmp_path / "claims").rename(tmp_path / "gone")
    assert main(["report", str(file), *out]) == 1
    assert "name an object of a cluster, or a check's objects.json" in capsys.readouterr().err
    assert main(["report", str(file), "--outputs"]) == 1
    assert "a folder by --file FOLDER" in capsys.readouterr().err


def test_the_outputs_are_of_the_reference_that_the_candidates_were_compared_with() -> None:
    body, results = golden("ready")
    newer = json.loads(results["data"][f"reference.{REFERENCE}"])
    results["data"]["reference.0123456789abcdef"] = json.dumps(newer | {"key": "0123456789abcdef"})
    results["data"]["finished.reference.0123456789abcdef"] = "2027-01-01T00:00:00Z"
    assert places(parse(body, results), IN_POD)["reference"] == IN_POD / f"references/{REFERENCE}/batches"
    del results["data"]["history"]
    assert places(parse(body, results), IN_POD)["reference"] == IN_POD / "references/0123456789abcdef/batches"


@pytest.mark.parametrize("name", ["../x", "..", "/tmp/x", "a/b"])
def test_a_candidate_of_a_stranger_s_status_names_no_other_folder(name: str) -> None:
    body, results = copy.deepcopy(golden("ready"))
    body["status"]["candidates"][0]["name"] = name
    assert len(places(parse(body, results), IN_POD)) == 4


@pytest.mark.parametrize(
    "content",
    [
        archive(member("served/../../x")),
        archive(member("/etc/x")),
        archive(member("elsewhere/x")),
        archive(member("served/x", tarfile.SYMTYPE, "/etc/passwd")),
        archive(member("served/x", tarfile.LNKTYPE, "/etc/passwd")),
        archive(member("served/x", tarfile.FIFOTYPE)),
        archive(),
        b"no archive",
        b"",
    ],
)
def test_what_is_no_folder_of_files_changes_nothing(tmp_path: Path, content: bytes) -> None:
    target = tmp_path / "outputs/onnx-fp16"
    target.mkdir(parents=True)
    (target / "000000.npz").write_text("before")
    with pytest.raises(PushError, match="/claim/served did not come as a folder of files"):
        fetch(printing(content, tmp_path), Path("/claim/served"), target)
    assert [each.relative_to(tmp_path).as_posix() for each in sorted(tmp_path.rglob("*"))] == [
        *("answer", "outputs", "outputs/onnx-fp16", "outputs/onnx-fp16/000000.npz")
    ]


def test_an_endless_answer_ends_before_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Disk:
        free = 10_000_000

    monkeypatch.setattr("shutil.disk_usage", lambda _: Disk)
    with pytest.raises(PushError, match="this machine's disk has no room"):
        fetch(["sh", "-c", "exec cat /dev/zero"], Path("/claim/served"), tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_the_last_words_of_a_pod_are_the_error(tmp_path: Path) -> None:
    with pytest.raises(PushError, match=r"^the outputs were not read: tar: .*claim.*: No such file") as error:
        fetch([], tmp_path / "claim/served", tmp_path / "x")
    assert len(str(error.value)) < 5000


def test_the_pod_reads_the_claim_on_the_node_of_the_object_s_pods() -> None:
    body, results = golden("ready")
    taint = {"key": "team", "operator": "Equal", "value": "vision"}
    body["spec"]["pod"] = {"tolerations": [taint], "imagePullSecrets": [{"name": "registry"}]}
    spec = reader("x", parse(body, results), "example/converter:1")["spec"]
    claim = {"claimName": "digits-repository", "readOnly": True}
    assert spec["volumes"] == [{"name": "claim", "persistentVolumeClaim": claim}]
    assert [each["key"] for each in spec["tolerations"]] == ["team", "nvidia.com/gpu"]
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    (term,) = spec["affinity"]["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["podAffinityTerm"]["labelSelector"] == {"matchLabels": {"triton-operator.dev/deployment": "digits"}}
