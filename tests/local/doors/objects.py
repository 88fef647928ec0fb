"""The twelve objects, each with all that it names: of manifests, and of the zoo."""

import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hack.deploy.command import ROOT
from tests.converters import s3_server
from tests.converters.package_index import PackageIndex
from tests.e2e.manifests import changed
from tests.e2e.outside import Outside
from tests.zoo.fetch import DOWNLOAD, PLATFORMS, fetch, once
from tests.zoo.models import BY_NAME
from tests.zoo.outcome import smallest
from triton_operator.names import API_VERSION, KIND

Body = dict[str, Any]
SAMPLES, EXAMPLE = ROOT / "manifests/samples", ROOT / "manifests/examples/digits"
LOCK = ROOT / "requirements/samples.txt"
PYTHONS = ("3.13", f"{sys.version_info.major}.{sys.version_info.minor}")
"""Of the images, and of what `check` installs."""
LITTLE = {"pod": {"resources": {"requests": {"cpu": "20m"}}}}
QUICK: Body = {
    "performance": {
        "offline": {"batchSizes": [1]},
        "online": {"batchSize": 1, "concurrency": {"start": 1, "end": 2}},
        "measurement": {"mode": "TimeWindows", "interval": "300ms", "stabilityPercent": 900},
    },
    "conversion": LITTLE,
    "serving": LITTLE,
}
"""Figures of seconds, and no more CPU than two cores have."""
INDEX = {"conversion": {"indexSecretRef": {"name": "our-index"}}}


@dataclass(frozen=True)
class Images:
    """References and archives of the images of this tree."""

    converter: tuple[str, Path]
    server: tuple[str, Path]


@dataclass(frozen=True)
class Given:
    """What both doors are given."""

    body: Body
    claims: Mapping[str, Path] = field(default_factory=dict)
    """Folders of folders, by the names of claims."""
    config_maps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    secrets: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    images: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """Where an object is made: an empty folder, the servers that the door reaches, and the images."""

    folder: Path
    outside: Outside
    images: Images

    def source(self, name: str, *folders: Path) -> Path:
        """Return a folder of the claim `models` with the files of other folders."""
        place = self.folder / "models" / name
        place.mkdir(parents=True)
        for each in folders:
            shutil.copytree(each, place, dirs_exist_ok=True)
        return place

    def sample(self, name: str, *changes: Body, **more: Any) -> Given:
        """Return a sample with these changes, whose source lies on the claim `models`."""
        body: Body = yaml.safe_load((SAMPLES / f"{name}.yaml").read_text(encoding="utf-8"))
        return Given(_quick(body, *changes), {"models": self.folder / "models"}, **more)


def _quick(body: Body, *changes: Body) -> Body:
    for each in (QUICK, *changes):
        body = changed(body, body["metadata"]["name"], each)
    return body


def _zoo(name: str) -> Callable[[Place], Given]:
    """The smallest object of a model of the zoo."""

    def make(place: Place) -> Given:
        model = BY_NAME[name]
        path = fetch(model, place.source(name))
        return Given(_quick(smallest(model, path, "")), {"models": place.folder / "models"})

    return make


def _accuracy(place: Place) -> Given:
    place.source("digits", SAMPLES / "digits")
    return place.sample("accuracy")


def _pictures(place: Place) -> Given:
    place.source("pictures", SAMPLES / "pictures", SAMPLES / "digits")
    for each in ("dataloader.py", "metrics.py"):
        shutil.copy(SAMPLES / "pictures" / each, place.folder / "models/pictures")
    return place.sample("picture-to-label", INDEX, secrets=_index(place))


def _texts(place: Place) -> Given:
    place.source("texts", SAMPLES / "texts")
    return place.sample("text-to-label", INDEX, secrets=_index(place))


def _index(place: Place) -> Mapping[str, Mapping[str, str]]:
    """Serve the packages of the steps, and return the Secret that names their index."""
    files = {each.name: each.read_bytes() for python in PYTHONS for each in _wheels(python).glob("*.whl")}
    place.outside.hub.behaviour.hub = PackageIndex(files)
    return {"our-index": {"PIP_INDEX_URL": f"https://{place.outside.hub.host}/simple"}}


def _wheels(python: str) -> Path:
    def download(folder: Path) -> None:
        platforms = [word for each in PLATFORMS for word in ("--platform", each)]
        argv = [*DOWNLOAD, *platforms, "--python-version", python, "--requirement", str(LOCK)]
        subprocess.run([*argv, "--dest", str(folder)], check=True)

    return once(f"doors-wheels-{python}", download)


def _cascade(place: Place) -> Given:
    place.source("cascade", SAMPLES / "cascade", SAMPLES / "digits")
    return place.sample("cascade")


def _repository(place: Place) -> Given:
    version = place.source("repository") / "ocr/1"
    version.mkdir(parents=True)
    shutil.copy(SAMPLES / "digits/digits.onnx", version / "model.onnx")
    text = 'name: "ocr"\nbackend: "onnxruntime"\nmax_batch_size: 8\ndynamic_batching { }\n'
    (version.parent / "config.pbtxt").write_text(text, encoding="utf-8")
    return place.sample("triton-repository", {"selection": {"search": {"mode": "Quick", "measurements": 8}}})


def _search(place: Place) -> Given:
    shutil.copy(SAMPLES / "digits/digits.onnx", place.source("ocr") / "model.onnx")
    loose = {"constraints": {"p99Latency": "5s"}, "search": {"mode": "Quick", "measurements": 8}}
    return place.sample("search", {"selection": loose})


