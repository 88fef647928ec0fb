"""The alerts of the chart's PrometheusRule, by promtool: each fires where it should, and is silent where it should."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.devcluster.binaries import program
from tests.apiserver.operator_process import ROOT, rendered

CASES = Path(__file__).parent / "alerts.test.yaml"
RUNBOOKS = ROOT / "docs/runbooks.md"
ADDRESS = "https://docs.example/runbooks/"
PARTS = ["Who notices", "First look", "Likely causes", "It clears"]
"""What a runbook has, in this order, after a sentence that says what the alert means."""
Rule = dict[str, Any]


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
    sections = {each.partition("\n")[0]: each for each in text.split("\n## ")[1:]}
    assert list(sections) == list(alerts(groups)), "in the order of the rules"
    for name, section in sections.items():
        assert re.findall(r"^\*\*(.+?)\.\*\*", section, re.MULTILINE) == PARTS, name
        assert len(re.findall(r"^```$.*?^```$", section, re.MULTILINE | re.DOTALL)) == 1, f"{name} has one command"


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
