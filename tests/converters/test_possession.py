"""What an object gets of the files that another one published on the same claim: none that it has not had itself."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import Attack
from tests.converters.downloaded import download
from tests.converters.https_server import Server
from tests.converters.test_earlier_try import Breaking, Registry, Web
from triton_converters import __main__ as program
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode, ReferenceRequest, SourceRequest
from triton_converters.contract.envelope import Outcome
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.fetch import patience
from triton_converters.stages import source

FILES = {"secret.txt": b"of the owner alone", "model.py": b"import secret\n"}
CODE = ModelCode("pyt", Entrypoint("model.py", {}), 1)
Become = Callable[..., None]


@pytest.fixture
def become(server: Server, monkeypatch: pytest.MonkeyPatch) -> Become:
    """Makes this process a Job of an object of that name."""
    monkeypatch.setattr(patience, "PAUSES", ())

    def become(name: str, namespace: str = "vision") -> None:
        monkeypatch.setenv(layout.OBJECT, name)
        monkeypatch.setenv(layout.CLAIM, f"{namespace}/models")

    become("owner")
    return become


def published(*files: str, sha256: str = "") -> str:
    """Publish files that are mounted, and return the digest: of one file its own, of more that of the folder."""
    shutil.rmtree(layout.SOURCE_MOUNT, ignore_errors=True)
    layout.SOURCE_MOUNT.mkdir()
    for name in files:
        (layout.SOURCE_MOUNT / name).write_bytes(FILES[name])
    path = files[0] if len(files) == 1 else ""
    return source.run(SourceRequest("0123456789abcdef", f"pvc://models/{path}", path, sha256)).digest


def answer(*arguments: str) -> Outcome | None:
    """What a container of a Job ends with; None: with success, and nothing to say."""
    log = layout.MOUNT / "message"
    log.unlink(missing_ok=True)
    program.main(arguments)
    return Outcome.from_json(log.read_text()) if log.exists() else None


@pytest.mark.parametrize("files", [("secret.txt",), ("secret.txt", "model.py")], ids=["a file", "a folder"])
@pytest.mark.parametrize("name", ["secret.txt", "other.bin"])
@pytest.mark.parametrize("other", [("other", "vision"), ("owner", "blue")], ids=["an object", "a namespace"])
def test_who_knows_a_digest_gets_nothing_without_the_files(
    server: Server, become: Become, files: tuple[str, ...], name: str, other: tuple[str, str], attack: Attack
) -> None:
    digest = published(*files)
    become(*other)
    server.behaviour.hub = Breaking(Web(), name)
    with pytest.raises(StageError) as caught:
        download(server.uri(name), sha256=digest)
    assert caught.value.reason is Reason.SOURCE_UNREACHABLE
    attack("author of an object", "another object's files on a shared claim, by their digest", caught.value.message)


def test_a_manifest_that_names_digests_is_no_proof_either(server: Server, become: Become, attack: Attack) -> None:
    """The attacker's registry has the list of another one's files, and none of the files."""
    published(*FILES)
    become("other")
    server.behaviour.hub = Breaking(Registry(FILES), "/blobs/")
    with pytest.raises(StageError) as caught:
        download(f"oci://{server.host}/acme/ocr:v1")
    assert caught.value.reason is Reason.SOURCE_UNREACHABLE
    attack("author of an object", "another object's files, by a registry that lists them", caught.value.message)


def test_what_an_object_had_itself_it_need_not_download_again(server: Server, become: Become) -> None:
    digests = [published("secret.txt"), published(*FILES)]
    server.behaviour.hub = Breaking(Registry(FILES), "/blobs/")
    assert download(server.uri("secret.txt"), sha256=digests[0]).digest == digests[0]
    assert download(server.uri("anything.bin"), sha256=digests[1]).digest == digests[1]
    assert download(f"oci://{server.host}/acme/ocr:v1").digest == digests[1]


def test_who_has_the_files_too_shares_the_copy_on_the_claim(become: Become) -> None:
    digest = published(*FILES)
    become("other")
    assert published(*FILES) == digest
    assert len(list((layout.ROOT / "sources").iterdir())) == 1


@pytest.mark.parametrize("field", ["source", "weights", "data"])
@pytest.mark.parametrize("is_replayed", [False, True])
def test_a_record_that_names_another_ones_files_hands_them_to_no_user_code(
    become: Become, monkeypatch: pytest.MonkeyPatch, field: str, is_replayed: bool, attack: Attack
) -> None:
    """Who may edit the results ConfigMap may write any digest into it, and the image of `run` may be the author's."""
    secret = published("secret.txt")
    become("other")
    digests: dict[str, Any] = {field: secret}
    request = replace(ReferenceRequest("0" * 16, published("model.py"), CODE, None, 8, needs_labels=False), **digests)
    monkeypatch.setenv("TERMINATION_LOG", str(layout.MOUNT / "message"))
    if is_replayed:
        monkeypatch.setattr(program, "_published", lambda *_: object())
    outcome = answer("prepare", "reference", request.to_json())
    assert outcome is not None
    assert (outcome.reason, secret in outcome.message) == (Reason.INPUT_MISSING, True)
    attack("who may edit `<name>-results`", f"another object's files as its own {field}", outcome.message)
    become("owner")
    published("model.py")
    assert answer("prepare", "reference", request.to_json()) is None


