"""Builds images of this working tree and gives them to a cluster's node."""

import json

from hack.deploy.command import TargetCluster

BUILD_SECONDS = 3600
LOAD_SECONDS = 1200
"""Bounds of what hangs: several times what it takes on two cores to build all images, or to load them into a node."""


def load(cluster: TargetCluster, *names: str) -> dict[str, str]:
    """Build the named images where they are not in the cache, load them, and return the references by name.

    Raises CommandError where one cannot be built, or the cluster takes no archives.
    """
    built = json.loads(
        cluster.run("python3", "-m", "hack.imagebuild", "build", "--json", *names, timeout=BUILD_SECONDS, show=True)
    )
    archives = [image["archive"] for image in built]
    cluster.run("python3", "-m", "hack.devcluster", "load-image", *archives, timeout=LOAD_SECONDS, show=True)
    return {image["name"]: image["reference"] for image in built}


def reference(cluster: TargetCluster, name: str) -> str:
    """What the image of this tree is called; it is neither built nor loaded. Raises CommandError."""
    return cluster.run("python3", "-m", "hack.imagebuild", "reference", name).strip()
