"""Flags of tritonserver in a spec: the table, and what is refused where there is no API server."""

import pytest

from triton_operator.api.server_flags import NUMBERS, ONLY_ALLOWED, WORDS, flag_rules, refusals

SET_BY_US = ("model-", "log-", "trace-", "http-address", "grpc-max-connection-age", "exit-", "strict-", "pinned-")
"""How flags begin that the operator sets, or that have a field; `model-load-thread-count` alone is neither."""


@pytest.mark.parametrize(("name", "bounds"), NUMBERS.items())
def test_a_number_is_taken_within_its_bounds(name: str, bounds: tuple[int, int]) -> None:
    least, most = bounds
    message = f"flags.{name} must be a whole number from {least} to {most}: correct it"
    for value in (str(least), str(most)):
        assert list(refusals({name: value})) == []
    for value in (str(least - 1), str(most + 1), "", " 8", "8 ", "8\n", "0x8", "1e1", "\u0661", "9" * 10):
        assert list(refusals({name: value})) == [message], value


@pytest.mark.parametrize(("name", "words"), WORDS.items())
def test_a_word_is_one_of_those_of_its_flag(name: str, words: tuple[str, ...]) -> None:
    assert [each for word in words for each in refusals({name: word})] == []
    assert list(refusals({name: words[0].upper()})) == [f"flags.{name} must be one of {', '.join(words)}: correct it"]


@pytest.mark.parametrize("name", ["log-file", "http-thread-count ", "HTTP-thread-count", "--http-thread-count", ""])
def test_another_flag_is_refused_with_the_list(name: str) -> None:
    assert list(refusals({name: "8", "rate-limit": "off"})) == [ONLY_ALLOWED]
    assert all(each in ONLY_ALLOWED for each in (*NUMBERS, *WORDS))


def test_the_api_server_says_the_same_words() -> None:
    said = [message for _, message in flag_rules()]
    broken = dict.fromkeys((*NUMBERS, *WORDS), "no") | {"log-file": "/tmp/x"}
    assert list(refusals(broken)) == said


def test_no_flag_is_one_that_the_operator_sets() -> None:
    flags = [*NUMBERS, *WORDS]
    assert [each for each in flags if each.startswith(SET_BY_US)] == ["model-load-thread-count"]
