"""What a server of a download does that no honest one does: two objects in one, other commits, names for a terminal."""

import json
import re

import pytest

from tests.converters.cloud_server import Cloud
from tests.converters.downloaded import download, files, with_secret
from tests.converters.https_server import Server
from tests.converters.hub_server import Hub
from triton_converters.contract.failure import StageError
from triton_converters.fetch import hf, patience

OLD, NEW = b"o" * 200_000, b"n" * 200_000


class IgnoresIfMatch:
    """A server with S3's API that honours ranges and overlooks If-Match."""

    def __init__(self, server: Server) -> None:
        self.server, self.cloud = server, Cloud({"model.py": OLD}, "/models")

    def answer(self, path: str, authorization: str) -> tuple[int, dict[str, str], bytes]:
        status, headers, body = self.cloud.answer(path, authorization)
        seen = {name.lower(): value for name, value in self.server.behaviour.seen[-1].items()}
        if status == 200 and (wanted := re.fullmatch(r"bytes=(\d+)-", seen.get("range", ""))):
            start = int(wanted[1])
            return 206, headers | {"Content-Range": f"bytes {start}-{len(body) - 1}/{len(body)}"}, body[start:]
        return status, headers, body


@pytest.mark.parametrize("scheme", ["s3", "gs", "azure"])
def test_two_versions_of_an_object_are_never_spliced(
    server: Server, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "PAUSES", ())
    account = {
        "gcs_base_url": f"https://{server.host}",
        "disable_oauth": True,
        "private_key": "",
        "private_key_id": "",
        "client_email": "",
    }
    with_secret(
        **{
            "s3": {"AWS_ENDPOINT_URL": f"https://{server.host}"},
            "gs": {"GOOGLE_APPLICATION_CREDENTIALS_JSON": json.dumps(account)},
            "azure": {"AZURE_STORAGE_ACCOUNT_NAME": "acme", "AZURE_STORAGE_ENDPOINT": f"https://{server.host}/acme"},
        }[scheme]
    )
    has = IgnoresIfMatch(server)
    has.cloud.root = "/acme/models" if scheme == "azure" else "/models"
    server.behaviour.hub = has
    server.behaviour.breaks = [100_000]
    with pytest.raises(StageError):
        download(f"{scheme}://models/model.py")
    has.cloud.objects = {"model.py": NEW}
    with pytest.raises(StageError, match="did not send the part"):
        download(f"{scheme}://models/model.py")
    assert files(download(f"{scheme}://models/model.py")) == {"model.py": NEW}, "it starts from the beginning"


def test_a_name_from_a_hub_reaches_no_terminal(
    server: Server, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(hf.ENDPOINT, f"https://{server.host}")
    server.behaviour.hub = Hub({"a\x9b2J\u202eb.py": b"x"})
    download("hf://acme/ocr")
    said = capfd.readouterr().out
    assert not {"\x9b", "\u202e"} & set(said), ascii(said)


def test_a_commit_that_was_asked_for_is_the_one_that_comes(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(hf.ENDPOINT, f"https://{server.host}")
    hub = Hub({"model.py": b"x"})
    real = hub.answer
    hub.answer = lambda path, auth: real(path.replace("f" * 40, "main"), auth)
    server.behaviour.hub = hub
    with pytest.raises(StageError, match="another commit"):
        download("hf://acme/ocr", revision="f" * 40)
