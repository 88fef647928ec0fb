"""What passes is published and signed, and no server is made of it."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from tests.converters.published import new_key, pem, public_pem
from tests.converters.registry_server import a_docker_config
from tests.e2e import smallest
from tests.e2e.state import State
from tests.e2e.suite import Suite

NAME, REPOSITORY = "published", "team/detector"
ATTESTED = """
import json, sys
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from triton_converters.fetch.docker_config import account
from triton_converters.fetch.registry import Repository
from triton_converters.publish.push import Registry, digest_of
from triton_converters.publish.signatures import predicates
host, name, digest, config, key = sys.argv[1:]
registry = Registry(Repository(host, name, account({".dockerconfigjson": config}, host, name)))
assert digest_of(registry.manifest(digest)) == digest
print(json.dumps(predicates(registry, load_pem_public_key(key.encode()), digest)))
"""
"""Says what a key attests of an image, by the reader of `kubectl triton replay`."""


@dataclass(frozen=True)
class Published:
    """The object once it is Ready, and what is there of it."""

    state: State
    servers: int
    """Deployments and Services of the object."""
    attested: list[Any]
    """What the key attests of the image."""
    strangers: list[Any]
    """What a stranger's key attests of it."""


def run(suite: Suite) -> Published:
    """Apply the object with a signing key, and wait for its image."""
    outside = suite.outside
    assert outside is not None
    key, config = new_key(), a_docker_config(outside.registry.host)
    secrets = {
        "push": {".dockerconfigjson": config},
        "signing": {"cosign.key": pem(key).decode(), "cosign.password": ""},
    }
    files = smallest.files()
    files["metadata"]["name"] = NAME
    suite.busy.apply(files)
    for name, values in secrets.items():
        metadata = {"name": f"{NAME}-{name}"}
        suite.busy.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": values})
    applied = suite.new(NAME)
    applied.base = smallest.smallest()
    changes = {
        "source": {"uri": f"configmap://{NAME}"},
        "serving": {"mode": "None"},
        "publish": {
            "uri": f"oci://{outside.registry.host}/{REPOSITORY}",
            "secretRef": {"name": f"{NAME}-push"},
            "signing": {"secretRef": {"name": f"{NAME}-signing"}},
        },
    }
    state = applied.wait_ready(applied.apply(changes)).state
    digest = state.status["published"]["image"].rpartition("@")[2]

    def attested(public: bytes) -> list[Any]:
        arguments = [outside.registry.host, REPOSITORY, digest, config, public.decode()]
        environment = os.environ | {"SOURCE_CA_BUNDLE": outside.authority.read_text()}
        command = [sys.executable, "-c", ATTESTED, *arguments]
        said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
        told: list[Any] = json.loads(said.stdout)
        return told

    servers = len(applied.children("deployments")) + len(applied.children("services"))
    return Published(state, servers, attested(public_pem(key)), attested(public_pem(new_key())))
