"""`kubectl triton rollback`."""

import argparse

from triton_plugin.commands.arguments import after_a_patch, cluster
from triton_plugin.commands.history import print_history
from triton_plugin.exits import Exit
from triton_plugin.telling.history import latest_effect, rollback_effect, rollback_revision
from triton_plugin.terminal import say


def run(options: argparse.Namespace) -> Exit:
    """Set the revision that the object holds, or clear it. Raises CommandError."""
    source = cluster(options)
    subject = source.subject(options.name)
    if options.to_latest and not subject.spec.rollout.revision:
        say(f"TritonDeployment {options.name}: spec.rollout.revision is not set; nothing is changed")
        return Exit.OK
    if not options.to_latest:
        print_history(subject)
    name = None if options.to_latest else rollback_revision(subject, options.revision)
    source.patch_spec(options.name, subject.version, {"rollout": {"revision": name}})
    change = f"is set to {name}. {rollback_effect(subject, name)}" if name else f"is removed. {latest_effect(subject)}"
    say(f"TritonDeployment {options.name}: spec.rollout.revision {change} {after_a_patch(subject)}")
    return Exit.OK
