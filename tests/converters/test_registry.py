"""Downloads from a registry: a real one, and the answers that no registry should give."""

import base64
import gzip
import io
import json
import shutil
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import Attack
from tests.converters import https_server
from tests.converters.downloaded import begun, files
from tests.converters.https_server import Behaviour, Server, proxying
from tests.converters.registry_server import (
    PASSWORD,
    TITLE,
    USER,
    Registry,
    a_docker_config,
    archive,
    layer,
    manifest,
    serving,
    sha256,
)
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import SourceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.look import LookRequest, LookResult
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import SourceResult
from triton_converters.fetch import connection, docker_config, folder, patience, registry, tar_folder
from triton_converters.stages import look, source

LARGE = bytes(range(256)) * 4000
FILES = {"config.json": b"{}", "onnx/model #1.onnx": LARGE, "empty.txt": b""}
TABLES = {"tables/a.bin": b"a" * 1000, "tables/deep/b.bin": b""}


@pytest.fixture
def models(trusting: None, authority: tuple[Path, Path], tmp_path: Path) -> Iterator[Registry]:
    (tmp_path / "registry").mkdir()
    with serving(tmp_path / "registry", authority[1], authority[0]) as models:
        with_account(a_docker_config(models.host))
        yield models


def with_account(text: str) -> None:
    layout.CREDENTIALS_MOUNT.mkdir(exist_ok=True)
    (layout.CREDENTIALS_MOUNT / ".dockerconfigjson").write_text(text)


def download(uri: str, **fields: Any) -> SourceResult:
    return source.run(SourceRequest("0123456789abcdef", uri, "", **{"sha256": "", **fields}))


def failure(uri: str, **fields: Any) -> StageError:
    with pytest.raises(StageError) as caught:
        download(uri, **fields)
    assert PASSWORD not in caught.value.message
    return caught.value


def test_an_artifact_is_published_as_a_directory_with_its_digest(models: Registry) -> None:
    digest = models.push("v1", FILES, {"tables": archive(TABLES)})
    result = download(models.uri())
    assert files(result) == FILES | TABLES
    assert result.resolved == digest
    assert download(models.uri(f"@{digest}")) == result


def test_a_tag_has_the_version_of_its_digest(models: Registry) -> None:
    first = models.push("v1", FILES)
    request = SourceRequest("", models.uri(), "", "")
    found = look.run(LookRequest("", request))
    assert found == LookResult(first, exact=True, label=f"tag v1, {first[:19]}...")
    second = models.push("v1", FILES | {"new.txt": b"new"})
    assert look.run(LookRequest("", request)).version == second
    assert files(download(models.uri(), version=first)) == FILES
    pinned = look.run(LookRequest("", SourceRequest("", models.uri(f"@{first}"), "", "")))
    assert (pinned.version, pinned.label) == (first, first)


@pytest.mark.parametrize(("told", "requests"), [(sha256(b"{}"), 1), ("", 2), ("sha256:nonsense", 2)])
def test_a_registry_that_tells_no_digest_is_asked_for_the_manifest(server: Server, told: str, requests: int) -> None:
    server.behaviour.content, server.behaviour.headers = b"{}", {"Docker-Content-Digest": told}
    found = look.run(LookRequest("", SourceRequest("", f"oci://{server.host}/acme/ocr:v1", "", "")))
    assert (found.version, len(server.behaviour.seen)) == (sha256(b"{}"), requests)


def test_what_is_on_the_claim_is_not_downloaded_again(models: Registry, capfd: pytest.CaptureFixture[str]) -> None:
    models.push("v1", FILES)
    first = download(models.uri())
    assert len(begun(capfd)) == len(FILES)
    # The same files under another tag, in another artifact: the version is another, the content is not.
    again = models.push("v2", dict(reversed(FILES.items())))
    result = download(models.uri(":v2"))
    assert (result.digest, result.resolved) == (first.digest, again)
    assert begun(capfd) == []
    assert failure(models.uri(":v2"), sha256="0" * 64).reason is Reason.DIGEST_MISMATCH


