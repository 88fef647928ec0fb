"""What a Python step loads from the Hugging Face hub, as init tells it, until the files lie next to the step."""

from pathlib import Path

import pytest

from tests.report.model_folders import write
from tests.report.repositories import CLASSIFIER, PLAIN_STEP
from tests.report.test_triton_repositories import told
from triton_converters.python_backend import user_step
from triton_plugin.drafting.first_object import notices
from triton_plugin.drafting.model_folder import read
from triton_plugin.drafting.push.files import collect
from triton_plugin.errors import FolderError
from triton_plugin.reading import hub_names
from triton_plugin.reading.python_files import parse

STEP = "models/labels/1/model.py"
HEAD = "from transformers import AutoTokenizer, pipeline\nimport transformers\n"
COMMIT = "0123456789" * 4
MARK = ".huggingface-shared-blobs"
TYPE = "from the Hugging Face hub ('models/labels/1/model.py', line 3), which no server reaches: type `hf"


def checks(root: Path, lines: str, **files: str) -> list[str]:
    """What init says of downloads of a step with these lines."""
    texts = {**CLASSIFIER, STEP: HEAD + lines + PLAIN_STEP, **files}
    return [each for each in told(root, texts) if "hub" in each and each.startswith("Check")]


@pytest.mark.parametrize(
    ("line", "name", "asked"),
    [
        ("AutoTokenizer.from_pretrained('me/net-1.5')", "me/net-1.5", "me/net-1.5"),
        ("AutoTokenizer.from_pretrained('me/net', revision='v1')", "me/net", "me/net --revision v1"),
        ("AutoTokenizer.from_pretrained(NAME); NAME = 'net'", "net", "net"),
        ("class A: NAME = 'net'; x = lambda self: AutoTokenizer.from_pretrained(self.NAME)", "net", "net"),
        ("pipeline('ner', model='me/net', device=-1)", "me/net", "me/net"),
        ("transformers.pipeline('ner', 'me/net')", "me/net", "me/net"),
        ("hf_hub_download(filename='x', repo_id='me/net')", "me/net", "me/net"),
        ("SentenceTransformer('all-MiniLM')", "sentence-transformers/all-MiniLM", "sentence-transformers/all-MiniLM"),
        ("CrossEncoder('me/net')", "me/net", "me/net"),
    ],
)
def test_a_name_of_the_hub_is_told_with_what_to_type(tmp_path: Path, line: str, name: str, asked: str) -> None:
    command = f"{TYPE} download {asked} --cache-dir models/labels/1/huggingface` in this folder."
    assert checks(tmp_path, f"{line}\n") == [f"Check: labels: it loads {name!r} {command}"]


@pytest.mark.parametrize(
    "line",
    [
        "AutoTokenizer.from_pretrained(words)",
        "AutoTokenizer.from_pretrained(*words)",
        "AutoTokenizer.from_pretrained()",
        "AutoTokenizer.from_pretrained(NAME); NAME = 'a'; NAME = 'b'",
        "AutoTokenizer.from_pretrained('./near')",
        "AutoTokenizer.from_pretrained('me/net; rm -r /')",
        "AutoTokenizer.from_pretrained('a/b/c')",
        "AutoTokenizer.from_pretrained('me/net', revision=words)",
        "AutoTokenizer.from_pretrained('me/net', revision='$(x)')",
        "AutoTokenizer.from_pretrained('me/net', cache_dir='x')",
        "AutoTokenizer.from_pretrained('me/net', **words)",
        "hf_hub_download('me/net', 'x', repo_type='dataset')",
        "AutoTokenizer.from_pretrained(1)",
        "pipeline('ner')",
    ],
)
def test_what_cannot_be_read_gets_a_general_sentence(tmp_path: Path, line: str) -> None:
    call = line.partition("(")[0].rpartition(".")[2]
    (said,) = checks(tmp_path, f"{line}\n")
    assert said.startswith(f"Check: labels: it calls {call!r}: a server reaches nothing, so the files have to lie in")


def test_a_pipeline_of_something_else_is_no_download(tmp_path: Path) -> None:
    text = "from words import pipeline\npipeline('a', 'me/net')\nself.pipeline('a', 'me/net')\n"
    texts = {**CLASSIFIER, STEP: text + PLAIN_STEP, "models/labels/1/words.py": ""}
    assert not any("hub" in each for each in told(tmp_path, texts))


