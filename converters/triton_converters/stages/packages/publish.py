"""Publish the modules that pip left."""

from pathlib import Path

from triton_converters.claim_store.replay import publish_result
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import PackagesRequest
from triton_converters.contract.results import PackagesResult
from triton_converters.incoming import documents
from triton_converters.incoming.documents import Installed
from triton_converters.packages import modules
from triton_converters.stages.packages import SITE

STAGE = "packages"
NAMED = 100
"""How many packages a result names."""
NAME_CHARACTERS = 200
"""Most of a name and version that is kept: real ones are far shorter."""


def run(request: PackagesRequest, incoming: Path) -> PackagesResult:
    """Publish ``packages/<key>/``.

    Raises StageError: that with which pip ended; Crashed and StorageFull for what is not published.
    """
    documents.check_end(incoming, STAGE)
    packages = documents.read(incoming, documents.INSTALLED, Installed).packages
    named = tuple(documents.plain(each, NAME_CHARACTERS) for each in packages[:NAMED])

    def fill(directory: Path) -> PackagesResult:
        site = directory / layout.installed_packages(request.key).name
        site.mkdir()
        return PackagesResult(named, len(packages), modules.take(incoming, SITE, site))

    return publish_result(layout.packages_directory(request.key), STAGE, request.key, PackagesResult, fill)
