"""The correction of the Python backend's stub; that it works is what every model of the other modules shows."""

import pytest
from numpy2_stub import CORRECTIONS, corrected


def test_every_place_is_corrected_and_nothing_else() -> None:
    stub = b"code".join(old * times for old, (_, times) in CORRECTIONS.items())
    assert corrected(stub) == b"code".join(new * times for new, times in CORRECTIONS.values())


def test_another_stub_stops_the_build() -> None:
    with pytest.raises(ValueError, match="48634020 is there 0 times, not 4: another stub"):
        corrected(b"another stub")
