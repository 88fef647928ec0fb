"""An engine that is killed while it starts a pod: one program starts others, one takes back to die with its parent.

``python3 -m tests.local.starting FOLDER box|plain``: says `starts`, and goes on until it is killed.
"""

import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.local.pods import Cluster, a_container, an_owner
from triton_local.boxed import Box
from triton_local.plain import Plain
from triton_local.runtime import Runtime

STARTS_OTHERS = "sleep 600 & setsid sleep 600 & sleep 600"
TAKES_BACK = """
import ctypes, pathlib, time
ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)  # PR_SET_PDEATHSIG: no signal when the parent ends
pathlib.Path("taken-back").touch()
time.sleep(600)
"""
RUNTIMES: Mapping[str, Callable[[], Runtime]] = {"box": Box, "plain": Plain}

if __name__ == "__main__":
    cluster = Cluster(Path(sys.argv[1]), runtime=RUNTIMES[sys.argv[2]]())
    mounts = [{"name": "shared", "mountPath": "/shared"}]
    server = a_container("server", STARTS_OTHERS, restartPolicy="Always", volumeMounts=mounts)
    main = a_container("main", "", command=["python3", "-c", TAKES_BACK], workingDir="/shared", volumeMounts=mounts)
    print("starts", flush=True)
    cluster.start(an_owner(server, main=main, volumes=[{"name": "shared", "emptyDir": {}}]))
    threading.Event().wait()
