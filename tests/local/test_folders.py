"""The folder in which an object is checked: this user's commands alone have written it, and one of them works in it."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Attack
from triton_local.images import Images
from triton_local.session import MARK, SessionError, ours_alone
from triton_operator.names import API_VERSION, KIND
from triton_plugin.__main__ import main
from triton_plugin.command_line import parser
from triton_plugin.commands.check import _added, _drafted, _object_file
from triton_plugin.errors import CheckError
from triton_plugin.exits import Exit

ROOT = Path(__file__).parents[2]


def enter(folder: Path, tmp_path: Path) -> None:
    """Work in a folder, for a moment."""
    with ours_alone(folder, tmp_path / "register"):
        (folder / "objects.json").write_text("ours", encoding="utf-8")


def test_a_folder_is_made_and_gone_on_in_also_after_it_was_moved(tmp_path: Path) -> None:
    enter(tmp_path / "a-check", tmp_path)
    enter(tmp_path / "a-check", tmp_path)
    (tmp_path / "a-check").rename(tmp_path / "b-check")
    enter(tmp_path / "b-check", tmp_path)
    assert (tmp_path / "b-check/.gitignore").read_text() == "*\n", "nobody gives it to others by chance"


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "a-check").mkdir()
    enter(tmp_path / "a-check", tmp_path)


def with_nothing(folder: Path, precious: Path) -> None:
    (folder / "objects.json").write_text("theirs", encoding="utf-8")


def with_links(folder: Path, precious: Path) -> None:
    for name in ("lock", "objects.json", "objects.tmp", "report.html", "object.yaml"):
        (folder / name).symlink_to(precious)
    (folder / "claims").symlink_to(precious.parent)


def with_a_mark(folder: Path, precious: Path) -> None:
    (folder / MARK).write_text("0" * 32, encoding="utf-8")


def with_a_mark_of_nobody(folder: Path, precious: Path) -> None:
    (folder / MARK).symlink_to(precious.parent / "register" / ("0" * 32))


def with_a_mark_elsewhere(folder: Path, precious: Path) -> None:
    (folder / MARK).symlink_to(precious)


def with_a_mark_that_leads_on(folder: Path, precious: Path) -> None:
    (folder / MARK).symlink_to(precious.parent / "register" / ".." / "precious")


STRANGERS = (
    with_nothing,
    with_links,
    with_a_mark,
    with_a_mark_of_nobody,
    with_a_mark_elsewhere,
    with_a_mark_that_leads_on,
)


@pytest.mark.parametrize("stranger", STRANGERS)
def test_a_stranger_s_folder_is_refused_and_nothing_is_written(
    tmp_path: Path, attack: Attack, stranger: Callable[[Path, Path], None]
) -> None:
    """What it says would run, and what it says has passed."""
    enter(tmp_path / "another", tmp_path)
    (tmp_path / "precious").write_text("kept", encoding="utf-8")
    folder = tmp_path / "digits-check"
    folder.mkdir()
    stranger(folder, tmp_path / "precious")
    before = sorted(os.listdir(folder))
    with pytest.raises(SessionError, match="has not written on this machine") as refused:
        enter(folder, tmp_path)
    attack("a folder of models", f"a state folder {stranger.__name__.replace('_', ' ')}", str(refused.value)[-100:])
    assert (tmp_path / "precious").read_text(encoding="utf-8") == "kept"
    assert sorted(os.listdir(folder)) == before


def test_two_commands_do_not_work_in_one_folder(tmp_path: Path) -> None:
    with ours_alone(tmp_path / "a-check", tmp_path / "register"), pytest.raises(SessionError, match="another command"):
        enter(tmp_path / "a-check", tmp_path)


@pytest.mark.parametrize(
    "body",
    [
        '{name: c}, data: {"../../planted": x}',
        '{name: c}, data: {"..": x}',
        "{name: c}, data: {a: 1}",
        "{}",
        "{name: c}, binaryData: {a: '!'}",
    ],
)
def test_a_config_map_that_an_api_server_refuses_is_refused(tmp_path: Path, attack: Attack, body: str) -> None:
    spec = "{source: {uri: 'configmap://c'}, models: [{name: digits, path: digits.onnx}]}"
    words = f"{{apiVersion: {API_VERSION}, kind: {KIND}, metadata: {{name: digits}}, spec: {spec}}}"
    (tmp_path / "object.yaml").write_text(f"{words}\n---\n{{kind: ConfigMap, metadata: {body}}}\n", encoding="utf-8")
    with pytest.raises(CheckError, match="has a ConfigMap that an API server refuses") as refused:
        _object_file(tmp_path / "object.yaml")
    attack("an object's file", f"a ConfigMap: {body}", str(refused.value).partition("has ")[2])


def test_a_config_map_holds_texts_and_bytes(tmp_path: Path) -> None:
    spec = "{source: {uri: 'configmap://c'}, models: [{name: digits, path: digits.onnx}]}"
    words = f"{{apiVersion: {API_VERSION}, kind: {KIND}, metadata: {{name: digits}}, spec: {spec}}}"
    body = "{kind: ConfigMap, metadata: {name: c}, data: {a.py: x = 1}, binaryData: {a.npz: AP8=}}"
    (tmp_path / "object.yaml").write_text(f"{words}\n---\n{body}\n", encoding="utf-8")
    assert _object_file(tmp_path / "object.yaml").config_maps == {"c": {"a.py": b"x = 1", "a.npz": b"\x00\xff"}}


@pytest.mark.parametrize("words", [("--claim", "models=."), ()])
def test_a_check_folder_is_neither_in_a_claim_nor_a_link_that_came_with_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    spec = {"source": {"uri": "pvc://models"}, "models": [{"name": "digits", "path": "digits.onnx"}]}
    body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "digits"}, "spec": spec}
    (tmp_path / "object.yaml").write_text(json.dumps(body), encoding="utf-8")
    if not words:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "digits-check").symlink_to("elsewhere")
    assert main(["check", "object.yaml", *words]) == Exit.FAILED
    assert "by --folder" in capsys.readouterr().err
    assert not words or not (tmp_path / "digits-check").exists()


@pytest.mark.parametrize(
    ("name", "named"),
    [("Foo (1).onnx", "foo-1.onnx"), ("数字.onnx", "model.onnx"), ("-x.onnx", "x.onnx"), ("A_1.onnx", "A_1.onnx")],
)
def test_a_file_whose_name_no_object_takes_gets_another_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, named: str
) -> None:
    shutil.copy(ROOT / "manifests/samples/digits/digits.onnx", tmp_path / name)
    wanted = _drafted(tmp_path / name, parser().parse_args(["check", "--", str(tmp_path / name)]))
    assert wanted.body["spec"]["models"][0]["path"] == named
    assert wanted.files is not None
    assert [each.name for each in wanted.files.files] == [named]
    assert (f"In the object, {name} is named {named}" in capsys.readouterr().err) == (name != named)


def test_what_is_no_archive_of_an_image_is_named(tmp_path: Path) -> None:
    (tmp_path / "image").write_text("no archive", encoding="utf-8")
    with pytest.raises(CheckError, match=r"^--image mine:1: .* is no archive of an image; .*docker save --output"):
        _added(Images(tmp_path / "unpacked"), "mine:1", tmp_path / "image")
