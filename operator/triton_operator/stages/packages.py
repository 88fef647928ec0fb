"""Packages: a Job installs the Python packages that spec.conversion.requirements names and the image lacks."""

from dataclasses import replace

from triton_operator.context import Context
from triton_operator.jobs.packages import packages_work
from triton_operator.jobs.run import run
from triton_operator.stages.source import Sourced
from triton_operator.stages.unfinished import await_result


def install(context: Context, progress: Sourced) -> Sourced:
    """Go on once the packages are installed, or at once if the spec names no requirements file.

    Like the framework's own run, installing is part of converting.
    """
    if not context.spec.conversion.requirements:
        return progress
    job_run = run(context, packages_work(context, progress.source), repeats=True)
    if job_run.record is not None:
        return replace(progress, effects=progress.effects + job_run.effects)
    return await_result(context, progress, "Converted", "the packages Job", job_run, prefix="packages: ")
