"""What makes an image, and that an unchanged one is not built again."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hack.imagebuild import inputs, machine, store
from hack.imagebuild.engine import Buildah, Engine
from tests.images.server import ROOT

DOCKERFILE = """
ARG BASE_IMAGE
FROM ${BASE_IMAGE} AS first
COPY one.txt folder /there/
FROM ${BASE_IMAGE}
COPY --from=first /there /here
COPY --chown=1000 code/ /code/
RUN true
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("images/app/Dockerfile", "one.txt", "folder/two.txt", "code/a.py", "code/__pycache__/a.pyc", "other"):
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(DOCKERFILE if path.name == "Dockerfile" else name)
    return tmp_path / "project"


def test_inputs_are_what_the_dockerfile_copies(project: Path) -> None:
    image = inputs.read("app", "base:1", project)
    assert [str(file) for file in image.files] == [
        "images/app/Dockerfile", "one.txt", "folder/two.txt", "code/a.py",
    ]  # fmt: skip
    assert image.reference == f"triton-operator.local/app:{image.digest}"
    assert len(image.digest) == 12


def test_hash_changes_with_the_inputs_only(project: Path) -> None:
    before = inputs.read("app", "base:1", project).digest
    (project / "other").write_text("changed")
    (project / "code" / "__pycache__" / "b.pyc").write_text("new")
    os.utime(project / "one.txt", (1, 1))
    assert inputs.read("app", "base:1", project).digest == before
    assert inputs.read("app", "base:2", project).digest != before
    (project / "code" / "a.py").chmod(0o755)
    executable = inputs.read("app", "base:1", project).digest
    (project / "one.txt").write_text("changed")
    assert len({before, executable, inputs.read("app", "base:1", project).digest}) == 3


def test_context_holds_the_inputs_and_nothing_else(project: Path, tmp_path: Path) -> None:
    context = tmp_path / "context"
    context.mkdir()
    image = inputs.read("app", "base:1", project)
    inputs.stage(image, context, project)
    assert {path.relative_to(context) for path in context.rglob("*") if path.is_file()} == set(image.files)


