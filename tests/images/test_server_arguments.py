"""The arguments that a spec may set, on a real tritonserver, which ends at once if it does not know one."""

import re
import subprocess

import pytest

from tests.images.server import ROOT, RUN
from triton_operator.api.server_arguments import ARGUMENTS

pytestmark = pytest.mark.images


def test_the_server_knows_every_argument_that_a_spec_may_set() -> None:
    command = [*RUN, "tritonserver-cpu", "--", "tritonserver", "--help"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    known = set(re.findall(r"^  --([a-z0-9-]+) ", said.stdout + said.stderr, re.MULTILINE))
    assert {name.removeprefix("--") for name in ARGUMENTS} <= known
    assert "http-max-input-size" not in known, "docs/formats.md says that this server lacks it"
