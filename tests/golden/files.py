"""The golden files: where they are, and how all of them are written anew."""

import shutil
from pathlib import Path

from tests import quick_yaml
from tests.golden.pages import Pages, case, dumped, pages
from tests.states.moments import MOMENTS
from tests.states.passes import planned, status

CASES, OBJECTS = (Path(__file__).parent / name for name in ("cases", "objects"))


def write() -> None:
    """Write the pages of all objects, then the cases, and remove what no moment stands for any more."""
    found = pages(map(planned, MOMENTS))
    texts = {name: case(planned(name), found, status(name)) for name in MOMENTS}
    for folder, files in ((OBJECTS, {name: dumped(page) for name, page in found.items()}), (CASES, texts)):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, text in files.items():
            (folder / f"{name}.yaml").write_text(text, encoding="utf-8")


def stored() -> Pages:
    """The pages as they are in the files."""
    return {path.stem: quick_yaml.load(path.read_text(encoding="utf-8")) for path in OBJECTS.glob("*.yaml")}
