"""What the packages stage installs, from a real index on loopback."""

import base64
import hashlib
import io
import sys
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy
import pytest

from tests.converters.downloaded import with_secret
from tests.converters.https_server import Server
from tests.converters.package_index import PackageIndex, wheel
from tests.converters.run_stage import run_packages
from triton_converters import __main__ as program
from triton_converters.claim_store import sources
from triton_converters.claim_store.replay import has_result
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import PackagesRequest
from triton_converters.contract.envelope import Outcome
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import PackagesResult
from triton_converters.incoming import documents
from triton_converters.packages import image, pip, pip_words
from triton_converters.packages.index import Index

KEY = "0123456789abcdef"
PASSWORD = "a-secret-that-nobody-else-may-read"


@pytest.fixture
def index(server: Server, monkeypatch: pytest.MonkeyPatch) -> PackageIndex:
    """An index with a package that requires another one and one that the image has."""
    found = PackageIndex.of(
        wheel("surveyor", "1.2", ["compass>=1", "numpy"]), wheel("compass", "1.1"), wheel("compass", "0.9")
    )
    server.behaviour.hub = found
    monkeypatch.setenv("PIP_INDEX_URL", f"https://{server.host}/simple")
    return found


@dataclass
class LinkingIndex(PackageIndex):
    """An index whose pages link to anything."""

    page: str = ""

    def answer(self, path: str, authorization: str) -> tuple[int, dict[str, str], bytes]:
        return 200, {"Content-Type": "text/html"}, self.page.encode()


def published(text: str) -> str:
    """Publish a source with the requirements file; returns the file's SHA-256, which is also the source's name."""
    content = text.encode()
    sha256 = hashlib.sha256(content).hexdigest()
    source = layout.source_directory(sha256)
    source.mkdir(parents=True, exist_ok=True)
    (source / "requirements.txt").write_bytes(content)
    sources.receive(sha256)
    return sha256


def install(text: str) -> PackagesResult:
    sha256 = published(text)
    return run_packages(PackagesRequest(KEY, sha256, "requirements.txt", sha256))


def failure(text: str) -> StageError:
    with pytest.raises(StageError) as caught:
        install(text)
    assert not layout.packages_directory(KEY).exists()
    assert not list(layout.packages_directory(KEY).parent.glob(".tmp-*"))
    return caught.value


def site() -> list[str]:
    return sorted(path.name for path in layout.installed_packages(KEY).iterdir())


def sha256(index: PackageIndex, name: str) -> str:
    return f"--hash=sha256:{hashlib.sha256(index.files[name]).hexdigest()}"


