"""The directories of the repository claim; shared by the Jobs and the controller, standard library only.

All of them lie below ``.triton-operator/``, whose marker says that it is ours (``claim_store.root``). What lies beside
it on the claim is the user's. Every directory of this list is written once, under a temporary name, and renamed into
place::

    sources/<digest>/                       the user's files
    packages/<key>/result.json              names and versions
                   site/                    Python packages that the user's code imports
    references/<key>/result.json            signature, counts
                     batches/00000.npz      ids, inputs/<name>, labels/<name>, outputs/<name> of one batch
                     perf.json              perf_analyzer's --input-data: real samples of the first one's shape
                     perf-<n>.json          instead, without a batch dimension: requests of n samples
                     sizes/batches/*.npz    the first request of each other size
                     members/<model>/       the reference of one model of an ensemble
    candidates/<conversion key>/result.json what the file is
                                model.onnx | model.pt | model.plan | model.savedmodel/
                                inspection.json   what the runtime reports about the last three
    revisions/<key>/result.json             the convert Job's result
                    models/<model>/config.pbtxt
                                   1/model.onnx | model.pt      (a hard link to the candidate's file)
                                   warmup/<input>               raw tensors of a reference batch
                    ps.json                        only for an ensemble with embedding tables
    measurements/<key>/result.json          the result of a profile, metrics, comparison, search or measure Job,
                                            with perf_analyzer's CSV files
                       served/*.npz         a profile's served outputs, if metrics are computed of them

The Jobs of a search add its points one by one, each with an fsync::

    searches/<search key>/points.jsonl

Compilers fill their caches, which may be deleted at any time::

    caches/.claims/<NAMESPACE%2FNAME>                        an empty file for each claim that has this storage
    caches/.objects/<NAMESPACE%2Fobject>/<GPU product>/<TensorRT version>/timing.cache
                                                             TensorRT's, of one object alone
                                         .received/<digest>  an empty file for each source that the object has read or
                                                             downloaded itself
"""

import os
from pathlib import Path
from urllib.parse import quote

_AT = Path(os.environ.get("TRITON_MOUNTS", "/"))
"""Where the mounts lie: at the root, unless a program has none of its own (triton_local/plain.py)."""
MOUNT = _AT / "repository"
"""Mount path of the claim in the containers of Jobs; a server has parts of it, at the same paths."""
ROOT = MOUNT / ".triton-operator"
"""The operator's own directory: it writes nothing elsewhere on the claim, and deletes nothing elsewhere."""
MARKER = "layout.json"
"""File in ROOT that says whose it is and which layout it has."""
SOURCE_MOUNT = _AT / "source"
"""Read-only mount path, in the source Job, of the claim or ConfigMap that spec.source names."""
WEIGHTS_MOUNT = _AT / "weights"
"""Read-only mount path of the published spec.weights in the Jobs that run user code."""
PACKAGES_MOUNT = _AT / "packages"
"""Read-only mount path of installed Python packages in the Jobs that run user code."""
DATA_MOUNT = _AT / "data"
"""Read-only mount path of spec.dataset in the Jobs that run user code: of the claim that holds it, or of what was
published."""
CREDENTIALS_MOUNT = _AT / "credentials"
"""Read-only mount path, in a source, packages or publish Job, of a Secret that the spec names: a file for each key."""
SIGNING_MOUNT = _AT / "signing"
"""Read-only mount path, in a publish Job, of the Secret with the signing key, as cosign makes it."""
INCOMING_MOUNT = _AT / "incoming"
"""Mount path, in Jobs with user code or pip, of the volume into which these write and from which we publish."""
CONVERTERS_MOUNT = _AT / "converters"
"""Mount path of the copy of the converters in packages Jobs, and in Jobs whose framework image is the user's."""
OBJECT, CLAIM = "TRITON_DEPLOYMENT", "TRITON_REPOSITORY_CLAIM"
"""Environment variables of a Job's containers before and after user code: the object's name, and NAMESPACE/NAME of its
repository claim. Operators before them set neither."""
DATASET = "TRITON_DATASET"
"""Environment variable of the container before user code: the URI of the folder on a claim that user code has at
DATA_MOUNT, where this container has the whole claim."""
MARKS_MOUNT = _AT / "marks"
"""Mount path, in a clean Job, of the results ConfigMaps of all TritonDeployments that use the claim, by their names."""

