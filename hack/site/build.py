"""`python3 -m hack.site.build FOLDER`: build the site, and check every link of what was built."""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from hack.site.check import faults
from hack.site.pages import converted, place

ROOT = Path(__file__).parents[2]
PAGES = ("*.md", "docs/**/*.md", "manifests/**/*.md", "charts/**/*.md")
PICTURES = ("docs/*.svg", "docs/*.png")
INDEX = ROOT / "docs/README.md"
SECTION = re.compile(r"^## (.*)$")
LISTED = re.compile(r"\[([^\]]*)\]\(([^)#\s]+\.md)\)")


def main() -> int:
    """Build the site; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m hack.site.build", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the site is built; what is there is replaced")
    parser.add_argument("--repository", default="", metavar="URL", help="address of the files of this tree")
    parser.add_argument("--zensical", default="zensical", metavar="PROGRAM", help="default: the one on the PATH")
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    write(options.folder, options.repository.rstrip("/"))
    command = [options.zensical, "build", "--strict", "--clean", "--config-file", "mkdocs.yml"]
    if subprocess.run(command, cwd=options.folder, check=False).returncode:
        return 1
    found = faults(options.folder / "site")
    for each in found:
        print(each, file=sys.stderr)
    return 1 if found else 0


def write(folder: Path, repository: str) -> None:
    """Write the pages, the pictures and mkdocs.yml into a folder."""
    pages = sorted({str(each.relative_to(ROOT)) for pattern in PAGES for each in ROOT.glob(pattern)})
    pictures = sorted(str(each.relative_to(ROOT)) for pattern in PICTURES for each in ROOT.glob(pattern))
    for path in pages:
        target = folder / "docs" / place(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / path).read_text(encoding="utf-8")
        target.write_text(converted(path, text, {*pages, *pictures}, repository), encoding="utf-8")
    for path in pictures:
        shutil.copy(ROOT / path, folder / "docs" / place(path))
    settings = yaml.safe_load((ROOT / "hack/site/mkdocs.yml").read_text(encoding="utf-8"))
    body = settings | {"nav": navigation(INDEX.read_text(encoding="utf-8"), pages)}
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(body, sort_keys=False), encoding="utf-8")


def navigation(index: str, pages: list[str]) -> list[dict[str, object]]:
    """Return the site's navigation: the sections of the index with the pages that they name, and then all others."""
    sections: dict[str, list[str]] = {}
    for line in index.splitlines():
        if heading := SECTION.match(line):
            sections[heading[1]] = []
        for _, target in LISTED.findall(line):
            path = str((INDEX.parent / target).resolve().relative_to(ROOT))
            if path in pages and path not in {each for listed in sections.values() for each in listed}:
                list(sections.values())[-1].append(path)
    known = {each for listed in sections.values() for each in listed}
    others = [each for each in pages if each not in known and each not in ("README.md", "docs/README.md")]
    found: list[dict[str, object]] = [{"Home": "index.md"}, {"All pages": "pages.md"}]
    for name, listed in [*sections.items(), ("Further pages", others)]:
        found.append({name: [place(path) for path in listed]})
    return found


if __name__ == "__main__":
    sys.exit(main())
