"""The object's file that `kubectl triton run` writes or updates: it lies where others may have put one."""

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from tests.report import model_folders
from tests.report.repositories import PLAIN_STEP
from triton_operator.observed.history import History, State
from triton_operator.observed.revision import Revision
from triton_plugin.__main__ import main
from triton_plugin.commands import run as commands
from triton_plugin.drafting.first_object import ObjectOptions
from triton_plugin.drafting.model_folder import read
from triton_plugin.drafting.run import start, update
from triton_plugin.errors import FolderError
from triton_plugin.exits import Exit
from triton_plugin.reading.subject import Subject, parse

SHA256, OTHER = "ab" * 32, "cd" * 32
NET = ObjectOptions(name="net", source="pvc://models/net")
ROLE = "---\nkind: ClusterRoleBinding\napiVersion: rbac.authorization.k8s.io/v1\nmetadata: {name: net}\n"


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The file of an object that `run` has made."""
    (tmp_path / "net.onnx").write_bytes(b"graph")
    _start(tmp_path / "net.yaml")
    return tmp_path / "net.yaml"


def _start(file: Path, overwrite: bool = False) -> None:
    start(read(file.parent / "net.onnx"), NET, file, lambda: SHA256, lambda _: "created", lambda _: None, overwrite)


def _update(file: Path) -> None:
    update(NET, file, lambda: OTHER, lambda _: "configured", lambda _: None)


def _force(file: Path) -> None:
    _start(file, overwrite=True)


@pytest.mark.parametrize("leads", ["nowhere", "to a file"])
@pytest.mark.parametrize("write", [_start, _force, _update])
def test_nothing_is_written_through_a_link(
    tmp_path: Path, written: Path, leads: str, write: Callable[[Path], None]
) -> None:
    """A repository that was downloaded may hold one, which leads out of it."""
    profile = tmp_path / "profile"
    written.rename(profile)
    text = profile.read_text()
    written.symlink_to(profile)
    if leads == "nowhere":
        profile.unlink()
    with pytest.raises(FolderError, match=r"net\.yaml is a link, through which nothing is written"):
        write(written)
    assert (profile.read_text() if profile.exists() else "") == ("" if leads == "nowhere" else text)


@pytest.mark.parametrize(
    "text",
    ["services: {web: {image: web}}\n", "", "- 1\n", "\tno: yaml", "kind: TritonDeployment\nmetadata: {name: other}\n"],
    ids=["another file", "empty", "a list", "no YAML", "another object"],
)
def test_a_file_that_is_not_the_objects_is_never_replaced(written: Path, text: str) -> None:
    written.write_text(text)
    for write in (_force, _update):
        with pytest.raises(FolderError, match="is no file that holds the TritonDeployment net and nothing else"):
            write(written)
    assert written.read_text() == text


def test_a_file_with_bytes_that_are_no_text_is_never_replaced(written: Path) -> None:
    written.write_bytes(b"\xff\xfe")
    with pytest.raises(FolderError, match="is no file that holds"):
        _force(written)


def test_what_is_no_file_is_not_opened(written: Path) -> None:
    written.unlink()
    os.mkfifo(written)
    for write in (_force, _update):
        with pytest.raises(FolderError, match="is no file that holds"):
            write(written)


def test_no_other_object_is_applied_by_an_update(written: Path) -> None:
    """The file next to a downloaded folder may be downloaded too, and `run` itself says to pass --update."""
    text = written.read_text() + ROLE
    written.write_text(text)
    with pytest.raises(FolderError, match="and nothing else"):
        _update(written)
    assert written.read_text() == text


@pytest.mark.parametrize(
    ("was", "becomes", "words"),
    [
        (f", sha256: {SHA256}", "", "has not one sha256"),
        (f", sha256: {SHA256}}}", f"}}\n  data: {{uri: 's3://a/b', sha256: {SHA256}}}", "has not one sha256"),
        ("spec:\n", f"spec:\n  # sha256: {OTHER}\n", "has not one sha256"),
        ("pvc://models/net", "pvc://others/net", "is not pvc://models/net, to which --update pushes"),
    ],
    ids=["no digest", "that of the data", "two", "another place"],
)
def test_an_update_finds_the_digest_of_what_it_pushes_or_pushes_nothing(
    written: Path, was: str, becomes: str, words: str
) -> None:
    text = written.read_text().replace(was, becomes, 1)
    written.write_text(text)
    with pytest.raises(FolderError, match=words):
        update(NET, written, pytest.fail, lambda _: pytest.fail("it is applied"), pytest.fail)
    assert written.read_text() == text


def test_an_update_without_the_objects_file_says_how_to_write_it(written: Path) -> None:
    written.unlink()
    with pytest.raises(FolderError, match=r"net\.yaml, by which --update serves, does not exist; type it without"):
        update(NET, written, pytest.fail, lambda _: pytest.fail("it is applied"), pytest.fail)


def test_an_update_of_a_file_that_is_to_be_filled_in_pushes_nothing(written: Path) -> None:
    written.write_text(written.read_text() + "  conversion: {image: TODO}\n")
    with pytest.raises(FolderError, match=r"(?s)before this is filled in:\n  conversion: .*Nothing was pushed"):
        update(NET, written, lambda: pytest.fail("pushed"), lambda _: "", lambda _: None)


@pytest.mark.parametrize(
    ("was", "becomes", "words"),
    [
        ("serving:", "servin:", "spec.servin: unknown field. Did you mean spec.serving?"),
        ("cpu: 100m", "cpu: [100m]", "spec.conversion.pod.resources.requests.cpu: must be"),
        ("selection:", "accuracy: {thresholds: [{metric: top1, min: 0.9}]}\n  selection:", "MetricsCalculator"),
        ("    path:", "    scratchPaths: [/cache]\n    path:", "spec"),
    ],
    ids=["an unknown field", "a wrong type", "a rule", "a field of another format"],
)
def test_an_update_of_a_file_that_would_be_refused_pushes_nothing(
    written: Path, was: str, becomes: str, words: str
) -> None:
    text = written.read_text().replace(was, becomes, 1)
    written.write_text(text)
    with pytest.raises(FolderError, match=r"(?s)is invalid:\n.*Nothing was pushed") as refused:
        update(NET, written, pytest.fail, lambda _: pytest.fail("it is applied"), pytest.fail)
    assert words in str(refused.value)
    assert written.read_text() == text


def test_an_update_of_a_file_that_names_a_revision_pushes_nothing(written: Path) -> None:
    """The cluster's object may follow the latest, until the file is applied."""
    text = written.read_text().replace("spec:\n", "spec:\n  rollout: {revision: 0123456789abcdef}\n", 1)
    written.write_text(text)
    words = r"net\.yaml keeps revision 0123456789abcdef by spec\.rollout\.revision.*--update --to-latest"
    with pytest.raises(FolderError, match=words):
        update(NET, written, pytest.fail, lambda _: pytest.fail("it is applied"), pytest.fail)
    assert written.read_text() == text