def test_only_what_include_names_is_downloaded(models: Registry, capfd: pytest.CaptureFixture[str]) -> None:
    models.push("v1", FILES, {"tables": archive(TABLES)})
    result = download(models.uri(), include=("*.json", "tables/a*"))
    assert set(files(result)) == {"config.json", "tables/a.bin"}
    assert set(dict(begun(capfd))) == {"config.json", "tables"}
    error = failure(models.uri(), include=("*.bar",))
    assert error.reason is Reason.SOURCE_NOT_FOUND
    assert "spec.source.include" in error.message


def test_of_an_artifact_only_the_models_folders_are_downloaded(
    models: Registry, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = {"m/a.onnx": b"a", "m/a.onnx_data": b"data"}
    models.push("v1", FILES | folder)
    result = download(models.uri(), paths=("m/a.onnx",))
    assert files(result) == folder
    assert begun(capfd) == [("a.onnx", True), ("a.onnx_data", True)]
    assert download(models.uri(), paths=("m/a.onnx",)) == result


def test_a_broken_connection_is_gone_on_with(
    models: Registry, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    models.push("v1", {"model.onnx": LARGE})
    with proxying([10**9, 300_000, 300_000]) as (proxy, connected):
        monkeypatch.setenv(connection.PROXY, proxy)
        assert files(download(models.uri())) == {"model.onnx": LARGE}
    assert set(connected) == {models.host}
    assert begun(capfd) == [("model.onnx", True), ("model.onnx", False), ("model.onnx", False)], connected


def test_another_process_goes_on_where_a_killed_one_stopped(
    models: Registry, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    models.push("v1", {"config.json": b"{}", "model.onnx": LARGE}, {"tables": archive(TABLES)})
    monkeypatch.setattr(patience, "PAUSES", ())
    with proxying([10**9, 300_000]) as (proxy, _):
        monkeypatch.setenv(connection.PROXY, proxy)
        error = failure(models.uri())
    assert (error.reason, error.final) == (Reason.SOURCE_TRUNCATED, False)
    monkeypatch.delenv(connection.PROXY)
    begun(capfd)
    assert set(files(download(models.uri()))) == {"config.json", "model.onnx", *TABLES}
    assert begun(capfd) == [("model.onnx", False), ("tables", True)]


@pytest.mark.parametrize("account", ["", a_docker_config("{}", USER, "another"), a_docker_config("other.example")])
def test_wrong_credentials_are_denied_and_not_quoted(
    models: Registry, account: str, capfd: pytest.CaptureFixture[str]
) -> None:
    models.push("v1", FILES)
    (layout.CREDENTIALS_MOUNT / ".dockerconfigjson").unlink()
    if account:
        with_account(account.replace("{}", models.host))
    error = failure(models.uri())
    assert (error.reason, error.final) == (Reason.SOURCE_ACCESS_DENIED, True)
    assert "spec.source.secretRef" in error.message
    assert PASSWORD not in "".join(capfd.readouterr())


@pytest.mark.parametrize("reference", [":v2", f"@sha256:{'0' * 64}"])
def test_what_is_not_there_is_not_found(models: Registry, reference: str) -> None:
    models.push("v1", FILES)
    error = failure(models.uri(reference))
    assert (error.reason, error.final) == (Reason.SOURCE_NOT_FOUND, True)
    assert reference[1:] in error.message


def test_a_blob_that_is_not_what_its_digest_says_is_refused(models: Registry) -> None:
    tables = archive(TABLES)
    models.push("v1", {"model.onnx": LARGE}, {"tables": tables})
    models.path(LARGE).write_bytes(LARGE[::-1])
    error = failure(models.uri())
    assert error.reason is Reason.DIGEST_MISMATCH
    assert "model.onnx" in error.message
    models.path(LARGE).write_bytes(LARGE)
    models.path(tables).write_bytes(archive({"tables/c.bin": b"c"}))
    error = failure(models.uri())
    assert error.reason is Reason.DIGEST_MISMATCH
    assert "tables" in error.message
    assert not list((layout.ROOT / "sources").glob("*"))


def test_an_index_of_images_is_no_artifact(models: Registry) -> None:
    media = "application/vnd.oci.image.index.v1+json"
    body = json.dumps({"schemaVersion": 2, "mediaType": media, "manifests": []}).encode()
    models.push_manifest("v1", body, media)
    assert failure(models.uri()).reason in (Reason.SOURCE_INVALID, Reason.SOURCE_NOT_FOUND)


def test_the_secret_is_nowhere_on_the_claim_nor_in_the_log(models: Registry, capfd: pytest.CaptureFixture[str]) -> None:
    models.push("v1", FILES)
    download(models.uri())
    pair = json.loads(a_docker_config(""))["auths"][""]["auth"]
    for secret in (PASSWORD, pair):
        assert not [path for path in layout.MOUNT.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
        assert secret not in "".join(capfd.readouterr())


def test_an_artifact_without_room_is_not_begun(
    models: Registry, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    models.push("v1", FILES)
    usage = SimpleNamespace(total=2**30, used=2**30 - 1000, free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    assert failure(models.uri()).reason is Reason.STORAGE_FULL
    assert begun(capfd) == []


class Tokens:
    """A registry that asks for tokens of a server of its own, which gives them to one account, or to anybody."""

    def __init__(self, host: str, account: str = "", realm: str = "") -> None:
        self.host, self.account, self.realm = host, account, realm or f"https://{host}/token?a=b"
        self.answers: list[tuple[int, Any]] = []
        """What the token server answers first."""
        self.asked: list[dict[str, list[str]]] = []
        self.manifest = manifest(*(layer(name, content) for name, content in FILES.items()))
        self.blobs = {sha256(content): content for content in FILES.values()}
        self.valid = 0

        self.challenge = 'Bearer realm="{realm}",service="the registry",scope="all:*"'

    def answer(self, path: str, authorization: str) -> tuple[int, dict[str, str], bytes]:
        parts = urlsplit(path)
        if parts.path == "/token":
            self.asked.append(parse_qs(parts.query))
            if self.answers:
                status, told = self.answers.pop(0)
                return status, {}, told if isinstance(told, bytes) else json.dumps(told).encode()
            if authorization != self.account:
                return 401, {}, b""
            self.valid += 1
            return 200, {}, json.dumps({"token": f"t{self.valid}", "expires_in": 300}).encode()
        if authorization != f"Bearer t{self.valid}":
            return 401, {"WWW-Authenticate": self.challenge.format(realm=self.realm)}, b""
        if parts.path == "/v2/acme/ocr/manifests/v1":
            return 200, {}, self.manifest
        found = self.blobs.get(parts.path.removeprefix("/v2/acme/ocr/blobs/"))
        return (404, {}, b"") if found is None else (200, {"ETag": '"e"'}, found)


@pytest.fixture
def tokens(server: Server) -> Tokens:
    found = Tokens(server.host)
    server.behaviour.hub = found
    return found


@pytest.mark.parametrize("account", ["", a_docker_config("{}")])
def test_a_token_is_asked_for_to_read_this_repository_alone(tokens: Tokens, account: str) -> None:
    if account:
        with_account(account.replace("{}", tokens.host))
        tokens.account = f"Basic {json.loads(account)['auths']['{}']['auth']}"
    assert files(download(f"oci://{tokens.host}/acme/ocr:v1")) == FILES
    wanted = {"a": ["b"], "service": ["the registry"], "scope": ["repository:acme/ocr:pull"]}
    assert tokens.asked == [wanted]


@pytest.mark.parametrize(
    "challenge",
    [
        'Bearer realm="{realm}",service="the registry", Basic realm="Registry"',
        'Basic realm="Registry", Bearer realm="{realm}",service="the registry"',
        'Basic realm="a, Bearer realm=b", bearer  Realm = "{realm}" , service="the registry",scope="a:pull,push"',
        'Negotiate, Bearer realm="{realm}",service="the registry",Bearer realm="https://other.example/token"',
    ],
)
def test_a_registry_may_offer_several_ways_to_log_in(tokens: Tokens, challenge: str) -> None:
    tokens.challenge = challenge
    assert files(download(f"oci://{tokens.host}/acme/ocr:v1")) == FILES
    assert [each["service"] for each in tokens.asked] == [["the registry"]]


def test_ways_to_log_in_are_told_apart() -> None:
    assert registry.ways_to_log_in("") == registry.ways_to_log_in(',,"') == {}
    assert registry.ways_to_log_in("Basic") == {"basic": {}}
    assert registry.ways_to_log_in('Basic realm="a"') == {"basic": {"realm": "a"}}
    assert registry.ways_to_log_in('Negotiate YWJj==, Basic realm="a"') == {"negotiate": {}, "basic": {"realm": "a"}}
    assert registry.ways_to_log_in('realm="https://a.example"') == {}
    assert registry.ways_to_log_in("a," * 100_000 + '"' * 99_999).keys() == {"a"}


def test_a_token_that_ends_while_a_file_comes_is_asked_for_again(
    tokens: Tokens, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(registry, "time", SimpleNamespace(monotonic=lambda: now[0]))
    server.behaviour.breaks = [10**9, 10**9, 10**9, 300_000]
    real = tokens.answer

    def ageing(path: str, authorization: str) -> tuple[int, dict[str, str], bytes]:
        now[0] += 200
        return real(path, authorization)

    tokens.answer = ageing
    assert files(download(f"oci://{tokens.host}/acme/ocr:v1")) == FILES
    assert len(tokens.asked) > 1


@pytest.mark.parametrize("seconds", [-1, 0, 10**400, 1e300])
def test_how_long_a_token_is_valid_is_bounded(tokens: Tokens, seconds: float) -> None:
    tokens.valid = 1
    tokens.answers = [(200, {"access_token": "t1", "expires_in": seconds})]
    assert files(download(f"oci://{tokens.host}/acme/ocr:v1")) == FILES


@pytest.mark.parametrize(
    ("status", "told", "reason"),
    [
        (403, {}, Reason.SOURCE_ACCESS_DENIED),
        (404, {}, Reason.SOURCE_INVALID),
        (503, {}, Reason.SOURCE_UNREACHABLE),
        (200, b"[" * 100_000, Reason.SOURCE_INVALID),
        (200, b"x" * 100_000, Reason.SOURCE_INVALID),
        (200, [], Reason.SOURCE_INVALID),
        (200, {"token": 1}, Reason.SOURCE_INVALID),
        (200, {"token": "a\r\nX-Other: b"}, Reason.SOURCE_INVALID),
        (200, {"token": "a", "expires_in": "soon"}, Reason.SOURCE_INVALID),
    ],
)
def test_a_token_server_that_gives_none(tokens: Tokens, status: int, told: Any, reason: Reason) -> None:
    tokens.answers = [(status, told)] * 9
    assert failure(f"oci://{tokens.host}/acme/ocr:v1").reason is reason


@pytest.mark.parametrize(
    "realm", ["http://127.0.0.1/token", "file:///etc/passwd", "https://u:p@h/", "https://[::1", "//"]
)
def test_the_account_is_sent_over_https_alone(tokens: Tokens, realm: str) -> None:
    with_account(a_docker_config(tokens.host))
    tokens.realm = realm
    error = failure(f"oci://{tokens.host}/acme/ocr:v1")
    assert error.reason is Reason.SOURCE_INVALID
    assert tokens.asked == []


def test_the_account_is_not_for_a_token_server_that_another_host_names(
    tokens: Tokens, server: Server, authority: tuple[Path, Path], attack: Attack
) -> None:
    with_account(a_docker_config(tokens.host))
    with https_server.serving(authority[1], Behaviour()) as other:
        other.behaviour.hub = Tokens(other.host)
        server.behaviour.hub = None
        server.behaviour.redirects = {"/v2/acme/ocr/manifests/v1": other.uri("v2/acme/ocr/manifests/v1")}
        error = failure(f"oci://{server.host}/acme/ocr:v1")
    assert (error.reason, error.final) == (Reason.SOURCE_ACCESS_DENIED, True)
    assert [each["path"] for each in other.behaviour.seen] == ["/v2/acme/ocr/manifests/v1"]
    assert not [each for each in other.behaviour.seen if "Authorization" in each]
    attack(
        "server of a source",
        "an account, for a token server that a host behind a redirect names",
        f"{error.reason}: no request there has it",
    )


def titled(title: Any, **fields: Any) -> bytes:
    return json.dumps({"layers": [layer("a", b"") | {"annotations": {TITLE: title}} | fields]}).encode()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"[" * 100_000,
        b"\xff",
        b"x" * (registry.LARGEST_MANIFEST + 1),
        b"{}",
        b'{"layers": 1}',
        b'{"layers": [1]}',
        b'{"layers": [{}]}',
        titled(None),
        titled(""),
        titled("/etc/passwd"),
        titled("../escape"),
        titled("a/../../b"),
        titled("a\nb"),
        titled("a" * 256),
        titled("é" * 128),
        titled("a/" * 600 + "a"),
        titled("\ud800"),
        titled("a", digest="sha512:00"),
        titled("a", digest=1),
        titled("a", size=-1),
        titled("a", size="1"),
        titled("a", annotations={}),
        titled("a", annotations=[]),
        manifest(layer("a", b"1"), layer("a", b"2")),
        manifest(layer("a", b"1"), layer("a/b", b"2")),
        manifest(layer("a", b"1", True), layer("a/b", b"2")),
        manifest(*[layer(str(number), b"") for number in range(folder.MOST_FILES + 1)]),
    ],
)
def test_what_is_no_artifact_of_files_is_refused(tokens: Tokens, body: bytes) -> None:
    tokens.manifest = body
    error = failure(f"oci://{tokens.host}/acme/ocr:v1")
    assert error.reason is Reason.SOURCE_INVALID
    assert "is not an artifact of files" in error.message
    assert not list((layout.ROOT / "sources").glob("*"))


def special(kind: bytes, **fields: Any) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        entry = tarfile.TarInfo("tables/x")
        entry.type = kind
        for name, value in fields.items():
            setattr(entry, name, value)
        tar.addfile(entry)
    return buffer.getvalue()


def enormous_header() -> bytes:
    """A tar whose first extended header announces 8 GB."""
    entry = tarfile.TarInfo("x")
    entry.type, entry.size = tarfile.XHDTYPE, 8 * 10**9
    return entry.tobuf() + bytes(10_000)


HOSTILE: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "noise": lambda: bytes(range(256)) * 9,
    "cut gzip": lambda: archive(TABLES)[:-60],
    "cut tar": lambda: special(tarfile.REGTYPE, size=5000)[:700],
    "link": lambda: special(tarfile.SYMTYPE, linkname="/etc/passwd"),
    "hard link": lambda: special(tarfile.LNKTYPE, linkname="tables/a"),
    "device": lambda: special(tarfile.CHRTYPE),
    "pipe": lambda: special(tarfile.FIFOTYPE),
    "sparse": lambda: special(tarfile.GNUTYPE_SPARSE),
    "absolute": lambda: archive({"/etc/passwd": b""}),
    "above": lambda: archive({"tables/../../escape": b""}),
    "elsewhere": lambda: archive({"other/a": b""}),
    "twice": lambda: archive({"tables/a": b"1", "./tables/a": b"2"}),
    "file and folder": lambda: archive({"tables/a": b"1", "tables/a/b": b"2"}),
    "folder and file": lambda: archive({"tables/a/b": b"1", "tables/a": b"2"}),
    "empty": lambda: archive({}),
    "long name": lambda: archive({f"tables/{'a' * 256}": b""}),
    "long path": lambda: archive({f"tables/{'a/' * 2100}a": b""}),
    "enormous header": enormous_header,
}


@pytest.mark.parametrize("case", HOSTILE)
def test_an_archive_that_is_no_folder_of_files_is_refused(tokens: Tokens, case: str) -> None:
    content = HOSTILE[case]()
    tokens.manifest, tokens.blobs = manifest(layer("tables", content, True)), {sha256(content): content}
    error = failure(f"oci://{tokens.host}/acme/ocr:v1")
    assert error.reason is Reason.SOURCE_INVALID
    assert "the archive of tables is not a tar of that folder" in error.message
    assert not list((layout.ROOT / "sources").glob("*"))


def test_more_files_than_any_source_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tar_folder, "MOST_MEMBERS", 3)
    (tmp_path / "tar").write_bytes(archive({f"t/{number}": b"" for number in range(4)}))
    (tmp_path / "to").mkdir()
    with pytest.raises(StageError) as caught:
        tar_folder.unpack(tmp_path / "tar", tmp_path / "to", "t", ())
    assert "more than 3 names" in caught.value.message


@pytest.mark.parametrize("top", ["models/tables", "tables", "./tables"])
def test_a_folder_within_folders_keeps_its_path(tmp_path: Path, top: str) -> None:
    (tmp_path / "tar").write_bytes(archive({f"{top}/a": b"1"}))
    (tmp_path / "to").mkdir()
    tar_folder.unpack(tmp_path / "tar", tmp_path / "to", "models/tables", ())
    assert (tmp_path / "to/models/tables/a").read_bytes() == b"1"


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 255)), max_size=8), st.integers(0, 4000))
def test_whatever_an_archive_holds_it_stays_within_the_folder(
    tmp_path: Path, changes: list[tuple[int, int]], end: int
) -> None:
    content = bytearray(gzip.decompress(archive(TABLES)))
    for place, byte in changes:
        content[place] = byte
    (tmp_path / "tar").write_bytes(content[: end or None])
    root = tmp_path / "root"
    (root / "to").mkdir(parents=True, exist_ok=True)
    reasons = set()
    try:
        tar_folder.unpack(tmp_path / "tar", root / "to", "tables", ())
    except StageError as error:
        reasons.add(error.reason)
    assert reasons <= {Reason.SOURCE_INVALID, Reason.STORAGE_FULL}
    assert {path.name for path in tmp_path.iterdir()} == {"tar", "root"}
    assert {path.name for path in root.iterdir()} == {"to"}
    assert {path.name for path in (root / "to").iterdir()} <= {"tables"}


