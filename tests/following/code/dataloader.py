import numpy as np


def get_dataloader_fn(batch_size: int):
    rows = np.load("test.npz")

    def batches():
        for start in range(0, len(rows["y"]), batch_size):
            ids = range(start, min(start + batch_size, len(rows["y"])))
            part = slice(start, start + batch_size)
            yield ids, {"features": rows["x"][part]}, {"returned": rows["y"][part]}

    return batches
