"""One release of small images into a real registry, looked at from outside: by cosign, helm, pip and plain HTTP."""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.devcluster.binaries import program
from hack.imagebuild import inputs
from hack.release import archive, sample, site
from hack.site.check import faults
from tests.release import commands
from tests.release.conftest import VERSION, Released, generate_key
from tests.release.registry import Registry
from tests.release.tree import DOWNLOADS, NAME, ROOT

pytestmark = pytest.mark.release
NAMES = {*inputs.names(), sample.NAME, NAME}
ENVIRONMENTS = {"operator": "", "converter": "CONVERTER_IMAGE", "converter-tensorflow": "CONVERTER_TENSORFLOW_IMAGE"}


def cosign(*argv: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([str(program("cosign")), *argv], capture_output=True, text=True, check=False)


def helm(*argv: str) -> str:
    done = subprocess.run([str(program("helm")), *argv], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def images(bodies: list[dict[str, Any]]) -> dict[str, str]:
    """The images of the operator's pod and of its environment, by variable."""
    deployment = next(body for body in bodies if body["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    found = {each["name"]: each["value"] for each in container["env"] if each["name"].endswith("_IMAGE")}
    return found | {"": container["image"]}


def test_each_step_prints_one_line(released: Released) -> None:
    for name, (repository, digest) in released.digests.items():
        assert f"{repository}:{VERSION}@{digest} pushed" in released.lines
        assert f"{repository}@{digest} signed" in released.lines
        assert (f"{name}.cdx.json written" in released.lines) is (name in inputs.names())
    assert released.lines[-1] == f"{released.files} has the files of the release"


def test_the_registry_has_every_image_by_its_digest(released: Released, registry: Registry) -> None:
    assert released.digests.keys() == NAMES
    for repository, digest in released.digests.values():
        path = repository.removeprefix(f"{registry.host}/")
        assert registry.pull(path, digest)["layers"]
        assert registry.manifest(path, VERSION) == registry.manifest(path, digest)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_the_key_verifies_the_signature_and_no_other_does(released: Released, name: str, tmp_path: Path) -> None:
    reference = "@".join(released.digests[name])
    trusted, stranger = released.files / "cosign.pub", generate_key(tmp_path).with_suffix(".pub")
    verified = cosign("verify", "--key", str(trusted), "--insecure-ignore-tlog", reference)
    assert verified.returncode == 0, verified.stderr
    (signature,) = json.loads(verified.stdout)
    assert signature["critical"]["image"]["docker-manifest-digest"] == released.digests[name][1]
    assert cosign("verify", "--key", str(stranger), "--insecure-ignore-tlog", reference).returncode != 0


def test_the_chart_of_the_registry_names_exactly_these_digests(
    released: Released, registry: Registry, tmp_path: Path
) -> None:
    url = f"oci://{registry.host}/small/charts/{NAME}"
    helm("pull", url, "--version", VERSION, "--plain-http", "--destination", str(tmp_path))
    package = tmp_path / f"{NAME}-{VERSION}.tgz"
    found = images(list(yaml.safe_load_all(helm("template", NAME, str(package), "--set", "server.cpu=true"))))
    expected = {**ENVIRONMENTS, "tritonserver-cpu": "SERVER_IMAGE"}
    digests = released.digests
    named = {expected[name]: f"{digests[name][0]}:{VERSION}@{digests[name][1]}" for name in expected}
    assert found == {**named, "CONVERTER_GPU_IMAGE": ""}, "only a release with GPU=1 has that image"


def test_the_manifest_names_the_same_digests(released: Released) -> None:
    bodies = list(yaml.safe_load_all((released.files / "install.yaml").read_text()))
    assert bodies[0] == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAME, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
    }
    assert [
        body["metadata"]["name"] for body in bodies if "helm.sh/hook" in body["metadata"].get("annotations", {})
    ] == []
    found = images(bodies)
    for name, variable in ENVIRONMENTS.items():
        assert found[variable] == f"{released.digests[name][0]}:{VERSION}@{released.digests[name][1]}"


def test_the_checksums_hold_and_are_signed(released: Released, tmp_path: Path) -> None:
    subprocess.run(["sha256sum", "--check", "--quiet", "checksums.txt"], cwd=released.files, check=True)
    listed = {line.split()[1] for line in (released.files / "checksums.txt").read_text().splitlines()}
    bundle = released.files / "checksums.txt.sigstore.json"
    assert listed == {path.name for path in released.files.iterdir()} - {"checksums.txt", bundle.name}
    forged = tmp_path / "checksums.txt"
    forged.write_text("")
    for path, is_valid in ((released.files / "checksums.txt", True), (forged, False)):
        how = ("--key", str(released.files / "cosign.pub"), "--insecure-ignore-tlog", "--bundle", str(bundle))
        assert (cosign("verify-blob", *how, str(path)).returncode == 0) is is_valid


def test_everybody_may_read_the_files(released: Released) -> None:
    assert [path.name for path in released.files.iterdir() if path.stat().st_mode & 0o444 != 0o444] == []


def test_the_sbom_of_the_operator_names_what_is_in_its_image(released: Released) -> None:
    document = json.loads((released.files / "operator.cdx.json").read_text())
    repository, digest = released.digests["operator"]
    assert document["metadata"]["component"]["name"] == repository
    assert digest.removeprefix("sha256:") in document["metadata"]["component"]["purl"]
    purls = {component["purl"].partition("@")[0] for component in document["components"]}
    assert {"pkg:pypi/kopf", "pkg:deb/debian/tini", "pkg:deb/debian/libc6"} <= purls


def test_the_wheel_runs(released: Released, tmp_path: Path) -> None:
    (wheel,) = released.files.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path), str(wheel)]
    subprocess.run(pip, check=True)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    argv = [sys.executable, str(tmp_path / "bin" / "kubectl-triton"), "--help"]
    done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "validate" in done.stdout


def unpacked(released: Released, folder: Path) -> Path:
    """The folder of the archive."""
    with tarfile.open(released.files / archive.name(VERSION)) as tar:
        tar.extractall(folder, filter="data")
    return folder / archive.FOLDER


def test_the_archive_runs_without_python(released: Released, tmp_path: Path) -> None:
    plugin = unpacked(released, tmp_path) / archive.PROGRAM
    sample, run = ROOT / "manifests/samples/smallest.yaml", ROOT / "tests/report/recorded/digits.yaml"
    report = tmp_path / "digits.html"
    for words, expected in (
        (["--version"], f"{VERSION}\n"),
        (["validate", str(sample)], f"{sample}: smallest: valid\n"),
        (["report", str(run), "--file", str(report)], ""),
    ):
        argv = ["/usr/bin/env", "-i", f"HOME={tmp_path}", "PATH=/nonexistent", str(plugin), *words]
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, expected), done.stderr
    assert "<svg" in report.read_text(), "with its plots"


