"""`python3 -m bench.search.replay`: walk the quick search on the recorded surfaces and on simulated servers.

Nothing is measured and no server runs. The figures are those of docs/search.md; the tests in tests/search hold them.
"""

import sys
from importlib import import_module
from statistics import median, quantiles
from typing import Any

from hack.imagebuild.pod import ROOT

SERVERS = {"noisy": 200, "simulated": 100}


def main() -> int:
    """Print one line for each surface and budget, and for each kind of simulated server; return the exit status."""
    sys.path.insert(0, str(ROOT / "tests/search"))
    servers, surfaces = (import_module(name) for name in ("test_noisy_servers", "test_surfaces"))
    between: list[tuple[float, float]] = []
    print("surface, budget: measurements, share of the space, share of the best")
    for kind in surfaces.KINDS:
        surface = surfaces.recorded(kind)
        for name in ("none", "loose", "tight", "missed"):
            most = surface.budget(name)
            count, share, reached = surfaces.walked(surface, most)
            told = f"{most / 1000:.1f} ms" if most else "no budget"
            print(f"{kind}, {name} ({told}): {count}, {share:.1%}, {reached:.0%}")
        least = surface.budget("tight") / 1.1
        for factor in surfaces.FACTORS:
            count, share, reached = surfaces.walked(surface, factor * least)
            between.append((reached, share))
            print(f"{kind}, {factor} times the least p99 of the base: {count}, {share:.1%}, {reached:.0%}")
    print(f"all {len(between)} other budgets: {_summary(between)}")
    for kind, count in SERVERS.items():
        for name in ("none", "loose", "tight"):
            found: Any = servers.outcomes(name, getattr(servers, kind), count)
            print(f"{count} {kind}, {name}: {_summary([(reached, share) for reached, share, _ in found])}", flush=True)
    return 0


def _summary(found: list[tuple[float, float]]) -> str:
    """Return in words how often the aim is reached, of pairs: share of the best, share of the measurements."""
    reached, shares = zip(*found, strict=True)
    aim = sum(each >= 0.95 and share <= 0.1 for each, share in found) / len(found)
    best = sum(each >= 0.95 for each in reached) / len(found)
    return (
        f"aim {aim:.1%}, 95 % of the best {best:.1%}; of the best: median {median(reached):.0%}, tenth percentile "
        f"{quantiles(reached, n=10)[0]:.0%}, worst {min(reached):.0%}; of the measurements: median "
        f"{median(shares):.1%}, 90th percentile {quantiles(shares, n=10)[-1]:.1%}, worst {max(shares):.1%}"
    )


if __name__ == "__main__":
    sys.exit(main())
