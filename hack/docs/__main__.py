"""Write every generated page and table of the documentation: `python3 -m hack.docs [--check]`.

With --check it writes nothing, names the files that differ from what it would write, and exits with 1 if there are any.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from hack.docs import (
    advice,
    api,
    chart,
    conversion_reports,
    conversions,
    documents,
    examples,
    files,
    gates,
    gpu,
    metrics,
    overview,
    reasons,
    rooms,
    samples,
    settings,
    zoo,
)

ROOT = Path(__file__).parents[2]
PAGES = (
    advice,
    api,
    chart,
    conversion_reports,
    conversions,
    documents,
    examples,
    files,
    gates,
    gpu,
    metrics,
    overview,
    reasons,
    rooms,
    samples,
    settings,
    zoo,
)


def differing() -> dict[Path, str]:
    """Return the files that are not as generated, by path, with the text that they should have."""
    pages = {path: text for each in PAGES for path, text in each.pages().items()}
    return {path: text for path, text in pages.items() if not path.exists() or path.read_text(encoding="utf-8") != text}


def main(argv: Sequence[str] | None = None) -> int:
    """Write the files, or compare them; return the exit code."""
    parser = argparse.ArgumentParser(prog="python3 -m hack.docs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file would change")
    check = parser.parse_args(argv).check
    try:
        found = differing()
    except api.NoExampleError as error:
        print(error, file=sys.stderr)
        return 1
    for path, text in found.items():
        print(f"{path.relative_to(ROOT)}: {'differs: run `make generate`' if check else 'written'}")
        if not check:
            path.write_text(text, encoding="utf-8")
    return 1 if check and found else 0


if __name__ == "__main__":
    sys.exit(main())
