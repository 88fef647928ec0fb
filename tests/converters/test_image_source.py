"""Images as sources: our own, KServe's modelcars, and those that nobody should unpack."""

import gzip
import io
import json
import tarfile
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.conftest import Attack
from tests.converters import test_published_image
from tests.converters.downloaded import KEY, files
from tests.converters.published import EMPTY, FILES
from tests.converters.registry_server import Registry, sha256
from tests.converters.test_published_image import NAME, models
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import SourceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import SourceResult
from triton_converters.stages import source

__all__ = ["models"]
CONFIG = "application/vnd.oci.image.config.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
TAR = "application/vnd.oci.image.layer.v1.tar"
DIGITS = {"models/digits/config.pbtxt": b'name: "digits"', "models/digits/1/model.onnx": b"onnx" * 1000}


def tar(content: Mapping[str, bytes], *others: tarfile.TarInfo) -> bytes:
    """A layer; a name that ends with a slash is a folder."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in content.items():
            entry = tarfile.TarInfo(name.rstrip("/"))
            entry.type = tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        for each in others:
            archive.addfile(each)
    return buffer.getvalue()


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return entry


def push(models: Registry, *layers: bytes, media: str = TAR, **config: str) -> str:
    """Push an image of layers as v1; return its digest."""
    told = {"architecture": "amd64", "os": "linux", **config}
    body = models._blob(json.dumps(told).encode())
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": CONFIG, "digest": sha256(body), "size": len(body)},
        "layers": [{"mediaType": media, "digest": sha256(models._blob(each)), "size": len(each)} for each in layers],
    }
    return models.push_manifest("v1", json.dumps(manifest).encode())


def download(models: Registry, reference: str = ":v1", name: str = "acme/ocr", **fields: Any) -> SourceResult:
    uri = f"oci://{models.host}/{name}{reference}"
    return source.run(SourceRequest(KEY, uri, "", **{"sha256": "", **fields}))


def failure(models: Registry, **fields: Any) -> StageError:
    with pytest.raises(StageError) as caught:
        download(models, **fields)
    assert not list((layout.ROOT / "sources").glob("[0-9a-f]*"))
    return caught.value


def test_what_was_published_is_a_source(models: Registry) -> None:
    result = test_published_image.run(models, samples=True)
    found = download(models, name=NAME)
    assert files(found) == FILES
    assert found.resolved == result.digest
    assert (layout.source_directory(found.digest) / EMPTY).is_dir()


@pytest.mark.parametrize("pack", [bytes, lambda content: gzip.compress(content, mtime=0)])
def test_a_modelcar_is_a_source(models: Registry, pack: Callable[[bytes], bytes]) -> None:
    """The rest of an image may be anything, such as the links of a distribution."""
    system = tar({"bin/sh": b"sh"}, special("bin/ls", tarfile.SYMTYPE, "sh"), special("dev/null", tarfile.CHRTYPE))
    first, second = {"./models/": b"", "./models/digits/config.pbtxt": b"a"}, {"models/digits/1/model.onnx": b"b"}
    push(models, *map(pack, (system, tar(first), tar(second))))
    assert files(download(models)) == {"digits/config.pbtxt": b"a", "digits/1/model.onnx": b"b"}


def test_only_what_include_names_is_taken(models: Registry) -> None:
    push(models, tar(DIGITS))
    assert set(files(download(models, include=("*.onnx",)))) == {"digits/1/model.onnx"}


def test_of_an_index_it_is_the_image_for_amd64(models: Registry) -> None:
    digest = push(models, tar(DIGITS))
    manifest = {"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest, "size": 1}
    other = push(models, tar({"models/digits/config.pbtxt": b"of ARM"}), architecture="arm64")
    manifests = [
        manifest | {"digest": other, "platform": {"os": "linux", "architecture": "arm64"}},
        manifest | {"platform": {"os": "linux", "architecture": "amd64"}},
    ]
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}
    models.push_manifest("v2", json.dumps(index).encode(), INDEX)
    assert len(files(download(models, ":v2"))) == len(DIGITS)


HOSTILE: dict[str, tuple[bytes, ...]] = {
    "a link": (tar(DIGITS, special("models/digits/link", tarfile.SYMTYPE, "/etc/passwd")),),
    "a hard link": (tar(DIGITS, special("models/digits/link", tarfile.LNKTYPE, "etc/passwd")),),
    "a device": (tar(DIGITS, special("models/digits/null", tarfile.CHRTYPE)),),
    "a folder that is a link": (tar({"etc/": b""}, special("models", tarfile.SYMTYPE, "etc")), tar(DIGITS)),
    "a removed file": (tar(DIGITS), tar({"models/digits/.wh.config.pbtxt": b""})),
    "a removed folder": (tar(DIGITS), tar({".wh.models": b""})),
    "all removed": (tar(DIGITS), tar({".wh..wh..opq": b""})),
    "a replaced file": (tar(DIGITS), tar({"models/digits/config.pbtxt": b"other"})),
    "a file for a folder": (tar(DIGITS), tar({"models/digits/1": b""})),
    "a folder for a file": (tar(DIGITS), tar({"models/digits/config.pbtxt/x": b""})),
    "above": (tar({"models/../../escape": b""}),),
    "around": (tar({"x/../models/digits/extra": b""}),),
    "absolute": (tar({"/models/digits/config.pbtxt": b""}),),
    "no tar": (b"no tar at all" * 100,),
    "a cut tar": (tar(DIGITS)[:3000],),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_layer_that_may_be_read_in_two_ways_is_refused(models: Registry, case: str, attack: Attack) -> None:
    push(models, *HOSTILE[case])
    error = failure(models)
    assert error.reason is Reason.SOURCE_INVALID
    attack("server of a source", f"a layer of an image with {case}", f"{error.reason}: {error.message[:60]}")


@pytest.mark.parametrize("config", [{"architecture": "arm64"}, {"os": "windows"}, {"architecture": ""}])
def test_an_image_of_another_platform_is_refused(models: Registry, config: dict[str, str]) -> None:
    push(models, tar(DIGITS), **config)
    assert "another platform" in failure(models).message


def test_layers_of_zstd_are_refused(models: Registry) -> None:
    push(models, tar(DIGITS), media=f"{TAR}+zstd")
    assert failure(models).reason is Reason.SOURCE_INVALID


def test_an_image_without_models(models: Registry) -> None:
    push(models, tar({"app/main.py": b""}))
    assert failure(models).reason is Reason.SOURCE_NOT_FOUND


def test_a_layer_that_is_not_what_its_digest_says_is_refused(models: Registry) -> None:
    layer = tar(DIGITS)
    push(models, layer)
    models.path(layer).write_bytes(layer.replace(b"onnxonnx", b"evilevil"))
    assert failure(models).reason is Reason.DIGEST_MISMATCH


def test_a_configuration_that_is_not_what_its_digest_says_is_refused(models: Registry) -> None:
    push(models, tar(DIGITS))
    config = json.dumps({"architecture": "amd64", "os": "linux"}).encode()
    models.path(config).write_bytes(config.replace(b"linux", b"Linux"))
    assert failure(models).reason is Reason.DIGEST_MISMATCH
