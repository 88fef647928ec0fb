"""`kubectl triton validate` and the API server agree."""

import re
from typing import Any

from tests.apiserver.custom_resources import FULL, MINIMAL, changed
from tests.apiserver.kubectl import Kubectl, KubectlError
from tests.apiserver.test_crd import REFUSED
from triton_plugin.validation.validate import check

GOOD: dict[str, dict[str, Any]] = {
    "minimal": MINIMAL,
    "full": FULL,
    "null fields": changed(FULL, {"spec.suspend": None, "spec.selection.constraints.0.minimum": None}),
    "GPU count left out": changed(FULL, {"spec.gpu": {"product": "NVIDIA-A100"}}),
    "no thresholds and no metrics": changed(FULL, {"spec.metrics": ..., "spec.accuracy.thresholds": []}),
    "online batch at the maximum": changed(FULL, {"spec.performance.online.batchSize": 128}),
    "sixteen points": changed(FULL, {"spec.performance.online.concurrency": {"start": 1, "end": 16}}),
    "a number of no fraction": changed(FULL, {"spec.serving.replicas": 2.0}),
    "a claim by name": changed(FULL, {"spec.repository": {"claimName": "models"}}),
    "a threshold of one kind": changed(
        FULL, {"spec.accuracy.thresholds": [{"metric": "accuracy", "maximumDegradation": "0.01"}]}
    ),
}


def test_both_take_and_refuse_the_same_for_the_same_reasons(kubectl_shared: Kubectl) -> None:
    bodies = [*GOOD.values(), *(changed(FULL, changes) for changes, _ in REFUSED.values())]
    cases = [*GOOD, *REFUSED]
    numbered = [changed(body, {"metadata.name": f"case-{number}"}) for number, body in enumerate(bodies)]
    try:
        answer = kubectl_shared("create", "--validate=false", "--dry-run=server", "-f", "-", body=numbered)
    except KubectlError as error:
        answer = str(error)
    for number, (case, body) in enumerate(zip(cases, numbered, strict=True)):
        found = re.search(rf'"case-{number}" is invalid: ?(.*?)(?=\nThe TritonDeployment|\Z)', answer, re.DOTALL)
        faults = check(body)
        assert bool(faults) == bool(found), f"{case}: {faults} {found}"
        for fault in faults:
            assert found is not None
            assert fault.path in found[1], f"{case}: {fault}: {found[1]}"
            assert fault.message.removeprefix("must be of type ") in found[1], f"{case}: {fault}: {found[1]}"
