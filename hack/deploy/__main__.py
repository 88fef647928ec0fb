"""`python3 -m hack.deploy`: installs the operator of this tree, into the development cluster or KUBECONFIG's."""

import sys

from hack.deploy.command import CommandError
from hack.deploy.environment import set_up
from hack.deploy.install import NAMESPACE
from hack.devcluster.paths import ClusterError


def main() -> int:
    """Install the operator; returns the exit status."""
    try:
        cluster = set_up()
    except (CommandError, ClusterError) as error:
        print(f"install: {error}", file=sys.stderr)
        return 1
    print(f"install: the operator runs in namespace {NAMESPACE} of the cluster of {cluster.kubeconfig}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