class Namespace:
    """A namespace with the object net, of which another tool has set some fields."""

    namespace = "shared"
    kubectl = None
    options = ()

    def __init__(self) -> None:
        self.spec = {"suspend": True, "serving": {"replicas": 3, "pod": {"a": 1}}, "models": [{"name": "old"}]}

    def child(self, *_: object) -> dict[str, object]:
        return {"spec": self.spec}

    def patch_spec(self, name: str, version: str, spec: dict[str, object]) -> None:
        assert name == "net"
        self.spec = _merged(self.spec, spec)


def _merged(there: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """A JSON merge patch (RFC 7386)."""
    merged = dict(there)
    for name, value in change.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(merged.get(name) or {}, value) if isinstance(value, dict) else value
    return merged


def test_force_leaves_nothing_of_the_spec_that_was_there(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another tool has set, such as suspend, is in no annotation of kubectl apply, which would keep it."""
    namespace, pushed = Namespace(), SimpleNamespace(sha256=OTHER)
    monkeypatch.setattr(commands, "cluster", lambda _: namespace)
    monkeypatch.setattr(commands, "push_files", lambda *_: pushed)
    monkeypatch.setattr(commands, "apply", lambda *_: "configured")
    monkeypatch.setattr(commands, "watch_object", lambda *_: Exit.FAILED)
    main(["run", str(written.parent / "net.onnx"), "--force"])
    assert namespace.spec == yaml.safe_load(written.read_text())["spec"]


@pytest.mark.parametrize(
    "given",
    [["--threshold", "accuracy=0.9"], ["--p99-latency", "5ms"], ["--gpu", "A"], ["--max-batch-size", "0"]],
)
def test_an_update_refuses_what_the_objects_file_says(
    written: Path, given: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """It would not be in the object, and nobody would notice."""
    assert main(["run", str(written.parent / "net.onnx"), "--update", *given]) == 1
    assert f"write into that file what {given[0]} says" in capsys.readouterr().err


KEPT, LEFT = "0123456789abcdef", "1" * 16


class RolledBack:
    """A namespace whose object is rolled back, and of which another tool has set some fields."""

    namespace = "vision"
    kubectl = None
    options = ()

    def __init__(self, spec: dict[str, Any]) -> None:
        rollout = {"revision": KEPT, "onInconclusive": "Undo"}
        self.spec: dict[str, Any] = {**spec, "suspend": True, "rollout": rollout}
        self.writes: list[dict[str, Any]] = []
        self.versions: list[object] = []
        self.history = History()
        self.exists = True

    def child(self, *_: object) -> dict[str, object] | None:
        return self.triton_deployment("net") if self.exists else None

    def triton_deployment(self, name: str) -> dict[str, object]:
        return {"metadata": {"name": name, "resourceVersion": str(len(self.writes))}, "spec": self.spec}

    def results(self, _: str) -> dict[str, Any]:
        return {"kind": "ConfigMap", "metadata": {"name": "net-results"}, "data": {"history": self.history.to_json()}}

    def subject(self, name: str) -> Subject:
        return parse(self.triton_deployment(name), self.results(name))

    def hold(self, revision: str | None) -> None:
        """What another person does by `kubectl triton rollback`."""
        self.spec = _merged(self.spec, {"rollout": {"revision": revision}})

    def patch_spec(self, name: str, version: str, spec: dict[str, object]) -> None:
        assert name == "net"
        self.spec = _merged(self.spec, spec)
        self.writes.append(self.spec)
        self.versions.append(version)

    def apply(self, _: object, file: Path) -> str:
        self.spec = _merged(self.spec, yaml.safe_load(file.read_text())["spec"])
        self.writes.append({})
        return "configured"


@pytest.fixture
def rolled_back(written: Path, monkeypatch: pytest.MonkeyPatch) -> RolledBack:
    namespace = RolledBack(yaml.safe_load(written.read_text())["spec"])
    monkeypatch.setattr(commands, "cluster", lambda _: namespace)
    monkeypatch.setattr(commands, "push_files", lambda *_: SimpleNamespace(sha256=OTHER))
    monkeypatch.setattr(commands, "apply", namespace.apply)
    monkeypatch.setattr(commands, "watch_object", lambda *_: Exit.FAILED)
    return namespace


def test_nothing_is_pushed_that_a_rollback_keeps_from_being_served(
    written: Path, rolled_back: RolledBack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A rolled back object is Ready, so a nightly run would end well each time."""
    text = written.read_text()
    monkeypatch.setattr(commands, "push_files", lambda *_: pytest.fail("it is pushed"))
    assert main(["run", str(written.parent / "net.onnx"), "--update"]) == 1
    said = capsys.readouterr().err
    assert f"the TritonDeployment net is rolled back to revision {KEPT}" in said
    assert "add --to-latest: that revision then serves until what is pushed has passed" in said
    assert "rollback net" not in said, "what was rolled back from would serve at once"
    assert "TODO" not in said, "what an object of the folder would lack is not said of one that exists"
    assert (written.read_text(), rolled_back.writes) == (text, [])


@pytest.mark.parametrize("options", [[], ["--update"], ["--update", "--to-latest"]], ids=str)
def test_what_may_fail_is_not_said_of_an_object_that_exists(
    tmp_path: Path, rolled_back: RolledBack, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    """Its file may hold what mends it, such as the path that a step names."""
    step = f"x = '/away/words.txt'\n{PLAIN_STEP}"
    sides = " ".join(f'{side} {{ name: "{side}" data_type: TYPE_FP32 dims: 1 }}' for side in ("input", "output"))
    files = {"net/config.pbtxt": f'backend: "python" {sides}', "net/1/model.py": step}
    model_folders.write(tmp_path / "models", files)
    main(["init", str(tmp_path / "models")])
    assert "Check: net: it names '/away/words.txt'" in capsys.readouterr().err
    main(["run", str(tmp_path / "models"), "--name", "net", *options])
    said = capsys.readouterr()
    assert "/away" not in said.out + said.err


def test_one_write_has_the_new_digest_and_no_earlier_revision(
    written: Path, rolled_back: RolledBack, capsys: pytest.CaptureFixture[str]
) -> None:
    """Between two writes, what was rolled back from would serve."""
    main(["run", str(written.parent / "net.onnx"), "--update", "--to-latest"])
    first, *others = rolled_back.writes
    assert (first["source"]["sha256"], first["rollout"]) == (OTHER, {"onInconclusive": "Undo"})
    assert first["suspend"] is True, "what another tool has set stays, as by kubectl apply"
    assert first["models"] == yaml.safe_load(written.read_text())["spec"]["models"]
    assert rolled_back.versions == ["0"], "the API server refuses it if the object is another one by now"
    assert others == [{}], "kubectl apply then notes what the file holds"
    assert f"revision {KEPT} serves until what is pushed has passed" in capsys.readouterr().out


@pytest.mark.parametrize(
    "history",
    [(KEPT, OTHER, LEFT, SHA256), (LEFT, SHA256, KEPT, OTHER), (LEFT, SHA256, KEPT, SHA256)],
    ids=["served before", "serves until the other is there", "the same files with other settings"],
)
def test_the_files_that_a_rollback_left_are_not_served_again(
    written: Path,
    rolled_back: RolledBack,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    history: tuple[str, ...],
) -> None:
    rolled_back.history = _served(*history)
    monkeypatch.setattr(commands, "push_files", lambda *_: SimpleNamespace(sha256=SHA256))
    assert main(["run", str(written.parent / "net.onnx"), "--update", "--to-latest"]) == 1
    assert "which would serve again at once, so nothing is applied" in capsys.readouterr().err
    assert rolled_back.writes == []


@pytest.mark.parametrize("history", [(KEPT, OTHER), (KEPT, SHA256)], ids=["other files", "those of the kept one"])
def test_the_files_that_a_rollback_left_before_they_served_are_tried_again(
    written: Path, rolled_back: RolledBack, monkeypatch: pytest.MonkeyPatch, history: tuple[str, ...]
) -> None:
    """They have no verdict yet, or failed, and so serve only once they have passed."""
    rolled_back.history = _served(*history)
    monkeypatch.setattr(commands, "push_files", lambda *_: SimpleNamespace(sha256=SHA256))
    main(["run", str(written.parent / "net.onnx"), "--update", "--to-latest"])
    assert (rolled_back.spec["source"]["sha256"], rolled_back.spec["rollout"].get("revision")) == (SHA256, None)


def _during_the_push(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    def pushed(*_: object) -> SimpleNamespace:
        happens()
        return SimpleNamespace(sha256=OTHER)

    monkeypatch.setattr(commands, "push_files", pushed)


def _at_the_end(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    def watched(*_: object) -> Exit:
        happens()
        return Exit.OK

    monkeypatch.setattr(commands, "watch_object", watched)
    monkeypatch.setattr(commands, "first_request", lambda *_: "a first request")


def test_a_rollback_during_the_push_stays(
    written: Path, rolled_back: RolledBack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The object would be Ready with the new digest and the earlier revision, and a pipeline would go on."""
    rolled_back.hold(None)
    text = written.read_text()
    _during_the_push(monkeypatch, lambda: rolled_back.hold(KEPT))
    assert main(["run", str(written.parent / "net.onnx"), "--update"]) == 1
    assert f"is rolled back to revision {KEPT}, so what --update pushes would not be" in capsys.readouterr().err
    assert (written.read_text(), rolled_back.writes) == (text, [])


@pytest.mark.parametrize("first", [KEPT, None], ids=["to another revision", "the first one"])
@pytest.mark.parametrize("way", [["--update", "--to-latest"], ["--force"]], ids=" ".join)
def test_only_the_rollback_that_was_there_is_ended(
    written: Path,
    rolled_back: RolledBack,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    first: str | None,
    way: list[str],
) -> None:
    """Who types the command does not know of the other one, which may be what keeps wrong answers from clients."""
    rolled_back.hold(first)
    text, other = written.read_text(), KEPT[::-1]
    _during_the_push(monkeypatch, lambda: rolled_back.hold(other))
    assert main(["run", str(written.parent / "net.onnx"), *way]) == 1
    assert f"net was rolled back to revision {other} while the files were pushed, so noth" in capsys.readouterr().err
    assert (written.read_text(), rolled_back.writes) == (text, [])


def test_a_rollback_that_others_ended_meanwhile_needs_no_end(
    written: Path, rolled_back: RolledBack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _during_the_push(monkeypatch, lambda: rolled_back.hold(None))
    main(["run", str(written.parent / "net.onnx"), "--update", "--to-latest"])
    assert rolled_back.writes == [{}]
    assert "is removed" not in capsys.readouterr().out


def test_an_object_that_others_made_during_the_push_stays(
    written: Path, rolled_back: RolledBack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written.unlink()
    rolled_back.exists = False
    _during_the_push(monkeypatch, lambda: setattr(rolled_back, "exists", True))
    assert main(["run", str(written.parent / "net.onnx")]) == 1
    assert "the TritonDeployment net of namespace vision exists; pass --update" in capsys.readouterr().err
    assert (written.exists(), rolled_back.writes) == (False, [])


@pytest.mark.parametrize("again", [[], ["--update"], ["--force"]])
def test_a_rollback_that_came_after_the_push_is_no_success(
    written: Path,
    rolled_back: RolledBack,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    again: list[str],
) -> None:
    """`watch` is done once the revision that somebody went back to is active."""
    rolled_back.hold(None)
    rolled_back.exists = bool(again)
    if not again:
        written.unlink()
    _at_the_end(monkeypatch, lambda: rolled_back.hold(KEPT))
    assert main(["run", str(written.parent / "net.onnx"), *again]) == 1
    said = capsys.readouterr()
    assert f"net was rolled back to revision {KEPT} meanwhile, so what this command asks for is not serv" in said.err
    assert "a first request" not in said.out


def test_who_holds_what_was_pushed_keeps_nothing_from_being_served(
    written: Path, rolled_back: RolledBack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """During a soak, a rollback to the active revision ends the soak."""
    rolled_back.hold(None)
    rolled_back.history = _served(KEPT, OTHER)
    _at_the_end(monkeypatch, lambda: rolled_back.hold(KEPT))
    assert main(["run", str(written.parent / "net.onnx"), "--update"]) == 0
    assert "a first request" in capsys.readouterr().out


def _served(*revisions: str) -> History:
    """The history of these keys, each with the digest after it."""
    pairs = zip(revisions[::2], revisions[1::2], strict=True)
    made = (
        Revision.of(key, "onnx-fp32", "net", f"net-{key}", {"a": 1}, {"source": {"digest": f"sha256:{digest}"}})
        for key, digest in pairs
    )
    return History(tuple(State((each.key,), revision=each) for each in made))


def test_other_files_that_came_after_the_push_are_no_success(
    written: Path, rolled_back: RolledBack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second push, or a GitOps tool that sets the digest back: the object is Ready with it."""
    rolled_back.hold(None)
    _at_the_end(monkeypatch, lambda: rolled_back.patch_spec("net", "", {"source": {"sha256": SHA256}}))
    assert main(["run", str(written.parent / "net.onnx"), "--update"]) == 1
    assert "net got another spec.source.sha256 meanwhile, so what this command asks" in capsys.readouterr().err


def test_force_replaces_an_object_that_is_rolled_back(written: Path, rolled_back: RolledBack) -> None:
    main(["run", str(written.parent / "net.onnx"), "--force"])
    assert rolled_back.writes == [yaml.safe_load(written.read_text())["spec"], {}]


@pytest.mark.parametrize("others", [[], ["--force"]])
def test_the_end_of_a_rollback_is_part_of_an_update(
    written: Path, others: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(written.parent / "net.onnx"), "--to-latest", *others]) == 1
    assert "--to-latest is for --update" in capsys.readouterr().err
