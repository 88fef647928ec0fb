"""The container builders: one class each, with the same few verbs, as argument lists without side effects."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Run:
    """A command inside an image: `mounts` are `HOST:CTR[:ro]`, `user` is `UID:GID`."""

    reference: str
    argv: tuple[str, ...]
    mounts: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str = "0:0"


class Engine:
    """docker and podman, whose command lines agree for all that is needed here."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.command: list[str] = [program]

    def exists(self, reference: str) -> list[str]:
        """Exit with 0 if the image is there."""
        return [*self.command, "image", "inspect", reference]

    def build(
        self, reference: str, base: str, context: Path, dockerfile: Path, secrets: Mapping[str, Path]
    ) -> list[str]:
        """Build the Dockerfile in the context and tag the result with `reference`."""
        return [
            *self.command, "build", "--tag", reference, "--file", str(dockerfile),
            "--build-arg", f"BASE_IMAGE={base}", *_secrets(secrets), str(context),
        ]  # fmt: skip

    def save(self, reference: str, archive: Path) -> list[str]:
        """Write the image into an archive of docker's format."""
        form = ["--format", "docker-archive"] if self.program == "podman" else []
        return [*self.command, "save", *form, "--output", str(archive), reference]

    def push(self, reference: str, target: str, digest: Path, *, plain_http: bool) -> list[list[str]]:
        """Push the image to a registry as `target`, and write its digest there into the file `digest`.

        docker writes none: it prints the digest, and takes plain HTTP for a registry on this machine by itself.
        """
        if self.program == "docker":
            return [[*self.command, "tag", reference, target], [*self.command, "push", target]]
        plain = ["--tls-verify=false"] if plain_http else []
        return [[*self.command, "push", *plain, "--digestfile", str(digest), reference, f"docker://{target}"]]

    def remove(self, reference: str) -> list[str]:
        """Remove the image's tag, and the layers that nothing else needs."""
        return [*self.command, "rmi", reference]

    def run(self, run: Run) -> list[str]:
        """Run a command on the host's network, and remove the container after it."""
        return [
            *self.command, "run", "--rm", "--init", "--network", "host", "--user", run.user,
            *[word for mount in run.mounts for word in ("--volume", mount)],
            *[word for key, value in run.environment.items() for word in ("--env", f"{key}={value}")],
            "--entrypoint", run.argv[0], run.reference, *run.argv[1:],
        ]  # fmt: skip


class Buildah(Engine):
    """buildah without a container runtime: storage of its own below `storage`, and chroot isolation.

    Chroot isolation works where namespaces or control groups are not to be had, e.g. inside a container.
    """

    def __init__(self, storage: Path) -> None:
        super().__init__("buildah")
        self.command = [
            "buildah", "--storage-driver", "overlay",
            "--root", str(storage / "root"), "--runroot", str(storage / "run"),
        ]  # fmt: skip

    def exists(self, reference: str) -> list[str]:
        """Exit with 0 if the image is there."""
        return [*self.command, "inspect", "--type", "image", reference]

    def build(
        self, reference: str, base: str, context: Path, dockerfile: Path, secrets: Mapping[str, Path]
    ) -> list[str]:
        """Build the Dockerfile in the context and tag the result with `reference`; layers are kept."""
        return [
            *self.command, "bud", "--isolation", "chroot", "--layers", "--pull=false", "--format", "docker",
            "--tag", reference, "--file", str(dockerfile), "--build-arg", f"BASE_IMAGE={base}",
            *_secrets(secrets), str(context),
        ]  # fmt: skip

    def save(self, reference: str, archive: Path) -> list[str]:
        """Write the image into an archive of docker's format."""
        return [*self.command, "push", "--quiet", reference, f"docker-archive:{archive}:{reference}"]

    def run_in(self, container: str, run: Run) -> list[str]:
        """Run a command in a working container on the host's network."""
        return [
            *self.command, "run", "--isolation", "chroot", "--user", run.user,
            *[word for mount in run.mounts for word in ("--volume", mount)],
            *[word for key, value in run.environment.items() for word in ("--env", f"{key}={value}")],
            container, "--", *run.argv,
        ]  # fmt: skip


def _secrets(secrets: Mapping[str, Path]) -> list[str]:
    return [word for name, path in secrets.items() for word in ("--secret", f"id={name},src={path}")]


def find(cache: Path) -> Engine:
    """Pick the first builder there is: docker with a running engine, podman, buildah.

    Raises FileNotFoundError if there is none.
    """
    if shutil.which("docker") and _docker_runs():
        return Engine("docker")
    if shutil.which("podman"):
        return Engine("podman")
    if shutil.which("buildah"):
        return Buildah(cache / "buildah")
    raise FileNotFoundError(
        "no docker with a running engine, no podman, no buildah: install one, e.g. apt-get install buildah debootstrap"
    )


def _docker_runs() -> bool:
    """Whether docker's engine listens; asking its client would take most of a second."""
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    return not host.startswith("unix://") or Path(host.removeprefix("unix://")).is_socket()
