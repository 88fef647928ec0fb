"""`kubectl triton update-images`."""

import argparse

from triton_plugin.commands.arguments import cluster, moment
from triton_plugin.exits import Exit
from triton_plugin.telling.update_images import refusal, table, with_other_images
from triton_plugin.terminal import console, say


def run(options: argparse.Namespace) -> Exit:
    """List the objects, and ask for the installation's images where they are wanted. Raises CommandError."""
    source = cluster(options)
    subjects = [source.subject(each) for each in options.names] if options.names else None
    outdated = with_other_images(source.subjects() if subjects is None else subjects)
    if not outdated:
        say("No object keeps other images than the installation has.")
        return Exit.OK
    console().print(table(outdated))
    if options.dry_run or not (options.all or options.names):
        say("Nothing was asked for. To update objects, name them, or type --all, without --dry-run.")
        return Exit.OK
    now = moment()
    for each in outdated:
        if reason := refusal(each):
            say(f"TritonDeployment {each.name}: {reason}; to see why, type: {each.command('explain', each.name)}")
            continue
        source.update_images(each.name, now)
        say(
            f"TritonDeployment {each.name}: the operator was asked for these images: what they make is made, verified"
            " and measured again, while the active revision serves; to follow it:"
            f" {each.command('watch', each.name)}"
        )
    return Exit.OK
