"""Builds the programs of the cluster from Go modules, once per content of go.mod, go.sum and flags."""

import hashlib
import re
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from hack.devcluster.commands import run
from hack.devcluster.lock import exclusive
from hack.devcluster.paths import ClusterError, cache_home
from hack.progress import step

MODULES_FOLDER = Path(__file__).parent / "modules"
BUILD_SECONDS = 3600
"""Bound of one build: several times what Kubernetes takes on two cores."""
BUILD_FLAGS = ("-trimpath", "-mod=readonly", "-buildvcs=false")
BUILD_ENVIRONMENT = {"CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": ""}


@dataclass(frozen=True)
class GoModule:
    """One folder below modules/: the programs built from it, under one resolution of dependencies."""

    name: str
    source: str
    """The required module whose version is the programs' version."""
    packages: Mapping[str, str]
    """Program name -> Go package. Where a module has several, Go's name of each is the program's."""
    usual: str
    """How long the build takes on two cores."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Go string variable -> value set at link time; `{version}`, `{major}` and `{minor}` are filled in."""
    for_integrations: bool = False
    """Whether only tests with other projects' programs need it: it is built if it is named, or asked for."""

    @property
    def folder(self) -> Path:
        """The folder of go.mod and go.sum."""
        return MODULES_FOLDER / self.name

    @property
    def version(self) -> str:
        """The version go.mod requires, such as v1.34.4.

        Raises:
            ClusterError: go.mod does not require the source module.

        """
        text = (self.folder / "go.mod").read_text()
        found = re.search(rf"^\s*(?:require )?{re.escape(self.source)} (v\S+)", text, re.MULTILINE)
        if found is None:
            raise ClusterError(f"{self.folder / 'go.mod'} does not require {self.source}: add it, run go mod tidy")
        return found.group(1)

    def ldflags(self) -> str:
        """Linker flags: no debug symbols, and the version the programs report."""
        major, minor, *_ = self.version.removeprefix("v").split(".")
        values = {"version": self.version, "major": major, "minor": minor}
        settings = [f"-X {name}={value.format(**values)}" for name, value in self.variables.items()]
        return " ".join(["-s", "-w", *settings])

    def target(self) -> Path:
        """The folder of the built programs, named by everything that goes into them."""
        digest = hashlib.sha256()
        for part in ("go.mod", "go.sum", *sorted(path.name for path in self.folder.glob("*.go"))):
            digest.update((self.folder / part).read_bytes())
        environment = sorted(BUILD_ENVIRONMENT.items())
        digest.update(repr((BUILD_FLAGS, self.ldflags(), environment, sorted(self.packages.items()))).encode())
        return cache_home() / "bin" / f"{self.name}-{digest.hexdigest()[:16]}"


KUBERNETES_PROGRAMS = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "kubectl",
)
MODULES = {
    module.name: module
    for module in (
        GoModule(
            "kubernetes",
            "k8s.io/kubernetes",
            {name: f"k8s.io/kubernetes/cmd/{name}" for name in KUBERNETES_PROGRAMS},
            "11 min",
            {
                "k8s.io/component-base/version.gitVersion": "{version}",
                "k8s.io/component-base/version.gitMajor": "{major}",
                "k8s.io/component-base/version.gitMinor": "{minor}",
            },
        ),
        GoModule(
            "etcd",
            "go.etcd.io/etcd/server/v3",
            {"etcd": "go.etcd.io/etcd/server/v3"},
            "30 s",
        ),
        # Its own main package leaves out the plugins, and the SDKs of three clouds, that no Corefile here names.
        GoModule("coredns", "github.com/coredns/coredns", {"coredns": "."}, "1 min"),
        GoModule(
            "local-path-provisioner",
            "github.com/rancher/local-path-provisioner",
            {"local-path-provisioner": "github.com/rancher/local-path-provisioner"},
            "90 s",
            {"main.VERSION": "{version}"},
        ),
        GoModule(
            "helm",
            "helm.sh/helm/v3",
            {"helm": "helm.sh/helm/v3/cmd/helm"},
            "2 min",
            {
                "helm.sh/helm/v3/internal/version.version": "{version}",
                # The Kubernetes that `helm template` and `helm lint` assume when they talk to no cluster.
                "helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor": "1",
                "helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor": "34",
                "helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor": "1",
                "helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor": "34",
            },
        ),
        GoModule(
            "kubeconform",
            "github.com/yannh/kubeconform",
            {"kubeconform": "github.com/yannh/kubeconform/cmd/kubeconform"},
            "10 s",
            {"main.version": "{version}"},
        ),
        GoModule(
            "actionlint",
            "github.com/rhysd/actionlint",
            {"actionlint": "github.com/rhysd/actionlint/cmd/actionlint"},
            "30 s",
            {"github.com/rhysd/actionlint.version": "{version}"},
        ),
        # A server with S3's API, for the tests of downloads.
        GoModule(
            "versitygw",
            "github.com/versity/versitygw",
            {"versitygw": "github.com/versity/versitygw/cmd/versitygw"},
            "1 min",
        ),
        # A registry of images and artifacts, for the tests of downloads and of a release.
        GoModule(
            "registry",
            "github.com/distribution/distribution/v3",
            {"registry": "github.com/distribution/distribution/v3/cmd/registry"},
            "90 s",
        ),
        GoModule(
            "cosign",
            "github.com/sigstore/cosign/v3",
            {"cosign": "github.com/sigstore/cosign/v3/cmd/cosign"},
            "4 min",
            for_integrations=True,
        ),
        # It reads signatures at tags alone, and many still have it.
        GoModule(
            "cosign-2",
            "github.com/sigstore/cosign/v2",
            {"cosign-2": "github.com/sigstore/cosign/v2/cmd/cosign"},
            "4 min",
            for_integrations=True,
        ),
        # The first containerd that mounts a folder of an image volume: Debian's is older.
        GoModule(
            "containerd",
            "github.com/containerd/containerd/v2",
            {
                name: f"github.com/containerd/containerd/v2/cmd/{name}"
                for name in ("containerd", "containerd-shim-runc-v2")
            },
            "3 min",
            {"github.com/containerd/containerd/v2/version.Version": "{version}"},
            for_integrations=True,
        ),
        GoModule(
            "crictl",
            "sigs.k8s.io/cri-tools",
            {"crictl": "sigs.k8s.io/cri-tools/cmd/crictl"},
            "1 min",
            for_integrations=True,
        ),
        # It pushes the sample model of a release.
        GoModule(
            "oras",
            "oras.land/oras",
            {"oras": "oras.land/oras/cmd/oras"},
            "30 s",
            for_integrations=True,
        ),
        GoModule(
            "prometheus",
            "github.com/prometheus/prometheus",
            {name: f"github.com/prometheus/prometheus/cmd/{name}" for name in ("prometheus", "promtool")},
            "3 min",
            for_integrations=True,
        ),
        GoModule(
            "kueue",
            "sigs.k8s.io/kueue",
            {"kueue": "sigs.k8s.io/kueue/cmd/kueue"},
            "3 min",
            for_integrations=True,
        ),
        GoModule(
            "keda",
            "github.com/kedacore/keda/v2",
            {name: f"github.com/kedacore/keda/v2/cmd/{name}" for name in ("operator", "adapter")},
            "9 min",
            for_integrations=True,
        ),
        GoModule(
            "metrics-server",
            "sigs.k8s.io/metrics-server",
            {"metrics-server": "sigs.k8s.io/metrics-server/cmd/metrics-server"},
            "2 min",
            for_integrations=True,
        ),
        GoModule(
            "traefik",
            "github.com/traefik/traefik/v3",
            {"traefik": "github.com/traefik/traefik/v3/cmd/traefik"},
            "6 min",
            for_integrations=True,
        ),
    )
}
PROGRAMS = {program: module for module in MODULES.values() for program in module.packages}


