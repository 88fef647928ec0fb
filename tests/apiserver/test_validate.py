"""`kubectl triton validate` and the API server agree."""

import re
from functools import cache

import pytest

from tests.apiserver.custom_resources import changed
from tests.apiserver.kubectl import Kubectl, KubectlError
from tests.apiserver.validated import GOOD, objects
from triton_plugin.drafting.validation.cel import rules
from triton_plugin.drafting.validation.structural import Fault
from triton_plugin.drafting.validation.validate import check, schema

TABLE = [(case, changed(body, {"metadata.name": f"case-{n}"})) for n, (case, body) in enumerate(objects().items())]
AT_A_TIME = 40


@cache
def found(number: int) -> list[Fault]:
    """What `kubectl triton validate` finds in an object of the table."""
    return check(TABLE[number][1])


@pytest.mark.parametrize("first", range(0, len(TABLE), AT_A_TIME))
def test_both_take_and_refuse_the_same_for_the_same_reasons(kubectl_shared: Kubectl, first: int) -> None:
    some = TABLE[first : first + AT_A_TIME]
    said = ""
    try:
        kubectl_shared("create", "--validate=false", "--dry-run=server", "-f", "-", body=[body for _, body in some])
    except KubectlError as error:
        said = str(error)
    for number, (case, body) in enumerate(some, start=first):
        name = body["metadata"]["name"]
        refusal = re.search(rf'"{name}" is invalid:(.*?)(?=\nError from server|\Z)', said, re.DOTALL)
        faults = found(number)
        assert bool(faults) == bool(refusal), f"{case}: {faults} {refusal}"
        assert case not in GOOD or not faults
        for fault in faults:
            assert refusal is not None
            assert fault.path in refusal[1], f"{case}: {fault}: {refusal[1]}"
            assert fault.message.removeprefix("must be of type ") in refusal[1], f"{case}: {fault}: {refusal[1]}"


def test_every_rule_of_the_crd_refuses_something() -> None:
    refused = {fault.message for number in range(len(TABLE)) for fault in found(number)}
    # test_crd.py has the names.
    wanted = {message for _, message in rules(schema()) if not message.startswith("metadata.name")}
    assert wanted - refused == set()
