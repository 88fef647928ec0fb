"""One pod by itself, for what is no part of an object's passes: to publish what passed, and to replay an image."""

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from triton_local.kubelet import LOG_BYTES, Node, Pod, end_of
from triton_local.objects import Objects
from triton_local.runtime import Image, Runtime
from triton_local.volumes import SHARED_MEMORY, Storage
from triton_operator import names
from triton_operator.names import Body
from triton_operator.resources.containers import connection_variables
from triton_operator.resources.private_server import LOOPBACK
from triton_operator.settings import Settings

DOCKER_CONFIG = "DOCKER_CONFIG"
"""The variable that names the folder with the accounts of registries, by default `~/.docker`."""
REGISTRY, SIGNING = "registry", "signing"
"""The Secrets of such a pod."""
ANSWERED = ("Completed", "Error")
"""How a container ends that ran, and so may have left an answer."""
SECRET_KEY = ".dockerconfigjson"  # noqa: S105 - a file's name


class PodError(Exception):
    """The pod failed; the message says how."""


def run(
    folder: Path, runtime: Runtime, image: Callable[[str], Image], storage: Storage, pod: Body, *, downloads: bool
) -> str:
    """Run a pod to its end, and return the termination message of its last container.

    ``folder``: keeps its logs. ``downloads``: whether it has this machine's network. Raises PodError, OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name = f"alone-{uuid4().hex[:8]}"
    objects = Objects(folder / f"{name}.json", {"metadata": {"name": name}, "spec": {}}, {}, lambda _: None)
    node = Node(os.uname().nodename, folder / "pods", runtime, storage, image, dict)
    labels = {names.DOWNLOADS_LABEL: "true"} if downloads else {}
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"template": {"metadata": {"labels": labels}, "spec": pod}},
    }
    running = Pod(node, objects, owner, name, LOOPBACK)
    running.start()
    try:
        running.join()
    except BaseException:
        running.end()
        running.join()
        raise
    body = objects.find("Pod", name)
    assert body is not None
    (last,) = body["status"]["containerStatuses"]
    ended = last["state"].get("terminated", {})
    if not ended.get("message") or ended["reason"] not in ANSWERED:
        logs = sorted((folder / "pods" / name).glob("*.log"), key=lambda each: each.stat().st_mtime)
        words = end_of(logs[-1], LOG_BYTES).decode(errors="replace").strip() if logs else ""
        raise PodError(f"the pod left no answer; its logs are in {folder / 'pods' / name}. {words}".strip())
    return str(ended["message"])


def storage(claims: Mapping[str, Path], secret: Callable[[str], Path] | None = None) -> Storage:
    """Return where the volumes of a pod lie that has no ConfigMap. ``secret``: None: it has no Secret either."""
    maps: dict[str, Mapping[str, bytes]] = {}
    none: dict[str, Path] = {}
    return Storage(claims.__getitem__, maps.__getitem__, secret or none.__getitem__)


def container(name: str, image: str, command: list[str], mounts: Mapping[str, str], **more: Any) -> Body:
    """Return a container. ``mounts``: the path of each volume's mount; one that ends with `!` is read-only."""
    return {
        "name": name,
        "image": image,
        "command": command,
        "volumeMounts": [
            {"name": volume, "mountPath": path.rstrip("!"), "readOnly": path.endswith("!")}
            for volume, path in mounts.items()
        ],
        **more,
    }


def variables(settings: Settings) -> list[Body]:
    """Return the variables of a container that downloads or pushes."""
    return [{"name": name, "value": value} for name, value in connection_variables(settings).items() if value]


@contextmanager
def secrets(host: str, keys: Mapping[str, bytes]) -> Iterator[Callable[[str], Path]]:
    """Have the Secrets REGISTRY and SIGNING in memory until the block ends.

    ``host``: the registry, whose account is the one of DOCKER_CONFIG, if that has one. ``keys``: the files of SIGNING.
    Raises OSError.
    """
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as memory:
        places = {name: Path(memory, name) for name in (REGISTRY, SIGNING)}
        for place in places.values():
            place.mkdir()
        for name, content in keys.items():
            (places[SIGNING] / name).write_bytes(content)
        if account := _account(host):
            (places[REGISTRY] / SECRET_KEY).write_text(account, encoding="utf-8")
        yield places.__getitem__


def _account(host: str) -> str:
    """Return the part of Docker's configuration with the accounts of a registry; empty: it has none."""
    home = Path(os.environ.get(DOCKER_CONFIG) or "~/.docker").expanduser()
    try:
        accounts = json.loads((home / "config.json").read_text(encoding="utf-8"))["auths"]
        own = {name: each for name, each in accounts.items() if _is_of(name, host) and _has_password(each)}
    except (AttributeError, KeyError, OSError, TypeError, ValueError):
        return ""
    return json.dumps({"auths": own}) if own else ""


def _is_of(name: str, host: str) -> bool:
    """Whether an entry is of a registry; some programs write a scheme before its host, and all a path after it."""
    return re.sub("^https?://", "", name).partition("/")[0] == host


def _has_password(entry: Any) -> bool:
    """Whether an entry holds an account; a program of `credsStore` keeps those of others."""
    return isinstance(entry, dict) and bool(entry.get("auth") or entry.get("password"))