def _trained() -> Path:
    """The folder with what the example's training publishes, and its network as TorchScript."""
    program = textwrap.dedent("""
        import runpy, sys
        sys.path.insert(0, "/files")
        sys.argv = ["train.py", "--model-dir", "/made/digits", "--data-dir", "/made/held-out"]
        runpy.run_path("/files/train.py", run_name="__main__")
        import torch
        from model import get_model
        network = get_model("/made/digits/digits.safetensors")
        network = network[0] if isinstance(network, tuple) else network
        torch.jit.script(network).save("/made/model.pt")
    """)

    def train(folder: Path) -> None:
        mounts = [word for each in (f"{EXAMPLE}:/files:ro", f"{folder}:/made") for word in ("--mount", each)]
        argv = [
            sys.executable,
            "-m",
            "hack.imagebuild",
            "run",
            "digits-trainer",
            *mounts,
            "--",
            "python3",
            "-c",
            program,
        ]
        subprocess.run(argv, cwd=ROOT, check=True)

    return once("doors-digits", train)


def _of_images(place: Place) -> tuple[Body, Mapping[str, Path]]:
    """Have user code run in the images of this tree, which have PyTorch."""
    named = dict((place.images.converter, place.images.server))
    return {
        "conversion": {"image": place.images.converter[0]},
        "serving": {"image": place.images.server[0]},
    }, named


def _pytorch(place: Place) -> Given:
    made = _trained()
    for claim, name in {"digits-model": "digits", "digits-data": "held-out"}.items():
        shutil.copytree(made / name, place.folder / claim / name)
    body: Body = yaml.safe_load((EXAMPLE / "tritondeployment.yaml").read_text(encoding="utf-8"))
    changes, images = _of_images(place)
    del body["spec"]["repository"]
    claims = {claim: place.folder / claim for claim in ("digits-model", "digits-data")}
    return Given(_quick(body, changes), claims, images=images)


def _torchscript(place: Place) -> Given:
    made, source = _trained(), place.source("segmenter")
    shutil.copy(made / "model.pt", source)
    shutil.copy(made / "held-out/held-out.npz", source)
    loader = (EXAMPLE / "dataloader.py").read_text(encoding="utf-8")
    (source / "reading.py").write_text(loader, encoding="utf-8")
    text = """
        from pathlib import Path
        import reading

        def get_dataloader_fn(batch_size=32):
            return reading.get_dataloader_fn(batch_size=batch_size, data_dir=str(Path(__file__).parent))
    """
    (source / "dataloader.py").write_text(textwrap.dedent(text), encoding="utf-8")
    changes, images = _of_images(place)
    return place.sample("torchscript", changes, images=images)


def _refused(place: Place) -> Given:
    """A step that answers otherwise in a server, in a ConfigMap."""
    step = """
        from pathlib import Path

        import numpy
        import triton_python_backend_utils as pb_utils

        WRONG = numpy.float32(Path("/opt/tritonserver").exists())

        class TritonPythonModel:
            def execute(self, requests):
                given = [pb_utils.get_input_tensor_by_name(each, "X").as_numpy() for each in requests]
                return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", each * 2 + WRONG)]) for each in given]
    """
    loader = """
        import numpy

        def get_dataloader_fn(batch_size):
            rows = numpy.random.default_rng(0).standard_normal((16, 4)).astype(numpy.float32)
            parts = [range(start, min(start + batch_size, 16)) for start in range(0, 16, batch_size)]
            return lambda: ((list(each), {"X": rows[each]}, {}) for each in parts)
    """
    files = {"step.py": textwrap.dedent(step), "dataloader.py": textwrap.dedent(loader)}
    tensors = {
        "inputs": [{"name": "X", "dataType": "FP32", "dims": [4]}],
        "outputs": [{"name": "Y", "dataType": "FP32", "dims": [4]}],
    }
    maps = {"inputMap": [{"input": "X", "tensor": "X"}], "outputMap": [{"output": "Y", "tensor": "Y"}]}
    spec = {
        "source": {"uri": "configmap://refused"},
        "dataloader": {"entrypoint": "dataloader.py"},
        "models": [
            {
                "name": "doubler",
                "format": "triton-python",
                "entrypoint": "step.py",
                "config": {"maxBatchSize": 4},
                **tensors,
            }
        ],
        "ensemble": {"name": "doubled", "maxBatchSize": 4, **tensors, "steps": [{"model": "doubler", **maps}]},
    }
    body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "refused"}, "spec": spec}
    return Given(_quick(body), config_maps={"refused": files})


def _s3(place: Place) -> Given:
    place.outside.bucket.put("ocr/v3/model.onnx", (SAMPLES / "digits/digits.onnx").read_bytes())
    keys = {"AWS_ACCESS_KEY_ID": s3_server.KEY, "AWS_SECRET_ACCESS_KEY": s3_server.SECRET}
    given = place.sample("s3", secrets={"models-bucket": {"AWS_ENDPOINT_URL": place.outside.bucket.url, **keys}})
    return Given(given.body, secrets=given.secrets)


OBJECTS: Mapping[str, Callable[[Place], Given]] = {
    "accuracy": _accuracy,
    "search": _search,
    "triton-repository": _repository,
    "cascade": _cascade,
    "picture-to-label": _pictures,
    "text-to-label": _texts,
    "pytorch": _pytorch,
    "torchscript": _torchscript,
    "refused": _refused,
    "s3": _s3,
    "silero-vad": _zoo("silero-vad"),
    "basic-pitch-tf": _zoo("basic-pitch-tf"),
}
"""What makes each, by its name here."""
