"""Three ways to a published image's models: a folder, an image volume of containerd, and KServe's own code."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hack.devcluster.addresses import BUSYBOX_IMAGE
from hack.devcluster.binaries import program
from hack.devcluster.images import write_busybox_archive
from hack.imagebuild.pod import free_ports
from tests.converters.environments import environment
from tests.converters.registry_server import PASSWORD, USER, serving
from tests.local.checking import ROOT
from tests.local.doors.objects import Images
from tests.publishing.door import Door, Published

MODELS = "/mnt/models"
"""Where KServe has a server find its models."""
NOBODY = 65534
SECONDS = 300
KSERVE = "import sys; from kserve_storage import Storage; Storage.download(sys.argv[1], sys.argv[2])"
UNUSED_PLUGINS = (
    "io.containerd.internal.v1.opt",  # would create /opt/containerd
    "io.containerd.nri.v1.nri",
    "io.containerd.snapshotter.v1.blockfile",
    "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper",
    "io.containerd.snapshotter.v1.erofs",
    "io.containerd.snapshotter.v1.zfs",
    "io.containerd.differ.v1.erofs",
    "io.containerd.tracing.processor.v1.otlp",
)


def _server(ports: Sequence[int]) -> list[str]:
    names = ("http", "grpc", "metrics")
    told = [f"--{name}-port={port}" for name, port in zip(names, ports, strict=True)]
    return ["tritonserver", f"--model-repository={MODELS}", *told, "--http-address=127.0.0.1"]


@contextmanager
def on_folder(models: Path, log: Path) -> Iterator[Sequence[int]]:
    """A server of a folder, which it may not write, as an ordinary user; yields its ports."""
    ports = free_ports()
    argv = [sys.executable, "-m", "hack.imagebuild", "run", "tritonserver-cpu", "--user", "1000:1000"]
    argv += ["--mount", f"{models}:{MODELS}:ro", "--", *_server(ports)]
    with log.open("w") as output:
        process = subprocess.Popen(argv, cwd=ROOT, stdout=output, stderr=output)
        try:
            yield ports
        finally:
            process.terminate()
            process.wait(SECONDS)


def by_kserve(door: Door, published: Published, folder: Path) -> Path:
    """The models as KServe's storage initializer downloads them of `oci+fetch://`.

    It takes the realm of basic authentication for a server of tokens, so the registry asks it for nothing.
    """
    (authorities := folder.with_suffix(".ca")).mkdir()
    shutil.copy(door.outside.authority, authorities / "cabundle.crt")
    (public := folder.with_suffix(".registry")).mkdir()
    (public / "storage").symlink_to(door.outside.registry.folder)
    certificate = door.outside.authority.with_name("server.pem")
    variables = {"PATH": os.environ["PATH"], "HOME": str(public), "CA_BUNDLE_VOLUME_MOUNT_POINT": str(authorities)}
    with serving(public, certificate, door.outside.authority, is_public=True) as registry:
        uri = f"oci://{registry.host}/{published.reference.partition('/')[2]}"
        argv = [str(environment("kserve") / "bin/python3"), "-c", KSERVE, uri, str(folder)]
        subprocess.run(argv, env=variables, check=True, timeout=SECONDS)
    return folder


class Containerd:
    """A containerd 2.2 of its own, which mounts images as volumes into pods that share this machine's network."""

    def __init__(self, folder: Path, door: Door, server: str) -> None:
        """``server``: the image of tritonserver."""
        self._folder, self._door, self._server = folder, door, server
        self._endpoint = f"unix://{folder}/containerd.sock"

    def crictl(self, *words: str) -> str:
        """Run crictl, and return what it prints."""
        (settings := self._folder / "crictl.yaml").touch()
        argv: list[str | Path] = [program("crictl"), "--config", settings, "--runtime-endpoint", self._endpoint]
        argv += ["--image-endpoint", self._endpoint, "--timeout", f"{SECONDS}s", *words]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()

    def version(self) -> str:
        """What it tells of itself."""
        return self.crictl("version").replace("\n", ", ")

    @contextmanager
    def on_volume(self, published: Published, log: Path) -> Iterator[Sequence[int]]:
        """A server whose models are the image's folder, mounted with a subPath; yields its ports."""
        ports = free_ports()
        self.crictl("pull", "--creds", f"{USER}:{PASSWORD}", published.reference)
        (scratch := self._folder / published.predicate.revision.model).mkdir(mode=0o777)
        scratch.chmod(0o777)
        host = {"namespace_options": {"network": 2}}
        pod = {
            "metadata": {"name": scratch.name, "namespace": "publishing", "uid": scratch.name, "attempt": 0},
            "log_directory": str(scratch),
            "linux": {"cgroup_parent": "/triton-publishing", "security_context": host},
        }
        volume = {"image": {"image": published.reference}, "image_sub_path": "models", "readonly": True}
        container = {
            "metadata": {"name": "tritonserver"},
            "image": {"image": self._server},
            "args": _server(ports),
            "log_path": "log",
            "mounts": [
                {"container_path": "/tmp", "host_path": str(scratch)},
                {"container_path": MODELS, **volume},
            ],
            "linux": {
                "security_context": {
                    "run_as_user": {"value": NOBODY},
                    "readonly_rootfs": True,
                    "capabilities": {"drop_capabilities": ["ALL"]},
                }
            },
        }
        files = []
        for name, body in (("pod", pod), ("container", container)):
            files.append(scratch / f"{name}.json")
            files[-1].write_text(json.dumps(body), encoding="utf-8")
        sandbox = self.crictl("runp", str(files[0]))
        try:
            started = self.crictl("create", "--no-pull", sandbox, str(files[1]), str(files[0]))
            self.crictl("start", started)
            yield ports
        finally:
            shutil.copy(scratch / "log", log)
            self.crictl("stopp", sandbox)
            self.crictl("rmp", "-f", sandbox)


