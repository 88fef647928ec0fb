"""The list of the zoo's models: each is of a package that is pinned by its hash."""

import re

from tests.zoo.fetch import PACKAGES
from tests.zoo.models import MODELS


def test_every_model_is_of_a_pinned_package_and_every_package_has_a_model() -> None:
    lines = PACKAGES.read_text(encoding="utf-8").splitlines()
    pinned = [re.fullmatch(r"([a-z0-9-]+)==[0-9a-z.]+ --hash=sha256:[0-9a-f]{64}", line) for line in lines]
    assert all(pinned)
    assert sorted({model.package for model in MODELS}) == sorted(each[1] for each in pinned if each)


def test_names_are_names_of_objects_and_distinct() -> None:
    names = [model.name for model in MODELS]
    assert len(set(names)) == len(names) >= 25
    assert all(re.fullmatch(r"[a-z0-9][-a-z0-9]{0,40}", name) for name in names)