def test_what_the_image_lacks_is_installed_and_what_it_has_is_not(
    index: PackageIndex, server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    result = install("surveyor\nnumpy\n")
    assert result.packages == ("compass==1.1", "surveyor==1.2")
    assert result.count == 2
    assert site() == ["compass-1.1.dist-info", "compass.py", "surveyor-1.2.dist-info", "surveyor.py"]
    assert has_result(layout.packages_directory(KEY), "packages", KEY)
    assert not [each["path"] for each in server.behaviour.seen if "numpy" in each["path"]]
    said = capfd.readouterr().out
    assert "download surveyor-1.2-py3-none-any.whl" in said or "download https://" in said
    assert "installed: compass==1.1, surveyor==1.2" in said


def test_the_job_is_three_processes_and_the_next_one_replays(
    index: PackageIndex, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERMINATION_LOG", str(tmp_path / "message"))
    request = PackagesRequest(KEY, published("compass\n"), "requirements.txt", published("compass\n")).to_json()
    for _ in range(2):
        assert program.main(["prepare", "packages", request]) == 0
        order = documents.read(layout.INCOMING_MOUNT, documents.ORDER, documents.Order)
        assert order.missing == (() if has_result(layout.packages_directory(KEY), "packages", KEY) else (KEY,))
        if order.missing:
            assert program.main(["produce", "packages"]) == 0
        assert program.main(["publish", "packages", request]) == 0
        result = Outcome.from_json((tmp_path / "message").read_text()).result
        assert isinstance(result, PackagesResult)
        assert result.packages == ("compass==1.1",)
    assert len([each for each in server.behaviour.seen if each["path"].endswith(".whl")]) == 1


def test_the_packages_are_importable(index: PackageIndex) -> None:
    install("surveyor\n")
    sys.path.append(str(layout.installed_packages(KEY)))
    try:
        assert __import__("compass").VERSION == "1.1"
    finally:
        del sys.modules["compass"]


def test_nothing_is_asked_for_what_the_image_has(index: PackageIndex, server: Server) -> None:
    result = install("numpy\n")
    assert (result.packages, result.count, result.total_bytes) == ((), 0, 0)
    assert site() == []
    assert server.behaviour.seen == []


def test_what_python_runs_at_its_start_and_programs_are_not_published(index: PackageIndex) -> None:
    files = {"tool.py": "", "tool.pth": "import os", "tool-1.0.data/scripts/tool": "#!python\n", "tool/x.pth": ""}
    index.files.update([wheel("tool", files=files)])
    install("tool\n")
    assert site() == ["tool", "tool-1.0.dist-info", "tool.py"]
    assert [path.name for path in layout.packages_directory(KEY).iterdir() if path.is_dir()] == ["site"]


def test_hashes_are_honoured(index: PackageIndex) -> None:
    lines = [
        f"surveyor==1.2 {sha256(index, 'surveyor-1.2-py3-none-any.whl')}",
        f"compass==1.1 {sha256(index, 'compass-1.1-py3-none-any.whl')}",
    ]
    assert install("\n".join(lines)).packages == ("compass==1.1", "surveyor==1.2")


def test_another_file_than_the_hash_says_is_refused(index: PackageIndex) -> None:
    error = failure(f"compass==1.1 --hash=sha256:{'0' * 64}\n")
    assert error.reason is Reason.DIGEST_MISMATCH
    assert "compass" in error.message


def test_with_a_hash_every_package_needs_one(index: PackageIndex) -> None:
    error = failure(f"surveyor==1.2 {sha256(index, 'surveyor-1.2-py3-none-any.whl')}\n")
    assert error.reason is Reason.REQUIREMENTS_INVALID
    assert "compass" in error.message


def test_a_version_that_is_not_there_is_named_with_those_that_are(index: PackageIndex) -> None:
    error = failure("compass==7\n")
    assert (error.reason, error.final) == (Reason.PACKAGE_NOT_FOUND, True)
    assert "compass==7" in error.message
    assert "the versions 0.9, 1.1" in error.message


def test_a_package_without_a_wheel_is_not_built(index: PackageIndex) -> None:
    index.files["anvil-1.0.tar.gz"] = b"sources"
    error = failure("anvil\n")
    assert error.reason is Reason.PACKAGE_NOT_FOUND
    assert "nothing for anvil: it has no wheel" in error.message


@pytest.mark.parametrize("file", ["anvil-1.0.tar.gz", "anvil-1.0-py3-none-any.whl"])
def test_a_package_that_a_wheel_requires_by_a_url_is_not_asked_for(
    index: PackageIndex, server: Server, file: str
) -> None:
    """The URL may be of any host. And pip would run the setup.py of sources."""
    index.files.update([wheel("trap", requires=[f"anvil @ https://{server.host}/files/{file}"])])
    error = failure("trap\n")
    assert (error.reason, error.final) == (Reason.PACKAGE_NOT_FOUND, True)
    assert "trap requires anvil by a URL" in error.message
    assert not [each["path"] for each in server.behaviour.seen if "anvil" in each["path"]]


def test_a_version_that_the_image_does_not_have_names_the_line_and_the_version(index: PackageIndex) -> None:
    error = failure("compass\nnumpy<1.20\n")
    assert (error.reason, error.final) == (Reason.PACKAGE_NOT_FOUND, True)
    assert "requirements.txt:2 asks for numpy<1.20" in error.message
    assert f"the image has numpy {numpy.__version__}" in error.message


def test_what_a_package_requires_of_the_image_is_told_the_same_way(index: PackageIndex) -> None:
    index.files.update([wheel("relic", requires=["numpy<1.20"])])
    error = failure("relic\n")
    assert error.reason is Reason.PACKAGE_NOT_FOUND
    assert "relic 1.0 depends on numpy<1.20" in error.message
    assert f"the image has numpy {numpy.__version__}" in error.message


def test_requirements_that_contradict_each_other_are_named(index: PackageIndex) -> None:
    index.files.update([wheel("relic", requires=["compass<1"])])
    error = failure("relic\nsurveyor\n")
    assert error.reason is Reason.PACKAGE_NOT_FOUND
    assert "relic 1.0 depends on compass<1" in error.message
    assert "surveyor 1.2 depends on compass>=1" in error.message


def test_a_marker_that_does_not_hold_asks_for_nothing(index: PackageIndex) -> None:
    assert install('numpy<1.20; python_version < "3"\ncompass\n').packages == ("compass==1.1",)


@pytest.fixture
def private(index: PackageIndex, server: Server, monkeypatch: pytest.MonkeyPatch) -> PackageIndex:
    """The index asks for a password; the installation's index is another one, which does not answer."""
    monkeypatch.setenv("PIP_INDEX_URL", "https://127.0.0.1:9/simple")
    index.authorization = f"Basic {base64.b64encode(f'team:{PASSWORD}'.encode()).decode()}"
    return index


def test_the_secrets_index_is_used_and_its_password_is_seen_nowhere(
    private: PackageIndex, server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    with_secret(PIP_INDEX_URL=f"https://team:{PASSWORD}@{server.host}/simple")
    assert install("surveyor\n").count == 2
    assert PASSWORD not in "".join(capfd.readouterr())
    published = [path.read_text() for path in layout.packages_directory(KEY).rglob("*") if path.is_file()]
    assert PASSWORD not in "".join(published)


@pytest.mark.parametrize("given", [f"{PASSWORD}/simple", f"{PASSWORD}/team/wheels/simple/"])
def test_a_token_in_the_path_of_the_index_is_seen_nowhere(
    private: PackageIndex, server: Server, capfd: pytest.CaptureFixture[str], given: str
) -> None:
    """pip leaves a password out of what it prints, and no part of a path."""
    with_secret(PIP_INDEX_URL=f"https://{server.host}/{given}")
    error = failure("surveyor\n")
    printed = "".join([error.message, *capfd.readouterr()])
    assert server.host in printed
    assert PASSWORD not in printed


def test_a_token_in_place_of_a_user_name_is_a_secret_too() -> None:
    given = Index(f"https://{PASSWORD}:x@index.example/simple/a%2Flong%2Ftoken/whl")
    assert given.secrets == ("x", PASSWORD, "/a%2Flong%2Ftoken", "/a/long/token")


def test_a_wrong_password_is_refused_and_not_shown(
    private: PackageIndex, server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    with_secret(PIP_INDEX_URL=f"https://team:{PASSWORD[:-1]}@{server.host}/simple")
    error = failure("surveyor\n")
    assert (error.reason, error.final) == (Reason.SOURCE_ACCESS_DENIED, True)
    assert f"{server.host} answered 401" in error.message
    assert "spec.conversion.indexSecretRef" in error.message
    assert PASSWORD[:-1] not in "".join([error.message, *capfd.readouterr()])


class TwoIndexes:
    """Two indexes of one server: the second one has builds for CPUs, as PyTorch's own has."""

    first = PackageIndex.of(wheel("surveyor", "1.2", ["compass>=1"]), wheel("compass", "1.1"))
    second = PackageIndex.of(wheel("compass", "1.1+cpu"))

    def answer(self, path: str, authorization: str) -> tuple[int, dict[str, str], bytes]:
        if path.startswith("/cpu/"):
            return self.second.answer(path.replace("/cpu/", "/simple/", 1), authorization)
        return (self.second if "cpu" in path else self.first).answer(path.replace("%2B", "+"), authorization)


@pytest.mark.parametrize("names_both", [True, False])
def test_a_secret_names_a_second_index_whose_builds_come_first(
    server: Server, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], names_both: bool
) -> None:
    server.behaviour.hub = TwoIndexes()
    extra = f"https://team:{PASSWORD}@{server.host}/cpu"
    if names_both:
        with_secret(PIP_INDEX_URL=f"https://{server.host}/simple", PIP_EXTRA_INDEX_URL=extra)
    else:
        # The first one is the installation's.
        monkeypatch.setenv("PIP_INDEX_URL", f"https://{server.host}/simple")
        with_secret(PIP_EXTRA_INDEX_URL=extra)
    assert install("surveyor\n").packages == ("compass==1.1+cpu", "surveyor==1.2")
    assert PASSWORD not in "".join(capfd.readouterr())


def test_both_indexes_are_named_and_no_password_of_theirs() -> None:
    both = Index("https://pypi.org/simple", f"https://x:{PASSWORD}@cpu.example/whl")
    assert both.host == "pypi.org or cpu.example"
    assert both.secrets == (PASSWORD,)


@pytest.mark.parametrize("url", ["http://index.example/simple", "index.example https://b.example", "", " "])
def test_a_second_index_without_an_https_url_is_refused(index: PackageIndex, url: str) -> None:
    with_secret(PIP_EXTRA_INDEX_URL=url)
    error = failure("compass\n")
    assert error.reason is Reason.SOURCE_ACCESS_DENIED
    assert "spec.conversion.indexSecretRef has no https URL under PIP_" in error.message


@pytest.mark.parametrize("url", ["http://index.example/simple", "index.example", "https://", ""])
def test_a_secret_without_an_https_url_is_refused(index: PackageIndex, url: str) -> None:
    with_secret(PIP_INDEX_URL=url)
    error = failure("compass\n")
    assert error.reason is Reason.SOURCE_ACCESS_DENIED
    assert "no https URL under PIP_INDEX_URL" in error.message


def test_a_password_is_not_shown_where_a_line_is_cut() -> None:
    given = Index(f"https://team:{PASSWORD}@index.example/simple")
    for position in range(pip.LONGEST_LINE - 40, pip.LONGEST_LINE + 2):
        printed = io.BytesIO(b"A" * position + PASSWORD.encode() + b"A" * 2 * pip.LONGEST_LINE + b"\nthe next\n")
        first, second = pip.lines(printed, given)
        assert set(first) <= {"A", "*"}, position
        assert second == "the next"


def test_a_password_is_not_shown_where_the_log_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "pip.log"
    log.write_text(f"{PASSWORD}\nthe next\n")
    monkeypatch.setattr(pip, "LOG_BYTES", 15)
    assert pip.end_of(log) == "the next\n"


@pytest.mark.parametrize("marker", ["os_name ~= 'x'", "python_version ~= 'x'"])
def test_a_marker_that_cannot_be_judged_is_told_once_and_named(index: PackageIndex, marker: str) -> None:
    error = failure(f"compass; {marker}\n")
    assert (error.reason, error.final) == (Reason.REQUIREMENTS_INVALID, True)
    assert "requirements.txt:1" in error.message


def test_an_index_that_refuses_everybody(index: PackageIndex) -> None:
    index.status = 403
    assert failure("compass\n").reason is Reason.SOURCE_ACCESS_DENIED


@pytest.fixture
def one_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its usual six tries pip sleeps for eight seconds."""
    usual = Index.environment
    monkeypatch.setattr(Index, "environment", lambda index, home: {**usual(index, home), "PIP_RETRIES": "0"})


@pytest.mark.usefixtures("one_try")
def test_a_certificate_of_an_unknown_authority(index: PackageIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOURCE_CA_BUNDLE")
    error = failure("compass\n")
    assert (error.reason, error.final) == (Reason.INDEX_UNTRUSTED, True)
    assert "is not trusted" in error.message
    assert "sources.caBundle" in error.message


@pytest.mark.usefixtures("one_try")
def test_an_index_that_does_not_answer(index: PackageIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://127.0.0.1:9/simple")
    error = failure("compass\n")
    assert (error.reason, error.final) == (Reason.SOURCE_UNREACHABLE, False)
    assert "127.0.0.1:9 cannot be read" in error.message


def test_a_full_claim() -> None:
    said = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"
    error = pip_words.failure(said, "", "index.example")
    assert (error.reason, error.final) == (Reason.STORAGE_FULL, False)


def test_words_that_nobody_knows_are_quoted() -> None:
    # A wheel may require a package of such a name.
    error = pip_words.failure(f"ERROR: No matching distribution found for {'x' * 300_000}", "", "index.example")
    assert error.message.startswith("pip failed: ERROR: No matching distribution found for xxx")
    error = pip_words.failure("Collecting compass\nERROR: the moon is in the way\n", "", "index.example")
    assert error.reason is Reason.CRASHED
    assert "the moon is in the way" in error.message


def test_of_two_versions_the_image_has_the_one_that_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, version in (("first", "2.0"), ("second", "1.0")):
        info = tmp_path / folder / f"twice-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: twice\nVersion: {version}\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "first"), str(tmp_path / "second")])
    assert {name: str(each.version) for name, each in image.installed().items()} == {"twice": "2.0"}


@pytest.fixture
def inconsistent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An image with a package that requires a version of another one that the image has not, and has an extra."""
    info = tmp_path / "more" / "forge-2.6.0+debian.dist-info"
    info.mkdir(parents=True)
    requires = 'numpy<1.20\nRequires-Dist: absent\nProvides-Extra: maps\nRequires-Dist: compass; extra == "maps"'
    known = "Metadata-Version: 2.1\nName: forge\nVersion: 2.6.0+debian"
    (info / "METADATA").write_text(f"{known}\nRequires-Dist: {requires}\n")
    monkeypatch.syspath_prepend(str(info.parent))


@pytest.mark.usefixtures("inconsistent")
def test_what_the_image_has_is_complete_whatever_its_metadata_say(index: PackageIndex) -> None:
    index.files.update([wheel("anvil", requires=["forge>=2"])])
    assert install("anvil\nforge==2.6.0\n").packages == ("anvil==1.0",)


@pytest.mark.usefixtures("inconsistent")
def test_an_extra_of_what_the_image_has_is_installed(index: PackageIndex) -> None:
    assert install("forge[maps]\n").packages == ("compass==1.1",)


def test_an_index_that_redirects_to_plain_http_is_not_followed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip would send the index's password there, if it is asked for it."""
    asked: list[str] = []

    class Plain(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(401)

    with ThreadingHTTPServer(("127.0.0.1", 0), Plain) as plain:
        threading.Thread(target=plain.serve_forever, args=(0.02,), daemon=True).start()
        server.behaviour.redirects["/simple/surveyor/"] = f"http://127.0.0.1:{plain.server_port}/simple/surveyor/"
        monkeypatch.setenv("PIP_INDEX_URL", f"https://ann:{PASSWORD}@{server.host}/simple")
        error = failure("surveyor\n")
        plain.shutdown()
    assert error.reason is Reason.INDEX_UNTRUSTED
    assert "redirects to another address than one with https; have it answer by https itself" in error.message
    assert asked == []


@pytest.mark.parametrize("link", ["file://{folder}/{name}", "http://{host}/{name}", "git+https://{host}/{name}"])
def test_what_an_index_links_to_by_anything_but_https_is_overlooked(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: str
) -> None:
    name, content = wheel("surveyor")
    (tmp_path / name).write_bytes(content)
    page = f'<a href="{link.format(folder=tmp_path, host=server.host, name=name)}">{name}</a>'
    server.behaviour.hub = LinkingIndex(page=page)
    monkeypatch.setenv("PIP_INDEX_URL", f"https://{server.host}/simple")
    error = failure("surveyor\n")
    assert (error.reason, error.final) == (Reason.PACKAGE_NOT_FOUND, True)
    assert "has nothing for surveyor" in error.message
    assert {each["path"] for each in server.behaviour.seen} == {"/simple/surveyor/"}