def test_nothing_is_told_once_the_files_lie_next_to_the_step(tmp_path: Path) -> None:
    """As `hf download` leaves them: links to blobs, which lead out of no folder."""
    line = "AutoTokenizer.from_pretrained('me/net'); AutoTokenizer.from_pretrained('me/net', revision='v1')\n"
    assert len(checks(tmp_path, line)) == 2
    cache = tmp_path / "models/labels/1/huggingface/models--me--net"
    # The hub's files may be code, which is none of the step's.
    write(cache, {"refs/main": COMMIT, "blobs/aa": "import cupy", "blobs/bb": "AutoModel.from_pretrained('me/other')"})
    (cache / "snapshots" / COMMIT).mkdir(parents=True)
    (cache / "snapshots" / COMMIT / "modeling.py").symlink_to("../../blobs/aa")
    (cache / "snapshots" / COMMIT / "more.py").symlink_to("../../blobs/bb")
    assert [each for each in notices(read(tmp_path)) if "me/" in each or "cupy" in each] == [
        f"Check: labels: it loads 'me/net' {TYPE} download me/net --revision v1"
        " --cache-dir models/labels/1/huggingface` in this folder."
    ]
    write(cache, {"refs/v1": COMMIT})
    assert not [each for each in notices(read(tmp_path)) if "hub" in each or "cupy" in each]


def test_a_folder_of_the_models_is_no_name_of_the_hub(tmp_path: Path) -> None:
    (said,) = checks(
        tmp_path, "AutoTokenizer.from_pretrained('near/net')\n", **{"models/labels/1/near/net/vocab.txt": "a"}
    )
    assert "it calls 'from_pretrained'" in said


def test_only_the_hub_s_own_layout_is_left_out_of_the_code(tmp_path: Path) -> None:
    write(tmp_path, {"huggingface/models--a/b.py": "", "huggingface/models.py": "", "models--a/b.py": ""})
    assert sorted(parse(tmp_path)) == ["huggingface/models.py", "models--a/b.py"]


def test_a_push_sends_no_token_of_the_hub(tmp_path: Path) -> None:
    """Who set HF_HOME to this folder, and typed `hf auth login`, has them here."""
    write(tmp_path, {f"huggingface/{name}": "hf_x" for name in ("token", "stored_tokens", "hub/x")})
    write(tmp_path, {"token": "a word", "a/token": "another"})
    found = collect(tmp_path)
    assert {each.name for each in found.files} == {"a/token", "huggingface/hub/x", "token"}
    why = "(a token of the Hugging Face hub)"
    assert found.left_out == (f"huggingface/stored_tokens {why}", f"huggingface/token {why}")
    assert {each.name for each in collect(tmp_path / "huggingface").files} == {"hub/x"}
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/huggingface").symlink_to("../a")
    assert "elsewhere/huggingface/token" not in {each.name for each in collect(tmp_path).files}


def test_a_push_sends_the_hub_s_files_once(tmp_path: Path) -> None:
    """Links in snapshots lead to blobs: each file would be two."""
    cache = tmp_path / "huggingface/models--me--net"
    snapshot = cached(cache)
    write(tmp_path, {"blobs/bb": "the author's own", "a--b/blobs/cc": "this, too"})
    found = collect(tmp_path)
    why = "(what links in snapshots lead to is sent in their place)"
    assert found.left_out == (f"huggingface/blobs {why}", f"huggingface/models--me--net/blobs {why}")
    assert {each.name: each.path.read_text() for each in found.files} == {
        "a--b/blobs/cc": "this, too",
        "blobs/bb": "the author's own",
        "huggingface/models--me--net/refs/main": COMMIT,
        f"huggingface/models--me--net/snapshots/{COMMIT}/model.safetensors": "weights",
        f"huggingface/models--me--net/snapshots/{COMMIT}/config.json": "{}",
    }
    # A revision alone may be pushed too, but nothing that its links lead to elsewhere.
    assert {each.name: each.path.read_text() for each in collect(snapshot).files} == {
        "model.safetensors": "weights",
        "config.json": "{}",
    }
    (cache.parent / "blobs" / MARK).unlink()
    with pytest.raises(FolderError, match="is a link to"):
        collect(snapshot)


def cached(cache: Path) -> Path:
    """A revision as huggingface_hub 2 leaves it: large files are links to links to what all models share."""
    write(cache.parent, {"blobs/bb/bbcc": "weights", f"blobs/{MARK}": "1\n"})
    write(cache, {"blobs/aa": "{}", "refs/main": COMMIT})
    (cache / "blobs/bb").symlink_to("../../blobs/bb/bbcc")
    snapshot = cache / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    for name, blob in {"config.json": "aa", "model.safetensors": "bb"}.items():
        (snapshot / name).symlink_to(f"../../blobs/{blob}")
    return snapshot


def test_the_folder_is_the_one_that_a_server_reads() -> None:
    assert hub_names.HUB == user_step.HUB
    assert all(hub_names.NAME.fullmatch(each) for each in ("me/net", "net", "a_b"))
