"""The pages for who decides about the operator and runs it: what they count on is what was measured and what is set."""

import json
import re
import statistics
from pathlib import Path

import pytest
import yaml

from triton_operator.api.repository import ClaimSpec

ROOT = Path(__file__).resolve().parents[2]
PRODUCTION = (ROOT / "docs/production.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
FAQ = (ROOT / "docs/faq.md").read_text(encoding="utf-8")
VALUES = yaml.safe_load((ROOT / "charts/triton-operator/values.yaml").read_text(encoding="utf-8"))


def ready_seconds() -> list[int]:
    """Seconds until each model of the zoo was Ready on a cluster."""
    rows = json.loads((ROOT / "bench/results/zoo.json").read_text(encoding="utf-8"))
    return [row["seconds"] for row in rows if row["run"] == "cluster" and row["is_ready"]]


def test_the_seconds_of_models_are_those_of_the_zoo() -> None:
    seconds = ready_seconds()
    half, most = statistics.median(seconds), statistics.quantiles(seconds, n=10)[8]
    words = (
        f"{len(seconds)} were Ready: half of them within {half:.0f} s, nine of ten within {most + 0.5:.0f} s, the"
        f" slowest after {max(seconds)} s"
    )
    assert words in " ".join(PRODUCTION.split())
    assert f"Of {len(seconds)} models half were Ready within {half:.0f} s" in " ".join(FAQ.split())
    assert f"[{len(seconds)} were ready](docs/zoo.md)" in README


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("resident memory with 1,000 objects", "| 1,000 | 88 MiB |"),
        ("resident memory with 5,000 Ready objects, store and programs alone", "| 5,000, all Ready | 227 MiB |"),
    ],
)
def test_the_operators_memory_is_that_of_the_benchmarks(row: str, said: str) -> None:
    benchmarks = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    # The first one is of this operator, and a later one is of a comparison.
    measured = re.findall(rf"^\| {re.escape(row)} \|.*\| (\d+ MiB)[^|]*\|$", benchmarks, re.MULTILINE)[0]
    assert said.endswith(f"| {measured} |")
    assert said in PRODUCTION


def test_the_defaults_are_those_of_the_chart_and_of_the_claim() -> None:
    words = " ".join(PRODUCTION.split())

    def mib(quantity: str) -> str:
        return quantity.replace("Mi", " MiB").replace("Gi", " GiB")

    for of in ("jobs", "servers"):
        limits, requests = (VALUES[of]["resources"][each] for each in ("limits", "requests"))
        assert f"requests {mib(requests['memory'])} and is limited at {mib(limits['memory'])} by default" in words
        assert f"{mib(limits['ephemeral-storage'])} of ephemeral storage for each container" in words
    own = VALUES["resources"]
    assert f"requests {mib(own['requests']['memory'])} and limits at {mib(own['limits']['memory'])}" in words
    assert f"of {mib(ClaimSpec().storage)} by default" in words


def test_every_line_of_the_checklist_names_a_page() -> None:
    lines = re.findall(r"^- \[ \] (.*(?:\n {6}.*)*)", PRODUCTION, re.MULTILINE)
    assert lines
    assert [line for line in lines if not re.search(r"\]\([\w./#-]+\)", line)] == []


def test_the_first_questions_are_answered_in_a_few_sentences_with_links() -> None:
    questions = {each.partition("\n")[0]: each.partition("\n")[2] for each in FAQ.split("\n## ")[1:]}
    assert len(questions) == 12
    for question, answer in questions.items():
        assert question.endswith("?")
        assert 2 <= len(re.findall(r"[.](?=\s|$)", answer)) <= 4, question
        assert re.search(r"\]\([\w./-]+\.md(#[\w-]+)?\)", answer), question
