import re
import subprocess
from pathlib import Path

import pytest
import yaml

from hack.docs import __main__ as generated
from hack.docs import api as generate_api
from hack.site.pages import anchor
from tests.apiserver.custom_resources import MINIMAL
from triton_converters.contract.reasons import Reason
from triton_plugin.drafting.validation.structural import faults
from triton_plugin.drafting.validation.validate import check, deployments, schema

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("manifests/**/*.md"), *ROOT.glob("charts/**/*.md")]
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
# A path of this tree in backticks: a top-level folder, a slash, and no placeholder.
FOLDERS = "operator|converters|hack|demo|examples|bench|docs|images|manifests|charts|crds|tests"
PATH = re.compile(rf"`((?:{FOLDERS})/[A-Za-z0-9_./-]*)`")


def anchors(page: Path) -> set[str]:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return {anchor(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_this_tree_resolves(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, fragment = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{page.name} links to {target}, which does not exist"
        assert not fragment or fragment in anchors(linked), f"{page.name} links to {target}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_named_in_backticks_exists(page: Path) -> None:
    named = set(PATH.findall(page.read_text(encoding="utf-8")))
    assert {path for path in named if not (ROOT / path).exists()} == set()


def test_a_decision_says_what_it_costs_and_what_else_was_possible() -> None:
    text = (ROOT / "docs/decisions.md").read_text(encoding="utf-8")
    sections = re.split(r"^### ", text, flags=re.MULTILINE)[1:]
    both = re.compile(r"\n\*\*Cost\.\*\* .*\nAlternatives:\n\n- ", re.DOTALL)
    assert [each for each in sections if not both.search(each)] == []


def test_the_readme_is_short_and_names_both_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    assert {"make demo", "make test"} <= set(re.findall(r"make (?:demo|test)\b", text))


def test_what_a_path_tells_to_read_first_is_at_most_6000_words() -> None:
    index = ROOT / "docs/README.md"
    paths = re.split(r"^## ", index.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    first = {
        each.split("\n")[0]: re.findall(r"^Read first: (.*?)\n\n", each, re.MULTILINE | re.DOTALL) for each in paths
    }
    words = {
        path: sum(len((index.parent / page).read_text(encoding="utf-8").split()) for page in LINK.findall(text))
        for path, found in first.items()
        for text in found
    }
    assert words.keys() == {"Evaluate", "First model", "Operate", "Extend"}
    assert {path: count for path, count in words.items() if count > 6000} == {}


def test_generated_pages_are_what_the_generators_write() -> None:
    assert sorted(generated.differing()) == [], "run `make generate`"


def test_check_names_the_files_that_differ_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "api.md"
    monkeypatch.setattr(generated, "ROOT", tmp_path)
    monkeypatch.setattr(generated, "differing", lambda: {page: "text"})
    assert generated.main(["--check"]) == 1
    assert capsys.readouterr().out == "api.md: differs: run `make generate`\n"
    assert not page.exists()
    assert generated.main([]) == 0
    assert page.read_text() == "text"


def test_every_section_of_the_api_has_an_example_and_no_other() -> None:
    sections = {f"{part}.{name}" for part in ("spec", "status") for name in generate_api.sections(part)}
    assert generate_api.examples().keys() == sections


def test_a_section_without_an_example_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there = generate_api.examples()
    monkeypatch.setattr(generate_api, "examples", lambda: {k: v for k, v in there.items() if k != "status.serving"})
    assert generated.main(["--check"]) == 1
    said = "status.serving has no example in hack/docs/api_examples.yaml: add a document that begins with"
    assert capsys.readouterr().err == f"{said} `# status.serving`\n"


@pytest.mark.parametrize("section", generate_api.examples())
def test_the_examples_of_the_api_are_valid(section: str) -> None:
    part, _, field = section.partition(".")
    given = yaml.safe_load(generate_api.examples()[section])
    assert given.keys() == {part}
    assert field in given[part]
    if part == "status":
        assert list(faults(given[part], schema()["properties"]["status"], part)) == []
    else:
        models = [MINIMAL["spec"]["models"][0] | {"config": {"maxBatchSize": 16}}]
        assert check(MINIMAL | {"spec": MINIMAL["spec"] | {"models": models} | given[part]}) == []


YAML = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_every_object_in_a_page_is_valid() -> None:
    found = {
        (str(page.relative_to(ROOT)), body["metadata"]["name"]): check(body)
        for page in PAGES
        for block in YAML.findall(page.read_text(encoding="utf-8"))
        for body in deployments(block)
    }
    assert {page for page, _ in found} >= {"README.md", "docs/gitops.md"}
    assert {place: faults for place, faults in found.items() if faults} == {}


@pytest.mark.parametrize("page", ["docs/serving.md", "docs/scaling.md", "docs/monitoring.md"])
def test_every_part_of_a_spec_in_a_page_is_valid(page: str) -> None:
    blocks = [
        yaml.safe_load(each) for each in YAML.findall((ROOT / page).read_text(encoding="utf-8")) if "---" not in each
    ]
    specs = [each["spec"] for each in blocks if each.keys() == {"spec"}]
    assert specs
    for spec in specs:
        assert check(MINIMAL | {"spec": MINIMAL["spec"] | spec}) == []


def test_troubleshooting_names_only_reasons_that_exist() -> None:
    text = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `([A-Z][A-Za-z]+)`", text, re.MULTILINE))
    assert named
    assert named <= {str(reason) for reason in Reason}


def test_no_file_has_the_marks_of_a_merge() -> None:
    marks = ["git", "grep", "--name-only", "--extended-regexp", "^(<{7} |>{7} )"]
    done = subprocess.run(marks, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
