"""What `make test-debian` types is what the docs tell; it is not a part of `make test`."""

from tests.local import debian
from tests.zoo.models import MODELS


def test_the_commands_and_packages_of_the_docs_are_found() -> None:
    install, check = debian.commands()
    assert install.startswith("python3 -m venv ")
    assert check.endswith(" check model.onnx")
    assert debian._packages() == ["python3-venv", "libpython3-dev"]


def test_downloads_are_counted_from_pip_s_log() -> None:
    log = "Downloading a-1-py3.whl (1.5 MB)\n x Downloading b-2-py3.whl (500 kB)\nDownloading c-3-py3.whl.metadata"
    assert debian.megabytes(log) == 2


def test_the_median_is_of_models_of_ten_kinds() -> None:
    chosen = debian.zoo()
    assert len({model.kind for model in chosen}) == len(chosen) == debian.ZOO
    assert {model.name for model in MODELS} >= debian.REFUSED
