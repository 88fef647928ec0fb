"""A push from folder to folder: the program of the pod runs here, as a process of its own; only kubectl is left out."""

import inspect
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from tests.conftest import Attack
from tests.report.model_folders import write
from triton_converters.claim_store.digest import SourceFile, digest_of, sha256_of
from triton_plugin.drafting.push import receiver
from triton_plugin.drafting.push.cluster import Claims
from triton_plugin.drafting.push.command import Options, left_out, push, transfer
from triton_plugin.drafting.push.files import Files, PushedFile, collect, digest
from triton_plugin.drafting.push.objects import Target, pod, target
from triton_plugin.drafting.push.sending import Remote
from triton_plugin.errors import FolderError, PushError
from triton_plugin.reading.cluster import Cluster
from triton_plugin.reading.python_files import parse

ROOT = Path(__file__).parents[2]
HERE = ("env", f"RECEIVER={inspect.getsource(receiver)}", f"PATH={Path(sys.executable).parent}:{os.environ['PATH']}")
WHERE = Target("models", "team/xor")
MODEL = {"model.py": "def get_model(): ...\n", "data/one.txt": "1", "data/.hidden": "2", "größe.txt": "3"}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    write(tmp_path / "model", MODEL)
    return tmp_path / "model"


@pytest.fixture
def claim(tmp_path: Path) -> Path:
    """What stands for the claim's file system."""
    (tmp_path / "claim").mkdir()
    return tmp_path / "claim"


def console() -> Console:
    return Console(file=io.StringIO(), width=200)


def said(by: Console) -> str:
    assert isinstance(by.file, io.StringIO)
    return by.file.getvalue()


def sent(path: Path, claim: Path, *prefix: str) -> tuple[str, bool]:
    """Push to a folder of this machine; ``prefix`` runs the receiver."""
    return transfer(collect(path), Remote(prefix or HERE, f"{claim}/{WHERE.path}"), WHERE, console())


def content(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def documented_digest(folder: Path) -> str:
    """The digest by the command line of docs/source.md."""
    page = (ROOT / "docs/source.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"```sh\n(find .*?)```", page, re.DOTALL)
    return subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True, check=True).stdout[:64]


# What is sent -------------------------------------------------------------------------------------------------------


def test_the_claim_has_the_files_and_the_digest_is_that_of_the_source_job(model: Path, claim: Path) -> None:
    sha256, replaced = sent(model, claim)
    assert not replaced
    assert content(claim / "team/xor") == MODEL
    hashes = {name: sha256_of(SourceFile(name, model / name)) for name in MODEL}
    assert sha256 == digest_of(hashes, single=False)
    assert sha256 == documented_digest(model) == documented_digest(claim / "team/xor")


def test_everybody_may_read_what_was_pushed(model: Path, claim: Path) -> None:
    (model / "model.py").chmod(0o600)
    sent(model, claim)
    assert (claim / "team/xor/model.py").stat().st_mode & 0o777 == 0o644
    assert (claim / "team/xor/data").stat().st_mode & 0o555 == 0o555
    assert (claim / "team/xor").stat().st_mode & 0o555 == 0o555


def test_a_second_push_replaces_the_first(model: Path, claim: Path) -> None:
    first, _ = sent(model, claim)
    (model / "model.py").write_text("# new\n")
    (model / "data/one.txt").unlink()
    second, replaced = sent(model, claim)
    assert replaced
    assert second != first
    assert content(claim / "team/xor") == {"model.py": "# new\n", "data/.hidden": "2", "größe.txt": "3"}
    assert [path.name for path in (claim / "team").iterdir()] == ["xor"], "nothing temporary is left"


def test_a_file_becomes_a_folder_with_that_file(model: Path, claim: Path) -> None:
    sent(model / "model.py", claim)
    assert content(claim / "team/xor") == {"model.py": MODEL["model.py"]}


def test_a_large_file_arrives_whole(tmp_path: Path, claim: Path) -> None:
    large = tmp_path / "large.bin"
    large.write_bytes(os.urandom(5_000_001))
    sent(large, claim)
    assert (claim / "team/xor/large.bin").read_bytes() == large.read_bytes()


# What goes wrong ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "damage",
    ["head -c 700 | ", "head -c 1024 | ", "tr g b | ", "true | "],
    ids=["cut", "at a file's end", "changed", "none"],
)
def test_a_broken_push_leaves_what_was_there(model: Path, claim: Path, damage: str) -> None:
    write(claim / "team/xor", {"old.py": "old"})
    broken = ("sh", "-c", f'case "$*" in *receive*) {damage} "$@";; *) "$@";; esac', "sh", *HERE)
    with pytest.raises(PushError, match="nothing on the claim was changed"):
        sent(model, claim, *broken)
    assert content(claim / "team") == {"xor/old.py": "old"}
    assert [path.name for path in (claim / "team").iterdir()] == ["xor"], "nothing temporary is left"


