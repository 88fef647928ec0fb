"""Look for what the conversions are made of, and for those that are on the claim already."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from triton_converters.claim_store.replay import check_inputs, check_step_folders, published_packages
from triton_converters.claim_store.repository import find_intact
from triton_converters.claim_store.root import own_directory
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import ConvertRequest
from triton_converters.incoming.model_files import TIMING_CACHE_BYTES
from triton_converters.stages.convert.parts import TIMING_CACHE, gpu, known_timing_cache, parts, signature


def run(request: ConvertRequest, incoming: Path) -> tuple[str, ...]:
    """Return the conversion keys that are missing.

    Raises StageError: InputMissing if source or reference is missing; EntrypointInvalid if the source lacks the file
    of a step whose folder is mounted.
    """
    for part in parts(request):
        signature(part)
    keys = dict.fromkeys(part.conversion_key for part in parts(request))
    missing = tuple(key for key in keys if find_intact(layout.candidate_directory(key), key) is None)
    if missing:
        check_inputs(request)
        check_step_folders(request.source, [part.model for part in parts(request)])
        for part in parts(request):
            if part.step_packages:
                published_packages(part.step_packages)
            _copy_timing_caches(part, incoming)
    return missing


def _copy_timing_caches(request: ConvertRequest, incoming: Path) -> None:
    """Copy the caches of the GPU product: only the framework's image knows which version it has.

    User code fills them, so those of another object are not for this one's TensorRT to read.
    """
    if request.format != "trt" or not os.environ.get(layout.OBJECT):
        return
    # Another conversion may remove it meanwhile.
    with suppress(FileNotFoundError):
        for cache in (own_directory() / gpu(request)).glob(f"*/{TIMING_CACHE}"):
            if cache.stat().st_size <= TIMING_CACHE_BYTES:
                target = known_timing_cache(incoming, cache.parent.name)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(cache, target)
