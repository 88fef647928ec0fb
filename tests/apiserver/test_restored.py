"""The commands of docs/backup.md, as the page prints them, and what the operator makes of what they restore."""

from pathlib import Path

import pytest
import yaml

from hack.deploy.command import ROOT
from hack.devcluster.apiserver import ApiServer
from tests.apiserver.custom_resources import MINIMAL, changed
from tests.apiserver.kubectl import Kubectl
from tests.apiserver.test_reconcile import Bench
from tests.page import Shell, blocks
from triton_converters.contract.envelope import Outcome
from triton_converters.contract.results import ConvertResult

PAGE = "docs/backup.md"
RECORD = "convert.0123456789abcdef"
CLAIM = "digits-repository"


def pass_until_it_rests(bench: Bench) -> None:
    bench.look()
    while bench.reconcile().again_after == 0.0:
        bench.look()


def saved(bench: Bench, kubectl: Kubectl, shell: Shell) -> None:
    """Save an object that has a result, and delete it with all that belongs to it, as a lost cluster would."""
    pass_until_it_rests(bench)
    record = Outcome("convert", RECORD.partition(".")[2], ConvertResult("e", 1, (), 1.0, (), "", 0.0))
    data = {RECORD: record.to_json(), f"finished.{RECORD}": "2026-11-20T00:00:00Z"}
    kubectl("patch", "configmap", "digits-results", "--type=merge", "--patch", yaml.safe_dump({"data": data}))
    for block in blocks(PAGE, "Save"):
        shell.run(block)
    kubectl("delete", "td,configmap,pvc,job,networkpolicy", "--all", "--wait=false")
    kubectl("patch", "pvc", CLAIM, "--type=merge", "--patch", '{"metadata": {"finalizers": null}}')
    bench.look()


def claim() -> dict[str, object]:
    """The claim of the page."""
    text = (ROOT / PAGE).read_text(encoding="utf-8").partition("## Restore")[2]
    body: dict[str, object] = yaml.safe_load(text.partition("```yaml\n")[2].partition("```")[0])
    return body


@pytest.fixture
def restored(apiserver: ApiServer, kubectl: Kubectl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """The operator before its first pass over an object that the page's commands have saved and restored."""
    monkeypatch.setenv("KUBECONFIG", str(apiserver.kubeconfig))
    kubectl("create", "-f", "-", body=changed(MINIMAL, {}))
    bench = Bench(kubectl)
    shell = Shell.opened(tmp_path, apiserver.kubeconfig)
    shell.run(f"kubectl config set-context --current --namespace={kubectl.namespace}")
    saved(bench, kubectl, shell)
    kubectl("create", "-f", "-", body=claim())
    for block in blocks(PAGE, "Restore"):
        shell.run(block)
    bench.look()
    return bench


def test_results_become_the_restored_objects_and_a_released_claim_too(restored: Bench, kubectl: Kubectl) -> None:
    assert "claim" not in kubectl.get("configmap", "digits-results")["data"]
    volume = kubectl.get("pvc", CLAIM)["spec"]
    pass_until_it_rests(restored)
    uid = kubectl.get("td", "digits")["metadata"]["uid"]
    results, claim = kubectl.get("configmap", "digits-results"), kubectl.get("pvc", CLAIM)
    assert [each["uid"] for each in results["metadata"]["ownerReferences"]] == [uid]
    assert "ownerReferences" not in claim["metadata"], "a claim that was restored is retained"
    kubectl("annotate", "pvc", CLAIM, f"triton-operator.dev/release={uid}")
    restored.look()
    pass_until_it_rests(restored)
    claim = kubectl.get("pvc", CLAIM)
    assert [each["uid"] for each in claim["metadata"]["ownerReferences"]] == [uid]
    assert RECORD in results["data"], "it is believed"
    assert results["data"]["claim"] == f"{CLAIM}/{claim['metadata']['uid']}"
    assert claim["spec"] == volume


def test_all_entries_of_restored_results_are_the_operators_to_remove(restored: Bench, kubectl: Kubectl) -> None:
    """An apply removes only what the operator applied, so what somebody else made would stay, and its files with it."""
    pass_until_it_rests(restored)
    found = kubectl.get("configmap", "digits-results", "--show-managed-fields")
    assert [(each["manager"], each["operation"]) for each in found["metadata"]["managedFields"]] == [
        ("triton-operator", "Apply")
    ]
    assert f"f:{RECORD}" in found["metadata"]["managedFields"][0]["fieldsV1"]["f:data"]
