"""Wheels that have pip write somewhere else, or leave what no package should."""

import io
import stat
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.converters.package_index import wheel

Wheel = tuple[str, bytes]
UP = "../" * 20


def console_script(name: str, target: Path | str) -> Wheel:
    """A wheel with a program whose name is a path."""
    return wheel(name, files={f"{name}-1.0.dist-info/entry_points.txt": f"[console_scripts]\n{target} = {name}:main\n"})


def graphical_script(name: str, target: Path | str) -> Wheel:
    """The same for a program with windows."""
    return wheel(name, files={f"{name}-1.0.dist-info/entry_points.txt": f"[gui_scripts]\n{target} = {name}:main\n"})


def data(name: str, scheme: str, target: Path | str) -> Wheel:
    """A wheel with a file for one of pip's other directories."""
    return wheel(name, files={f"{name}-1.0.data/{scheme}/{target}": "overwritten"})


def plain(name: str, target: Path | str) -> Wheel:
    """A wheel with a file whose path leaves the directory of modules."""
    return wheel(name, files={str(target): "overwritten"})


def link(name: str, target: Path | str) -> Wheel:
    """A wheel with a symbolic link, as zip files store them."""
    file_name, content = wheel(name)
    buffer = io.BytesIO(content)
    with zipfile.ZipFile(buffer, "a") as archive:
        entry = zipfile.ZipInfo(f"{name}_link")
        entry.create_system, entry.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        archive.writestr(entry, str(target))
    return file_name, buffer.getvalue()


def up(target: Path) -> str:
    """The path from any directory that is not too deep."""
    return f"{UP}{str(target).lstrip('/')}"


WRITES: Mapping[str, Callable[[Path], Wheel]] = {
    "a console script with an absolute name": lambda target: console_script("evil", target),
    "a console script with .. in its name": lambda target: console_script("evil", up(target)),
    "a graphical script with an absolute name": lambda target: graphical_script("evil", target),
    "a file with an absolute name": lambda target: plain("evil", target),
    "a file with .. in its name": lambda target: plain("evil", up(target)),
    "a script file with .. in its name": lambda target: data("evil", "scripts", up(target)),
    "a data file with .. in its name": lambda target: data("evil", "data", up(target)),
    "a data file with an absolute name": lambda target: data("evil", "data", f"/{target}"),
    "a header with .. in its name": lambda target: data("evil", "headers", up(target)),
    "a symbolic link": lambda target: link("evil", target),
}
"""Every way that is known, by what it is: each is of a package `evil` and means the target."""
