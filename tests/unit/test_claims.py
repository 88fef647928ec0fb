"""Numbers and lists that pages tell of the code, by the code."""

import re
from pathlib import Path

import pytest
import yaml

from hack.devcluster.addresses import GPU_COUNT
from triton_converters.contract.stages import STAGES
from triton_converters.contract.uris import SCHEMES
from triton_converters.model_config import given
from triton_operator.api.spec import TritonDeploymentSpec

ROOT = Path(__file__).parents[2]
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
SUITES = re.findall(r"^SUITES := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[0].split()
MOST_MODELS = TritonDeploymentSpec.model_json_schema()["properties"]["models"]["maxItems"]


def text(page: str) -> str:
    """The page's text on one line."""
    return " ".join((ROOT / page).read_text().split())


@pytest.mark.parametrize(
    ("page", "claim", "number"),
    [
        ("README.md", "Sources have [{} schemes](docs/source.md)", len(SCHEMES)),
        ("README.md", "`make test` runs all {} suites", len(SUITES)),
        ("docs/devcluster.md", "make test # {} suites", len(SUITES)),
        ("docs/devcluster.md", "advertises {} simulated `nvidia.com/gpu`", GPU_COUNT),
        ("docs/testing.md", "`make test` runs {} suites", len(SUITES)),
        ("docs/formats.md", "Its message names up to {} faults", given.NAMED),
        ("docs/ensembles.md", "`spec.models` holds up to {} models", MOST_MODELS),
    ],
)
def test_a_number_in_a_page_is_the_codes(page: str, claim: str, number: int) -> None:
    assert claim.format(WORDS[number]) in text(page)


CHART = yaml.safe_load((ROOT / "charts/triton-operator/Chart.yaml").read_text())
SERVER = yaml.safe_load((ROOT / "charts/triton-operator/values.yaml").read_text())["images"]["server"]


def test_the_readme_asks_for_what_the_chart_and_the_plugin_need() -> None:
    kubernetes = re.fullmatch(r">=(\d+\.\d+)\.0-0", CHART["kubeVersion"])
    python = re.search(r'^requires-python = ">=(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert kubernetes is not None
    assert python is not None
    assert f"Kubernetes {kubernetes[1]} or later" in text("README.md")
    assert f"Python {python[1]} or later" in text("README.md")
    assert f"Servers run NVIDIA's `{SERVER['repository']}:{SERVER['tag']}`" in text("README.md")


def test_each_network_of_full_size_has_a_gpu_overlay_as_the_index_says() -> None:
    assert "Each has a GPU overlay; " in text("docs/README.md")
    examples = {path.stem for path in (ROOT / "docs/examples").glob("*.md")}
    assert len(examples) == 6
    for name in examples:
        assert list((ROOT / "manifests/examples" / name / "overlays").glob("gpu*/kustomization.yaml")), name


def test_the_page_about_converters_names_each_stage_with_its_containers() -> None:
    """Those with `boxed` have three containers, and all others one."""
    introduction = text("docs/converters.md").partition("The request is a document")[0]
    one, three = introduction.split("The Jobs that run user code")
    for stage, facts in STAGES.items():
        assert (f"`{stage}`" in one) is not facts.boxed, stage
        assert (f"`{stage}`" in three) is facts.boxed, stage
