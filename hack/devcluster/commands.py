"""Runs one command to its end and turns its failure into an error that quotes it."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from hack.devcluster.paths import ClusterError


def run(
    argv: Sequence[str | Path],
    *,
    stdin: str | None = None,
    timeout: float = 120,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run a command and return its standard output.

    `timeout` is in seconds, `folder` the working directory, `environment` is added to ours.

    Raises:
        ClusterError: the program is missing, failed or took too long; quotes the end of its error output.

    """
    words = [str(word) for word in argv]
    shown = " ".join(words)
    variables = {**os.environ, **(environment or {})}
    try:
        done = subprocess.run(
            words, input=stdin, capture_output=True, text=True, timeout=timeout, cwd=folder, env=variables, check=False
        )
    except FileNotFoundError as error:
        raise ClusterError(f"{words[0]} is not installed: run `make cluster-up` as root, it installs it") from error
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"`{shown}` did not end within {timeout:g} s") from error
    if done.returncode != 0:
        raise ClusterError(f"`{shown}` failed: {(done.stderr or done.stdout).strip()[-2000:]}")
    return done.stdout


def succeeds(argv: Sequence[str | Path], *, timeout: float = 30) -> bool:
    """Whether a command ends with status 0; its output is dropped."""
    try:
        run(argv, timeout=timeout)
    except ClusterError:
        return False
    return True