def test_a_file_that_shrinks_while_it_is_sent_is_an_error(model: Path, claim: Path) -> None:
    remote = Remote(HERE, str(claim / "xor"))
    with pytest.raises(PushError, match=r"model\.py cannot be sent: .*; push again"):
        remote.send([PushedFile("model.py", model / "model.py", 1000)], "0" * 64, lambda _: None)
    assert not (claim / "xor").exists()


def test_too_little_room_is_said_before_anything_is_sent(model: Path, claim: Path) -> None:
    with pytest.raises(
        PushError, match=r"pvc://models/team/xor has no room: the files need 16\.4 kB, and the claim has 10 b"
    ):
        sent(model, claim, "sh", "-c", """echo '{"free": 10}'""", "sh")


def test_a_folder_that_cannot_be_written_is_named(model: Path, claim: Path) -> None:
    (claim / "team").write_text("a file")
    with pytest.raises(PushError, match=r"File exists.*team"):
        sent(model, claim)


@pytest.mark.parametrize(
    "answer",
    ["echo junk", "echo '{}'", """echo '{"free": "10"}'""", """echo '{"free": 1e999}'""", "head -c 9000000 /dev/zero"],
)
def test_a_strange_answer_is_an_error(model: Path, claim: Path, answer: str) -> None:
    with pytest.raises(PushError, match="the pod gave no valid answer"):
        sent(model, claim, "sh", "-c", answer, "sh")


def test_only_the_last_words_of_a_failed_pod_are_kept(model: Path, claim: Path) -> None:
    with pytest.raises(PushError, match="the last words; nothing on the claim was changed") as error:
        sent(model, claim, "sh", "-c", "head -c 9000000 /dev/zero >&2; echo the last words >&2; exit 3", "sh")
    assert len(str(error.value)) < 5000


def test_without_kubectl_the_error_names_it(model: Path, claim: Path) -> None:
    with pytest.raises(PushError, match="no-kubectl is not on the PATH"):
        sent(model, claim, "no-kubectl")


def test_what_a_killed_pod_left_is_deleted_and_what_a_running_one_writes_is_not(model: Path, claim: Path) -> None:
    write(claim / "team", {".push-old/new/x": "", ".push-young/new/x": ""})
    os.utime(claim / "team/.push-old", (0, 0))
    sent(model, claim)
    assert {path.name for path in (claim / "team").iterdir()} == {"xor", ".push-young"}


# Which files --------------------------------------------------------------------------------------------------------


def test_what_no_model_needs_is_left_out(model: Path) -> None:
    write(
        model,
        {
            ".git/config": "",
            "data/__pycache__/x.pyc": "",
            ".DS_Store": "",
            "..data/x": "",
            "lost+found/x": "",
            ".triton-operator/x": "",
        },
    )
    found = collect(model)
    assert {file.name for file in found.files} == set(MODEL)
    assert found.left_out == ("..data", ".DS_Store", ".git", ".triton-operator", "data/__pycache__", "lost+found")


