"""`python3 -m tests.publishing FOLDER [NAME...]`: publish three models on this machine, and serve each in three ways.

These are tritonserver on a folder, on an image volume of containerd 2.2, and on what KServe's storage initializer
downloads; their answers are compared bit for bit. It needs root. FOLDER is an empty one, and keeps the servers' logs.
"""

import signal
import sys
from pathlib import Path

from tests.publishing.serve import MODELS, serve

if __name__ == "__main__":
    # Its servers end with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    (folder := Path(sys.argv[1]).resolve()).mkdir(parents=True, exist_ok=True)
    sys.exit(0 if serve(folder, sys.argv[2:] or MODELS) else 1)
