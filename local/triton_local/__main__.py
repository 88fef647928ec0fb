"""``python3 -m triton_local OBJECT``: verify and measure one TritonDeployment on this machine, without Kubernetes.

It ends with the answer: 0 if the object is Ready, 1 if it never will be.
"""

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from triton_local.boxed import Box
from triton_local.engine import Engine, Machine
from triton_local.images import Images
from triton_local.kubelet import Node
from triton_local.objects import Objects
from triton_local.volumes import Storage
from triton_operator.names import KIND, Body
from triton_operator.settings import Settings

CONVERTER, SERVER = "triton-operator.local/converter:1", "triton-operator.local/tritonserver:1"
"""The images of an object that names none."""
IMAGES = Path("~/.cache/triton-operator/unpacked").expanduser()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the object of a file until it rests; return the exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m triton_local", description=__doc__)
    parser.add_argument("file", type=Path, help="YAML with one TritonDeployment, and the ConfigMaps that it names")
    parser.add_argument("--state", type=Path, required=True, help="folder that keeps all; the same one goes on")
    parser.add_argument("--claim", type=_pair, action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--converter", type=Path, required=True, help="archive of the converter's image")
    parser.add_argument("--server", type=Path, required=True, help="archive of the server's image")
    parser.add_argument("--images", type=Path, default=IMAGES, help="folder of unpacked images; default: %(default)s")
    options = parser.parse_args(argv)
    options.state.mkdir(parents=True, exist_ok=True)
    bodies = [each for each in yaml.safe_load_all(options.file.read_text(encoding="utf-8")) if each]
    (desired,) = [each for each in bodies if each["kind"] == KIND]
    images = Images(options.images, {CONVERTER: options.converter, SERVER: options.server})
    body = run(desired, bodies, options.state, {name: Path(folder) for name, folder in options.claim}, images)
    return 0 if _conditions(body).get("Ready", {}).get("status") == "True" else 1


def run(desired: Body, bodies: Sequence[Body], state: Path, claims: Mapping[str, Path], images: Images) -> Body:
    """Run an object until it rests, and return it with its status. ``bodies``: it, and what its file has besides."""
    objects = Objects(state / "objects.json", desired, nodes={}, event=lambda _: None)
    given = {each["metadata"]["name"]: each["data"] for each in bodies if each["kind"] == "ConfigMap"}

    def claim(name: str) -> Path:
        folder = claims.get(name) or state / "claims" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def config_map(name: str) -> Mapping[str, str]:
        found = objects.find("ConfigMap", name) or {"data": given.get(name)}
        if found["data"] is None:
            raise LookupError(f"there is no ConfigMap {name}; add it to the file of the object")
        return dict(found["data"])

    def secret(name: str) -> Path:
        raise LookupError(f"there is no Secret {name}")

    def hosts() -> Mapping[str, str]:
        return machine.services()

    storage = Storage(claim, config_map, secret)
    node = Node(os.uname().nodename, state / "pods", Box(), storage, images.image, hosts)
    machine = Machine(node, objects)
    settings = Settings(CONVERTER, SERVER, CONVERTER, allowed_python_steps=True)
    try:
        return Engine(objects, machine, settings).run(_is_over, _Story())
    finally:
        machine.close()


class _Story:
    """Prints each change of what Ready says, with the seconds since the start."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._last = ""

    def __call__(self, body: Body) -> None:
        ready = _conditions(body).get("Ready", {})
        line = f"{ready.get('reason')}: {ready.get('message')}"
        if ready and line != self._last:
            self._last = line
            print(f"{time.monotonic() - self._began:6.1f} s  {line}", flush=True)


def _is_over(body: Body) -> bool:
    return any(_conditions(body).get(kind, {}).get("status") == "True" for kind in ("Ready", "Stalled"))


def _conditions(body: Body) -> dict[str, Any]:
    return {each["type"]: each for each in body["status"].get("conditions", [])}


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=FOLDER")
    return name, value


if __name__ == "__main__":
    sys.exit(main())