MOUNTS = (
    *(MOUNT, SOURCE_MOUNT, WEIGHTS_MOUNT, PACKAGES_MOUNT, DATA_MOUNT, CREDENTIALS_MOUNT, INCOMING_MOUNT),
    *(SIGNING_MOUNT, CONVERTERS_MOUNT, MARKS_MOUNT),
)
"""All of these mount paths, which lie at the root."""


def source_directory(digest: str, root: Path = ROOT) -> Path:
    """Return the directory of the published source; ``digest`` is 64 hexadecimal digits."""
    return root / "sources" / digest


def packages_directory(key: str, root: Path = ROOT) -> Path:
    """Return the directory of the result of a packages Job."""
    return root / "packages" / key


def installed_packages(key: str, root: Path = ROOT) -> Path:
    """Return the directory of installed Python packages, which is put on the import path."""
    return packages_directory(key, root) / "site"


def reference_directory(key: str, root: Path = ROOT) -> Path:
    """Return the directory of the framework's dump."""
    return root / "references" / key


def member_key(reference: str, model: str) -> str:
    """Return the key of the reference of one model of an ensemble; it is also its path below ``references``."""
    return f"{reference}/members/{model}"


def whole_key(key: str) -> str:
    """Return the key of the ensemble's reference, of a key that ``member_key`` returned; else the key itself."""
    return key.partition("/")[0]


def candidate_directory(key: str, root: Path = ROOT) -> Path:
    """Return the directory of a converted model file."""
    return root / "candidates" / key


def revision_directory(key: str, root: Path = ROOT) -> Path:
    """Return the directory of an immutable revision."""
    return root / "revisions" / key


def model_repository(key: str, root: Path = ROOT) -> Path:
    """Return the value of tritonserver's --model-repository for a revision."""
    return revision_directory(key, root) / "models"


VERSION = "1"
"""The only version of each model of a revision."""
STEP_SOURCE = "source"
"""Folder of a Python step's version in which its author's files lie as in the source."""


def step_folder(key: str, model: str, file: str, root: Path = ROOT) -> Path:
    """Return the directory in a revision of the folder of a Python step's file; ``file``: its path below the source."""
    return model_repository(key, root) / model / VERSION / STEP_SOURCE / Path(file).parent


UNPUBLISHED = "__pycache__"
"""The folder of a step's that no server gets: what Python would run in place of a file that can be read."""
PARAMETER_SERVER = "ps.json"
"""File that --backend-config=hps,ps= names, in a revision with embedding tables."""


def parameter_server(key: str, root: Path = ROOT) -> Path:
    """Return the path of the hps backend's JSON file in a revision."""
    return revision_directory(key, root) / PARAMETER_SERVER


def measurement_directory(key: str, root: Path = ROOT) -> Path:
    """Return the directory of a profile's or a measurement's result."""
    return root / "measurements" / key


def kept_outputs(profile: str, root: Path = ROOT) -> Path:
    """Return the directory of the served outputs that a profile kept."""
    return measurement_directory(profile, root) / "served"


CONVERTED = "converted"
"""Folder below the measurement of a metrics Job, with the outputs of converted files outside Triton: a folder for each
profile of such a candidate."""


def search_directory(search: str, root: Path = ROOT) -> Path:
    """Return the directory of the points that all parts of a search measured."""
    return root / "searches" / search


def cache_directory(gpu_product: str, tensorrt_version: str, root: Path = ROOT) -> Path:
    """Return the directory of a TensorRT version's caches on a GPU product, which is a label's value: a valid name."""
    return root / "caches" / (gpu_product or "any") / tensorrt_version


def objects_directory(root: Path = ROOT) -> Path:
    """Return the directory of what objects do not share. A GPU product's name never begins with a dot."""
    return root / "caches" / ".objects"


def object_name(claim: str, name: str) -> str:
    """Name below ``objects_directory`` of an object. ``claim``: NAMESPACE/NAME of its repository claim.

    Claims of two namespaces may have one storage.
    """
    return quote(f"{claim.partition('/')[0]}/{name}", safe="")


def claims_directory(root: Path = ROOT) -> Path:
    """Return the directory of the names of all claims that have this storage."""
    return root / "caches" / ".claims"