def built(module: GoModule) -> bool:
    """Whether every program of the module is in the cache."""
    return all((module.target() / program).exists() for program in module.packages)


def build(module: GoModule) -> Path:
    """Build what is missing of a module and return its folder of programs; builds nothing when all are there.

    Raises:
        ClusterError: Go is not installed, or the build failed.

    """
    target = module.target()
    with exclusive(cache_home() / "bin" / f"{module.name}.lock", f"the build of {module.name}"):
        missing = [program for program in module.packages if not (target / program).exists()]
        if missing:
            with step(f"programs: {module.name} {module.version} from Go modules", module.usual):
                _compile(module, missing)
    return target


def download(module: GoModule) -> None:
    """Download the sources that a build of the module needs, unless its programs are in the cache.

    Raises:
        ClusterError: Go is not installed, or a source cannot be had.

    """
    if not built(module):
        argv = [_go(module), "mod", "download"]
        run(argv, folder=module.folder, environment=BUILD_ENVIRONMENT, timeout=BUILD_SECONDS)


def download_all(names: Sequence[str]) -> None:
    """Download the sources of the named modules side by side, except of those whose programs are in the cache.

    Raises:
        ClusterError: Go is not installed, or a source cannot be had.

    """
    missing = [MODULES[name] for name in names if not built(MODULES[name])]
    if missing:
        what = ", ".join(module.name for module in missing)
        with step(f"Go modules of {what}", "1 min"), ThreadPoolExecutor(len(missing)) as pool:
            list(pool.map(download, missing))


def build_all(names: Sequence[str] = ()) -> list[Path]:
    """Build the named modules, by default all but those of integrations; returns their folders of programs.

    One is compiled after the other, for each uses all cores; the sources of the later ones arrive meanwhile.

    Raises:
        ClusterError: a name is unknown, Go is not installed, or a build failed.

    """
    unknown = sorted(set(names) - set(MODULES))
    if unknown:
        raise ClusterError(f"no module {', '.join(unknown)}: there are {', '.join(MODULES)}")
    chosen = [MODULES[name] for name in names] or [each for each in MODULES.values() if not each.for_integrations]
    with ThreadPoolExecutor(len(chosen)) as pool:
        sources = [pool.submit(download, module) for module in chosen]
        folders = []
        for module, source in zip(chosen, sources, strict=True):
            source.result()
            folders.append(build(module))
    return folders


def program(name: str) -> Path:
    """The path of a program, built first when it is not in the cache.

    Raises:
        ClusterError: Go is not installed, or the build failed.

    """
    return build(PROGRAMS[name]) / name


def _compile(module: GoModule, programs: Sequence[str]) -> None:
    """Compile programs in one go, next to their folder, and rename them: a killed build leaves no half program."""
    go, target = _go(module), module.target()
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    target.mkdir(exist_ok=True)
    output = partial / programs[0] if len(programs) == 1 else partial
    packages = [module.packages[name] for name in programs]
    argv = [go, "build", *BUILD_FLAGS, "-ldflags", module.ldflags(), "-o", str(output), *packages]
    run(argv, folder=module.folder, environment=BUILD_ENVIRONMENT, timeout=BUILD_SECONDS)
    for name in programs:
        (partial / name).rename(target / name)
    partial.rmdir()


def _go(module: GoModule) -> str:
    found = shutil.which("go")
    if found is None:
        raise ClusterError(f"{module.name} must be built and `go` is not on PATH: install Go 1.26 or later")
    return found
