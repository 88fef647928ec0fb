"""How clusters that others start on one machine take an image without a registry: kind, minikube and k3d. Pure.

None of them can run on the machines of this project: the command lines are those of their manuals.
"""

from pathlib import Path

LOADERS = {
    "kind-": ("kind", "load", "image-archive", "{archive}", "--name", "{name}"),
    "k3d-": ("k3d", "image", "import", "{archive}", "--cluster", "{name}"),
    "minikube": ("minikube", "image", "load", "{archive}", "--profile", "minikube{name}"),
}
"""The command by how the name of the context begins; the rest of that is the cluster's name."""


def load_command(context: str, archive: Path) -> list[str]:
    """Return the command that gives an archive of docker's format to all nodes. Raises LookupError."""
    for prefix, words in LOADERS.items():
        if context.startswith(prefix):
            return [word.format(archive=archive, name=context.removeprefix(prefix)) for word in words]
    raise LookupError(f"{context} is no context of kind, k3d or minikube")
