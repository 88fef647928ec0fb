"""Three models are published, served unchanged in three ways, and asked for the same answers."""

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from tests.local.doors.objects import OBJECTS
from tests.publishing.answers import Answers, answers, difference, values
from tests.publishing.door import Door, Published, built, door
from tests.publishing.ways import Containerd, by_kserve, containerd, on_folder

MODELS = {
    "accuracy": "an ONNX graph",
    "text-to-label": "an ensemble with Python steps and their packages",
    "torchscript": "a TorchScript file",
}
"""The objects, and what each is."""


def serve(folder: Path, names: Iterable[str]) -> bool:
    """Do it with some of MODELS, and print what was answered; whether all answers to one model are the same."""
    images = built()
    with ExitStack() as stack:
        at = stack.enter_context(door(folder, images))
        (folder / "containerd").mkdir()
        runtime = stack.enter_context(containerd(folder / "containerd", at, images))
        print(runtime.version(), flush=True)
        same = [_same(name, at, runtime, folder / name) for name in names]
    return all(same)


def _same(name: str, at: Door, runtime: Containerd, folder: Path) -> bool:
    folder.mkdir()
    published = at.publish(name, OBJECTS[name])
    found = _answers(published, at, runtime, folder)
    first = found["a folder"]
    print(f"{MODELS[name]}: {published.reference}, {values(first)} values", flush=True)
    differ = {way: difference(first, each) for way, each in found.items()}
    for way, how in differ.items():
        print(f"  {way}: {f'differs {how}' if how else 'the same in every bit'}", flush=True)
    return not any(differ.values())


def _answers(published: Published, at: Door, runtime: Containerd, folder: Path) -> dict[str, Answers]:
    """What servers of the image answer, by the way that it came to them."""
    unpacked = at.unpacked(published, folder / "unpacked")
    downloaded = by_kserve(at, published, folder / "downloaded")
    found = {}
    for way, server in (
        ("a folder", on_folder(unpacked / "models", folder / "folder.log")),
        ("KServe's storage initializer", on_folder(downloaded, folder / "kserve.log")),
        ("an image volume", runtime.on_volume(published, folder / "volume.log")),
    ):
        with server as ports:
            found[way] = answers(ports, published.predicate, unpacked / "samples")
    return found
