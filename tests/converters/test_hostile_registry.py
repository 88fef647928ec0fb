"""Answers that no registry should give to a push, and those that each have a reason."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.conftest import Attack
from tests.converters import https_server
from tests.converters.https_server import Behaviour, Server
from tests.converters.published import new_key, pem, reference, request, revision, with_key
from tests.converters.registry_server import PASSWORD, a_docker_config
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.publishing import PublishResult
from triton_converters.contract.reasons import Reason
from triton_converters.publish.push import LARGEST_MANIFEST, digest_of
from triton_converters.stages import publish

BASE = "/v2/team/digits"
Answer = tuple[int, dict[str, str], bytes]
Takes = Callable[[str, str, bytes], Answer | None]


class Registry:
    """A registry in memory, which a test makes hostile."""

    def __init__(self, server: Server) -> None:
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[str, bytes] = {}
        self.asked: list[tuple[str, str]] = []
        self.first: Takes = lambda *_: None
        """Answers before it does, if it says anything."""
        server.behaviour.taking = self.take

    def take(self, method: str, path: str, body: bytes) -> Answer:
        self.asked.append((method, path))
        return self.first(method, path, body) or self._take(method, path.removeprefix(BASE), body)

    def _take(self, method: str, path: str, body: bytes) -> Answer:
        parts = urlsplit(path)
        name = parts.path.rpartition("/")[2]
        if method == "POST":
            return 202, {"Location": f"{BASE}/blobs/uploads/1?state=a"}, b""
        if method == "PUT" and "uploads" in path:
            self.blobs[parse_qs(parts.query)["digest"][0]] = body
            return 201, {}, b""
        if method == "PUT":
            self.manifests[name] = self.manifests[digest_of(body)] = body
            return 201, {}, b""
        found = (self.blobs if "/blobs/" in path else self.manifests).get(name)
        return (404, {}, b"") if found is None else (200, {}, found)

    @property
    def tags(self) -> list[str]:
        return [name for name in self.manifests if not name.startswith("sha256")]


@pytest.fixture
def registry(server: Server) -> Registry:
    revision()
    reference()
    layout.CREDENTIALS_MOUNT.mkdir()
    (layout.CREDENTIALS_MOUNT / ".dockerconfigjson").write_text(a_docker_config(server.host))
    return Registry(server)


@pytest.fixture
def other(authority: tuple[Path, Path]) -> Iterator[Server]:
    with https_server.serving(authority[1], Behaviour()) as found:
        yield found


def run(server: Server, signs: bool = True) -> PublishResult:
    with_key(pem(new_key()))
    return publish.run(request(f"oci://{server.host}/team/digits:v1", signs=signs))


def failure(server: Server, registry: Registry, signs: bool = True) -> StageError:
    with pytest.raises(StageError) as caught:
        run(server, signs)
    assert PASSWORD not in caught.value.message
    assert registry.tags == []
    return caught.value


def test_an_honest_one_gets_all_of_it(server: Server, registry: Registry) -> None:
    result = run(server)
    tag = result.digest.replace(":", "-")
    assert registry.tags == ["v1"]
    assert {f"{tag}.sig", f"{tag}.att", tag} <= set(registry.manifests)
    # The tag moves last.
    assert [path for method, path in registry.asked if method == "PUT"][-1] == f"{BASE}/manifests/v1"


@pytest.mark.parametrize(
    ("status", "body", "reason", "final"),
    [
        (401, b"", Reason.REGISTRY_ACCESS_DENIED, True),
        (403, b"", Reason.REGISTRY_ACCESS_DENIED, True),
        (403, b'{"errors": [{"message": "quota exceeded"}]}', Reason.REGISTRY_FULL, False),
        (404, b"", Reason.REGISTRY_NOT_FOUND, True),
        (413, b"", Reason.REGISTRY_LIMIT, True),
        (429, b"", Reason.REGISTRY_BUSY, False),
        (500, b"write: no space left on device", Reason.REGISTRY_FULL, False),
        (503, b"", Reason.REGISTRY_UNREACHABLE, False),
        (507, b"", Reason.REGISTRY_FULL, False),
        (400, b"", Reason.REGISTRY_INVALID, True),
        (302, b"", Reason.REGISTRY_INVALID, True),
    ],
)
@pytest.mark.parametrize("where", ["POST", "/blobs/uploads/1", "/manifests/sha256"])
def test_each_refusal_has_its_reason(
    server: Server, registry: Registry, status: int, body: bytes, reason: Reason, final: bool, where: str
) -> None:
    def refuse(method: str, path: str, _: bytes) -> Answer | None:
        hit = method == "POST" if where == "POST" else method == "PUT" and where in path
        return (status, {"Location": "https://other.example/"}, body) if hit else None

    registry.first = refuse
    error = failure(server, registry, signs=False)
    assert (error.reason, error.final) == (reason, final)
    assert "spec.source" not in error.message


@pytest.mark.parametrize(
    "location",
    [
        "https://{other}/upload?a=b",
        "//{other}/upload",
        "http://{own}/upload",
        "https://user:password@{own}/upload",
        "https://{own}@{other}/upload",
        "/upload#fragment",
        "ftp://{own}/upload",
        "https://[::1",
        "/a\x7fb",
        "",
    ],
)
def test_an_upload_goes_on_at_no_other_host(
    server: Server, registry: Registry, other: Server, location: str, attack: Attack
) -> None:
    at = location.replace("{other}", other.host).replace("{own}", server.host)
    registry.first = lambda method, path, _: (202, {"Location": at}, b"") if method == "POST" else None
    assert failure(server, registry).reason is Reason.REGISTRY_INVALID
    assert other.behaviour.seen == []
    assert not [path for method, path in registry.asked if method == "PUT"]
    attack("registry", f"an upload that it leads to {location or 'nothing'!r}", "RegistryInvalid: nothing is sent")


def test_what_is_sent_is_sent_to_no_host_of_a_redirect(
    server: Server, registry: Registry, other: Server, attack: Attack
) -> None:
    registry.first = lambda method, path, _: (307, {"Location": other.uri()}, b"") if method == "PUT" else None
    assert failure(server, registry).reason is Reason.REGISTRY_INVALID
    assert other.behaviour.seen == []
    attack("registry", "a redirect of what is pushed to another host", "RegistryInvalid: nothing is sent there")


def test_the_account_is_not_for_the_host_of_a_redirect(server: Server, registry: Registry, other: Server) -> None:
    challenge = {"WWW-Authenticate": 'Basic realm="r"'}
    registry.first = lambda method, path, _: (
        (401, challenge, b"")
        if len(registry.asked) == 1
        else (307, {"Location": other.uri()}, b"")
        if method == "HEAD"
        else None
    )
    other.behaviour.status = 404
    run(server)
    assert other.behaviour.seen
    assert not [each for each in other.behaviour.seen if "Authorization" in each]


def test_a_registry_that_has_another_image_than_it_was_given(
    server: Server, registry: Registry, attack: Attack
) -> None:
    registry.first = lambda method, path, _: (200, {}, b"{}") if method == "GET" and path.endswith("/v1") else None
    with pytest.raises(StageError) as caught:
        run(server)
    assert caught.value.reason is Reason.REGISTRY_INVALID
    assert "that was pushed there" in caught.value.message
    attack("registry", "an image that is not the one that was pushed", "RegistryInvalid")


def test_a_registry_that_gives_no_signature_back(server: Server, registry: Registry, attack: Attack) -> None:
    registry.first = lambda method, path, _: (404, {}, b"") if method == "GET" and "sha256" in path else None
    error = failure(server, registry)
    assert error.reason is Reason.REGISTRY_INVALID
    assert "does not give back the signature" in error.message
    attack("registry", "signatures that it takes and does not have", "RegistryInvalid: the tag does not move")


@pytest.mark.parametrize(
    "content", [b"[", b"[]", b'{"layers": {}}', b'{"layers": [1], "manifests": [1]}', b"[" * 100_000]
)
def test_something_else_at_the_tags_of_signatures(server: Server, registry: Registry, content: bytes) -> None:
    registry.first = lambda method, path, _: (200, {}, content) if method == "GET" and "sha256-" in path else None
    error = failure(server, registry)
    assert error.reason is Reason.REGISTRY_INVALID
    assert "something else than signatures" in error.message


def test_an_answer_without_an_end(server: Server, registry: Registry, attack: Attack) -> None:
    registry.first = lambda method, path, _: (
        (200, {}, b" " * (LARGEST_MANIFEST + 2)) if method == "GET" and ".sig" in path else None
    )
    assert failure(server, registry).reason is Reason.REGISTRY_INVALID
    attack("registry", "a list of signatures without an end", "RegistryInvalid: 4 MiB are read")


@pytest.mark.parametrize("told", ["0-99999999", "bytes=0-9999999"])
def test_a_registry_that_has_more_than_was_sent(server: Server, registry: Registry, told: str) -> None:
    def lose(method: str, path: str, body: bytes) -> Answer | None:
        if method == "PUT" and "uploads" in path and len(body) > 2**20:
            return 500, {}, b""
        return (204, {"Range": told}, b"") if method == "GET" and "uploads" in path else None

    registry.first = lose
    assert failure(server, registry).reason is Reason.REGISTRY_INVALID


def test_a_registry_that_lost_the_upload_gets_it_anew(server: Server, registry: Registry) -> None:
    broken = [503]

    def lose(method: str, path: str, body: bytes) -> Answer | None:
        return (broken.pop(), {}, b"") if method == "PUT" and len(body) > 2**20 and broken else None

    registry.first = lose
    assert run(server).tag == "v1"


def test_a_token_to_push_is_asked_for_this_repository_alone(server: Server, registry: Registry) -> None:
    asked: list[dict[str, list[str]]] = []

    def tokens(method: str, path: str, _: bytes) -> Answer | None:
        if path.startswith("/token"):
            asked.append(parse_qs(urlsplit(path).query))
            return 200, {}, json.dumps({"token": "t"}).encode()
        if server.behaviour.seen[-1].get("Authorization") != "Bearer t":
            return 401, {"WWW-Authenticate": f'Bearer realm="https://{server.host}/token",service="s"'}, b""
        return None

    registry.first = tokens
    run(server)
    assert [each["scope"] for each in asked] == [["repository:team/digits:pull,push"]]


@pytest.mark.parametrize(
    "content", [b"", b"not a key", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", b"\xff"]
)
def test_a_key_that_cannot_sign_is_not_quoted_and_nothing_is_pushed(
    server: Server, registry: Registry, content: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    with_key(content, "a-password")
    with pytest.raises(StageError) as caught:
        publish.run(request(f"oci://{server.host}/team/digits:v1", signs=True))
    assert caught.value.reason is Reason.SIGNING_KEY_INVALID
    assert "spec.publish.signing.secretRef" in caught.value.message
    assert "a-password" not in caught.value.message + "".join(capfd.readouterr())
    assert registry.asked == []
