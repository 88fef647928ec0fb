"""The arguments that several commands share."""

import argparse

from triton_plugin.found_models import FORMATS
from triton_plugin.push.command import Options


def add_name(parser: argparse.ArgumentParser) -> None:
    """Add the one TritonDeployment that a command asks the cluster for."""
    parser.add_argument("name", metavar="NAME", help="name of the TritonDeployment")
    add_location(parser)


def add_names_or_files(parser: argparse.ArgumentParser, *metavars: str) -> None:
    """Add TritonDeployments that may also be saved files. ``metavars``: one for each; none: NAME alone."""
    for metavar in metavars or ("NAME",):
        text = "name of a TritonDeployment, or a saved file: a name with a dot or a slash is one"
        parser.add_argument(metavar.lower(), metavar=metavar, help=text)
    add_location(parser)


def add_location(parser: argparse.ArgumentParser) -> None:
    """Add where the objects are."""
    parser.add_argument("-n", "--namespace", help="namespace; default: the context's")
    parser.add_argument("--context", help="context of the kubeconfig; default: the current one")


def add_model(parser: argparse.ArgumentParser) -> None:
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


def add_claim(parser: argparse.ArgumentParser) -> None:
    """Add what a claim is made with, if it does not exist yet."""
    size = Options.size
    parser.add_argument("--size", default=size, help=f"size of the claim, if it does not exist yet; default: {size}")
    parser.add_argument(
        "--storage-class", default="", metavar="NAME", help="StorageClass of such a claim; default: the cluster's"
    )
    parser.add_argument("--image", default="", help="image of the pod that takes the files; default: the converter's")
