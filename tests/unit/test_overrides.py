"""What a spec may override in config.pbtxt, and in which sentence the rest is refused."""

import pytest

from triton_converters.contract.overrides import ALLOWED, checked

POLICY = """
dynamic_batching {
  # A comment, and both ways to open a message.
  priority_levels: 2, default_priority_level: 1;
  default_queue_policy: { timeout_action: REJECT  default_timeout_microseconds: 50000 }
  priority_queue_policy { key: 1 value { max_queue_size: 8 } }
  priority_queue_policy { key: 2 value { allow_timeout_override: true } }
}
instance_group { rate_limiter { resources { name: "R1" global: true count: 2 } resources { name: "R2" } priority: 2 } }
optimization { priority: PRIORITY_MAX input_pinned_memory { enable: false } graph { level: -1 } }  # the end"""


def test_what_is_allowed_is_taken_whatever_its_form() -> None:
    assert checked(POLICY) == {"dynamic_batching", "instance_group", "optimization"}
    assert checked("") == checked("  # nothing\n") == frozenset()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("response_cache { enable: true }", "response_cache must not be overridden: remove it; docs/formats.md lists"),
        ("response_cache {}", "response_cache must not be overridden"),
        ("sequence_batching { }", "sequence_batching must not be overridden"),
        ('backend: "python"', "backend must not be overridden"),
        ('default_model_filename: "evil.so"', "default_model_filename must not be overridden"),
        ('model_operations { op_library_filename: "x.so" }', "model_operations must not be overridden"),
        ('parameters { key: "EXECUTION_ENV_PATH" }', "parameters must not be overridden"),
        ("instance_group { count: 64 }", "instance_group.count must not be overridden"),
        ("dynamic_batching { max_queue_delay_microseconds: 1 }", "max_queue_delay_microseconds must not be"),
        ("optimization { cuda { graphs: true } }", "optimization.cuda.graphs must not be overridden"),
        ("optimization { execution_accelerators { } }", "optimization.execution_accelerators must not be overridden"),
        ("optimization { priority: HIGH }", "optimization.priority must be PRIORITY_DEFAULT, PRIORITY_MAX or"),
        ("optimization { eager_batching: 1 }", "optimization.eager_batching must be true or false: correct it"),
        ("optimization { eager_batching { } }", "optimization.eager_batching must be true or false"),
        ("optimization: 1", "optimization must be fields in braces: correct it"),
        ("dynamic_batching { priority_levels: -1 }", "priority_levels must be a whole number of at most 9 digits"),
        ("dynamic_batching { priority_levels: 9999999999 }", "priority_levels must be a whole number"),
        ('instance_group { rate_limiter { resources { name: "../x" } } }', "resources.name must be a name in quotes"),
        ("optimization { priority: PRIORITY_MAX", "optimization is not closed: add a }"),
        ("optimization { graph {", "optimization.graph is not closed: add a }"),
        ("optimization { graph { level: 1 level: 0 } }", "optimization.graph.level is given twice: remove one"),
        ("optimization {} optimization {}", "optimization is given twice"),
        ("\noptimization }", "line 2 has no field in the form"),
        ("}", "line 1 has no field in the form"),
        ("optimization < priority: PRIORITY_MAX >", "line 1 has no field in the form"),
        ("[a.b.c] { }", "line 1 has no field in the form"),
    ],
)
def test_all_else_is_refused_and_named(text: str, words: str) -> None:
    with pytest.raises(ValueError) as refused:
        checked(text)
    assert words in str(refused.value)


def test_nothing_that_names_a_file_a_backend_or_an_environment_is_allowed() -> None:
    words = (
        "file",
        "path",
        "dir",
        "env",
        "backend",
        "platform",
        "parameter",
        "library",
        "cache",
        "sequence",
        "accelerator",
    )
    assert [path for path in ALLOWED if any(word in path for word in words)] == []