@pytest.mark.parametrize(
    ("folder", "reason"),
    [
        ("data/digits", None),
        ("link", Reason.SOURCE_INVALID),
        ("link/sources", Reason.SOURCE_INVALID),
        ("data/link", Reason.SOURCE_INVALID),
        ("absent", Reason.SOURCE_NOT_FOUND),
    ],
)
def test_before_user_code_gets_data_of_a_claim_it_is_known_where_the_folder_leads(
    become: Become, monkeypatch: pytest.MonkeyPatch, folder: str, reason: Reason | None, attack: Attack
) -> None:
    """The kubelet follows a link of the volume, and makes a folder that is missing."""
    monkeypatch.setattr(layout, "DATA_MOUNT", layout.MOUNT)
    monkeypatch.setenv(layout.DATASET, f"pvc://models/{folder}")
    monkeypatch.setenv("TERMINATION_LOG", str(layout.MOUNT / "message"))
    (layout.MOUNT / "data" / "digits").mkdir(parents=True)
    for link in ("link", "data/link"):
        (layout.MOUNT / link).symlink_to(layout.ROOT)
    request = ReferenceRequest("0" * 16, published("model.py"), CODE, None, 8, needs_labels=False)
    outcome = answer("prepare", "reference", request.to_json())
    assert (outcome and outcome.reason) == reason
    attack("author of an object", f"the files of others, by the dataset {folder}", outcome.message if outcome else "")


@pytest.mark.parametrize(("link", "target"), [("latest", "."), ("data/all", ".."), ("data/a/b", "../..")])
def test_a_link_to_the_whole_claim_is_no_folder(
    become: Become, monkeypatch: pytest.MonkeyPatch, link: str, target: str, attack: Attack
) -> None:
    """The kubelet follows a link of a subPath inside the volume."""
    monkeypatch.setattr(layout, "DATA_MOUNT", layout.MOUNT)
    monkeypatch.setenv(layout.DATASET, f"pvc://models/{link}")
    monkeypatch.setenv("TERMINATION_LOG", str(layout.MOUNT / "message"))
    (layout.MOUNT / link).parent.mkdir(parents=True, exist_ok=True)
    (layout.MOUNT / link).symlink_to(target)
    outcome = answer(
        "prepare",
        "reference",
        ReferenceRequest("0" * 16, published("model.py"), CODE, None, 8, needs_labels=False).to_json(),
    )
    assert outcome is not None
    assert "leads to the whole volume" in outcome.message
    attack("author of an object", "a whole claim, by a link to it as the dataset", outcome.message)
