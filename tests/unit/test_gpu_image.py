"""The image for GPUs, as far as its recipe tells: nobody here can pull what it starts from."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from hack.deploy.install import CHART_IMAGES, IMAGES
from hack.imagebuild import inputs
from hack.release.__main__ import image_names, parser
from triton_operator.candidates.server_image import release

ROOT = Path(__file__).parents[2]
GPU, CPU = "converter-gpu", "converter"
VALUES = yaml.safe_load((ROOT / "charts/triton-operator/values.yaml").read_text())["images"]


def instructions(name: str, *kinds: str) -> list[str]:
    """The instructions of these kinds in an image's Dockerfile, in its order, each on one line."""
    text = (ROOT / inputs.dockerfile(name)).read_text().replace("\\\n", " ")
    lines = (" ".join(line.split()) for line in text.splitlines() if not line.lstrip().startswith("#"))
    return [line for line in lines if line.split(" ")[0] in kinds]


def locked(name: str) -> dict[str, str]:
    """The versions in an image's lock file."""
    text = (ROOT / f"requirements/image-{name}.txt").read_text()
    return dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", text, re.MULTILINE))


def test_it_starts_from_nvidias_pytorch_of_the_servers_release() -> None:
    (base,) = instructions(GPU, "ARG")
    server = release(f"{VALUES['server']['repository']}:{VALUES['server']['tag']}")
    assert base == f"ARG BASE_IMAGE=nvcr.io/nvidia/pytorch:{server}-py3"


def test_it_copies_the_same_converters_and_starts_them_in_the_same_way() -> None:
    kinds = ("USER", "WORKDIR", "ENTRYPOINT")
    assert instructions(GPU, *kinds) == instructions(CPU, *kinds)
    copied = [[each for each in instructions(name, "COPY") if "requirements/" not in each] for name in (GPU, CPU)]
    assert copied[0] == copied[1] == ["COPY converters/ /opt/triton-operator/converters/"]
    both = {image.files for image in (inputs.read(GPU, "base:1"), inputs.read(CPU, "base:1"))}
    converters = [{file for file in files if file.parts[0] == "converters"} for files in both]
    assert converters[0] == converters[1] != set()


def test_it_keeps_the_base_images_path() -> None:
    (variables,) = instructions(GPU, "ENV")
    assert variables.startswith("ENV PATH=/opt/venv/bin:$PATH PYTHONPATH=/opt/triton-operator/converters ")


def test_the_lock_has_what_the_converters_import_and_nothing_that_the_base_image_brings() -> None:
    found, on_cpu = locked(GPU), locked(CPU)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    wanted = {canonicalize_name(Requirement(each).name) for each in extras["converters"]} - {"numpy", "tritonclient"}
    assert wanted | {"certifi", "urllib3"} <= set(found)
    assert not [name for name in found if name.startswith(("torch", "nvidia", "tensorrt", "numpy", "sympy"))]
    other = {name for name in found.keys() & on_cpu.keys() if found[name] != on_cpu[name]}
    assert other <= {"certifi", "ml-dtypes", "onnxscript"}


def test_nothing_in_the_lock_needs_numpy_2_because_the_base_image_may_have_1() -> None:
    """The image keeps the base's NumPy, and NVIDIA's of 2025 had 1.26; ml-dtypes 0.6.0 requires 2."""
    assert Version(locked(GPU)["ml-dtypes"]) < Version("0.6")


@pytest.mark.parametrize("flags", [[], ["--gpu"]])
def test_a_release_builds_it_only_if_asked(flags: list[str]) -> None:
    options = parser().parse_args(["--registry", "r", "--version", "1.2.3", "--keyless", *flags])
    assert (GPU in image_names(options.gpu)) is bool(flags)


def test_nothing_else_builds_it_and_whoever_names_it_gets_its_own_base() -> None:
    assert GPU not in {*inputs.names(), *IMAGES}
    assert {inputs.read(name, "base:1").base for name in inputs.names()} == {"base:1"}
    assert inputs.read(GPU, "base:1").base.startswith("nvcr.io/nvidia/pytorch:")


def test_the_chart_has_a_place_for_it_and_names_none() -> None:
    assert VALUES[CHART_IMAGES[GPU]] == {"repository": "", "tag": "", "digest": ""}


def test_the_checks_on_a_gpu_begin_with_what_is_quick_and_one_that_fails_stops_no_other() -> None:
    """A machine with a GPU may be had for half an hour: precision first, then conversions, a server, and speed last."""
    recipe = (ROOT / "Makefile").read_text().partition("\ntest-gpu:")[2].partition("\n\n")[0]
    steps = [line.strip() for line in recipe.partition('failed=""')[2].splitlines()[1:]]
    assert all(step.endswith("|| failed=1; \\") for step in steps[:-1])
    assert steps[-1] == 'test -z "$$failed"'
    order = ("nvidia-smi", "test_tf32.py", "test_traces.py", "test_engine_to_serve.py", "served.py", "test_tensorrt.py")
    places = [recipe.index(each) for each in order]
    assert places == sorted(places)
    files = {path.name for path in (ROOT / "tests/gpu").glob("test_*.py")}
    assert files == {each for each in order if each.startswith("test_")}
