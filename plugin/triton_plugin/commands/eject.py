"""`kubectl triton eject`."""

import argparse
import shlex
from pathlib import Path
from typing import Any

from triton_operator import names
from triton_operator.kube import kinds
from triton_plugin.commands.arguments import cluster
from triton_plugin.drafting.eject import (
    AUTOSCALER,
    Live,
    active_server,
    autoscaler,
    copy_name,
    every_file,
    files,
    next_steps,
)
from triton_plugin.errors import FolderError, SubjectError
from triton_plugin.exits import Exit
from triton_plugin.reading.cluster import Cluster
from triton_plugin.terminal import say


def run(options: argparse.Namespace) -> Exit:
    """Write the files, and say what to do with them. Raises FolderError, SubjectError and OSError."""
    folder: Path = options.output or Path(copy_name(options.name))
    if folder.exists() and not options.force:
        raise FolderError(f"{folder} exists; pass --force to write its files again, or --output another folder")
    source = cluster(options)
    live = _live(source, options.name)
    written = files(live)
    for path in every_file():
        file = folder / path
        if path not in written:
            file.unlink(missing_ok=True)
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(written[path], encoding="utf-8")
        say(f"wrote {file}")
    say(f"\n{next_steps(live, str(folder), shlex.join(source.kubectl()))}")
    return Exit.OK


def _live(source: Cluster, name: str) -> Live:
    """Return what serves the object now. Raises SubjectError."""
    serving = source.triton_deployment(name)["spec"].get("serving") or {}
    service = source.child(kinds.SERVICE, name)
    server = active_server(name, service, shlex.join(source.place))
    deployment = source.child(kinds.DEPLOYMENT, server)
    if service is None or deployment is None:
        raise SubjectError(
            f"Deployment {server} of TritonDeployment {name} is gone; try again when the object is Ready"
        )
    live = Live(name, deployment, service, claim=None)
    others = [
        source.child(kinds.NETWORK_POLICY, names.servers_policy(name)),
        source.child(kinds.DISRUPTION_BUDGET, names.disruption_budget(name)),
        autoscaler(name, source.children(AUTOSCALER)),
        source.child(kinds.HTTP_ROUTE, name) if serving.get("route") else None,
    ]
    claims = {each["metadata"]["name"]: _claim(each) for each in source.deployments()}
    return Live(
        name,
        deployment,
        service,
        source.child(kinds.CLAIM, live.claim_name),
        others=tuple(each for each in others if each is not None),
        sharing=tuple(other for other, claim in claims.items() if other != name and claim == live.claim_name),
        has_scaled_object=bool(serving.get("autoscaling")),
    )


def _claim(body: dict[str, Any]) -> str:
    """Return the name of an object's repository claim."""
    repository = body["spec"].get("repository") or {}
    return str(repository.get("claimName") or names.claim(body["metadata"]["name"]))
