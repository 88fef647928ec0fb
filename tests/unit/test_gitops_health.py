"""What GitOps tools make of recorded statuses of every phase: kstatus by its rules, Argo CD by Lua, Flux by CEL."""

import copy
from pathlib import Path
from typing import Any

import celpy
import pytest
import yaml
from celpy.adapter import json_to_cel
from lupa.lua51 import LuaRuntime

from tests.states.moments import MOMENTS
from tests.states.passes import reached, reported, status
from triton_plugin.drafting.validation.validate import check, deployments

Body = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]
GITOPS = ROOT / "manifests/gitops"
READY = {
    "ready",
    "python-step",
    "fixed-paths",
    "kept",
    "rolled-back",
    "closest-selected",
    "performance-regressed",
    "search-failed",
    "server-refuses-the-model",
    "saturated",
    "autoscaled",
    "several-servers",
    "autoscaling-paused",
    "cleaning-the-claim",
    "newer-files",
    "newer-files-fail",
    "newer-files-are-worse",
    "newer-images",
    "newer-version-fails",
    "newer-version-staged",
    "newer-version-only-told-of",
    "look-fails",
    "flags-and-clients",
    "mixed-shapes",
    "int8",
    "publishing",
    "published",
    "not-published",
    "gate-only",
    "server-removed",
}
FAILED = {
    "approval-invalid",
    "canary-undone",
    "constraint-broken-in-the-preview",
    "framework-misses-a-threshold",
    "killed-for-memory",
    "no-candidate-meets-the-constraint",
    "performance-regression-blocks",
    "revision-unknown",
    "undone",
}
PAUSED = {"awaiting-approval", "suspended"}
PHASES = sorted(MOMENTS)


def recorded(phase: str) -> Body:
    """The TritonDeployment after a pass of the phase."""
    body = {**reached(phase).body(), "status": status(phase)}
    return copy.deepcopy(body)


def argo(body: Body) -> tuple[str, str]:
    """Health and message by Argo CD's check, in a real Lua."""
    lua = LuaRuntime(register_eval=False, register_builtins=False)
    health = lua.execute("return function(obj) " + (GITOPS / "argocd/health.lua").read_text() + " end")
    found = health(lua.table_from(body, recursive=True))
    return found["status"], found["message"]


def flux(body: Body) -> str:
    """Health by the Kustomization's expressions, in the order of Flux's RFC 9: the first that holds."""
    (kustomization,) = [
        each
        for each in yaml.safe_load_all((GITOPS / "flux/models.yaml").read_text())
        if each["kind"] == "Kustomization"
    ]
    (expressions,) = kustomization["spec"]["healthCheckExprs"]
    assert (expressions["apiVersion"], expressions["kind"]) == (body["apiVersion"], body["kind"])
    if body["status"].get("observedGeneration", body["metadata"]["generation"]) != body["metadata"]["generation"]:
        return "InProgress"
    environment = celpy.Environment()
    variables = {name: json_to_cel(value) for name, value in body.items()}
    for name in ("inProgress", "failed", "current"):
        if environment.program(environment.compile(expressions[name])).evaluate(variables):
            return name[0].upper() + name[1:]
    return "InProgress"


def kstatus(body: Body) -> str:
    """Health by the rules that kstatus has for every kind of object."""
    if body["metadata"].get("deletionTimestamp"):
        return "Terminating"
    if body["status"].get("observedGeneration", body["metadata"]["generation"]) != body["metadata"]["generation"]:
        return "InProgress"
    conditions = {each["type"]: each["status"] for each in body["status"].get("conditions", ())}
    if conditions.get("Reconciling") == "True":
        return "InProgress"
    if conditions.get("Stalled") == "True":
        return "Failed"
    return "Current" if conditions.get("Ready", "True") == "True" else "InProgress"


def expected(phase: str) -> tuple[str, str, str]:
    """Health by kstatus, Argo CD and Flux, as the table of docs/gitops.md has it."""
    if phase in READY:
        return "Current", "Healthy", "Current"
    if phase in FAILED:
        return "Failed", "Degraded", "Failed"
    return ("InProgress", "Suspended", "Current") if phase in PAUSED else ("InProgress", "Progressing", "InProgress")


def test_every_kind_of_phase_is_recorded() -> None:
    assert set(PHASES) > READY | FAILED | PAUSED


@pytest.mark.parametrize("phase", PHASES)
def test_health_of_a_phase(phase: str) -> None:
    body = recorded(phase)
    assert (kstatus(body), argo(body)[0], flux(body)) == expected(phase)


@pytest.mark.parametrize("phase", sorted(FAILED | PAUSED))
def test_argo_cd_says_why(phase: str) -> None:
    body = recorded(phase)
    (ready,) = [each for each in body["status"]["conditions"] if each["type"] == "Ready"]
    assert argo(body)[1] == f"{ready['reason']}: {ready['message']}"


def test_argo_cd_says_what_is_newer() -> None:
    (newer,) = [each for each in recorded("newer-files-fail")["status"]["conditions"] if each["type"] == "UpToDate"]
    assert argo(recorded("newer-files-fail"))[1].endswith(f"; UpToDate: {newer['reason']}: {newer['message']}")
    assert "UpToDate: " not in argo(recorded("ready"))[1]


def test_an_object_over_which_passes_fail_is_in_progress_and_argo_cd_says_why() -> None:
    body = recorded("ready") | {"status": copy.deepcopy(dict(reported("pass-failed").status))}
    assert (kstatus(body), argo(body)[0], flux(body)) == expected("converting-in-parallel")
    assert "; Reconciling: InternalError: the operator failed: ValueError: no such stage." in argo(body)[1]


@pytest.mark.parametrize("phase", PHASES)
def test_an_object_that_was_edited_is_in_progress(phase: str) -> None:
    body = recorded(phase)
    body["metadata"]["generation"] += 1
    assert (kstatus(body), argo(body)[0], flux(body)) == expected("converting-in-parallel")


def test_a_new_object_is_in_progress() -> None:
    """The CRD gives it this status; without the default, kstatus would take it for finished."""
    body = recorded("ready") | {"status": {"observedGeneration": -1}}
    assert (kstatus(body), argo(body)[0], flux(body)) == expected("converting-in-parallel")
    without = {**body, "status": {"observedGeneration": 1}}
    assert (argo(without)[0], flux(without)) == ("Progressing", "InProgress")


def test_the_models_are_valid_and_the_tools_apply_their_folder() -> None:
    files = [path for path in GITOPS.rglob("*.yaml") if "models" in path.relative_to(GITOPS).parts]
    found = [each for path in files for each in deployments(path.read_text())]
    assert found
    assert [fault for each in found for fault in check(each)] == []
    (ignored,) = yaml.safe_load((GITOPS / "argocd/application.yaml").read_text())["spec"]["ignoreDifferences"]
    assert ignored["kind"] == found[0]["kind"]
    assert found[0]["apiVersion"].startswith(f"{ignored['group']}/")
