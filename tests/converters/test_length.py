"""A server that sends more than it said fills no claim, whatever the scheme; nor does a download without room."""

import errno
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import pytest

from tests.converters.downloaded import KEY, download, files
from tests.converters.https_server import Answering, Server
from tests.converters.test_earlier_try import SOURCE, a_server, one_try
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.fetch import patience

__all__ = ["one_try"]
CHUNK = 64 * 1024
ENDLESS = b"".join(b"%x\r\n%b\r\n" % (CHUNK, bytes(CHUNK)) for _ in range(100)) + b"0\r\n\r\n"
PLACE = f".tmp-{KEY}-download"


class Longer:
    """A server that sends 100 chunks in place of the file whose path holds a text."""

    def __init__(self, server: Answering, text: str, announced: bool) -> None:
        self.server, self.text, self.announced = server, text, announced

    def answer(self, path: str, authorization: str) -> tuple[int, dict[str, str], bytes]:
        status, headers, body = self.server.answer(path, authorization)
        if status != 200 or self.text not in unquote(path) or b"<" in body[:1] or b"{" in body[:1]:
            return status, headers, body
        length = {"Content-Length": str(len(body)) if self.announced else ""}
        return status, headers | length | {"Transfer-Encoding": "chunked"}, ENDLESS


CASES = ["https", "hf", "oci", "oci with a folder", "s3", "gs", "azure", "one object"]


@pytest.mark.parametrize(
    ("case", "announced"),
    [(case, True) for case in CASES] + [(case, False) for case in ("hf", "oci", "oci with a folder")],
)
def test_a_server_that_sends_more_than_it_said_is_stopped_at_once(server: Server, case: str, announced: bool) -> None:
    has, uri, expected, last = a_server(case, server)
    text = last.replace("/resolve/0123456789abcdef0123456789abcdef01234567/", "/cdn/")
    server.behaviour.hub = Longer(has, text, announced)
    with pytest.raises(StageError, match=r"goes on after the \d+ bytes that the server announced") as caught:
        download(uri)
    assert (caught.value.reason, caught.value.final) == (Reason.SOURCE_TRUNCATED, False)
    assert not list((layout.ROOT / "sources" / PLACE).glob("part*"))
    server.behaviour.hub = has
    assert files(download(uri)) == expected


@pytest.mark.parametrize("case", ["hf", "oci", "s3"])
def test_a_file_with_another_length_than_the_list_says_is_not_begun(server: Server, case: str) -> None:
    has, uri, _, _ = a_server(case, server)
    real = has.answer

    def longer(path: str, authorization: str) -> tuple[int, dict[str, str], bytes]:
        status, headers, body = real(path, authorization)
        return status, headers, body * 2 if body == SOURCE["nested/zz.bin"] else body

    server.behaviour.hub = type("Other", (), {"answer": staticmethod(longer)})()
    with pytest.raises(StageError, match=r"zz\.bin has 2000 bytes, but was listed with 1000") as caught:
        download(uri)
    assert (caught.value.reason, caught.value.final) == (Reason.SOURCE_TRUNCATED, False)
    assert not list((layout.ROOT / "sources" / PLACE).glob("part*"))


def test_a_full_claim_is_left_as_it_was(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows the length of a file that comes in chunks: the claim fills while it is written."""
    has, uri, _, last = a_server("https", server)
    server.behaviour.hub = Longer(has, last, False)
    monkeypatch.setattr(patience, "PAUSES", (0.01,))
    place = layout.ROOT / "sources" / PLACE
    (place / "files").mkdir(parents=True)
    (place / "part").symlink_to(Path("/dev/full"))
    with pytest.raises(OSError) as caught:
        download(uri)
    assert caught.value.errno == errno.ENOSPC
    assert list((layout.ROOT / "sources").iterdir()) == []


def test_a_download_without_room_for_the_rest_gives_up_what_came(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two downloads that each keep half of the claim would never end."""
    has, uri, expected, _ = a_server("https", server)
    place = layout.ROOT / "sources" / PLACE
    (place / "files").mkdir(parents=True)
    (place / "files" / "model.py").write_bytes(bytes(1000))
    server.behaviour.hub = has
    with monkeypatch.context() as full:
        full.setattr("triton_converters.fetch.partial.shutil.disk_usage", lambda path: SimpleNamespace(free=0))
        with pytest.raises(StageError) as caught:
            download(uri)
    assert (caught.value.reason, caught.value.final) == (Reason.STORAGE_FULL, False)
    assert list((layout.ROOT / "sources").iterdir()) == []
    assert files(download(uri)) == expected