def test_missing_inputs_are_named(project: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no image 'web': .* there are app"):
        inputs.read("web", "base:1", project)
    (project / "one.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"one\.txt: copied by a Dockerfile"):
        inputs.read("app", "base:1", project)


@pytest.mark.parametrize("name", ["tritonserver-cpu", "digits-trainer"])
def test_images_with_torch_share_its_layer(name: str) -> None:
    def first_layers(image: str) -> list[str]:
        lines = (ROOT / inputs.dockerfile(image)).read_text().splitlines()
        shared = lines[: next(number for number, line in enumerate(lines) if line.startswith("COPY"))]
        return [line for line in shared if line and not line.startswith("#")]

    shared = first_layers(name)
    assert any("python3-torch" in line for line in shared)
    assert first_layers("converter")[: len(shared)] == shared


def test_pip_settings_reach_the_build_without_paths_of_this_machine() -> None:
    listing = (
        "global.cert='/etc/company/ca.pem'\nglobal.index-url='https://mirror.example/simple'\n"
        "install.no-deps='false'\n:env:.find-links='/opt/wheels'\n:env:.index-url='https://other.example/simple'\n"
        "user.timeout='60'\n"
    )
    merged = machine.pip_conf(listing, has_ca_bundle=True)
    assert dict(merged["global"]) == {"index-url": "https://other.example/simple", "cert": "/run/secrets/ca.crt"}
    assert dict(merged["install"]) == {"no-deps": "false"}
    assert "cert" not in machine.pip_conf(listing, has_ca_bundle=False)["global"]


def test_apt_settings_are_those_of_the_network() -> None:
    dump = (
        'APT "";\nAcquire "";\nAcquire::http::Proxy "http://proxy.example:3128";\nAcquire::Check-Date "false";\n'
        'Dir::Cache "/var/cache/apt";\nAcquire::http::Proxy-Auto-Detect "/usr/bin/x";\n'
    )
    assert machine.apt_conf(dump) == (
        'Acquire::http::Proxy "http://proxy.example:3128";\nAcquire::Check-Date "false";\n'
    )


STAND_IN = f"""#!{sys.executable}
import json, pathlib, sys
with open(pathlib.Path(__file__).with_name("calls"), "a") as file:
    file.write(json.dumps(sys.argv[1:]) + chr(10))
if sys.argv[1] == "save":
    pathlib.Path(sys.argv[sys.argv.index("--output") + 1]).write_text("archive")
if sys.argv[1] == "push" and "--digestfile" in sys.argv:
    pathlib.Path(sys.argv[sys.argv.index("--digestfile") + 1]).write_text("sha256:" + "1" * 64)
elif sys.argv[1] == "push":
    print("The push refers to repository [sha256:" + "0" * 64 + "]" + chr(10) + "1.2.3: digest: sha256:" + "1" * 64)
if sys.argv[1] == "build" and pathlib.Path(__file__).with_name("broken").exists():
    print("step 3 failed"); sys.exit(7)
"""


@pytest.fixture
def podman(tmp_path: Path) -> Engine:
    """A stand-in for podman that notes how it is called; there is no podman on the test machines."""
    program = tmp_path / "podman"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    engine = Engine("podman")
    engine.command = [str(program)]
    return engine


def calls(tmp_path: Path) -> list[list[str]]:
    return [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]


def test_build_happens_once(tmp_path: Path, podman: Engine) -> None:
    images = store.Store(podman, tmp_path / "cache")
    built = images.build("operator")
    assert Path(built.archive).read_text() == "archive"
    assert [call[0] for call in calls(tmp_path)] == ["build", "save"]
    build = calls(tmp_path)[0]
    assert build[build.index("--tag") + 1] == built.reference
    assert "BASE_IMAGE=docker.io/library/debian:trixie-slim" in build
    assert images.build("operator") == built
    assert len(calls(tmp_path)) == 2
    assert json.loads(store.as_json([built]))[0]["reference"] == built.reference


def test_failed_build_shows_the_end_of_the_log(tmp_path: Path, podman: Engine) -> None:
    (tmp_path / "broken").touch()
    with pytest.raises(
        store.BuildError, match=r"operator: .*podman exited with 7; .*operator.log ends:\nstep 3 failed"
    ):
        store.Store(podman, tmp_path / "cache").build("operator")


@pytest.mark.parametrize("program", ["podman", "docker"])
def test_a_push_returns_the_digest_that_the_builder_names(tmp_path: Path, podman: Engine, program: str) -> None:
    podman.program = program
    images = store.Store(podman, tmp_path / "cache")
    assert images.push("operator", "registry.example/operator:1.2.3", plain_http=False) == "sha256:" + "1" * 64
    assert calls(tmp_path)[-1][-1].endswith("registry.example/operator:1.2.3")


def test_old_archives_are_removed(tmp_path: Path, podman: Engine) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    for age in range(store.KEPT_ARCHIVES + 1):
        old = cache / f"operator-{age:012x}.tar"
        old.write_text("old")
        os.utime(old, (1000 - age, 1000 - age))
    store.Store(podman, cache).build("operator")
    assert len(list(cache.glob("operator-*.tar"))) == store.KEPT_ARCHIVES
    assert ["rmi", f"triton-operator.local/operator:{store.KEPT_ARCHIVES:012x}"] in calls(tmp_path)


def test_own_storage_is_below_the_cache(tmp_path: Path) -> None:
    command = Buildah(tmp_path / "buildah").command
    assert str(tmp_path / "buildah" / "root") in command
    assert str(tmp_path / "buildah" / "run") in command


@pytest.mark.images
def test_unchanged_images_are_found_and_nothing_is_built(built: dict[str, dict[str, str]]) -> None:
    archives = [Path(image["archive"]) for image in built.values()]
    before = [path.stat().st_ino for path in archives]
    argv = [sys.executable, "-m", "hack.imagebuild", "build"]
    again = subprocess.run(argv, check=True, cwd=ROOT, capture_output=True, text=True)
    assert {tuple(line.split()) for line in again.stdout.splitlines()} == {
        tuple(image.values()) for image in built.values()
    }
    assert again.stderr == "", "each step of a build is said"
    assert [path.stat().st_ino for path in archives] == before


@pytest.mark.images
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("operator", "import kopf, kubernetes, pydantic, triton_operator, triton_converters"),
        ("converter", "import onnx, onnxruntime, onnxscript, safetensors, torch, triton_converters, tritonclient.grpc"),
    ],
)
def test_images_hold_what_they_need(built: dict[str, dict[str, str]], name: str, code: str) -> None:
    argv = [sys.executable, "-m", "hack.imagebuild", "run", name, "--user", "1000:1000", "--", "python3", "-c", code]
    subprocess.run(argv, check=True, cwd=ROOT)


@pytest.mark.images
def test_run_passes_on_status_mounts_environment_and_signals(tmp_path: Path) -> None:
    run = [
        sys.executable,
        "-m",
        "hack.imagebuild",
        "run",
        "converter",
        "--mount",
        f"{tmp_path}:/out",
        "--env",
        "WORD=hello",
    ]
    done = subprocess.run([*run, "--", "sh", "-c", "echo $WORD >/out/file; exit 5"], check=False, cwd=ROOT)
    assert (done.returncode, (tmp_path / "file").read_text()) == (5, "hello\n")
    waiting = "trap 'echo stopped >/out/file; exit 3' TERM; echo ready; sleep 60 & wait"
    with subprocess.Popen([*run, "--", "sh", "-c", waiting], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()
        process.stdout.close()
        assert process.wait(20) == 3
    assert (tmp_path / "file").read_text() == "stopped\n"
