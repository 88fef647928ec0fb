"""Specs that were stored before the CRD refused them: the operator refuses them too, and says which field it is."""

from typing import Any

import pytest

from tests.apiserver.custom_resources import MINIMAL, changed
from triton_operator.api.backend_settings import OPTIONS, PARAMETERS
from triton_operator.api.deployment import InvalidSpecError, parse

CONFIG = "spec.models.0.config"
IDENTITY = {"name": "digits", "namespace": "vision", "uid": "uid-0", "generation": 1}
STORED: dict[str, tuple[dict[str, Any], str]] = {
    "a Python environment": (
        {CONFIG: {"parameters": {"EXECUTION_ENV_PATH": "env.tar.gz"}}},
        "spec.models.0: config.parameters must not have EXECUTION_ENV_PATH",
    ),
    "a parameter of TensorFlow for a model in ONNX": (
        {CONFIG: {"parameters": {"TF_NUM_INTRA_THREADS": "2", "enable_mem_arena": "0"}}},
        "spec.models.0: config.parameters must not have TF_NUM_INTRA_THREADS: docs/formats.md lists what may be set",
    ),
    "a path": (
        {CONFIG: {"parameters": {"gpu_mem_limit": "/etc/passwd"}}},
        "spec.models.0.config.parameters.gpu_mem_limit: String should match pattern",
    ),
    "a directory of backends": (
        {"spec.serving": {"backendConfig": [{"name": "backend-directory", "value": "models"}]}},
        "spec.serving.backendConfig.0: backend-directory must not be set",
    ),
    "a file of tables": (
        {"spec.serving": {"backendConfig": [{"backend": "hps", "name": "ps", "value": "ps.json"}]}},
        "spec.serving.backendConfig.0: hps,ps must not be set: docs/formats.md lists what may be",
    ),
}


def stored(changes: dict[str, Any]) -> dict[str, Any]:
    return changed(MINIMAL, {"metadata": IDENTITY, **changes})


@pytest.mark.parametrize("case", STORED)
def test_what_was_stored_before_the_rule_is_refused_and_named(case: str) -> None:
    changes, expected = STORED[case]
    with pytest.raises(InvalidSpecError) as refused:
        parse(stored(changes))
    assert expected in str(refused.value)


def test_no_setting_that_names_a_file_or_lets_code_in_is_allowed() -> None:
    names = [name for each in (*PARAMETERS.values(), *OPTIONS.values()) for name in each]
    words = ("path", "file", "dir", "env", "plugin", "librar", "shm", "compile", "version-compatible")
    assert [name for name in names if any(word in name.lower() for word in words)] == []
