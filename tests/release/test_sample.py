"""The sample model of a release: pushed by the real oras into a real registry, and read as the source Job reads it."""

from pathlib import Path

import pytest

from hack.release import sample
from tests.converters.https_server import HOST, make_authority
from tests.release.registry import Registry, secured
from tests.release.tree import ROOT
from triton_converters.contract.conversion_requests import SourceRequest
from triton_converters.contract.uris import split
from triton_converters.fetch import connection, oci
from triton_converters.fetch.remote import FILES, Remote

pytestmark = pytest.mark.release


def test_a_source_job_gets_the_files_of_the_sample(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushed = sample.push(ROOT, f"{registry.host}/sample", "1.2.3")
    authority, certificate = make_authority(tmp_path)
    monkeypatch.setenv(connection.CA_BUNDLE, authority.read_text())
    monkeypatch.delenv(connection.PROXY, raising=False)
    connection._pool.cache_clear()
    (tmp_path / "place").mkdir()
    with secured(registry, tmp_path, HOST, certificate) as by_https:
        uri = f"oci://{pushed.repository.replace(registry.host, by_https.host)}:{pushed.tag}"
        fetched = oci.fetch(Remote(split(uri), {}, SourceRequest("", uri, "", "")), tmp_path / "place")
    got = {path.name: path.read_bytes() for path in (tmp_path / "place" / FILES).iterdir()}
    assert got == {path.name: path.read_bytes() for path in (ROOT / sample.FOLDER).iterdir() if path.is_file()}
    assert fetched.resolved == pushed.digest
