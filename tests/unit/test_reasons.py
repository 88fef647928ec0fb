"""What lists reasons outside the code has those of the table."""

import re
from pathlib import Path

import pytest

from triton_converters.contract.reason_kinds import Kind
from triton_converters.contract.reasons import Reason, known_reason, of_kinds
from triton_operator.api.status import PAUSED

ROOT = Path(__file__).parents[2]


def test_a_value_is_the_name_in_camel_case() -> None:
    assert known_reason("TensorRtUnavailable") is Reason.TENSOR_RT_UNAVAILABLE
    assert all(re.fullmatch("([A-Z][a-z0-9]+)+", reason) for reason in Reason)


def test_no_alert_tells_of_what_is_not_up_to_date_because_somebody_wants_it_so() -> None:
    """What waits for an approval is told: somebody may have forgotten it. The last two have alerts of their own."""
    alerts = (ROOT / "charts/triton-operator/files/alerts.yaml").read_text(encoding="utf-8")
    (pattern,) = re.findall(r'triton_operator_not_up_to_date{reason!~"(.+?)"}', alerts)
    silent = {reason for reason in Reason if re.fullmatch(pattern, reason)}
    assert silent == of_kinds(Kind.TRIAL) | {Reason.SUSPENDED, Reason.WORSE_THAN_BEFORE, Reason.NEWER_VERSION}


@pytest.mark.parametrize("file", ["argocd/health.lua", "flux/models.yaml"])
def test_gitops_tools_take_what_waits_for_its_user_as_paused(file: str) -> None:
    text = (ROOT / "manifests/gitops" / file).read_text(encoding="utf-8")
    assert {reason for reason in Reason if re.search(f"['\"]{reason}['\"]", text)} >= PAUSED
