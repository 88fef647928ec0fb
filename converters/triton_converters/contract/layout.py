"""Where things lie on the repository claim; shared by the Jobs and the controller, standard library only.

Every directory of the first list is written once, under a temporary name, and renamed into place::

    sources/<digest>/                       the user's files
    references/<key>/result.json            signature, counts
                     batches/00000.npz      ids, inputs/<name>, labels/<name>, outputs/<name> of one batch
                     perf.json              perf_analyzer's --input-data, made of real samples
                     perf-<n>.json          instead, without batch dimension: of requests of n samples
                     sizes/batches/*.npz    the first request of each other size
                     members/<model>/       of an ensemble: a model's own reference
    candidates/<conversion key>/result.json what the file is
                                model.onnx | model.pt | model.plan | model.savedmodel/
                                inspection.json   of the last two: what their runtime said of them
    revisions/<key>/result.json             the convert Job's result
                    models/<model>/config.pbtxt
                                   1/model.onnx | model.pt      (a hard link to the candidate's file)
                                   warmup/<input>               raw tensors of a reference batch
                    ps.json                        of an ensemble with embedding tables
    measurements/<key>/result.json          a profile, search or measure Job's result, with perf_analyzer's CSV files

A search's points are added one by one, each with an fsync, by its Jobs in turn::

    searches/<search key>/points.jsonl

What compilers keep is theirs to fill, and may go at any time::

    caches/<GPU product>/<TensorRT version>/timing.cache  TensorRT's timing cache, replaced whole
"""

from pathlib import Path

MOUNT = Path("/repository")
"""Where a Job's and a server's container see the claim."""
SOURCE_MOUNT = Path("/source")
"""Where the source Job sees the claim or ConfigMap that spec.source names, read-only."""
DATA_MOUNT = Path("/data")
"""Where Jobs that run user code see spec.data, read-only."""
MARKS_MOUNT = Path("/marks")
"""Where a clean Job sees the results ConfigMap of each TritonDeployment that uses the claim, by its name."""


def source_directory(digest: str, root: Path = MOUNT) -> Path:
    """Directory of the published source; ``digest`` is 64 hexadecimal digits."""
    return root / "sources" / digest


def reference_directory(key: str, root: Path = MOUNT) -> Path:
    """Directory of the framework's dump."""
    return root / "references" / key


def member_key(reference: str, model: str) -> str:
    """Key of the reference that one model of an ensemble has; it is also its path below ``references``."""
    return f"{reference}/members/{model}"


def candidate_directory(key: str, root: Path = MOUNT) -> Path:
    """Directory of a converted model file."""
    return root / "candidates" / key


def revision_directory(key: str, root: Path = MOUNT) -> Path:
    """Directory of an immutable revision."""
    return root / "revisions" / key


def model_repository(key: str, root: Path = MOUNT) -> Path:
    """What tritonserver's --model-repository is given for a revision."""
    return revision_directory(key, root) / "models"


PARAMETER_SERVER = "ps.json"
"""Of a revision with embedding tables: what --backend-config=hps,ps= names."""


def parameter_server(key: str, root: Path = MOUNT) -> Path:
    """The hps backend's JSON file of a revision."""
    return revision_directory(key, root) / PARAMETER_SERVER


def measurement_directory(key: str, root: Path = MOUNT) -> Path:
    """Directory of a profile's or a measurement's result."""
    return root / "measurements" / key


def search_directory(search: str, root: Path = MOUNT) -> Path:
    """Directory of the points that all parts of a search measured."""
    return root / "searches" / search


def cache_directory(gpu_product: str, tensorrt_version: str, root: Path = MOUNT) -> Path:
    """Directory of the caches of one GPU product and TensorRT; a product's name is a label's value, so a file name."""
    return root / "caches" / (gpu_product or "any") / tensorrt_version
