"""What kopf is told."""

from collections.abc import Iterable
from itertools import islice

import kopf

from triton_operator.runtime.handlers import configure


def test_kopf_never_gives_the_watch_up() -> None:
    settings = kopf.OperatorSettings()
    configure(settings)
    backoffs = settings.networking.error_backoffs
    assert isinstance(backoffs, Iterable)
    for _ in range(2):
        pauses = list(islice(backoffs, 1000))
        assert pauses[0] == 1
        assert max(pauses) == 5


def test_kopf_copies_and_compares_nothing() -> None:
    settings = kopf.OperatorSettings()
    configure(settings)
    body = kopf.Body({"metadata": {"annotations": {"a": "b"}}, "spec": {"models": []}})
    assert settings.persistence.diffbase_storage.build(body=body, extra_fields=[]) == {}
    assert settings.persistence.diffbase_storage.fetch(body=body) is None
