"""What a server image's release is known for."""

import re

import pytest

from triton_operator.api.status import CONDITION_MESSAGE_BYTES
from triton_operator.candidates.vulnerabilities import KNOWN, warning

NVIDIA = "nvcr.io/nvidia/tritonserver"


@pytest.mark.parametrize(
    ("release", "named"),
    [
        ("23.10", "CVE-2025-23310"),
        ("25.06", "CVE-2025-23311"),
        ("25.07", "CVE-2025-23316"),
        ("26.02", "CVE-2026-24207"),
        ("26.03", "CVE-2026-47627"),
        ("26.06", "CVE-2026-16497"),
    ],
)
def test_a_release_before_the_fix_is_warned_of(release: str, named: str) -> None:
    message = warning(f"{NVIDIA}:{release}-py3")
    assert message is not None
    assert named in message
    assert "use release 26.07 or later" in message


@pytest.mark.parametrize("cve", ["CVE-2025-23310", "CVE-2025-23319", "CVE-2025-23334"])
def test_a_release_with_the_fix_is_not_blamed_for_it(cve: str) -> None:
    assert next(each.fixed for each in KNOWN if each.cve == cve) == "25.07"
    assert cve not in (warning(f"{NVIDIA}:25.07-py3") or "")


@pytest.mark.parametrize(
    "image",
    [
        f"{NVIDIA}:26.07-py3",
        f"{NVIDIA}:27.01-py3",
        f"{NVIDIA}@sha256:{'0' * 64}",
        "registry.example/server:latest",
        "triton-operator.local/tritonserver-cpu:0.1.0",
    ],
)
def test_nothing_is_said_where_nothing_is_known(image: str) -> None:
    assert warning(image) is None


def test_the_worst_are_named_and_the_message_fits() -> None:
    image = f"registry.example:5000/{'mirror/' * 8}tritonserver:22.01-py3@sha256:{'0' * 64}"
    message = warning(image)
    assert message is not None
    assert len(message.encode()) <= CONDITION_MESSAGE_BYTES
    assert message.count("(score 9.8)") == sum(each.score == 9.8 for each in KNOWN)
    assert f"and {len(KNOWN) - 6} more" in message


def test_the_table_is_in_order_and_names_each_once() -> None:
    assert len({each.cve for each in KNOWN}) == len(KNOWN)
    assert [each.score for each in KNOWN] == sorted((each.score for each in KNOWN), reverse=True)
    assert all(re.fullmatch(r"CVE-20\d\d-\d{4,5}", each.cve) for each in KNOWN)
    assert all(re.fullmatch(r"2\d\.(0[1-9]|1[0-2])", each.fixed) for each in KNOWN)
