"""An API server alone, in a folder: etcd and kube-apiserver on a free port, for tests that need no node."""

import json
import shutil
import socket
from pathlib import Path
from types import TracebackType
from typing import Self

from hack.devcluster.binaries import program
from hack.devcluster.certificates import Identity, create_authority, create_certificate
from hack.devcluster.control_plane import ApiServerPlace, etcd, kube_apiserver
from hack.devcluster.kubeconfig import write_kubeconfig
from hack.devcluster.paths import ClusterError
from hack.devcluster.process import Recorded, end, recorded_processes, start
from hack.devcluster.readiness import answers_ready, wait_until

LOOPBACK = "127.0.0.1"
SERVICE_RANGE = "10.0.0.0/24"
LONGEST_FOLDER = 95
"""Characters: etcd's sockets below the folder must fit the 107 of a Unix socket."""
PARTS = (
    "audit.log",
    "audit-policy.json",
    "certificates",
    "etcd-data",
    "kubeconfig",
    "logs",
    "processes",
    "sockets",
)


class ApiServer:
    """A real API server with RBAC and an empty etcd, and nothing else: no controllers, no node.

    As a context manager it lives as long as the block, and dies with the process that opened it. Runs beside
    a full cluster and beside others of its kind.
    """

    def __init__(self, folder: Path, *readers: str) -> None:
        self._readers = readers
        self.folder = folder.absolute()
        self.kubeconfig = self.folder / "kubeconfig"
        """The administrator's kubeconfig (group system:masters)."""
        self.audit_log = self.folder / "audit.log"
        """One JSON line per write, at Metadata level, and per read of the users ``readers``."""
        self.place: ApiServerPlace
        """Where the processes that ``up`` started listen and keep their files."""

    def up(self, *, die_with_parent: bool = False) -> None:
        """Start, and return when the server is ready; an earlier one in the folder is ended first.

        Raises:
            ClusterError: the folder's path is too long, a program could not be built, or a process died.

        """
        if len(str(self.folder)) > LONGEST_FOLDER:
            raise ClusterError(f"{self.folder} is longer than {LONGEST_FOLDER} characters: choose a shorter folder")
        etcd_program, server_program = program("etcd"), program("kube-apiserver")
        self.down()
        sockets = self.folder / "sockets"
        sockets.mkdir(parents=True, mode=0o700)
        self.place = place = ApiServerPlace(self.folder, sockets, LOOPBACK, _free_port(), SERVICE_RANGE)
        create_authority(place.certificates)
        create_certificate(place.certificates, Identity("admin", "admin", "system:masters"))
        names = (f"IP:{LOOPBACK}", "DNS:localhost")
        create_certificate(place.certificates, Identity("apiserver", "kube-apiserver", "", names))
        processes = [
            start(daemon, records=self._records, logs=self._logs, die_with_parent=die_with_parent)
            for daemon in (
                etcd(etcd_program, place),
                kube_apiserver(server_program, place, nodes=False, readers=self._readers),
            )
        ]
        wait_until(
            lambda: answers_ready(place),
            f"{place.url} ready",
            seconds=60,
            processes=processes,
            logs=self._logs,
        )
        write_kubeconfig(self.kubeconfig, server=place.url, certificates=place.certificates, identity="admin")

    def down(self) -> None:
        """End both processes and remove what they wrote; does nothing when there is nothing.

        Raises:
            ClusterError: a process survives SIGKILL.

        """
        end(self._processes(), grace=0)
        for part in PARTS:
            path = self.folder / part
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        """Start it."""
        try:
            self.up(die_with_parent=True)
        except BaseException:
            end(self._processes(), grace=0)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it and remove its files."""
        self.down()

    @property
    def url(self) -> str:
        """The server's URL, from its kubeconfig."""
        content = json.loads(self.kubeconfig.read_text())
        return str(content["clusters"][0]["cluster"]["server"])

    @property
    def pids(self) -> tuple[int, ...]:
        """The process ids of etcd and the API server."""
        return tuple(process.pid for process in self._processes())

    @property
    def _records(self) -> Path:
        return self.folder / "processes"

    @property
    def _logs(self) -> Path:
        return self.folder / "logs"

    def _processes(self) -> list[Recorded]:
        return recorded_processes(self._records)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        return int(listener.getsockname()[1])
