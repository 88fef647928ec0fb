"""Downloads from a hub: commits, gated repositories, and answers that no hub gives."""

import json
from typing import Any

import pytest

from tests.converters.https_server import Server
from tests.converters.hub_server import COMMIT, Hub
from triton_converters.claim_store.digest import is_published
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import SourceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import SourceResult
from triton_converters.fetch import folder, hf
from triton_converters.stages import source

KEY = "0123456789abcdef"
FILES = {
    "config.json": b"{}",
    "model.safetensors": bytes(300_000),
    "onnx/model #1.onnx": b"graph",
    ".gitattributes": b"*.safetensors lfs",
    "empty.txt": b"",
}


@pytest.fixture
def hub(server: Server, monkeypatch: pytest.MonkeyPatch) -> Hub:
    hub = server.behaviour.hub = Hub(dict(FILES))
    monkeypatch.setenv(hf.ENDPOINT, f"https://{server.host}")
    return hub


def download(repository: str = "acme/ocr", **fields: Any) -> SourceResult:
    return source.run(SourceRequest(KEY, f"hf://{repository}", "", "", **fields))


def failure(repository: str = "acme/ocr", **fields: Any) -> StageError:
    with pytest.raises(StageError) as caught:
        download(repository, **fields)
    return caught.value


def files(result: SourceResult) -> dict[str, bytes]:
    root = layout.source_directory(result.digest)
    assert is_published(root)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def with_token(token: str) -> None:
    layout.CREDENTIALS_MOUNT.mkdir(exist_ok=True)
    (layout.CREDENTIALS_MOUNT / "HF_TOKEN").write_text(token)


def test_a_repository_is_published_as_a_directory_with_its_commit(hub: Hub) -> None:
    result = download()
    assert files(result) == FILES
    assert (result.resolved, result.files) == (COMMIT, len(FILES))
    assert download(revision=COMMIT) == result


def test_only_what_include_names_is_downloaded(hub: Hub, server: Server) -> None:
    assert set(files(download(include=("*.json", "onnx/*")))) == {"config.json", "onnx/model #1.onnx"}
    assert not [each for each in server.behaviour.seen if "safetensors" in each["path"]]
    error = failure(include=("*.bin",))
    assert error.reason is Reason.SOURCE_NOT_FOUND
    assert "spec.source.include" in error.message


def test_of_a_repository_only_the_models_folders_are_downloaded(hub: Hub, server: Server) -> None:
    hub.files |= {"m/a.onnx": b"a", "m/a.onnx_data": b"data", "other/b.onnx": b"b"}
    assert set(files(download(paths=("m/a.onnx",)))) == {"m/a.onnx", "m/a.onnx_data"}
    asked = [each["path"].rpartition("/")[2] for each in server.behaviour.seen if "resolve" in each["path"]]
    assert asked == ["a.onnx", "a.onnx_data"]
    assert "has no 'a.onnx'; it has: '.gitattributes'" in failure(paths=("a.onnx",)).message
    assert len([each for each in server.behaviour.seen if "resolve" in each["path"]]) == 2


def test_files_that_came_are_not_asked_for_again_unless_the_branch_has_moved(hub: Hub, server: Server) -> None:
    server.behaviour.breaks = [10**9, 2, 100_000, 0, 0]
    assert failure().reason is Reason.SOURCE_TRUNCATED
    server.behaviour.seen.clear()
    server.behaviour.breaks = [10**9, 10**9, 2, 0, 0, 0]
    failure()
    asked = [each["path"].rpartition("/")[2] for each in server.behaviour.seen if "resolve" in each["path"]]
    assert asked[0] == "model.safetensors"
    assert next(each["Range"] for each in server.behaviour.seen if "Range" in each) == "bytes=99999-"
    server.behaviour.breaks = []
    hub.commit, hub.files = "f" * 40, {"config.json": b"[]"}
    result = download()
    assert (files(result), result.resolved) == ({"config.json": b"[]"}, "f" * 40)


