"""``python3 -I pip_alone.py INSTALLED ARGUMENTS``: pip, which may start no process. Standard library only.

``INSTALLED``: the directory with the packages that pip takes for installed; it does not look at any others.

Wheels are unpacked by pip itself. To build a package from its sources, pip would run the package's own code in another
process. ``--only-binary`` forbids that for what the index lists, but not for what a wheel requires by a URL.
"""

import runpy
import sys
from typing import Any

STARTS = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.exec", "os.system")
"""The audit events of a process that starts. What pip only asks the system for, it does without."""
REFUSED = "packages are installed, not built"


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event in STARTS:
        raise PermissionError(REFUSED)


if __name__ == "__main__":
    import pip  # noqa: F401 - from where it is, before it is out of sight

    installed = sys.argv.pop(1)
    sys.path[:] = [*(each for each in sys.path if not each.endswith("-packages")), installed]
    sys.addaudithook(_refuse)
    runpy.run_module("pip", run_name="__main__", alter_sys=True)
