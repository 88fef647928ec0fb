"""The parts of a release that need neither a registry nor images."""

import json
import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from string import Template

import pytest
import yaml
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation import make_schemabased_validator

from hack.devcluster.paths import ClusterError
from hack.imagebuild.engine import Buildah, Engine
from hack.release import chart, sample, sbom
from hack.release.checks import check, versions
from hack.release.error import ReleaseError
from hack.release.images import Published, chart_values, is_local
from hack.release.signing import Signer
from hack.release.tree import checksums
from tests.release import commands
from tests.release.tree import IDENTITY, ROOT
from triton_plugin.__main__ import main as plugin

DIGEST = "sha256:" + "0" * 64
IMAGES = [
    Published(name, f"registry.example/team/{name}", "1.2.3", DIGEST)
    for name in ("operator", "converter", "converter-tensorflow", "digits-trainer", "tritonserver-cpu")
]
VALUES = (ROOT / "charts/triton-operator/values.yaml").read_text()


@dataclass
class Ran:
    """Stands in for a program: it notes its arguments, and prints a text."""

    printed: str
    argvs: list[list[str]] = field(default_factory=list)

    def __call__(self, argv: list[str], **_: object) -> str:
        """Run nothing."""
        self.argvs.append(argv)
        return self.printed


def test_every_place_names_one_version() -> None:
    assert len(set(versions(ROOT).values())) == 1, versions(ROOT)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A committed tree of version 1.2.3."""
    (tmp_path / "charts/triton-operator").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    (tmp_path / "charts/triton-operator/Chart.yaml").write_text("version: 1.2.3\nappVersion: 1.2.3\n")
    for argv in (("init", "--quiet"), ("add", "--all"), (*IDENTITY, "commit", "--quiet", "--message", "x")):
        subprocess.run(["git", *argv], cwd=tmp_path, check=True)
    return tmp_path


def test_a_committed_tree_of_the_version_may_be_released(tree: Path) -> None:
    check(tree, "registry.example:5000/team", "1.2.3")


@pytest.mark.parametrize(
    ("registry", "version", "message"),
    [
        ("", "1.2.3", "REGISTRY is ''"),
        ("https://registry.example", "1.2.3", "without a scheme"),
        ("registry.example", "", "VERSION is ''"),
        ("registry.example", "v1.2.3", "as in 1.2.3"),
        ("registry.example", "1.2.3+4", "as in 1.2.3"),
        ("registry.example", "1.2.4", "but version in pyproject.toml is 1.2.3"),
    ],
)
def test_what_cannot_become_a_release_is_refused(tree: Path, registry: str, version: str, message: str) -> None:
    with pytest.raises(ReleaseError, match=message):
        check(tree, registry, version)


def test_changes_that_are_not_committed_are_refused(tree: Path) -> None:
    (tree / "new").touch()
    with pytest.raises(ReleaseError, match=r"the working tree has changes: .*\?\? new"):
        check(tree, "registry.example", "1.2.3")


def test_fragments_that_are_in_no_section_of_the_changelog_are_refused(tree: Path) -> None:
    (tree / "changelog.d").mkdir()
    for name in ("README.md", "+words.fixed.md"):
        (tree / "changelog.d" / name).write_text("Words.\n")
    for argv in (("add", "--all"), (*IDENTITY, "commit", "--quiet", "--message", "x")):
        subprocess.run(["git", *argv], cwd=tree, check=True)
    with pytest.raises(ReleaseError, match=r"still has \+words\.fixed\.md: run `make changelog VERSION=1\.2"):
        check(tree, "registry.example", "1.2.3")


def test_a_tag_of_another_commit_is_refused(tree: Path) -> None:
    subprocess.run(["git", *IDENTITY, "tag", "--annotate", "--message", "x", "v1.2.3"], cwd=tree, check=True)
    check(tree, "registry.example", "1.2.3")
    argv = ["git", *IDENTITY, "commit", "--quiet", "--allow-empty", "--message", "y"]
    subprocess.run(argv, cwd=tree, check=True)
    with pytest.raises(ReleaseError, match=r"the tag v1\.2\.3 names another commit"):
        check(tree, "registry.example", "1.2.3")


def test_the_values_of_a_release_name_its_images_and_change_nothing_else() -> None:
    filled = chart.with_images(VALUES, chart_values(IMAGES))
    before, after = yaml.safe_load(VALUES), yaml.safe_load(filled)
    nvidia = before["images"]["server"]
    expected = {"repository": "registry.example/team/operator", "tag": "1.2.3", "digest": DIGEST}
    assert after["images"]["operator"] == expected
    assert {each["digest"] for each in after["images"].values()} == {DIGEST, nvidia["digest"]}
    assert after["images"]["server"] == nvidia
    assert after | {"images": before["images"]} == before
    assert filled.count("#") == VALUES.count("#")


def test_an_image_without_a_place_in_the_values_is_refused() -> None:
    filled = chart.with_images(VALUES, chart_values(IMAGES))
    with pytest.raises(ReleaseError, match=r"0 empty places for images\.operator"):
        chart.with_images(filled, chart_values(IMAGES))


@pytest.mark.parametrize("said", ["not found", "response status code 404: name unknown"])
def test_a_chart_that_the_registry_lacks_is_free(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    def run(*_: object) -> str:
        raise ClusterError(f"`helm show chart` failed: {said}")

    monkeypatch.setattr(chart, "run", run)
    chart.refuse_existing("registry.example", "1.2.3")


def test_a_registry_that_does_not_say_so_is_no_free_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object) -> str:
        raise ClusterError("`helm show chart` failed: 401: unauthorized")

    monkeypatch.setattr(chart, "run", run)
    with pytest.raises(ClusterError, match="unauthorized"):
        chart.refuse_existing("registry.example", "1.2.3")


@pytest.mark.parametrize(
    ("registry", "local"),
    [("127.0.0.1:5000/team", True), ("localhost:5000", True), ("registry.example/team", False), ("127.example", False)],
)
def test_plain_http_is_for_this_machine_alone(registry: str, local: bool) -> None:
    assert is_local(registry) is local


def test_the_builders_push_and_say_the_digest(tmp_path: Path) -> None:
    digest = tmp_path / "digest"
    names = ("triton-operator.local/operator:1", "registry.example/operator:1.2.3")
    for engine, plain in ((Engine("podman"), True), (Buildah(tmp_path), True), (Engine("podman"), False)):
        (argv,) = engine.push(*names, digest, plain_http=plain)
        assert argv[-4:] == ["--digestfile", str(digest), names[0], f"docker://{names[1]}"]
        assert ("--tls-verify=false" in argv) is plain
    docker = Engine("docker").push(*names, digest, plain_http=False)
    assert docker == [["docker", "tag", *names], ["docker", "push", names[1]]]


@pytest.mark.parametrize(
    "name", ["operator", "image-converter", "image-converter-tensorflow", "image-tritonserver-cpu"]
)
def test_the_sbom_is_valid_and_has_every_package(name: str) -> None:
    lock = (ROOT / f"requirements/{name}.txt").read_text()
    packages = "debian 13\nlibc6\t2.41-12\tamd64\ntzdata\t2026a-0+deb13u1\tall\n"
    text = sbom.document(IMAGES[0], lock, packages)
    assert make_schemabased_validator(OutputFormat.JSON, SchemaVersion.V1_6).validate_str(text) is None
    document = json.loads(text)
    purls = {component["purl"] for component in document["components"]}
    assert "pkg:deb/debian/libc6@2.41-12?arch=amd64&distro=debian-13" in purls
    locked = [line.split()[0] for line in lock.splitlines() if "==" in line]
    assert {purl for purl in purls if purl.startswith("pkg:pypi/")} <= {
        f"pkg:pypi/{pin.replace('==', '@')}" for pin in locked
    }
    assert document["metadata"]["component"]["version"] == "1.2.3"


def test_the_sbom_leaves_out_what_the_images_python_does_not_install() -> None:
    lock = "a==1 ; sys_platform == 'win32' \\\n    --hash=sha256:00\n    # via b\nb==2 \\\n    --hash=sha256:01\n"
    assert [(each.name, each.version) for each in sbom.python_packages(lock)] == [("b", "2")]


@pytest.mark.parametrize(("key", "message"), [("", "KEY is empty"), ("cosign.key", "COSIGN_PASSWORD is not set")])
def test_a_key_that_cannot_sign_ends_the_release_before_it_begins(
    key: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COSIGN_PASSWORD", raising=False)
    with pytest.raises(ReleaseError, match=message):
        Signer(key, tmp_path).public_key()


def test_checksums_are_those_of_sha256sum(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("b")
    (tmp_path / "a").write_text("a")
    printed = subprocess.run(["sha256sum", "a", "b"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert checksums(tmp_path) == printed


def test_the_suite_knows_every_command_of_the_page_that_installs() -> None:
    known = commands.RUN | {commands.ARCHIVE} | set(commands.NOT_RUN)
    assert commands.typed() == known, "run it in test_cluster.py, or say in commands.py why not"


def test_the_page_runs_the_sample_from_the_registry(capsys: pytest.CaptureFixture[str]) -> None:
    """What the plugin makes of the page's command is a whole object, and the model is a file of the artifact."""
    line = Template(commands.SERVE).substitute(REGISTRY="registry.example/team", VERSION="1.2.3")
    kubectl, triton, *words = shlex.split(line)
    assert (kubectl, triton) == ("kubectl", "triton")
    assert plugin([*words, "--dry-run"]) == 0
    spec = yaml.safe_load(capsys.readouterr().out)["spec"]
    assert spec["source"]["uri"] == f"oci://registry.example/team/samples/{sample.NAME}:1.2.3"
    assert (ROOT / sample.FOLDER / spec["models"][0]["path"]).is_file()


