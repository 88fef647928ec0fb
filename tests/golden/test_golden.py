"""One pass a case, from files to files; README.md has the format."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import quick_yaml
from tests.golden.moments import MOMENTS
from tests.simulation.cluster import SETTINGS
from triton_operator.api.deployment import parse
from triton_operator.observed.snapshot import observe
from triton_operator.planning.plan import Plan, plan

HERE = Path(__file__).parent
CASES = sorted(HERE / name for name in MOMENTS)


class Plain(yaml.SafeDumper):
    """No anchors: a golden file is for reading."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write what is shared twice."""
        return True


def run(case: Path) -> Plan:
    """What plan() wants in a case."""
    text = (case / "cr.yaml").read_text(encoding="utf-8")
    now = datetime.fromisoformat(text.partition("\n")[0].removeprefix("# now: "))
    body = quick_yaml.load(text)
    children = quick_yaml.load((case / "observed.yaml").read_text(encoding="utf-8"))
    deployment = parse(body)
    observed = observe(deployment.name, children, claim_name=deployment.claim_name, has_keda=True, has_gateway_api=True)
    return plan(deployment, observed, SETTINGS, now)


def write_inputs(case: Path) -> None:
    """The case's moment of the simulation, as files."""
    cluster = MOMENTS[case.name]()
    case.mkdir(exist_ok=True)
    (case / "cr.yaml").write_text(f"# now: {cluster.now.isoformat()}\n{dumped(cluster.body())}", encoding="utf-8")
    (case / "observed.yaml").write_text(dumped([as_read(each) for each in cluster.objects.values()]), encoding="utf-8")


def as_read(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """A child with only those parts of its pod template or pod, or of its Job, that a pass reads."""
    if body["kind"] == "Job":
        suspended = {name: body["spec"][name] for name in ("suspend",) if name in body["spec"]}
        return {**body, "spec": suspended | {"template": {"spec": pod_as_read(body["spec"]["template"]["spec"])}}}
    return {**body, "spec": pod_as_read(body["spec"])} if body["kind"] == "Pod" else body


def pod_as_read(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The claim, the deadline, and of each container its name, whether it is a sidecar, and its limits."""
    claims = [each for each in spec.get("volumes", []) if "persistentVolumeClaim" in each]
    kept = {"volumes": claims} | {name: spec[name] for name in ("activeDeadlineSeconds", "nodeName") if name in spec}
    return kept | {
        group: [
            {"name": each["name"]}
            | {name: each[name] for name in ("restartPolicy",) if name in each}
            | {"resources": {"limits": each.get("resources", {}).get("limits", {})}}
            for each in spec[group]
        ]
        for group in ("initContainers", "containers")
        if group in spec
    }


def dumped(value: Any) -> str:
    """As YAML."""
    return yaml.dump(value, Dumper=Plain, sort_keys=False, width=120, allow_unicode=True)


def written(wanted: Plan) -> dict[str, Any]:
    """A plan as plain YAML."""
    return {
        "objects": list(wanted.objects),
        "deletions": [f"{each.kind} {each.name}" for each in wanted.deletions],
        "status": wanted.status.model_dump(mode="json", by_alias=True, exclude_none=True),
        "events": [f"{each.type} {each.reason}: {each.message}" for each in wanted.events],
        "requeueAfter": wanted.requeue_after,
    }


def test_every_folder_is_a_case() -> None:
    assert {path.parent for path in HERE.glob("*/*.yaml")} == set(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_plan_is_the_expected_one(case: Path, updates_golden: bool) -> None:
    golden = case / "expected.yaml"
    if updates_golden:
        write_inputs(case)
    found = written(run(case))
    if updates_golden:
        golden.write_text(dumped(found), encoding="utf-8")
    assert quick_yaml.as_read(found) == quick_yaml.load(golden.read_text(encoding="utf-8"))