def test_links_are_followed_only_inside_the_folder(model: Path, claim: Path) -> None:
    (model / "also.py").symlink_to("model.py")
    (model / "also").symlink_to("data")
    (model / "everything").symlink_to("/")
    (model / "broken").symlink_to("nothing")
    (model / "data/circle").symlink_to("..")
    os.mkfifo(model / "pipe")
    found = collect(model)
    assert found.left_out == (
        "also/circle (a link to a folder that contains it)",
        "broken (a broken link)",
        "data/circle (a link to a folder that contains it)",
        "everything (a link to /, outside the folder)",
        "pipe (neither a file nor a folder)",
    )
    sent(model, claim)
    also = {"also.py": MODEL["model.py"], "also/one.txt": "1", "also/.hidden": "2"}
    assert content(claim / "team/xor") == MODEL | also
    assert digest(found.files, lambda _: None) == documented_digest(claim / "team/xor")


def test_links_of_a_hub_s_cache_are_followed(tmp_path: Path, claim: Path) -> None:
    """As huggingface_hub keeps a model: the files of a revision are links to blobs."""
    cache = tmp_path / "models--me--net"
    snapshot = cache / "snapshots/0123"
    write(cache / "blobs", {"aa": "weights", "bb": "def get_model(): ..."})
    (snapshot / "sub").mkdir(parents=True)
    (snapshot / "model.safetensors").symlink_to("../../blobs/aa")
    (snapshot / "sub/model.py").symlink_to("../../../blobs/bb")
    sent(snapshot, claim)
    assert content(claim / "team/xor") == {"model.safetensors": "weights", "sub/model.py": "def get_model(): ..."}
    (snapshot / "passwords").symlink_to("/etc/passwd")
    with pytest.raises(FolderError, match="passwords is a link to /etc/passwd, outside the folder"):
        collect(snapshot)


@pytest.mark.parametrize("name", ["net.onnx", "data/net.onnx.data", "model.safetensors", "helper.py"])
def test_a_file_that_a_link_outside_leads_to_is_never_left_out(model: Path, tmp_path: Path, name: str) -> None:
    write(tmp_path, {"elsewhere": "weights"})
    (model / name).symlink_to(tmp_path / "elsewhere")
    words = f"{name} is a link to {tmp_path}/elsewhere, outside the folder: copy the file into the folder"
    with pytest.raises(FolderError, match=re.escape(words)):
        collect(model)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_a_link_to_a_device_is_left_out_unread(model: Path, device: str) -> None:
    (model / "a.py").symlink_to(device)
    (left,) = collect(model).left_out
    assert left.startswith(f"a.py (a link to {device}")
    assert "a.py" not in parse(model)


def test_links_that_lead_to_each_other_are_broken(model: Path) -> None:
    (model / "a.py").symlink_to("b.py")
    (model / "b.py").symlink_to("a.py")
    assert collect(model).left_out == ("a.py (a broken link)", "b.py (a broken link)")
    assert sorted(parse(model)) == ["model.py"]


def test_what_is_left_out_is_said_within_limits() -> None:
    lines = left_out(Files((), tuple(map(str, range(13)))))
    assert lines[0] == "left out: 0"
    assert lines[-1] == "left out: 3 more"
    assert len(lines) == 11


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({".git/config": ""}, "holds no file to push"),
        ({"a\x1b[2J": ""}, "control character"),
        (None, "neither a folder"),
    ],
)
def test_a_folder_that_cannot_be_pushed_says_why(tmp_path: Path, files: dict[str, str] | None, words: str) -> None:
    if files is not None:
        write(tmp_path / "model", files)
    with pytest.raises(FolderError, match=words):
        collect(tmp_path / "model")


# Where to -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("uri", ["pvc://models/a/b.c_d", "pvc://models/a/b.c_d/"])
def test_a_target_is_a_folder_on_a_claim(uri: str) -> None:
    assert target(uri) == Target("models", "a/b.c_d")
    assert target(uri).uri == "pvc://models/a/b.c_d"


@pytest.mark.parametrize(
    "uri",
    ["pvc://models", "pvc://models/", "pvc://models/../x", "pvc://models/.triton-operator", "pvc://Models/x",
     "configmap://models", "models/x", "pvc://models//x", "pvc://models/x\n"],
)  # fmt: skip
def test_another_target_is_refused(uri: str) -> None:
    with pytest.raises(PushError, match="name a folder as pvc://CLAIM/PATH"):
        target(uri)


