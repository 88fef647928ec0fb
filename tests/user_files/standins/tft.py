"""Stands in for NVIDIA's dataloader.py, which needs pandas 1: the same tensors of random numbers."""

import numpy


def get_dataloader_fn(batch_size: int):
    """Return what yields a few batches of 192 hours."""

    def load():
        random = numpy.random.default_rng(1)
        for start in range(0, 6, batch_size):
            absent = numpy.ones((batch_size, 1), numpy.float32)
            inputs = {
                "s_cat__0": random.integers(0, 369, (batch_size, 192, 1)),
                "s_cont__1": absent,
                "k_cat__2": absent,
                "k_cont__3": random.normal(size=(batch_size, 192, 3)).astype(numpy.float32),
                "o_cat__4": absent,
                "o_cont__5": absent,
                "target__6": random.normal(size=(batch_size, 192, 1)).astype(numpy.float32),
                "id__7": random.integers(0, 369, (batch_size, 192, 1)),
            }
            yield numpy.arange(start, start + batch_size), inputs, {}

    return load
