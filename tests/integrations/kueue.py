"""The real Kueue, as a process on this machine: the API server reaches its webhooks by their URL."""

import base64
import json
import os
import shutil
import subprocess
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from hack.devcluster.binaries import BUILD_ENVIRONMENT, MODULES, program
from hack.imagebuild.pod import free_ports
from tests.apiserver.operator_process import eventually
from tests.converters.https_server import HOST, make_authority
from tests.e2e.kubectl import Kubectl

JSON = dict[str, Any]
MODULE = MODULES["kueue"]
GROUPS = {"batch", "kueue.x-k8s.io"}
"""API groups of the objects that its webhooks judge here; those of other kinds are left out."""
METRICS_CERTIFICATES = Path("/etc/kueue/metrics/certs")
"""Kueue reads them there, also if it serves no metrics."""


class Kueue:
    """Kueue with its kinds and webhooks, between entry and exit of the block. It judges Jobs of one namespace alone."""

    def __init__(self, kubectl: Kubectl, folder: Path, namespace: str) -> None:
        self._kubectl, self._folder, self._namespace = kubectl, folder, namespace
        self._webhook, self._health, _ = free_ports()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        config = _sources() / "config/components"
        crds = config / "crd/bases"
        self._kubectl.run("apply", "--server-side", "--force-conflicts", f"--filename={crds}", timeout=120)
        names = [f"crd/{each.stem.partition('_')[2]}.kueue.x-k8s.io" for each in crds.iterdir()]
        eventually(lambda: self._kubectl.run("wait", "--for=condition=Established", *names))
        authority = self._certificates()
        self._start()
        bodies = yaml.safe_load_all((config / "webhook/manifests.yaml").read_text())
        self._kubectl.apply(*(self._judging(each, authority) for each in bodies if each))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in ("mutating", "validating"):
            self._kubectl.delete(f"{each}webhookconfigurations", f"{each}-webhook-configuration")
        assert self._process is not None
        self._process.terminate()
        self._process.wait(60)
        shutil.rmtree(METRICS_CERTIFICATES.parents[1], ignore_errors=True)
        crds = _sources() / "config/components/crd/bases"
        self._kubectl.run("delete", "--ignore-not-found", f"--filename={crds}", timeout=180)

    def log(self) -> str:
        """The end of its log."""
        return (self._folder / "log").read_text()[-4000:]

    def _certificates(self) -> str:
        """Make the servers' certificates; return the authority's, as a webhook's configuration has it."""
        authority, server = make_authority(self._folder, f"IP:{HOST}")
        METRICS_CERTIFICATES.mkdir(parents=True, exist_ok=True)
        for folder in (self._folder, METRICS_CERTIFICATES):
            shutil.copy(server.with_name("server.crt"), folder / "tls.crt")
            shutil.copy(server.with_name("server.key"), folder / "tls.key")
        return base64.b64encode(authority.read_bytes()).decode()

    def _start(self) -> None:
        configuration = {
            "apiVersion": "config.kueue.x-k8s.io/v1beta1",
            "kind": "Configuration",
            "health": {"healthProbeBindAddress": f"{HOST}:{self._health}"},
            "metrics": {"bindAddress": "0"},
            "webhook": {"host": HOST, "port": self._webhook, "certDir": str(self._folder)},
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {"enable": False},
            "integrations": {"frameworks": ["batch/job"]},
            "featureGates": {"VisibilityOnDemand": False, "MultiKueue": False, "TopologyAwareScheduling": False},
        }
        (self._folder / "kueue.yaml").write_text(yaml.safe_dump(configuration))
        environment = os.environ | {"KUBECONFIG": str(self._kubectl.kubeconfig)}
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [str(program("kueue")), "--config=kueue.yaml"],
                cwd=self._folder,
                env=environment,
                stdout=log,
                stderr=log,
            )
        eventually(self._ready, within=120)

    def _ready(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError(f"Kueue ended: {self.log()}")
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self._health}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _judging(self, configuration: JSON, authority: str) -> JSON:
        """A configuration of webhooks that reaches this process, without those of kinds that are not tested."""
        webhooks = [each for each in configuration["webhooks"] if GROUPS & set(each["rules"][0]["apiGroups"])]
        for each in webhooks:
            path = each["clientConfig"].pop("service")["path"]
            each["clientConfig"] = {"url": f"https://{HOST}:{self._webhook}{path}", "caBundle": authority}
            if each["rules"][0]["apiGroups"] == ["batch"]:
                each["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": self._namespace}}
        return configuration | {"webhooks": webhooks}


def _sources() -> Path:
    """The folder of Kueue's sources, in the version that is built. They hold the definitions of its kinds."""
    argv = ["go", "mod", "download", "-json", MODULE.source]
    environment = os.environ | BUILD_ENVIRONMENT
    done = subprocess.run(argv, cwd=MODULE.folder, env=environment, capture_output=True, check=True)
    return Path(json.loads(done.stdout)["Dir"])