@contextmanager
def containerd(folder: Path, door: Door, images: Images) -> Iterator[Containerd]:
    """Run it until the end of the block. Raises AssertionError if it does not start."""
    found = Containerd(folder, door, images.server[0])
    settings = folder / "config.toml"
    settings.write_text(_settings(folder), encoding="utf-8")
    hosts = folder / "hosts" / door.outside.registry.host
    hosts.mkdir(parents=True)
    url = f"https://{door.outside.registry.host}"
    (hosts / "hosts.toml").write_text(f'[host."{url}"]\n  ca = "{door.outside.authority}"\n', encoding="utf-8")
    programs = program("containerd").parent
    variables = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"}
    with (folder / "containerd.log").open("w") as log:
        daemon = subprocess.Popen(
            [str(programs / "containerd"), "--config", str(settings)], stdout=log, stderr=log, env=variables
        )
        try:
            _wait(daemon, found)
            write_busybox_archive(folder / "busybox.tar")
            for archive in (folder / "busybox.tar", images.server[1]):
                argv = ["ctr", "--address", str(folder / "containerd.sock"), "--namespace", "k8s.io"]
                subprocess.run([*argv, "images", "import", str(archive)], check=True, stdout=subprocess.DEVNULL)
            yield found
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(SECONDS)


def _settings(folder: Path) -> str:
    """The configuration: all below one folder, no network of pods, and no score that a container may not have."""
    plugins = "io.containerd.cri.v1"
    return f"""
version = 3
root = "{folder}/root"
state = "{folder}/state"
disabled_plugins = {json.dumps(UNUSED_PLUGINS)}
[grpc]
  address = "{folder}/containerd.sock"
[ttrpc]
  address = "{folder}/containerd.sock.ttrpc"
[plugins."{plugins}.images".pinned_images]
  sandbox = "{BUSYBOX_IMAGE}"
[plugins."{plugins}.images".registry]
  config_path = "{folder}/hosts"
[plugins."{plugins}.runtime"]
  restrict_oom_score_adj = true
  [plugins."{plugins}.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."{plugins}.runtime".containerd.runtimes.runc.options]
      Root = "{folder}/runc"
"""


def _wait(daemon: subprocess.Popen[bytes], found: Containerd) -> None:
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            found.version()
        except subprocess.CalledProcessError:
            assert daemon.poll() is None, "containerd ended; see its log"
            assert time.monotonic() < deadline
            time.sleep(0.5)
        else:
            return