def test_the_archive_is_installed_as_the_page_says(released: Released, tmp_path: Path) -> None:
    paths = f"{tmp_path}/.local/bin:{program('kubectl').parent}:/usr/bin:/bin"
    environment = {"HOME": str(tmp_path), "PATH": paths, "VERSION": VERSION}
    said = subprocess.run(
        ["bash", "-euc", commands.ARCHIVE],
        cwd=released.files,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (said.returncode, said.stdout) == (0, f"{VERSION}\n"), said.stderr


def test_the_archive_has_what_a_push_sends_and_what_it_passes_on(released: Released, tmp_path: Path) -> None:
    folder = unpacked(released, tmp_path)
    assert (folder / "_internal/triton_plugin/drafting/push/receiver.py").exists(), "a push sends its text"
    assert "Apache License" in (folder / "LICENSE").read_text()
    assert list((folder / "licenses").glob("numpy-*/**/LICENSE*"))


def test_the_completion_of_the_archive_answers(released: Released, tmp_path: Path) -> None:
    argv = [str(unpacked(released, tmp_path) / "kubectl_complete-triton"), "report", "digits", "-o", "h"]
    said = subprocess.run(argv, capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin"}).stdout
    assert said == "html\n:4\n"


def test_the_site_of_the_archive_has_every_page_and_no_link_that_leads_to_nothing(
    released: Released, tmp_path: Path
) -> None:
    with tarfile.open(released.files / site.name(VERSION)) as tar:
        tar.extractall(tmp_path, filter="data")
    folder = tmp_path / site.folder(VERSION)
    assert {"index.html", "install", "releasing", "api"} <= {path.name for path in folder.iterdir()}
    assert faults(folder) == []


def test_krews_manifest_names_the_archive(released: Released) -> None:
    (platform,) = yaml.safe_load((released.files / "triton.yaml").read_text())["spec"]["platforms"]
    assert platform["uri"] == f"{DOWNLOADS}/{archive.name(VERSION)}"
    listed = (released.files / "checksums.txt").read_text().splitlines()
    assert f"{platform['sha256']}  {archive.name(VERSION)}" in listed


def test_a_version_is_released_once(released: Released, registry: Registry, key: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in released.files.iterdir()}
    again = released.tree.release(f"{registry.host}/small", VERSION, key)
    assert again.returncode == 1
    url = f"oci://{registry.host}/small/charts/{NAME}"
    assert again.stderr == f"release: {url} has version {VERSION} already: choose another VERSION\n"
    assert {path: path.stat().st_mtime_ns for path in released.files.iterdir()} == before
