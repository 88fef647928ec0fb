"""Where things lie on the repository claim; shared by the Jobs and the controller, standard library only.

Every directory below is written once, under a temporary name, and renamed into place::

    sources/<digest>/                       the user's files
    references/<key>/result.json            signature, counts
                     batches/00000.npz      ids, inputs/<name>, labels/<name>, outputs/<name> of one batch
                     perf.json              perf_analyzer's --input-data, made of real samples
    candidates/<conversion key>/result.json what the file is
                                model.onnx | model.pt
    revisions/<key>/result.json             the convert Job's result
                    models/<model>/config.pbtxt
                                   1/model.onnx | model.pt      (a hard link to the candidate's file)
                                   warmup/<input>               raw tensors of a reference batch
    measurements/<key>/result.json          a profile or measure Job's result, with perf_analyzer's own CSV files
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


def candidate_directory(key: str, root: Path = MOUNT) -> Path:
    """Directory of a converted model file."""
    return root / "candidates" / key


def revision_directory(key: str, root: Path = MOUNT) -> Path:
    """Directory of an immutable revision."""
    return root / "revisions" / key


def model_repository(key: str, root: Path = MOUNT) -> Path:
    """What tritonserver's --model-repository is given for a revision."""
    return revision_directory(key, root) / "models"


def measurement_directory(key: str, root: Path = MOUNT) -> Path:
    """Directory of a profile's or a measurement's result."""
    return root / "measurements" / key
