"""``python3 -m tests.upgrades.record VERSION``: store how objects of this tree look in a cluster, for later ones."""

import json
import lzma
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import triton_converters
from tests.simulation.cluster import Cluster
from tests.states.moments import MOMENTS
from tests.upgrades.stored import HERE, Body, recorded
from triton_operator.kube.drift import drift

MOST_STEPS = 120
"""Steps of the simulation after which an object that has not come to rest is not stored as one that has."""


def at_rest(cluster: Cluster) -> Body:
    """What is stored of a cluster once a pass has nothing left to do there."""
    while cluster.act():
        pass
    wanted = cluster.intent()
    assert not wanted.deletions
    for each in wanted.objects:
        assert drift(each, cluster.objects[each["kind"], each["metadata"]["name"]]) is None
    return recorded(cluster)


def main(version: str) -> None:
    """Write the two files of that version."""
    found = {name: at_rest(state.cluster()) for name, state in MOMENTS.items()}
    for name, state in MOMENTS.items():
        cluster = state.cluster()
        try:
            cluster.settle(MOST_STEPS)
        except AssertionError:
            continue
        found[f"{name}-settled"] = at_rest(cluster)
    text = json.dumps(found, sort_keys=True, separators=(",", ":"))
    (HERE / f"{version}.json.xz").write_bytes(lzma.compress(text.encode(), preset=9))
    package = Path(triton_converters.__file__).parent
    with ZipFile(HERE / f"{version}.zip", "w", ZIP_DEFLATED) as archive:
        for path in (package / "__init__.py", *sorted((package / "contract").glob("*.py"))):
            archive.write(path, path.relative_to(package.parent))
    print(f"{len(found)} states")


if __name__ == "__main__":
    main(*sys.argv[1:])
