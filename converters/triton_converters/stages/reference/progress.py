"""How far the framework came: lines for the log, so that one sees a reference of many minutes go on."""

import time
from collections.abc import Iterator

from triton_converters.claim_store.dump import Batch

LINE_SECONDS = 10.0
"""Seconds between two lines."""


def with_progress(answered: Iterator[Batch], batched: bool, most: int) -> Iterator[Batch]:
    """Yield the batches, and print how many samples they were; ``most``: the samples after which the reference ends."""
    samples = 0
    began = time.monotonic()
    line_at = began

    def tell(end: str) -> None:
        print(f"reference: {samples} samples answered in {time.monotonic() - began:.1f} s{end}", flush=True)

    print(f"reference: the framework answers samples, {most} at most", flush=True)
    for batch in answered:
        yield batch
        samples += batch.samples(batched)
        if time.monotonic() - line_at >= LINE_SECONDS:
            line_at = time.monotonic()
            tell(f" so far, and it ends at {most}")
    tell(", which are all")
