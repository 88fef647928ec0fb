"""What an earlier try of a download left on the claim never becomes part of a source, whatever the scheme."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.converters.cloud_server import Cloud
from tests.converters.downloaded import KEY, download, files
from tests.converters.https_server import Answering, Server
from tests.converters.hub_server import Hub
from tests.converters.registry_server import archive, layer, manifest, sha256
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.fetch import hf, patience

MODEL, OTHER = b"import colorsys\n", b"print('nobody reviewed this')\n"
SOURCE = {"model.py": MODEL, "nested/zz.bin": bytes(1000)}


class Registry:
    """A registry that anybody may read, with one artifact: files, or a folder in an archive."""

    def __init__(self, contents: Mapping[str, bytes], folder: str = "") -> None:
        blobs = {folder: archive(contents)} if folder else contents
        self.blobs = {sha256(content): content for content in blobs.values()}
        self.manifest = manifest(*(layer(name, content, bool(folder)) for name, content in blobs.items()))

    def answer(self, path: str, authorization: str) -> tuple[int, dict[str, str], bytes]:
        if path == "/v2/acme/ocr/manifests/v1":
            return 200, {}, self.manifest
        return 200, {"ETag": '"e"'}, self.blobs[path.removeprefix("/v2/acme/ocr/blobs/")]


class Web:
    """A server with one file."""

    def answer(self, path: str, authorization: str) -> tuple[int, dict[str, str], bytes]:
        return 200, {"ETag": '"e"'}, MODEL


@dataclass
class Breaking:
    """A server that does not answer requests for paths that hold this text."""

    server: Answering
    text: str

    def answer(self, path: str, authorization: str) -> tuple[int, dict[str, str], bytes]:
        return (503, {}, b"") if self.text in unquote(path) else self.server.answer(path, authorization)


@pytest.fixture(autouse=True)
def one_try(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PAUSES", ())
    monkeypatch.setenv(hf.ENDPOINT, f"https://{server.host}")
    layout.CREDENTIALS_MOUNT.mkdir()


def a_cloud(scheme: str, server: Server, objects: dict[str, bytes]) -> Cloud:
    """A bucket of one of the clouds, with a Secret that says where it is."""
    account = {
        "gcs_base_url": f"https://{server.host}", "disable_oauth": True, "private_key": "", "private_key_id": "",
        "client_email": "",
    }  # fmt: skip
    secret = {
        "s3": {"AWS_ENDPOINT_URL": f"https://{server.host}"},
        "gs": {"GOOGLE_APPLICATION_CREDENTIALS_JSON": json.dumps(account)},
        "azure": {"AZURE_STORAGE_ACCOUNT_NAME": "acme", "AZURE_STORAGE_ENDPOINT": f"https://{server.host}/acme"},
    }[scheme]
    for name, value in secret.items():
        (layout.CREDENTIALS_MOUNT / name).write_text(value)
    return Cloud(objects, "/acme/models" if scheme == "azure" else "/models")


def broken_off(uri: str, **fields: Any) -> Path:
    """Try once, in vain, and return the directory where the next try goes on."""
    with pytest.raises(StageError) as caught:
        download(uri, **fields)
    assert not caught.value.final
    return layout.ROOT / "sources" / f".tmp-{KEY}-download"


def a_server(case: str, server: Server) -> tuple[Answering, str, dict[str, bytes], str]:
    """Return a server, the URI of what it has, its files, and a text in the path of the one that comes last."""
    below = {f"ocr/{name}": content for name, content in SOURCE.items()}
    tables = {f"tables/{name}": content for name, content in SOURCE.items()}
    match case:
        case "https":
            return Web(), server.uri("model.py"), {"model.py": MODEL}, "model.py"
        case "hf":
            return (
                Hub(dict(SOURCE)),
                "hf://acme/ocr",
                SOURCE,
                "/resolve/0123456789abcdef0123456789abcdef01234567/nested",
            )
        case "oci":
            return Registry(SOURCE), f"oci://{server.host}/acme/ocr:v1", SOURCE, sha256(SOURCE["nested/zz.bin"])
        case "oci with a folder":
            return Registry(tables, "tables"), f"oci://{server.host}/acme/ocr:v1", tables, "/blobs/"
        case "one object":
            return a_cloud("s3", server, below), "s3://models/ocr/model.py", {"model.py": MODEL}, "model.py"
        case _:
            return a_cloud(case, server, below), f"{case}://models/ocr", SOURCE, "nested/zz.bin"


@pytest.mark.parametrize("planted", ["colorsys.py", "nested/colorsys.py", "..data/x.py", "lost+found/x.py", "empty/"])
@pytest.mark.parametrize("case", ["https", "hf", "oci", "oci with a folder", "s3", "gs", "azure", "one object"])
def test_only_what_the_server_lists_is_published(server: Server, case: str, planted: str) -> None:
    has, uri, expected, last = a_server(case, server)
    server.behaviour.hub = Breaking(has, last)
    left = broken_off(uri) / "files" / planted
    left.mkdir(parents=True, exist_ok=True) if planted.endswith("/") else left.parent.mkdir(parents=True, exist_ok=True)
    if not planted.endswith("/"):
        left.write_bytes(OTHER)
    server.behaviour.hub = has
    result = download(uri)
    assert files(result) == expected
    published = layout.source_directory(result.digest)
    assert not [each for each in published.rglob("*") if each.is_dir() and not list(each.iterdir())]


@pytest.mark.parametrize("case", ["hf", "oci", "oci with a folder", "s3", "gs", "azure"])
def test_files_that_the_spec_no_longer_includes_are_not_published(server: Server, case: str) -> None:
    has, uri, expected, last = a_server(case, server)
    server.behaviour.hub = Breaking(has, last)
    broken_off(uri)
    server.behaviour.hub = has
    wanted = next(name for name in expected if name.endswith("zz.bin"))
    assert files(download(uri, include=("*.bin",))) == {wanted: expected[wanted]}


@pytest.mark.parametrize("scheme", ["s3", "gs", "azure"])
@pytest.mark.parametrize("unreviewed", ["colorsys.py", "model.py/colorsys.py"])
def test_an_object_that_was_a_folder_is_published_alone(server: Server, scheme: str, unreviewed: str) -> None:
    folder = {f"code/model.py/{unreviewed}": OTHER, "code/model.py/zz": b"12345"}
    has = a_cloud(scheme, server, folder)
    server.behaviour.hub = Breaking(has, "/zz")
    pin, uri = hashlib.sha256(MODEL).hexdigest(), f"{scheme}://models/code/model.py"
    place = broken_off(uri, sha256=pin)
    assert list(place.rglob("colorsys.py"))
    has.objects = {"code/model.py": MODEL}
    result = download(uri, sha256=pin)
    assert result.digest == pin
    assert files(result) == {"model.py": MODEL}


@pytest.mark.parametrize("scheme", ["s3", "gs", "azure"])
def test_a_folder_that_was_an_object_is_published_alone(server: Server, scheme: str) -> None:
    """The folder was there even earlier, so what came of it has the right version."""
    folder = {"code/zz/net.py": MODEL, "code/zz/z.bin": b"12345"}
    has, uri = a_cloud(scheme, server, dict(folder)), f"{scheme}://models/code/zz"
    server.behaviour.hub = Breaking(has, "/z.bin")
    place = broken_off(uri)
    # What a Job leaves that is killed before it has published the object.
    (place / "files" / "zz").write_bytes(OTHER)
    server.behaviour.hub = has
    assert files(download(uri)) == {"net.py": MODEL, "z.bin": b"12345"}


def test_names_that_the_claim_does_not_tell_apart_are_refused(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on exFAT: the second file takes the place of the first one."""
    server.behaviour.hub = Hub({"model.py": MODEL, "MODEL.py": OTHER})
    real = hf.download

    def without_case(url: str, place: Path, target: Path, *others: Any) -> str:
        return real(url, place, target.with_name(target.name.lower()), *others)

    monkeypatch.setattr(hf, "download", without_case)
    with pytest.raises(StageError, match=r"MODEL\.py of hf://acme/ocr .* tells apart") as caught:
        download("hf://acme/ocr")
    assert caught.value.reason is Reason.SOURCE_INVALID
    assert not list((layout.ROOT / "sources").glob("*"))
