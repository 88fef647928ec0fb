"""The alerts of the chart's PrometheusRule, by promtool: each fires where it should, and is silent where it should."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.devcluster.binaries import program
from tests.apiserver.operator_process import ROOT, rendered
from triton_plugin.command_line import parser

CASES = Path(__file__).parent / "alerts.test.yaml"
RUNBOOKS = ROOT / "docs/runbooks.md"
ADDRESS = "https://docs.example/runbooks/"
PARTS = ["Who notices", "First look", "Likely causes", "It clears"]
"""What a runbook has, in this order, after a sentence that says what the alert means."""
Rule = dict[str, Any]
TROUBLESHOOTING = ROOT / "docs/troubleshooting.md"


def commands(page: Path) -> list[str]:
    """The kubectl commands of a page, in blocks and in lines, with names of objects in place of NAME and others."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = re.findall(r"^```$\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    inline = re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))
    found = [" ".join(each.split()) for each in (*lines, *inline)]
    return [
        re.sub(r"\b[A-Z]{2,}\b", _example, each)
        for each in found
        if re.match(r"kubectl (?!triton [a-z-]+$)[a-z]+ ", each)
    ]


def _example(placeholder: re.Match[str]) -> str:
    return {"KIND": "deployment", "FILE": "td.yaml"}.get(placeholder[0], placeholder[0].lower())


def rules(*settings: str) -> list[dict[str, Any]]:
    """The groups of rules as the chart renders them with these values."""
    bodies = rendered("--set", "metrics.prometheusRule.enabled=true", *settings)
    (body,) = [each for each in bodies if each["kind"] == "PrometheusRule"]
    found: list[dict[str, Any]] = body["spec"]["groups"]
    return found


@pytest.fixture(scope="module")
def groups() -> list[dict[str, Any]]:
    """The groups of rules as the chart renders them by default."""
    return rules()


def alerts(groups: list[dict[str, Any]]) -> dict[str, Rule]:
    """The alerts by name."""
    return {rule["alert"]: rule for group in groups for rule in group["rules"] if "alert" in rule}


def promtool(*arguments: str, folder: Path) -> str:
    argv = [str(program("promtool")), *arguments]
    outcome = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    return outcome.stdout


def test_promtool_accepts_every_rule(groups: list[dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "alerts.yaml").write_text(yaml.safe_dump({"groups": groups}))
    said = promtool("check", "rules", "--lint=all", "--lint-fatal", "alerts.yaml", folder=tmp_path)
    assert f"SUCCESS: {sum(len(group['rules']) for group in groups)} rules found" in said


def test_each_alert_fires_where_it_should_and_nowhere_else(groups: list[dict[str, Any]], tmp_path: Path) -> None:
    """Without annotations, which promtool would compare word by word."""
    bare = [
        {**group, "rules": [rule | ({"annotations": {}} if "alert" in rule else {}) for rule in group["rules"]]}
        for group in groups
    ]
    (tmp_path / "alerts.yaml").write_text(yaml.safe_dump({"groups": bare}))
    shutil.copy(CASES, tmp_path)
    assert "SUCCESS" in promtool("test", "rules", CASES.name, folder=tmp_path)


def test_every_alert_is_tried_both_ways_and_has_the_labels_that_its_words_name(groups: list[dict[str, Any]]) -> None:
    tries = [each for case in yaml.safe_load(CASES.read_text())["tests"] for each in case["alert_rule_test"]]
    for rule in (rule for group in groups for rule in group["rules"] if "alert" in rule):
        own = [each for each in tries if each["alertname"] == rule["alert"]]
        firing = [alert for each in own for alert in each.get("exp_alerts", ())]
        assert firing, f"{rule['alert']} fires in no test"
        assert [each for each in own if not each.get("exp_alerts")], f"{rule['alert']} is silent in no test"
        named = set(re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())))
        for alert in firing:
            assert named <= set(alert["exp_labels"]), f"{rule['alert']} names a label that it has not"


def test_every_alert_has_a_runbook_and_every_runbook_its_alert(groups: list[dict[str, Any]]) -> None:
    text = RUNBOOKS.read_text(encoding="utf-8")
    pages = {each.partition("\n")[0]: each for each in text.split("\n## ")[1:]}
    sections = {name: each for name, each in pages.items() if name.startswith("Triton")}
    assert list(sections) == list(alerts(groups)), "in the order of the rules"
    for name, section in sections.items():
        parts = re.findall(rf"^\*\*({'|'.join(PARTS)})\.\*\*", section, re.MULTILINE)
        assert parts == PARTS, name
        assert len(re.findall(r"^```$.*?^```$", section, re.MULTILINE | re.DOTALL)) == 1, f"{name} has one first look"


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """What a real kubectl says to a command, of an API server that does not answer."""
    kubeconfig = tmp_path_factory.mktemp("nowhere") / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    kubeconfig.write_text(
        yaml.safe_dump({"clusters": [cluster], "users": [], "contexts": [context], "current-context": "x"})
    )
    environment = {"KUBECONFIG": str(kubeconfig), "PATH": "/usr/bin:/bin", "HOME": str(kubeconfig.parent)}

    def said(command: str) -> str:
        argv = [str(program("kubectl")), *shlex.split(command)[1:], "--request-timeout=5s"]
        return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False).stderr

    return said


@pytest.mark.parametrize("command", sorted(set(commands(RUNBOOKS)) | set(commands(TROUBLESHOOTING))))
def test_a_command_of_the_runbooks_is_one_that_kubectl_takes(command: str, kubectl: Callable[[str], str]) -> None:
    """What kubectl refuses, it refuses before it asks an API server: here it says that it reached none."""
    assert re.search(r" --(all-)?namespaces?\b", command) or re.search(
        r" (crd|sc|nodes?|persistentvolume|uncordon|triton validate)\b", command
    )
    if not command.startswith("kubectl triton "):
        assert re.search("(was|connection) refused", kubectl(command)), command
        return
    words = shlex.split(command)[2:]
    assert vars(parser().parse_args(words)), "argparse ends the test where it refuses a word"


def test_the_page_about_monitoring_lists_every_alert(groups: list[dict[str, Any]]) -> None:
    text = (ROOT / "docs/monitoring.md").read_text(encoding="utf-8").partition("## Alerts")[2].partition("### ")[0]
    listed = dict(re.findall(r"^\| \[`(\w+)`\]\(runbooks\.md#\w+\) \| (\w+) \|", text, re.MULTILINE))
    assert listed == {name: rule["labels"]["severity"] for name, rule in alerts(groups).items()}


def test_an_alert_names_its_runbook_where_the_page_has_an_address(groups: list[dict[str, Any]]) -> None:
    assert not [name for name, rule in alerts(groups).items() if "runbook_url" in rule["annotations"]]
    named = rules("--set", f"metrics.prometheusRule.runbookUrl={ADDRESS}")
    for name, rule in alerts(named).items():
        assert rule["annotations"].pop("runbook_url") == f"{ADDRESS}#{name.lower()}"
    assert named == groups, "and nothing else is another"
