"""`kubectl triton retry`."""

import argparse

from triton_plugin.commands.arguments import cluster, moment
from triton_plugin.errors import SubjectError
from triton_plugin.exits import Exit
from triton_plugin.telling.retry import retry_effect, retry_refusal
from triton_plugin.terminal import say


def run(options: argparse.Namespace) -> Exit:
    """Ask the operator for another try. Raises SubjectError, also if a try would do nothing."""
    source = cluster(options)
    subject = source.subject(options.name)
    effect = retry_effect(subject)
    if not effect:
        raise SubjectError(retry_refusal(subject))
    source.retry(options.name, moment())
    say(f"TritonDeployment {options.name}: the operator was asked for another try: {effect}")
    return Exit.OK
