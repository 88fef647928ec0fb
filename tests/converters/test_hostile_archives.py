"""Archives of a hostile registry: what Python's tarfile stumbles over, and what costs memory."""

import gzip
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.converters.downloaded import download
from tests.converters.https_server import Server
from tests.converters.registry_server import archive, layer, manifest, sha256
from tests.converters.test_earlier_try import Registry, one_try
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason

__all__ = ["one_try"]


def header(kind: bytes, size: int = 0, name: str = "tables/x") -> bytearray:
    entry = tarfile.TarInfo(name)
    entry.type, entry.size = kind, size
    return bytearray(entry.tobuf(tarfile.GNU_FORMAT))


def sparse_that_ends() -> bytes:
    block = header(tarfile.GNUTYPE_SPARSE)
    block[482] = 1
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def many_extended_headers() -> bytes:
    record = b"13 comment=a\n"
    one = bytes(header(tarfile.XHDTYPE, len(record), "x")) + record + bytes(512 - len(record))
    return one * 1500 + bytes(header(tarfile.REGTYPE)) + bytes(1024)


@pytest.mark.parametrize("make", [sparse_that_ends, many_extended_headers])
def test_an_archive_that_tarfile_stumbles_over_is_refused_and_removed(
    server: Server, make: Callable[[], bytes]
) -> None:
    has = Registry({})
    content = make()
    has.manifest, has.blobs = manifest(layer("tables", content, True)), {sha256(content): content}
    server.behaviour.hub = has
    with pytest.raises(StageError) as refused:
        download(f"oci://{server.host}/acme/ocr:v1")
    assert refused.value.reason is Reason.SOURCE_INVALID
    assert not [path for path in (layout.ROOT / "sources").rglob("*") if path.is_file()]


PROGRAM = """
import resource, sys
from collections.abc import Callable
from pathlib import Path
from triton_converters.fetch import tar_folder
resource.setrlimit(resource.RLIMIT_AS, (2**29, 2**29))  # 512 MiB
try:
    tar_folder.unpack(Path(sys.argv[1]), Path(sys.argv[2]), "tables", ())
except BaseException as error:
    print(type(error).__name__)
"""


@pytest.mark.parametrize("kind", ["a map of a sparse file", "comments of files"])
def test_a_small_archive_takes_no_memory(tmp_path: Path, kind: str) -> None:
    (tmp_path / "root" / "to").mkdir(parents=True)
    tar = tmp_path / "tar"

    def pax(**fields: str) -> bytes:
        text = b""
        for name, value in fields.items():
            line = f"{name.replace('__', '.')}={value}\n".encode()
            size = len(line) + 2
            while len(str(size)) + 1 + len(line) != size:
                size = len(str(size)) + 1 + len(line)
            text += f"{size} ".encode() + line
        return bytes(header(tarfile.XHDTYPE, len(text), "x")) + text + bytes(-len(text) % 512)

    with gzip.open(tar, "wb") as file:
        if kind == "comments of files":
            for number in range(600):
                file.write(pax(comment="a" * 1_000_000) + bytes(header(tarfile.REGTYPE, 0, f"tables/{number}")))
        else:
            file.write(pax(GNU__sparse__major="1", GNU__sparse__minor="0", GNU__sparse__name="tables/x"))
            file.write(bytes(header(tarfile.REGTYPE, 2**30)) + b"1000000000000\n")
            for _ in range(60_000):
                file.write(b"999\n" * 256)
        file.write(bytes(1024))
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tar), str(tmp_path / "root" / "to")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "MemoryError" not in ended.stdout + ended.stderr, f"a layer of {tar.stat().st_size} bytes took 512 MiB"


def test_the_files_of_all_archives_are_counted(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triton_converters.fetch.oci.MOST_FILES", 5)
    monkeypatch.setattr("triton_converters.fetch.tar_folder.MOST_MEMBERS", 10)
    blobs = {f"t{number}": archive({f"t{number}/{each}": b"" for each in range(9)}) for number in range(5)}
    has = Registry({})
    has.manifest = manifest(*(layer(name, content, True) for name, content in blobs.items()))
    has.blobs = {sha256(content): content for content in blobs.values()}
    server.behaviour.hub = has
    with pytest.raises(StageError, match="more than 5 files"):
        download(f"oci://{server.host}/acme/ocr:v1")
