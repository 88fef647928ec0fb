"""``python3 -I pip_alone.py PLACE INSTALLED ARGUMENTS``: pip, which may start no process. Standard library only.

``PLACE``: the directory that holds pip. ``INSTALLED``: the directory with the packages that pip takes for installed; it
does not look at any others.

Wheels are unpacked by pip itself. To build a package from its sources, pip would run the package's own code in another
process. And pip would read whatever host a wheel names that requires another package by a URL, and whatever file or
host an index links to.
"""

import importlib
import runpy
import sys
from typing import Any

STARTS = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.exec", "os.system")
"""The audit events of a process that starts. What pip only asks the system for, it does without."""
REFUSED = "packages are installed, not built"
BY_URL = "only packages of the index are installed"
REDIRECTS = "redirects to another address than one with https"


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event in STARTS:
        raise PermissionError(REFUSED)


def _refuse_urls() -> None:
    """Have pip end where a package requires another one by a URL, before it asks there."""
    from pip._internal.exceptions import InstallationError

    constructors: Any = importlib.import_module("pip._internal.req.constructors")
    make = constructors.install_req_from_req_string

    def made(text: str, comes_from: Any = None, *rest: Any, **named: Any) -> Any:
        found = make(text, comes_from, *rest, **named)
        if found.req is not None and found.req.url:
            name = getattr(comes_from, "name", None) or "a package"
            raise InstallationError(f"{name} requires {found.req.name} by a URL; {BY_URL}")
        return found

    constructors.install_req_from_req_string = made


def _overlook_links() -> None:
    """Have pip overlook what an index links to by anything but https: files of this machine, hosts in clear, git."""
    from pip._internal.index.package_finder import PackageFinder

    candidate = PackageFinder.get_install_candidate

    def found(finder: Any, evaluator: Any, link: Any) -> Any:
        # What a page links to comes from that page.
        return candidate(finder, evaluator, link) if link.scheme == "https" or link.comes_from is None else None

    PackageFinder.get_install_candidate = found  # type: ignore[method-assign,assignment]  # pip is told what to take


def _stay_on_https() -> None:
    """Have pip end where a server redirects to anything but https: it would send the password there, in clear."""
    from urllib.parse import urljoin, urlsplit

    from pip._internal.exceptions import InstallationError
    from pip._internal.network.session import PipSession

    redirected = PipSession.get_redirect_target

    def target(session: Any, answer: Any) -> Any:
        found = redirected(session, answer)
        if found is not None and urlsplit(urljoin(answer.url, found)).scheme != "https":
            raise InstallationError(f"{urlsplit(answer.url).hostname} {REDIRECTS}")
        return found

    PipSession.get_redirect_target = target


if __name__ == "__main__":
    place, installed = sys.argv.pop(1), sys.argv.pop(1)
    sys.path.insert(0, place)
    import pip  # noqa: F401 - from its place, before that is out of sight

    sys.path[:] = [*(each for each in sys.path[1:] if not each.endswith("-packages")), installed]
    _refuse_urls()
    _overlook_links()
    _stay_on_https()
    sys.addaudithook(_refuse)
    runpy.run_module("pip", run_name="__main__", alter_sys=True)
