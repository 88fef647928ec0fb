"""The CRD's rules hold whichever of them, and whoever else, was the first to parse CEL in the process."""

import subprocess
import sys

import pytest

PROGRAM = """
import celpy
from triton_plugin.drafting.validation import cel
first = FIRST
if first == "another":
    celpy.Environment().compile("1 == 1")
rules = {"a block": "isCIDR(self.cidr)", "a comparison": "!has(self.x) || self.x > 1", "another": "self.cidr != ''"}
for name in sorted(rules, key=lambda each: each != first):
    assert cel._holds(rules[name], celpy.json_to_cel({"cidr": "10.0.0.0/8", "x": 2})), name
    assert not cel._holds(f"!({rules[name]})", celpy.json_to_cel({"cidr": "10.0.0.0/8", "x": 2})), name
"""


@pytest.mark.parametrize("first", ["a block", "a comparison", "another"])
def test_the_first_rule_decides_nothing_about_the_next(first: str) -> None:
    program = PROGRAM.replace("FIRST", repr(first))
    subprocess.run([sys.executable, "-c", program], check=True)