def test_the_pod_gets_the_program_as_it_is() -> None:
    (container,) = pod("push", "models", "image")["spec"]["containers"]
    (variable,) = container["env"]
    assert variable["value"] == inspect.getsource(receiver)
    assert "$" not in variable["value"], "Kubernetes replaces $$ and $(NAME)"


# The command --------------------------------------------------------------------------------------------------------


class LocalClaims(Claims):
    """Claims that are folders of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.namespace = "here"
        self.images: list[str] = []

    def converter_image(self) -> str:
        return "converter"

    def make(self, name: str, size: str, storage_class: str) -> bool:
        missing = not (self.folder / name).exists()
        (self.folder / name).mkdir(exist_ok=True)
        return missing

    @contextmanager
    def opened(self, target: Target, image: str, say: object) -> Iterator[Remote]:
        self.images.append(image)
        yield Remote(HERE, str(self.folder / target.claim / target.path))


def installed(operators: dict[str, str], objects: tuple[str, ...] = ()) -> Claims:
    """Claims of a cluster with labelled Deployments, by their namespaces, and objects with images in their status."""

    def deployment(namespace: str, image: str) -> dict[str, Any]:
        container = {"env": [{"name": "LEASE"}, {"name": "CONVERTER_IMAGE", "value": image}]}
        spec = {"template": {"spec": {"containers": [{}, container]}}}
        return {"metadata": {"namespace": namespace, "name": "operator"}, "spec": spec}

    cluster = SimpleNamespace(
        namespace="vision",
        operators=lambda selector: [deployment(*each) for each in operators.items()],
        deployments=lambda: [
            {"metadata": {"name": f"object-{number}"}, "status": {"images": {"converter": image}}}
            for number, image in enumerate(objects)
        ],
    )
    return Claims(cast(Cluster, cluster))


GOOD, EVIL = "example/converter:1", "registry.evil/exfiltrate:1"


@pytest.mark.parametrize(
    ("operators", "objects"),
    [
        ({"triton-operator": GOOD}, ()),
        ({"triton-operator": GOOD, "triton-operator-2": GOOD}, ("example/converter:0",)),
        ({}, (GOOD, GOOD)),
        ({"a-neighbour": EVIL, "triton-operator": GOOD}, (GOOD,)),
    ],
)
def test_the_image_is_the_one_that_all_name(operators: dict[str, str], objects: tuple[str, ...]) -> None:
    assert installed(operators, objects).converter_image() == GOOD


@pytest.mark.parametrize("objects", [(), (GOOD, "example/converter:0")])
def test_a_deployment_of_a_neighbour_does_not_choose_the_image(objects: tuple[str, ...], attack: Attack) -> None:
    with pytest.raises(PushError) as caught:
        installed({"a-neighbour": EVIL, "triton-operator": GOOD}, objects).converter_image()
    assert "name different converter images (a-neighbour/operator, triton-operator/operator)" in str(caught.value)
    assert EVIL not in str(caught.value)
    assert "--image IMAGE" in str(caught.value)
    attack("author of a namespace", "the image of a push from another namespace", str(caught.value))


def test_a_push_says_what_it_makes_replaces_and_leaves_out(model: Path, tmp_path: Path) -> None:
    write(model, {".git/config": ""})
    claims, out = LocalClaims(tmp_path), console()
    pushed = push(claims, model, "pvc://models/xor/", Options(), out)
    assert pushed.uri == "pvc://models/xor"
    assert pushed.sha256 == documented_digest(tmp_path / "models/xor")
    assert said(out).splitlines() == [
        "left out: .git",
        "made PersistentVolumeClaim models of 10Gi in namespace here",
        "pushed 4 files, 24 bytes",
    ]
    again = console()
    assert push(claims, model, "pvc://models/xor", Options(image="mine"), again).replaced
    assert said(again).splitlines() == ["left out: .git", "pushed 4 files, 24 bytes, in the place of what was there"]
    assert claims.images == ["converter", "mine"]
