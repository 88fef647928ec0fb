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
from triton_plugin.drafting.validation.validate import check

CONVERTER, SERVER = "triton-operator.local/converter", "triton-operator.local/tritonserver"
"""The repositories of the images of an object that names none."""
IMAGES = Path("~/.cache/triton-operator/unpacked").expanduser()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the object of a file until it rests; return the exit status: 2 if the file cannot be run."""
    parser = argparse.ArgumentParser(prog="python3 -m triton_local", description=__doc__)
    parser.add_argument("file", type=Path, help="YAML with one TritonDeployment, and the ConfigMaps that it names")
    parser.add_argument("--state", type=Path, required=True, help="folder that keeps all; the same one goes on")
    parser.add_argument("--claim", type=_pair, action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--converter", type=Path, required=True, help="archive of the converter's image")
    parser.add_argument("--server", type=Path, required=True, help="archive of the server's image")
    parser.add_argument("--images", type=Path, default=IMAGES, help="folder of unpacked images; default: %(default)s")
    options = parser.parse_args(argv)
    options.state.mkdir(parents=True, exist_ok=True)
    images = Images(options.images)
    try:
        desired, config_maps = read(options.file)
        names = images.add(CONVERTER, options.converter), images.add(SERVER, options.server)
        Box().sandbox("trial", os.geteuid() or 1000, "127.0.0.1", alone=True).close()
    except (OSError, ValueError, yaml.YAMLError) as error:
        print(error, file=sys.stderr)
        return 2
    settings = Settings(*names, names[0], allowed_python_steps=True)
    claims = {name: Path(folder) for name, folder in options.claim}
    body = run(desired, config_maps, options.state, claims, images, settings)
    return 0 if _conditions(body).get("Ready", {}).get("status") == "True" else 1


def read(file: Path) -> tuple[Body, Mapping[str, Mapping[str, str]]]:
    """Return the TritonDeployment of a file, and the data of its ConfigMaps by their names.

    Raises OSError, YAMLError, and ValueError for an object that an API server would refuse.
    """
    bodies = [each for each in yaml.safe_load_all(file.read_text(encoding="utf-8")) if isinstance(each, dict)]
    found = [each for each in bodies if each.get("kind") == KIND]
    if len(found) != 1:
        raise ValueError(f"{file} has {len(found)} objects of kind {KIND}; it needs one")
    if faults := [str(each) for each in check(found[0])]:
        raise ValueError("\n".join(f"{file}: {each}" for each in faults))
    maps = {each["metadata"]["name"]: each.get("data") or {} for each in bodies if each.get("kind") == "ConfigMap"}
    return found[0], maps


def run(
    desired: Body,
    config_maps: Mapping[str, Mapping[str, str]],
    state: Path,
    claims: Mapping[str, Path],
    images: Images,
    settings: Settings,
) -> Body:
    """Run an object until it rests, and return it with its status."""
    objects = Objects(state / "objects.json", desired, nodes={}, event=_tell)

    def claim(name: str) -> Path:
        folder = claims.get(name) or state / "claims" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def config_map(name: str) -> Mapping[str, str]:
        own = objects.find("ConfigMap", name)
        if own is None and name not in config_maps:
            raise LookupError(f'configmap "{name}" not found')
        return dict(own["data"]) if own is not None else config_maps[name]

    def secret(name: str) -> Path:
        raise LookupError(f'secret "{name}" not found')

    def hosts() -> Mapping[str, str]:
        return machine.services()

    storage = Storage(claim, config_map, secret)
    node = Node(os.uname().nodename, state / "pods", Box(), storage, images.image, hosts)
    machine = Machine(node, objects)
    try:
        return Engine(objects, machine, settings).run(_is_over, _Story())
    finally:
        machine.close()


def _tell(event: Body) -> None:
    if event["type"] == "Warning":
        print(f"          {event['reason']}: {event['message']}", flush=True)


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
