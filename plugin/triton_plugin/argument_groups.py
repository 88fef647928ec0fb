"""The arguments that several commands of the command line take."""

import argparse

from triton_converters.contract.formats import AS_GIVEN, ENSEMBLE, SOURCE_FORMATS
from triton_plugin.argument_types import threshold, time

FORMATS = tuple(name for name in SOURCE_FORMATS if name not in (*AS_GIVEN, ENSEMBLE))
"""Formats of a model that the user may name. Tables and Python steps are for ensembles, which people write."""
CLAIM_SIZE = "10Gi"
"""Size of a claim that is made."""
WRITE = "--write-requirements"

Parser = argparse.ArgumentParser


def location(parser: Parser) -> None:
    """Add where the objects are, which may stand before or after the command's name, as kubectl has it."""
    # What is not there keeps what the other place says.
    keep = argparse.SUPPRESS
    parser.add_argument("-n", "--namespace", default=keep, help="namespace; default: the context's")
    parser.add_argument("--context", default=keep, help="context of the kubeconfig; default: the current one")
    parser.add_argument(
        "--kubeconfig",
        metavar="FILE",
        default=keep,
        help="kubeconfig; default: that of KUBECONFIG, ~/.kube/config or, in a pod, its own account",
    )


def model(parser: Parser) -> None:
    """Add what the files of a model do not show."""
    parser.add_argument(
        "--model", default="", metavar="PATH", help="path of the model below the folder, if there are several"
    )
    parser.add_argument(
        "--format", choices=FORMATS, default="", help="format of the model, if its file does not show it"
    )
    parser.add_argument(
        "--dataset", default="", metavar="URI", help="where the cluster finds the data that the dataloader reads"
    )
    parser.add_argument("--gpu", default="", metavar="PRODUCT", help="product of the nodes' GPUs; default: run on CPU")
    parser.add_argument(
        "--max-batch-size", type=int, metavar="N", help="largest batch; 0: the model has no batch dimension"
    )
    parser.add_argument(
        "--p99-latency", default="", metavar="TIME", help="budget of the 99th percentile of latency, such as 20ms"
    )
    parser.add_argument(
        "--threshold",
        action="append",
        default=[],
        type=threshold,
        metavar="METRIC=MIN",
        help="least value of a metric that the served model must reach, such as accuracy=0.9; may be given again",
    )
    parser.add_argument(
        WRITE, action="store_true", help="write the requirements.txt that Python steps of a Triton repository lack"
    )


def programs(parser: Parser) -> None:
    """Add how programs run on this machine."""
    parser.add_argument(
        "--python",
        metavar="PROGRAM",
        help="Python whose packages run your code, such as that of the virtual environment with your PyTorch",
    )
    parser.add_argument(
        "--unboxed",
        action="store_true",
        help="run programs without isolation, where the machine refuses namespaces: they may do whatever you may",
    )


def claim(parser: Parser) -> None:
    """Add what a claim is made with, if it does not exist yet."""
    parser.add_argument(
        "--size", default=CLAIM_SIZE, help=f"size of the claim, if it does not exist yet; default: {CLAIM_SIZE}"
    )
    parser.add_argument(
        "--storage-class", default="", metavar="NAME", help="StorageClass of such a claim; default: the cluster's"
    )
    parser.add_argument("--image", default="", help="image of the pod that takes the files; default: the converter's")


def timeout(parser: Parser) -> None:
    """Add the longest time to watch."""
    parser.add_argument(
        "--timeout",
        type=time,
        metavar="TIME",
        help="longest time to watch, such as 90s, 30m or 2h; default: without end",
    )
