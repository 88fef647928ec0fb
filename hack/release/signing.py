"""Signatures by cosign: by a key without a transparency log, or keyless, by the identity of a workflow."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from hack.deploy.command import executable
from hack.devcluster.commands import run
from hack.release.error import ReleaseError

SECONDS = 300
MEDIA_TYPE = "application/vnd.dev.sigstore."
NO_SERVICES = {
    "signing-config": {"mediaType": f"{MEDIA_TYPE}signingconfig.v0.2+json", "rekorTlogConfig": {}, "tsaConfig": {}},
    "trusted-root": {"mediaType": f"{MEDIA_TYPE}trustedroot+json;version=0.1"},
}
"""The options of cosign that name no transparency log and no time stamp authority. Without, it asks public ones."""


@dataclass(frozen=True)
class Signer:
    """Signs with the private key `key`: a file, or what else cosign takes, such as env://NAME or a KMS's URI."""

    key: str | None
    """None: keyless, which asks Sigstore's public services for a certificate and logs it there."""
    work: Path
    """A folder for the configuration."""

    def public_key(self) -> str | None:
        """The public key in PEM; None if signing is keyless. Raises ReleaseError, devcluster.paths.ClusterError."""
        if self.key is None:
            return None
        if not self.key:
            raise ReleaseError("KEY is empty: name the private key that signs; `cosign generate-key-pair` makes one")
        if "COSIGN_PASSWORD" not in os.environ:
            raise ReleaseError("COSIGN_PASSWORD is not set: export the password of the key, or an empty one")
        return self._cosign("public-key", "--key", self.key)

    def image(self, reference: str) -> None:
        """Sign an image or a chart in its registry. Raises devcluster.paths.ClusterError."""
        self._cosign("sign", *self._how(), reference)

    def file(self, path: Path) -> Path:
        """Sign a file; return the bundle with its signature. Raises devcluster.paths.ClusterError."""
        bundle = path.with_name(f"{path.name}.sigstore.json")
        self._cosign("sign-blob", *self._how(), "--bundle", str(bundle), str(path))
        # cosign keeps it from all but its owner, and it is for everybody.
        bundle.chmod(0o644)
        return bundle

    def _how(self) -> list[str]:
        if self.key is None:
            return ["--yes"]
        argv = ["--yes", "--key", self.key]
        for option, content in NO_SERVICES.items():
            path = self.work / f"{option}.json"
            path.write_text(json.dumps(content), encoding="utf-8")
            argv += [f"--{option}", str(path)]
        return argv

    def _cosign(self, *argv: str) -> str:
        return run([executable("cosign"), *argv], timeout=SECONDS)
