"""Downloads by the source stage, from real servers on loopback."""

import hashlib
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.converters.downloaded import with_secret
from tests.converters.https_server import HOST, TAG, Behaviour, Server, proxying, serving
from triton_converters.claim_store.digest import is_published
from triton_converters.claim_store.publish import LOCK
from triton_converters.contract import layout, uris
from triton_converters.contract.conversion_requests import SourceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.fetch import connection, progress
from triton_converters.stages import source

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "source.md"

KEY = "0123456789abcdef"
SECRET = "a-secret-that-nobody-else-may-read"


def download(uri: str, sha256: str = "") -> source.SourceResult:
    return source.run(SourceRequest(KEY, uri, "", sha256))


def failure(uri: str, sha256: str = "") -> StageError:
    with pytest.raises(StageError) as caught:
        download(uri, sha256)
    return caught.value


def left() -> list[str]:
    """What lies in the folder of sources."""
    return sorted(path.name for path in (layout.ROOT / "sources").glob("*"))


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_a_file_is_published_under_its_digest_with_the_servers_version(server: Server) -> None:
    content = server.behaviour.content
    result = download(server.uri())
    assert (result.digest, result.files, result.total_bytes) == (sha256(content), 1, len(content))
    assert result.resolved == TAG
    published = layout.source_directory(result.digest) / "ocr.onnx"
    assert published.read_bytes() == content
    assert published.stat().st_mode & 0o222 == 0
    assert left() == [result.digest]


def test_a_file_that_is_there_with_the_expected_digest_is_not_asked_for(server: Server) -> None:
    digest = sha256(server.behaviour.content)
    download(server.uri(), digest)
    assert len(server.behaviour.seen) == 1
    assert download(server.uri(), digest).digest == digest
    assert len(server.behaviour.seen) == 1
    # What somebody changed is downloaded anew.
    damaged = layout.source_directory(digest) / "ocr.onnx"
    damaged.chmod(0o644)
    damaged.write_bytes(b"other")
    assert download(server.uri(), digest).digest == digest
    assert damaged.read_bytes() == server.behaviour.content


@pytest.mark.parametrize("pinned", [True, False])
def test_the_same_content_may_have_two_names(server: Server, pinned: bool) -> None:
    pin = sha256(server.behaviour.content) if pinned else ""
    results = [download(server.uri(f"models/{name}.onnx"), pin) for name in "abab"]
    assert results[0].digest == sha256(server.behaviour.content)
    assert [each.digest for each in results[:2]] == [each.digest for each in results[2:]]
    for result, name in zip(results, "abab", strict=True):
        published = layout.source_directory(result.digest)
        assert [path.name for path in published.iterdir()] == [f"{name}.onnx"]
        assert is_published(published)
    assert len(server.behaviour.seen) == (2 if pinned else 4)


def test_a_file_without_announced_length_is_whole_at_the_end_of_its_chunks(server: Server) -> None:
    server.behaviour.content = b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"
    server.behaviour.headers = {"Content-Length": "", "Transfer-Encoding": "chunked"}
    result = download(server.uri())
    assert (layout.source_directory(result.digest) / "ocr.onnx").read_bytes() == b"hello world"


def test_chunks_without_an_end_are_truncated(server: Server) -> None:
    server.behaviour.content = b"5\r\nhello\r\n6\r\n wo"
    server.behaviour.headers = {"Content-Length": "", "Transfer-Encoding": "chunked"}
    assert failure(server.uri()).reason is Reason.SOURCE_TRUNCATED


def test_a_broken_connection_is_gone_on_with(server: Server) -> None:
    server.behaviour.breaks = [100_000, 200_000, 1, 300_000]
    result = download(server.uri())
    assert result.digest == sha256(server.behaviour.content)
    assert server.behaviour.ranges() == ["", "bytes=99999-", "bytes=299998-", "bytes=299998-", "bytes=599997-"]


def test_another_process_goes_on_where_a_killed_one_stopped(server: Server) -> None:
    server.behaviour.breaks = [100_000, 0, 0]
    assert not failure(server.uri()).final
    assert left() == [f".tmp-{KEY}-download"]
    server.behaviour.seen.clear()
    assert download(server.uri()).digest == sha256(server.behaviour.content)
    assert server.behaviour.ranges() == ["bytes=99999-"]
    assert left() == [sha256(server.behaviour.content)]


def another_version(has: Behaviour) -> None:
    has.content, has.tag = b"x" * 500_000, '"version-2"'


def no_version(has: Behaviour) -> None:
    has.tag = ""


def weak_version(has: Behaviour) -> None:
    has.tag = 'W/"version-1"'


def dishonest_ranges(has: Behaviour) -> None:
    has.honest_ranges = False


