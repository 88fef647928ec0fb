"""What to do about a Python package, a file or a library of the system that user code does not find. Pure."""

import re

LIBRARY = re.compile(r"(lib[\w.+-]+?\.so[\w.]*): cannot open shared object file")
"""Matches the words of the system's linker, which Python quotes in an ImportError, and ctypes in an OSError."""
OPENCV = (
    "libGL.",
    "libGLX.",
    "libEGL.",
    "libgthread-2.0.",
    "libglib-2.0.",
    "libSM.",
    "libXext.",
    "libXrender.",
    "libX11.",
)
"""Libraries of a desktop, which the wheel of opencv-python needs."""
CUDA = (
    "libcuda",
    "libcublas",
    "libcudnn",
    "libcufft",
    "libnccl",
    "libnvrtc",
    "libnvinfer",
    "libcupti",
    "libnvToolsExt",
)
PACKAGES = {
    "Crypto": "pycryptodome",
    "OpenSSL": "pyOpenSSL",
    "PIL": "pillow",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "faiss": "faiss-cpu",
    "fitz": "PyMuPDF",
    "google.protobuf": "protobuf",
    "jwt": "PyJWT",
    "pkg_resources": "setuptools",
    "sentence_transformers": "sentence-transformers",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "PyYAML",
}
"""Packages by a module of theirs with another name, as the index has them."""
SEVERAL = frozenset({"google", "azure"})
"""Folders that the modules of many packages share."""
PLACES = "to the source, to the file that spec.conversion.requirements names, or to the image in spec.conversion.image"
RELATIVE = (
    "the file is not imported as a part of a package: import it by its name, without the dots, such as `from utils"
    " import crop`; the entrypoint's folder and the source's directory are on the import path"
)
IMAGE = "install it in an image of your own, and name that in spec.conversion.image"


def package(module: str | None) -> str:
    """Return in words which package brings a module; its name alone does not always tell."""
    top = (module or "").partition(".")[0]
    if known := PACKAGES.get(module or "") or PACKAGES.get(top):
        return f"the package {known}, which has it,"
    if top in SEVERAL or not top:
        example = ", such as protobuf for google.protobuf," if top == "google" else ""
        return f"the package that has it{example}"
    return "the package that has it, which often has the same name,"


def advice(error: BaseException) -> str:
    """Return what to do; empty if the error is about nothing that is missing."""
    if isinstance(error, ModuleNotFoundError):
        return f"add {package(error.name)} {PLACES}"
    if isinstance(error, ImportError) and str(error).startswith("attempted relative import"):
        return RELATIVE
    found = LIBRARY.search(str(error)) if isinstance(error, ImportError | OSError) else None
    if found is None:
        return ""
    library = found[1]
    if library.startswith(OPENCV):
        return (
            f"the image has no {library}, which opencv-python needs for windows: in the file of"
            " spec.conversion.requirements, write opencv-python-headless for opencv-python, and"
            f" opencv-contrib-python-headless for opencv-contrib-python; or {IMAGE}"
        )
    if library.startswith(CUDA):
        return (
            f"the image has no {library} of CUDA: require the package's build for the CPU, or let the code run in an"
            " image with CUDA (spec.conversion.image)"
        )
    return f"the image has no {library}, which a package needs and its wheel does not bring: {IMAGE}"
