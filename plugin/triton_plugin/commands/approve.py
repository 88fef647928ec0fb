"""`kubectl triton approve`."""

import argparse

from triton_plugin.commands.arguments import after_a_patch, cluster
from triton_plugin.exits import Exit
from triton_plugin.telling.approval import accepted, approved_revision
from triton_plugin.terminal import say


def run(options: argparse.Namespace) -> Exit:
    """Set the revision that may serve. Raises CommandError, also if nothing waits for an approval."""
    source = cluster(options)
    subject = source.subject(options.name)
    candidate = approved_revision(subject, options.candidate)
    source.patch_spec(options.name, subject.version, {"selection": {"approvedRevision": candidate.revision}})
    say(
        f"TritonDeployment {options.name}: {candidate.name} is approved: spec.selection.approvedRevision is set to"
        f" {candidate.revision}.{accepted(candidate)} {after_a_patch(subject)}"
    )
    return Exit.OK
