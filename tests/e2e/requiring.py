"""A model folder that imports a package which the image lacks, from a private index in the namespace."""

import base64
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from tests.converters.package_index import wheel
from tests.e2e.kubectl import Kubectl, Object
from tests.e2e.manifests import read
from tests.e2e.state import State
from tests.e2e.suite import Suite

NAME = "requiring"
PASSWORD = "known-to-the-index-alone"
STARTING = Lock()
WHEELS = (wheel("surveyor", "1.2", ["compass", "torch", "numpy"]), wheel("compass", "1.1"))
FILES = {
    "requirements.txt": "surveyor==1.2  # it requires compass\n",
    "model.py": """
import torch, surveyor, compass

def get_model():
    torch.manual_seed(len(surveyor.VERSION))
    return torch.nn.Linear(4, 2).eval(), {"inputs": ["INPUT__0"], "outputs": ["OUTPUT__0"]}
""",
    "dataloader.py": """
import numpy, compass

def get_dataloader_fn(batch_size):
    samples = numpy.random.default_rng(0).standard_normal((16, 4)).astype(numpy.float32)
    batches = [range(start, min(start + batch_size, 16)) for start in range(0, 16, batch_size)]
    return lambda: ((list(each), {"INPUT__0": samples[each]}, {}) for each in batches)
""",
}


@dataclass(frozen=True)
class Required:
    """The object once it is Ready, and what the Job left."""

    ready: State
    job: Object
    """The packages Job."""
    log: str
    installed: tuple[str, ...]
    """Names of what lies in the directory of modules."""


def run(suite: Suite) -> Required:
    """Start the index, apply the object and wait for Ready."""
    start_index(suite.busy, suite.image, suite.certificate)
    suite.busy.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": FILES})
    applied = suite.new(NAME)
    applied.base = requiring()
    ready = applied.wait_ready(applied.apply()).state
    (job,) = [each for each in applied.jobs().values() if _stage(each) == "packages"]
    key = job["metadata"]["labels"]["triton-operator.dev/key"]
    site = f"/repository/.triton-operator/packages/{key}/site"
    return Required(
        ready,
        job,
        suite.busy.run("logs", f"job/{job['metadata']['name']}"),
        tuple(sorted(suite.workbench.run("ls", site).split())),
    )


def requiring() -> Object:
    """The object, without its name."""
    candidate = {"name": "onnx-fp32", "format": "onnx", "precision": "fp32"}
    model = {"name": "surveyor", "format": "pyt", "entrypoint": "model.py", "config": {"maxBatchSize": 4}}
    base = read("classifier")
    kept = {name: base["spec"][name] for name in ("performance", "repository", "serving")}
    spec = {
        "source": {"uri": f"configmap://{NAME}"},
        "dataloader": {"entrypoint": "dataloader.py"},
        "models": [model | {"candidates": [candidate]}],
        "conversion": {"requirements": "requirements.txt", "indexSecretRef": {"name": "our-index"}},
    }
    return {"apiVersion": base["apiVersion"], "kind": base["kind"], "spec": spec | kept}


def start_index(kubectl: Kubectl, image: str, certificate: Path) -> None:
    """Start the index, with a certificate of the name `index`, and wait until it answers; `image`: the converter's."""
    body = read("index")
    _, pod = body["items"]
    (container,) = pod["spec"]["containers"]
    container["image"] = image
    container["command"].append(f"Basic {base64.b64encode(f'team:{PASSWORD}'.encode()).decode()}")
    (volume,) = [each for each in pod["spec"]["volumes"] if each["name"] == "index"]
    # A key of a ConfigMap holds no slash.
    volume["configMap"]["items"] = [
        {"key": name, "path": f"simple/{name.partition('-')[0]}/{name}"} for name, _ in WHEELS
    ]
    wheels = {name: base64.b64encode(content).decode() for name, content in WHEELS}
    # Of two lanes that begin at the same time, kubectl would let one fail.
    with STARTING:
        kubectl.apply(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "index"}, "binaryData": wheels},
            _secret("index-certificate", {"server.pem": certificate.read_text()}),
            _secret("our-index", {"PIP_INDEX_URL": f"https://team:{PASSWORD}@index/simple"}),
            *body["items"],
        )
    kubectl.run("wait", "--for=condition=Ready", "pod/index", "--timeout=120s", timeout=130)


def _secret(name: str, data: dict[str, str]) -> Object:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def _stage(job: Object) -> str:
    return str(job["metadata"]["labels"]["triton-operator.dev/stage"])