@pytest.mark.parametrize(("registry", "plain"), [("127.0.0.1:5000/team", True), ("registry.example/team", False)])
def test_the_sample_is_pushed_with_all_its_files(registry: str, plain: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = Ran(f"{DIGEST}\n")
    monkeypatch.setattr(sample, "executable", str)
    monkeypatch.setattr(sample, "run", ran)
    pushed = sample.push(ROOT, registry, "1.2.3")
    assert pushed.line == f"{registry}/samples/digits:1.2.3@{DIGEST}"
    (argv,) = ran.argvs
    assert ("--plain-http" in argv) is plain
    files = argv[argv.index(f"{registry}/samples/digits:1.2.3") + 1 :]
    tracked = subprocess.run(["git", "ls-files", sample.FOLDER], cwd=ROOT, capture_output=True, text=True, check=True)
    assert [f"{sample.FOLDER}/{each}" for each in files] == tracked.stdout.splitlines()


def test_a_push_that_names_no_digest_is_no_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "executable", str)
    monkeypatch.setattr(sample, "run", Ran("Pushed\n"))
    with pytest.raises(ReleaseError, match=r"samples/digits:1\.2\.3, but names no digest: it said 'Pushed'"):
        sample.push(ROOT, "registry.example", "1.2.3")


def test_the_manifest_leaves_out_what_only_helm_removes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = Ran("kind: Deployment\n")
    monkeypatch.setattr(chart, "executable", str)
    monkeypatch.setattr(chart, "run", ran)
    assert chart.manifest(tmp_path / "chart.tgz", "1.2.3").endswith("restricted\nkind: Deployment\n")
    assert "--skip-tests" in ran.argvs[0]