def a_shorter_file(has: Behaviour) -> None:
    has.content, has.tag, has.refuses_ranges = b"x" * 1000, '"version-2"', True


@pytest.mark.parametrize("change", [another_version, no_version, weak_version, dishonest_ranges, a_shorter_file])
def test_bytes_that_may_be_of_another_file_are_not_gone_on_with(
    server: Server, change: Callable[[Behaviour], None]
) -> None:
    if change in (no_version, weak_version):
        change(server.behaviour)
    server.behaviour.breaks = [100_000, 0, 0]
    failure(server.uri())
    change(server.behaviour)
    server.behaviour.breaks = []
    assert download(server.uri()).digest == sha256(server.behaviour.content)


def test_tries_are_counted_anew_while_they_bring_something(server: Server) -> None:
    server.behaviour.breaks = [100_000] * 8
    assert download(server.uri()).digest == sha256(server.behaviour.content)
    assert len(server.behaviour.seen) == 9


@pytest.mark.parametrize("breaks", [[1000, 0, 0], [0, 0, 0]])
def test_a_file_that_never_comes_whole_is_truncated(server: Server, breaks: list[int]) -> None:
    server.behaviour.breaks = breaks
    error = failure(server.uri())
    assert (error.reason, error.final) == (Reason.SOURCE_TRUNCATED, False)
    assert server.host in error.message


def test_a_file_that_is_longer_than_announced_has_another_digest(server: Server) -> None:
    server.behaviour.headers = {"Content-Length": "10"}
    assert failure(server.uri(), sha256(server.behaviour.content)).reason is Reason.DIGEST_MISMATCH


def test_a_wrong_digest_leaves_nothing(server: Server) -> None:
    error = failure(server.uri(), "0" * 64)
    assert error.reason is Reason.DIGEST_MISMATCH
    assert sha256(server.behaviour.content) in error.message
    assert left() == []


@pytest.mark.parametrize(
    ("status", "reason", "requests"),
    [
        (401, Reason.SOURCE_ACCESS_DENIED, 1),
        (403, Reason.SOURCE_ACCESS_DENIED, 1),
        (404, Reason.SOURCE_NOT_FOUND, 1),
        (410, Reason.SOURCE_NOT_FOUND, 1),
        (418, Reason.SOURCE_INVALID, 1),
        (429, Reason.SOURCE_UNREACHABLE, 3),
        (503, Reason.SOURCE_UNREACHABLE, 3),
    ],
)
def test_each_answer_has_its_reason_and_only_what_may_pass_is_tried_again(
    server: Server, status: int, reason: Reason, requests: int
) -> None:
    server.behaviour.status = status
    error = failure(server.uri())
    assert (error.reason, len(server.behaviour.seen)) == (reason, requests)
    assert error.final == (requests == 1)
    assert str(status) in error.message


def test_a_server_with_another_authority_is_not_trusted(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(connection.CA_BUNDLE)
    error = failure(server.uri())
    assert (error.reason, error.final) == (Reason.SOURCE_CERTIFICATE_INVALID, True)
    assert "sources.caBundle" in error.message
    assert server.behaviour.seen == []


def test_a_certificate_of_another_name_is_not_trusted(server: Server) -> None:
    assert failure(f"https://localhost:{server.port}/model.onnx").reason is Reason.SOURCE_CERTIFICATE_INVALID


def test_nobody_there(server: Server) -> None:
    for host, words in ((f"{HOST}:1", "refused"), ("nowhere.invalid", "does not resolve")):
        error = failure(f"https://{host}/model.onnx")
        assert (error.reason, error.final) == (Reason.SOURCE_UNREACHABLE, False)
        assert host in error.message
        assert words in error.message


def test_a_silent_server_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "READ_SECONDS", 0.2)
    connection._pool.cache_clear()
    server.behaviour.pause = 30
    error = failure(server.uri())
    assert error.reason is Reason.SOURCE_UNREACHABLE
    assert "nothing came" in error.message


def test_a_server_that_sends_byte_by_byte_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "STALL_SECONDS", 0.2)
    server.behaviour.pause = 0.02
    error = failure(server.uri())
    assert error.reason is Reason.SOURCE_UNREACHABLE
    assert "too slowly" in error.message


