"""What `make test-debian` types is what the docs tell; it is not a part of `make test`."""

from tests.local import debian


def test_the_commands_and_packages_of_the_docs_are_found() -> None:
    install, check = debian._commands()
    assert install.startswith("python3 -m venv ")
    assert check.endswith(" check model.onnx")
    assert debian._packages() == ["python3-venv", "libpython3-dev"]


def test_downloads_are_counted_from_pip_s_log() -> None:
    log = "Downloading a-1-py3.whl (1.5 MB)\n x Downloading b-2-py3.whl (500 kB)\nDownloading c-3-py3.whl.metadata"
    assert debian.megabytes(log) == 2
