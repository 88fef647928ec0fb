"""Run pip, and leave what it installed to be looked at. It runs in the image that will import the packages."""

import os
import tempfile
from pathlib import Path

from triton_converters.contract.conversion_requests import PackagesRequest
from triton_converters.incoming import documents
from triton_converters.incoming.documents import Installed
from triton_converters.packages import image, requirements_file
from triton_converters.packages.index import index
from triton_converters.packages.pip import install
from triton_converters.stages.packages import REQUIREMENTS, SITE


def run(request: PackagesRequest, missing: tuple[str, ...], incoming: Path) -> None:
    """Write the modules and the packages' names.

    Raises StageError: PackageNotFound, SourceAccessDenied, and what ``pip.install`` raises.
    """
    lines = [
        line
        for number, each in enumerate(request.files)
        for line in requirements_file.read(incoming / REQUIREMENTS.format(number), each.path)
    ]
    there = image.installed()
    advice = image.ADVICE
    if request.served:
        there = image.of_server(there)
        advice = ""
    image.check(lines, there, advice)
    with tempfile.TemporaryDirectory(dir=incoming) as place:
        installed = install(lines, there, index(), Path(place), advice)
        if installed.site.is_dir():
            os.rename(installed.site, incoming / SITE)
    (incoming / SITE).mkdir(exist_ok=True)
    documents.write(incoming, documents.INSTALLED, Installed(installed.packages))
    print(f"installed: {', '.join(installed.packages) or 'nothing; the image has everything'}", flush=True)
