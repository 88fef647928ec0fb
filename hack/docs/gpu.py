"""The table of versions in docs/gpu.md: from the chart, the Dockerfile of the converter image for GPUs, and NVIDIA."""

import re
from pathlib import Path
from typing import NamedTuple

import yaml

from triton_operator.candidates.server_image import release

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/gpu.md"
CHART = ROOT / "charts/triton-operator"
BLOCK = re.compile(
    r"(<!-- made from the chart, the Dockerfile and NVIDIA's figures by `make generate` -->\n).*?(<!-- end -->\n)",
    re.DOTALL,
)
BASE = re.compile(r"^ARG BASE_IMAGE=(\S+)$", re.MULTILINE)
HEAD = (
    "| Operator | Server image | Base of `converter-gpu` | TensorRT | CUDA | PyTorch | Python |\n" + "|---" * 7 + "|\n"
)


class Contents(NamedTuple):
    """The versions in NVIDIA's images of a release; of PyTorch and Python, in its PyTorch image."""

    tensorrt: str
    cuda: str
    pytorch: str
    python: str


NVIDIA = {"26.07": Contents("11.1.0.106", "13.3.1", "2.13.0a0+9186a08", "3.12")}
"""The versions by release. CUDA is from Triton's release notes, TensorRT from TRT_VERSION as others found it in both
images, the rest from PYTORCH_BUILD_VERSION and PYVER in the public build history of images on the PyTorch image."""


def pages() -> dict[Path, str]:
    """Return the page by its path, with its table made anew.

    Raises ValueError if no versions of the server's release are known here.
    """
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))["images"]["server"]
    operator = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))["appVersion"]
    server = f"{values['repository']}:{values['tag']}"
    (base,) = BASE.findall((ROOT / "images/converter-gpu/Dockerfile").read_text(encoding="utf-8"))
    contents = NVIDIA.get(release(server))
    if contents is None:
        raise ValueError(f"{__name__}.NVIDIA lacks release {release(server)} of {server}: add its versions")
    row = f"| {operator} | `{server}` | `{base}` | {' | '.join(contents)} |\n"
    text = PAGE.read_text(encoding="utf-8")
    return {PAGE: BLOCK.sub(lambda found: f"{found[1]}\n{HEAD}{row}\n{found[2]}", text)}
