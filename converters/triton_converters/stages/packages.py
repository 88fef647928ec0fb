"""Stage ``packages``: install the Python packages that the user's code needs and this image lacks.

It runs in the image that runs the user's code, but none of that code. The packages' own code runs in the Jobs with user
code alone: wheels are unpacked, and nothing of them is executed.
"""

import os
import stat
import tempfile
from pathlib import Path

from triton_converters.claim_store.digest import SourceFile, sha256_of
from triton_converters.claim_store.replay import publish_result, published_source
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import PackagesRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import PackagesResult
from triton_converters.packages import image, requirements_file
from triton_converters.packages.index import index
from triton_converters.packages.pip import install

NAMED = 100
"""How many packages a result names."""


def run(request: PackagesRequest) -> PackagesResult:
    """Publish the packages; raises StageError, and OSError if the claim is full."""
    file = published_source(request.source) / request.path
    if not file.is_file() or sha256_of(SourceFile(request.path, file)) != request.sha256:
        message = f"{request.path} on the repository claim is not what was published"
        raise StageError(Reason.RESULT_MISSING, message, final=False)
    lines = requirements_file.read(file, request.path)
    there = image.installed()
    image.check(lines, there)

    def fill(directory: Path) -> PackagesResult:
        site = directory / layout.installed_packages(request.key).name
        with tempfile.TemporaryDirectory(dir=directory) as place:
            installed = install(lines, there, index(), Path(place))
            if installed.site.is_dir():
                os.rename(installed.site, site)
        site.mkdir(exist_ok=True)
        total = _checked(site)
        packages = installed.packages
        print(f"installed: {', '.join(packages) or 'nothing; the image has everything'}", flush=True)
        return PackagesResult(packages[:NAMED], len(packages), total)

    return publish_result(layout.packages_directory(request.key), "packages", request.key, PackagesResult, fill)


def _checked(site: Path) -> int:
    """Return the size of all files in bytes. What Python would run at its start is removed.

    Raises StageError(Crashed) for anything but files and directories, which no wheel holds.
    """
    total = 0
    for folder, folders, files in os.walk(site):
        for name in (*folders, *files):
            status = os.lstat(os.path.join(folder, name))
            if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
                message = f"a package installed {name!r}, which is neither a file nor a directory"
                raise StageError(Reason.CRASHED, message)
            total += status.st_size if stat.S_ISREG(status.st_mode) else 0
    for each in site.glob("*.pth"):
        each.unlink()
    return total
