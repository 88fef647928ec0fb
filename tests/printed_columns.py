"""The columns of `kubectl get td`, from their one list: the CRD."""

from collections.abc import Mapping

from triton_operator.crdgen import crd

WIDE_ONLY = 1
"""The priority of a column that only `-o wide` shows."""


def columns(*, wide: bool = False) -> Mapping[str, str]:
    """The jsonPath of each column, by its word in the header."""
    (version,) = crd()["spec"]["versions"]
    found = version["additionalPrinterColumns"]
    return {each["name"].upper(): each["jsonPath"] for each in found if wide or each.get("priority") != WIDE_ONLY}


def cells(printed: str) -> Mapping[str, str]:
    """The cells of the one object of `kubectl get td`, by the header's words. No cell may be empty or have a space."""
    names, values = (line.split() for line in printed.splitlines())
    return dict(zip(names, values, strict=True))
