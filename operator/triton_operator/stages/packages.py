"""Packages: a Job installs the Python packages that spec.conversion.requirements names and the image lacks."""

from dataclasses import replace

from triton_operator.context import Context
from triton_operator.effects import Verdict
from triton_operator.jobs.packages import packages_work
from triton_operator.jobs.run import run, waiting
from triton_operator.stages.source import Sourced


def install(context: Context, progress: Sourced) -> Sourced:
    """Go on once the packages are installed, or at once if the spec names no requirements file.

    Like the framework's own run, installing is part of converting.
    """
    if not context.spec.conversion.requirements:
        return progress
    this = run(context, packages_work(context, progress.source))
    if this.record is not None:
        return replace(progress, effects=progress.effects + this.effects)
    if this.failure is not None:
        verdict = Verdict("Converted", False, this.failure.reason, f"packages: {this.failure.message}")
        return progress.waiting(verdict, this.effects, stalled=True)
    reason, message = waiting("the packages Job", this, context)
    return progress.waiting(Verdict("Converted", False, reason, message), this.effects)