@pytest.mark.parametrize(
    ("entries", "found"),
    [
        ({"https://models.example/v2/": "a:b"}, "a:b"),
        ({"models.example": "a:b", "models.example/acme": "c:d", "models.example/ac": "e:f"}, "c:d"),
        ({"models.example:5000": "a:b"}, ""),
        ({"models.example": "a:"}, ""),
    ],
)
def test_the_account_is_that_of_the_longest_path(entries: dict[str, str], found: str) -> None:
    auths = {place: {"auth": base64.b64encode(pair.encode()).decode()} for place, pair in entries.items()}
    secret = {".dockerconfigjson": json.dumps({"auths": auths})}
    if not found:
        with pytest.raises(StageError, match=r"no username and password for models\.example"):
            docker_config.account(secret, "models.example", "acme/ocr")
        return
    assert (
        docker_config.account(secret, "models.example", "acme/ocr")
        == f"Basic {base64.b64encode(found.encode()).decode()}"
    )


@pytest.mark.parametrize(
    "text", [PASSWORD, "[]", "{}", '{"auths": 1}', '{"auths": {"h": 1}}', '{"auths": {"h": {"auth": "%"}}}']
)
def test_a_secret_that_does_not_fit_is_refused_and_not_quoted(text: str) -> None:
    with pytest.raises(StageError) as caught:
        docker_config.account({".dockerconfigjson": text}, "h", "r")
    assert caught.value.reason is Reason.SOURCE_ACCESS_DENIED
    assert PASSWORD not in caught.value.message
    assert USER not in caught.value.message.split()


def test_a_secret_of_another_scheme_is_refused() -> None:
    with pytest.raises(StageError, match=r"\.dockerconfigjson"):
        docker_config.account({"token": "a"}, "h", "r")
