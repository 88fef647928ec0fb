"""Packages: Jobs install the Python packages of requirements files, for the framework's image and the server's."""

from dataclasses import replace

from triton_operator.context import Context
from triton_operator.effects import Effects
from triton_operator.jobs.packages import packages_works
from triton_operator.jobs.run import run
from triton_operator.stages.source import Sourced
from triton_operator.stages.unfinished import await_result


def install(context: Context, progress: Sourced) -> Sourced:
    """Go on once all packages are installed, or at once if the spec names no requirements file.

    Like the framework's own run, installing is part of converting.
    """
    works = packages_works(context, progress.source)
    runs = [(which, run(context, work, repeats=True)) for which, work in works]
    for which, job_run in runs:
        if job_run.record is None:
            others = sum((each.effects for _, each in runs if each is not job_run), Effects())
            progress = replace(progress, effects=progress.effects + others)
            job = f"the packages Job{which}"
            return await_result(context, progress, "Converted", job, job_run, prefix=f"packages{which}: ")
    return replace(progress, effects=sum((each.effects for _, each in runs), progress.effects))