def test_a_file_without_room_is_not_begun(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = SimpleNamespace(total=2**30, used=2**30 - 1000, free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    error = failure(server.uri())
    assert (error.reason, error.final) == (Reason.STORAGE_FULL, False)
    assert "1000 B left" in error.message
    assert not list((layout.ROOT / "sources").rglob("part"))


def test_a_compressed_answer_is_refused(server: Server) -> None:
    server.behaviour.headers = {"Content-Encoding": "gzip"}
    assert failure(server.uri()).reason is Reason.SOURCE_INVALID


def test_redirects_are_followed_and_only_the_first_host_gets_credentials(
    server: Server, authority: tuple[Path, Path]
) -> None:
    with_secret(token=SECRET)
    with serving(authority[1]) as other:
        server.behaviour.authorization = f"Bearer {SECRET}"
        server.behaviour.redirects = {
            "/models/ocr.onnx": "/elsewhere/ocr.onnx",
            "/elsewhere/ocr.onnx": f"{other.uri('blob')}?X-Signature={SECRET}",
        }
        result = download(server.uri())
        assert result.digest == sha256(other.behaviour.content)
        assert all(each.get("Authorization") == f"Bearer {SECRET}" for each in server.behaviour.seen)
        assert "Authorization" not in other.behaviour.seen[0]
        other.behaviour.status = 403
        error = failure(server.uri())
        assert error.reason is Reason.SOURCE_ACCESS_DENIED
        assert SECRET not in error.message


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1/model",
        "file:///etc/passwd",
        "https://user:pw@127.0.0.1/model",
        "https://[::1",
        "",
        "//",
        "\x01",
    ],
)
def test_a_redirect_that_leaves_https_is_refused(server: Server, location: str) -> None:
    server.behaviour.redirects = {"/models/ocr.onnx": location}
    error = failure(server.uri())
    assert error.reason is Reason.SOURCE_INVALID
    assert "redirects" in error.message


def test_redirects_in_a_circle_end(server: Server) -> None:
    server.behaviour.redirects = {"/models/ocr.onnx": "/models/ocr.onnx"}
    assert "more than 5 times" in failure(server.uri()).message
    assert len(server.behaviour.seen) == 6


@pytest.mark.parametrize(
    ("values", "header"),
    [
        ({"token": "t0ken"}, "Bearer t0ken"),
        ({"username": "ann", "password": "pass:word"}, "Basic YW5uOnBhc3M6d29yZA=="),
    ],
)
def test_the_secrets_values_are_the_credentials(server: Server, values: dict[str, str], header: str) -> None:
    server.behaviour.authorization = header
    assert "name a Secret" in failure(server.uri()).message
    with_secret(**values)
    assert download(server.uri()).digest == sha256(server.behaviour.content)


@pytest.mark.parametrize(
    "values",
    [{"user": SECRET}, {"username": SECRET}, {"token": f"{SECRET}\nX-Other: 1"}, {"token": f"{SECRET}ä"}],
)
def test_a_secret_that_does_not_fit_is_refused_and_not_quoted(
    server: Server, values: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    with_secret(**values)
    error = failure(server.uri())
    assert error.reason is Reason.SOURCE_ACCESS_DENIED
    assert SECRET not in error.message + "".join(capfd.readouterr())
    assert server.behaviour.seen == []


def test_the_secret_is_nowhere_on_the_claim_nor_in_the_log(server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    with_secret(token=SECRET)
    server.behaviour.breaks = [100_000, 0, 0]
    failure(server.uri())
    files = [path for path in layout.MOUNT.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {LOCK, "part", "part.json"}
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]
    log = "".join(capfd.readouterr())
    assert SECRET not in log
    assert "download ocr.onnx: 0 B of 1.0 MiB (0 %)" in log


def test_the_proxy_is_used_except_for_hosts_without_it(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with proxying() as (proxy, connected):
        monkeypatch.setenv(connection.PROXY, proxy)
        download(server.uri())
        assert connected == [server.host]
        monkeypatch.setenv(connection.NO_PROXY, f"example.com,{HOST}")
        download(server.uri("models/other.onnx"))
        assert connected == [server.host]


def test_a_proxy_that_is_not_there_is_named(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(connection.PROXY, f"http://{HOST}:1")
    error = failure(server.uri())
    assert error.reason is Reason.SOURCE_UNREACHABLE
    assert "sources.proxy" in error.message


@pytest.mark.parametrize(
    "uri",
    [
        "http://host/a.onnx",
        "https://u:p@host/a.onnx",
        "https://host/a?X=1",
        "file:///etc/passwd",
        "s3://Bucket/a",
        "s3://models/../other/a",
        "s3://models//a",
        "azure://models/a?sig=1",
    ],
)
def test_a_uri_of_no_scheme_is_refused_without_its_words(mount: Path, uri: str) -> None:
    error = failure(uri)
    assert error.reason is Reason.SOURCE_INVALID
    assert uri not in error.message


@pytest.mark.parametrize("name", uris.SCHEMES)
def test_a_scheme_that_is_downloaded_has_a_module_and_each_is_on_the_page_of_sources(name: str) -> None:
    scheme = uris.SCHEMES[name]
    assert (find_spec(f"triton_converters.fetch.{name}") is not None) is scheme.is_remote
    assert f"`{scheme.shape}`" in DOCUMENTATION.read_text(encoding="utf-8")
