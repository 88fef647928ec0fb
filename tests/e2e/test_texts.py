"""A text goes in, its language comes out: a tokenizer that a step imports from its packages."""

from tests.e2e.texts import Texts


def test_the_languages_are_as_right_as_the_frameworks(texts: Texts) -> None:
    (row,) = texts.state.status["accuracy"]
    assert (row["metric"], row["samples"], row["served"]) == ("accuracy", 480, row["framework"])
    assert float(row["served"]) > 0.9


def test_a_client_sends_texts_of_several_lengths(texts: Texts) -> None:
    assert texts.answers["together"] == texts.answers["alone"] == ["de", "fr", "sv"]


def test_what_is_no_text_is_told_to_its_own_client(texts: Texts) -> None:
    assert "no UTF-8 text" in texts.answers["refused"]
