"""Where the objects are, which every command that asks a cluster takes before or after its name, as kubectl does."""

import argparse


def add_location(parser: argparse.ArgumentParser, *, is_command: bool = True) -> None:
    """Add the namespace and the cluster. ``is_command``: keep what was said before the command's name."""
    default = argparse.SUPPRESS if is_command else None
    parser.add_argument("-n", "--namespace", default=default, help="namespace; default: the context's")
    parser.add_argument("--context", default=default, help="context of the kubeconfig; default: the current one")
    parser.add_argument(
        "--kubeconfig",
        metavar="FILE",
        default=default,
        help="kubeconfig; default: that of KUBECONFIG, ~/.kube/config or, in a pod, its own account",
    )
