"""Objects that are checked and published on this machine, to a registry on loopback."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.converters.published import new_key, pem, public_pem
from tests.converters.registry_server import a_docker_config
from tests.e2e.outside import Outside, outside
from tests.local.checking import ROOT
from tests.local.doors.doors import ByCheck
from tests.local.doors.objects import Given, Images, Place
from triton_converters.contract.predicate import Predicate
from triton_converters.fetch import connection, image
from triton_converters.fetch.registry import Repository
from triton_converters.publish import signatures
from triton_converters.publish.keys import public_key
from triton_converters.publish.push import Registry

ADDRESS = "127.0.0.1"
PUBLISHED = re.compile(r"Published (\S+)@(sha256:[0-9a-f]{64})")
BY_IMAGES = "tests.local.checking"
KEY, PUBLIC_KEY = "cosign.key", "cosign.pub"


@dataclass(frozen=True)
class Published:
    """An image in the registry, signed with its report."""

    name: str
    """HOST/REPOSITORY."""
    digest: str
    predicate: Predicate

    @property
    def reference(self) -> str:
        """The image by its digest."""
        return f"{self.name}@{self.digest}"


@dataclass(frozen=True)
class Door:
    """`kubectl triton check --publish`, with a key and a registry of its own."""

    folder: Path
    outside: Outside
    images: Images | None
    """What stands for an installation by pip; None: nothing does."""

    @property
    def public_key(self) -> Path:
        """The public key in PEM."""
        return self.folder / PUBLIC_KEY

    def publish(self, name: str, make: Callable[[Place], Given]) -> Published:
        """Check an object, publish it as REGISTRY/team/NAME with its samples. Raises AssertionError if that fails."""
        to = f"oci://{self.outside.registry.host}/team/{name}:v1"
        words = ("--publish", to, "--signing-key", str(self.folder / KEY), "--publish-samples")
        program: tuple[str, ...] = ("triton_plugin", "check")
        if self.images is not None:
            program = (BY_IMAGES, str(self.images.converter[1]), str(self.images.server[1]))
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            given = make(Place(Path(folder), self.outside, self.images or built()))
            ByCheck(self.outside.authority, (*program, *words)).run(given, Path(folder))
            said = Path(folder, "printed").read_text(encoding="utf-8")
        found = PUBLISHED.search(said)
        assert found is not None, said
        return Published(found[1], found[2], self._predicate(f"team/{name}", found[2]))

    def registry(self, name: str) -> Registry:
        """A repository of the registry, by its account."""
        account = json.loads(a_docker_config(self.outside.registry.host))["auths"][self.outside.registry.host]["auth"]
        return Registry(Repository(self.outside.registry.host, name, f"Basic {account}", "pull,push"))

    def unpacked(self, published: Published, folder: Path) -> Path:
        """The image's files as any program unpacks its layers, one over the other."""
        folder.mkdir()
        registry = self.registry(published.name.partition("/")[2])
        manifest = registry.manifest(published.digest)
        assert manifest is not None
        for layer in image.of(registry.repository, manifest, published.reference) or []:
            content = self.outside.registry.folder / f"docker/registry/v2/blobs/sha256/{layer.digest[7:9]}"
            subprocess.run(["tar", "-x", "-C", folder, "-f", content / layer.digest[7:] / "data"], check=True)
        return folder

    def _predicate(self, name: str, digest: str) -> Predicate:
        key = public_key(self.public_key.read_bytes())
        (told,) = signatures.predicates(self.registry(name), key, digest)
        return Predicate.from_value(told)


def built() -> Images:
    """The images of this tree."""
    argv = [sys.executable, "-m", "hack.imagebuild", "build", "--json", "converter", "tritonserver-cpu"]
    told = json.loads(subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    converter, server = ((each["reference"], Path(each["archive"])) for each in told)
    return Images(converter, server)


@contextmanager
def door(folder: Path, images: Images | None = None) -> Iterator[Door]:
    """Have a key and a registry until the end of the block; DOCKER_CONFIG and SSL_CERT_FILE name its account and CA."""
    key = new_key()
    (folder / KEY).write_bytes(pem(key))
    (folder / PUBLIC_KEY).write_bytes(public_pem(key))
    (folder / "outside").mkdir()
    with outside(folder / "outside", ADDRESS) as servers:
        (folder / "config.json").write_text(a_docker_config(servers.registry.host), encoding="utf-8")
        told = {"DOCKER_CONFIG": str(folder), "SSL_CERT_FILE": str(servers.authority)}
        os.environ |= told | {connection.CA_BUNDLE: servers.authority.read_text(encoding="utf-8")}
        yield Door(folder, servers, images)