def test_the_token_opens_a_gated_repository_and_stays_with_the_hub(hub: Hub, capfd: pytest.CaptureFixture[str]) -> None:
    hub.gated, hub.token = True, "hf_secret"
    for token in ("", "hf_other"):
        if token:
            with_token(token)
        error = failure()
        assert (error.reason, error.final) == (Reason.SOURCE_ACCESS_DENIED, True)
        assert "HF_TOKEN" in error.message
        assert "hf_other" not in error.message
    with_token("hf_secret")
    assert files(download()) == FILES
    assert "hf_secret" not in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("asked", "words"),
    [({"repository": "acme/none"}, "no repository acme/none"), ({"revision": "v9"}, "no revision of that name")],
)
def test_what_the_hub_does_not_have_is_not_found(hub: Hub, asked: dict[str, str], words: str) -> None:
    error = failure(**asked)
    assert error.reason is Reason.SOURCE_NOT_FOUND
    assert words in error.message


def test_content_that_is_not_what_the_hub_says_is_refused(hub: Hub) -> None:
    told = json.loads(hub.answer("/api/models/acme/ocr/revision/main", "")[2])["siblings"]
    told[1]["lfs"]["sha256"] = "0" * 64
    hub.changes = {"siblings": told}
    error = failure()
    assert error.reason is Reason.DIGEST_MISMATCH
    assert "model.safetensors" in error.message


def named(name: Any, **fields: Any) -> list[dict[str, Any]]:
    return [{"rfilename": name, "size": 1} | fields]


@pytest.mark.parametrize(
    "changes",
    [
        {"sha": "main"},
        {"sha": None},
        {"siblings": None},
        {"siblings": [1]},
        {"siblings": named("../../escape")},
        {"siblings": named("/etc/passwd")},
        {"siblings": named("a//b")},
        {"siblings": named("a/..data/b")},
        {"siblings": named("a/lost+found")},
        {"siblings": named("a\nb")},
        {"siblings": named("a\\b")},
        {"siblings": named("")},
        {"siblings": named(1)},
        {"siblings": named("a", size=-1)},
        {"siblings": named("a", size="1")},
        {"siblings": named("a", size=2**70)},
        {"siblings": named("a", lfs={"sha256": "no"})},
        {"siblings": named("a", lfs=[1])},
        {"siblings": named("a") * (folder.MOST_FILES + 1)},
    ],
)
def test_an_answer_that_no_hub_gives_is_refused(hub: Hub, changes: dict[str, Any]) -> None:
    hub.changes = changes
    assert failure().reason is Reason.SOURCE_INVALID
    assert not list((layout.ROOT / "sources").glob("*"))


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a", "a/b"], "acme/ocr has a file with the name of a folder; rename one of them"),
        (["a/b/c", "a-b", "a"], "acme/ocr has a file with the name of a folder; rename one of them"),
        (["a", "b", "a"], "acme/ocr has two files with one name; rename one of them"),
        (["a" * 256], "acme/ocr has a file with a name that is too long for a file; rename it"),
        (["é" * 128], "acme/ocr has a file with a name that is too long for a file; rename it"),
        (["/".join(["é" * 100] * 20)], "acme/ocr has a file with a name that is too long for a file; rename it"),
        (["a/../b"], "acme/ocr has a file with a name that no source has; rename it"),
    ],
)
def test_names_that_no_folder_can_hold_are_refused_for_good(hub: Hub, names: list[str], words: str) -> None:
    hub.files = dict.fromkeys(names, b"")
    hub.changes = {"siblings": [{"rfilename": name, "size": 0} for name in names]}
    error = failure()
    assert (error.reason, error.final, error.message) == (Reason.SOURCE_INVALID, True, words)
    assert not list((layout.ROOT / "sources").glob("*"))


def test_the_longest_names_are_published(hub: Hub) -> None:
    hub.files = {f"{'a' * 255}/{'é' * 127}": b"a", "b" * 255: b"b", "/".join(["c" * 204] * 5): b"c"}
    assert files(download()) == hub.files


def test_a_server_that_is_no_hub_is_named(hub: Hub, server: Server) -> None:
    server.behaviour.hub = None
    assert "Helm value sources.hub" in failure().message
