"""What the development cluster decides without touching the machine."""

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv4Network, collapse_addresses, ip_address
from pathlib import Path

import pytest

from hack.devcluster import binaries, cgroups, images, kubeconfig, mounts, node, process
from hack.devcluster.addresses import CGROUP, NODE_ADDRESS, NODE_NAME, POD_GATEWAY, POD_RANGE
from hack.devcluster.cluster import DevCluster, set_up_modules
from hack.devcluster.lock import exclusive
from hack.devcluster.nodes import MOST_NODES, all_nodes
from hack.devcluster.paths import ClusterError, ClusterPaths, cluster_paths

ROOT = Path(binaries.__file__).parents[2]


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClusterPaths:
    monkeypatch.setattr(ClusterPaths, "check_lengths", lambda _: None)
    return ClusterPaths(home=tmp_path / "home", runtime=tmp_path / "run")


def test_every_module_pins_its_programs_as_tools() -> None:
    for module in binaries.MODULES.values():
        text = (module.folder / "go.mod").read_text()
        assert (module.folder / "go.sum").exists()
        for package in module.packages.values():
            assert package in text.split("require")[0], f"{module.name}: no tool line for {package}"


def test_kubernetes_is_the_last_that_runs_on_cgroup_v1() -> None:
    module = binaries.MODULES["kubernetes"]
    assert module.version == "v1.34.4"
    assert "-X k8s.io/component-base/version.gitMinor=34" in module.ldflags()


def test_programs_are_cached_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "MODULES_FOLDER", tmp_path)
    shutil.copytree(Path(binaries.__file__).parent / "modules" / "etcd", tmp_path / "etcd")
    module = binaries.MODULES["etcd"]
    first = module.target()
    assert module.target() == first
    with (tmp_path / "etcd" / "go.sum").open("a") as sums:
        sums.write("example.com/other v1.0.0 h1:=\n")
    changed = module.target()
    assert changed != first
    assert replace(module, variables={"main.version": "{version}"}).target() != changed


def test_build_names_the_missing_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterError, match=r"etcd must be built and `go` is not on PATH: install Go"):
        binaries.program("etcd")


STAND_IN_FOR_GO = f"""#!{sys.executable}
import json, os, pathlib, sys
here = pathlib.Path(__file__).parent
with open(here / "calls", "a") as file:
    file.write(json.dumps([pathlib.Path.cwd().name, *sys.argv[1:]]) + chr(10))
if sys.argv[1] == "build":
    if (here / "broken").exists():
        sys.exit("undefined: x")
    output = pathlib.Path(sys.argv[sys.argv.index("-o") + 1])
    packages = sys.argv[sys.argv.index("-o") + 2:]
    for path in [output / package.split("/")[-1] for package in packages] if output.is_dir() else [output]:
        path.write_text("program")
        path.chmod(0o755)
"""


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a stand-in for Go that notes its calls and writes programs; empty caches."""
    folder = tmp_path / "go"
    folder.mkdir()
    (folder / "go").write_text(STAND_IN_FOR_GO)
    (folder / "go").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def go_calls(folder: Path) -> list[list[str]]:
    return [json.loads(line) for line in (folder / "calls").read_text().splitlines()]


def test_all_programs_of_a_module_are_compiled_in_one_go(go: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder,) = binaries.build_all(["kubernetes"])
    assert {path.name for path in folder.iterdir()} == set(binaries.KUBERNETES_PROGRAMS)
    (build,) = [call for call in go_calls(go) if call[1] == "build"]
    assert build[-6:] == [f"k8s.io/kubernetes/cmd/{name}" for name in binaries.KUBERNETES_PROGRAMS]
    assert "programs: kubernetes v1.34.4 from Go modules, usually 11 min on two cores ..." in capsys.readouterr().err
    assert [path.name for path in folder.parent.iterdir() if "partial" in path.name] == []


def test_only_what_is_missing_is_built(go: Path) -> None:
    (folder,) = binaries.build_all(["kubernetes"])
    (folder / "kubectl").unlink()
    (go / "calls").unlink()
    binaries.build_all(["kubernetes"])
    assert (folder / "kubectl").exists()
    (build,) = [call for call in go_calls(go) if call[1] == "build"]
    assert build[-1:] == ["k8s.io/kubernetes/cmd/kubectl"]
    (go / "calls").unlink()
    binaries.build_all(["kubernetes"])
    assert not (go / "calls").exists()


def test_sources_of_every_module_are_asked_for_before_the_first_is_compiled_to_its_end(go: Path) -> None:
    binaries.build_all(["etcd", "helm"])
    calls = go_calls(go)
    assert [call[0] for call in calls if call[1] == "build"] == ["etcd", "helm"]
    assert sorted(call[0] for call in calls if call[1:] == ["mod", "download"]) == ["etcd", "helm"]


def test_a_program_named_otherwise_by_go_has_its_own_name(go: Path) -> None:
    assert binaries.program("etcd").read_text() == "program"


def test_a_failed_build_quotes_the_compiler_and_leaves_no_program(go: Path) -> None:
    (go / "broken").touch()
    with pytest.raises(ClusterError, match="undefined: x"):
        binaries.build_all(["kubernetes", "etcd"])
    assert not any(map(binaries.built, binaries.MODULES.values()))


def test_what_the_demo_needs_is_no_linter_and_for_a_cluster_of_somebody_else_no_kubernetes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert set_up_modules(foreign=False) == ("kubernetes", "etcd", "coredns", "local-path-provisioner", "helm")
    assert set_up_modules(foreign=True) == ("helm",)


def test_helm_of_the_machine_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "helm").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert set_up_modules(foreign=True) == ()


def test_it_runs_before_any_package_is_installed() -> None:
    root = str(ROOT)
    argv = [sys.executable, "-S", "-m", "hack.devcluster", "--help"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=root, env={"PYTHONPATH": root})
    assert "prepare" in done.stdout


def test_the_shell_that_asks_for_it_finds_the_cluster_and_the_plugin(
    tmp_path: Path, go: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    binaries.build_all(["kubernetes"])
    lock = hashlib.sha256((ROOT / "requirements/dev.txt").read_bytes()).hexdigest()[:12]
    python = tmp_path / "cache/triton-operator" / f"venv-{lock}" / "bin/python3"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "$PYTHONPATH" "$@"\n')
    python.chmod(0o755)
    script = f'eval "$({sys.executable} -m hack.devcluster env)"; cd /; echo $KUBECONFIG; command -v kubectl'
    argv = ["bash", "-euc", f"{script}; kubectl-triton explain 'a b'"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
    kubeconfig, kubectl, ran = done.stdout.splitlines()
    assert kubeconfig == str(cluster_paths().kubeconfig)
    assert kubectl == str(binaries.program("kubectl"))
    path, said = ran.split(" ", 1)
    assert path.split(":") == [str(ROOT / name) for name in ("operator", "converters", "plugin")]
    assert said == "-m triton_plugin explain a b"


def test_unknown_module_lists_the_known() -> None:
    with pytest.raises(ClusterError, match="no module docker: there are kubernetes, etcd"):
        binaries.build_all(["docker"])


@pytest.mark.parametrize(
    ("reference", "full"),
    [
        ("operator:dev", "docker.io/library/operator:dev"),
        ("operator", "docker.io/library/operator:latest"),
        ("team/operator:1", "docker.io/team/operator:1"),
        ("localhost/operator:1", "localhost/operator:1"),
        ("triton-operator.dev/operator:1", "triton-operator.dev/operator:1"),
        ("registry:5000/operator", "registry:5000/operator:latest"),
    ],
)
def test_canonical_image_names(reference: str, full: str) -> None:
    assert images.canonical(reference) == full


def test_archive_names_its_image(tmp_path: Path) -> None:
    config = b'{"os":"linux"}'
    archive = tmp_path / "a.tar"
    write_archive(archive, [{"Config": "c.json", "RepoTags": ["x:1"], "Layers": []}], config)
    read = images.read_archive(archive)
    assert read.references == ("x:1",)
    assert read.image_id == f"sha256:{hashlib.sha256(config).hexdigest()}"


@pytest.mark.parametrize("entries", [[], [{"Config": "c.json", "RepoTags": None, "Layers": []}]])
def test_archive_without_a_name_is_refused(tmp_path: Path, entries: list[object]) -> None:
    archive = tmp_path / "a.tar"
    write_archive(archive, entries, b"{}")
    with pytest.raises(ClusterError, match="no name: save one image with its tag"):
        images.read_archive(archive)


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="does not exist: build the image first"):
        images.read_archive(tmp_path / "missing.tar")
    (tmp_path / "text.tar").write_text("not a tar")
    with pytest.raises(ClusterError, match="is no docker-archive"):
        images.read_archive(tmp_path / "text.tar")


def test_a_moved_name_takes_its_old_image_along_unless_another_name_holds_it() -> None:
    archive = images.Archive(Path("a.tar"), ("localhost/a:1",), "sha256:new")
    present = {"localhost/a:1": "one", "sha256:id-of-one": "one", "localhost/b:1": "two", "sha256:id-of-two": "two"}
    assert images.moved_names(archive, present) == ["localhost/a:1", "sha256:id-of-one"]
    assert images.moved_names(archive, {**present, "localhost/c:1": "one"}) == ["localhost/a:1"]
    assert images.moved_names(archive, {"localhost/b:1": "two"}) == []


def test_loading_without_a_cluster_says_how_to_get_one(tmp_path: Path, paths: ClusterPaths) -> None:
    archive = tmp_path / "a.tar"
    write_archive(archive, [{"Config": "c.json", "RepoTags": ["x:1"], "Layers": []}], b"{}")
    with pytest.raises(ClusterError, match="no cluster is up, run `make cluster-up`"):
        images.load_image(archive, paths)


def write_archive(path: Path, entries: list[object], config: bytes) -> None:
    with tarfile.open(path, "w") as tar:
        for name, body in (("manifest.json", json.dumps(entries).encode()), ("c.json", config)):
            member = tarfile.TarInfo(name)
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))


def test_mount_points_are_unescaped_and_ordered() -> None:
    lines = (
        "22 1 254:0 / / rw shared:1 - ext4 /dev/vda rw",
        r"40 22 0:30 / /mnt/with\040space rw - tmpfs tmpfs rw",
        "41 40 0:31 / /sys/fs/cgroup rw,nosuid shared:9 master:2 - cgroup2 cgroup2 rw",
    )
    found = mounts.mounted("\n".join(lines))
    assert [str(mount.point) for mount in found] == ["/", "/mnt/with space", "/sys/fs/cgroup"]
    assert [mount.kind for mount in found] == ["ext4", "tmpfs", "cgroup2"]


def test_cgroup_v2_delegates_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "hierarchies", lambda: [tmp_path])
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu memory pids\n")
    (tmp_path / "cgroup.subtree_control").write_text("cpu pids\n")
    cgroups.create_cgroup(CGROUP)
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpuset +memory"
    assert cgroups.groups() == [tmp_path / "triton-devcluster"]


def test_a_further_nodes_group_lies_in_the_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "hierarchies", lambda: [tmp_path])
    for each in all_nodes(cluster_paths(), 2):
        cgroups.create_cgroup(each.cgroup)
    first = tmp_path / "triton-devcluster"
    assert cgroups.groups() == [first / "devcluster-2", first]


def test_nodes_share_neither_names_nor_addresses_nor_folders() -> None:
    nodes = all_nodes(cluster_paths(), MOST_NODES)
    for field in ("name", "address", "gateway", "namespace", "cgroup", "paths"):
        assert len({getattr(each, field) for each in nodes}) == MOST_NODES
    ranges = [IPv4Network(each.pod_range) for each in nodes]
    assert list(collapse_addresses(ranges)) == [IPv4Network(POD_RANGE)]
    assert all(ip_address(each.gateway) in network for each, network in zip(nodes, ranges, strict=True))
    assert (nodes[0].name, nodes[0].address, nodes[0].gateway) == (NODE_NAME, NODE_ADDRESS, POD_GATEWAY)
    assert [each.numbered("kubelet") for each in nodes[:2]] == ["kubelet", "kubelet-2"]


def test_a_linked_image_store_shares_layers_and_has_its_own_databases(tmp_path: Path) -> None:
    store, copy = tmp_path / "store", tmp_path / "nodes/2/containerd"
    database, layer = "io.containerd.metadata.v1.bolt/meta.db", "io.containerd.snapshotter.v1.overlayfs/1/fs/x.db"
    for name in (database, layer):
        (store / name).parent.mkdir(parents=True)
        (store / name).write_text("x")
    images.link_image_store(store, copy)
    assert (copy / layer).samefile(store / layer)
    assert (copy / database).read_text() == "x"
    assert not (copy / database).samefile(store / database)
    images.link_image_store(tmp_path / "none", tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_another_number_of_nodes_than_there_can_be(paths: ClusterPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(ClusterError, match="5 nodes: give a number from 1 to 4"):
        DevCluster(paths).up(5)


def test_without_any_cgroup_hierarchy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "hierarchies", list)
    with pytest.raises(ClusterError, match="no cgroup hierarchy is mounted"):
        cgroups.create_cgroup(CGROUP)


def test_only_root_changes_the_cluster(paths: ClusterPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    for change in (DevCluster(paths).up, DevCluster(paths).down):
        with pytest.raises(ClusterError, match="run as root, or set KUBECONFIG"):
            change()


def test_nameservers_are_the_addresses_only() -> None:
    text = "# nameserver 1.1.1.1\nsearch example.com\nnameserver 10.0.0.2\nnameserver fd00::1\noptions ndots:2\n"
    assert node.nameservers(text) == ["10.0.0.2", "fd00::1"]


def test_kubeconfig_of_somebody_else_is_honoured(paths: ClusterPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    assert kubeconfig.foreign_kubeconfig(paths) is None
    monkeypatch.setenv("KUBECONFIG", str(paths.kubeconfig))
    assert kubeconfig.foreign_kubeconfig(paths) is None
    monkeypatch.setenv("KUBECONFIG", "/elsewhere/config")
    assert kubeconfig.foreign_kubeconfig(paths) == "/elsewhere/config"


def test_kubeconfig_is_private(paths: ClusterPaths) -> None:
    paths.certificates.mkdir(parents=True)
    for name in ("ca.crt", "admin.crt", "admin.key"):
        (paths.certificates / name).write_text(name)
    kubeconfig.write_kubeconfig(
        paths.kubeconfig, server="https://127.0.0.1:1", certificates=paths.certificates, identity="admin"
    )
    assert paths.kubeconfig.stat().st_mode & 0o777 == 0o600


def test_cache_folder_too_long_for_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", f"/{'x' * 80}")
    with pytest.raises(ClusterError, match="set XDG_CACHE_HOME so that it has at most"):
        DevCluster(cluster_paths()).up()


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[process.Recorded]:
    started = process.start(process.Daemon("sleeper", ["sleep", "300"]), records=tmp_path, logs=tmp_path)
    yield started
    process.end([started], grace=0)


def test_recorded_process_is_found_again_and_ended(tmp_path: Path, sleeper: process.Recorded) -> None:
    assert process.recorded_processes(tmp_path) == [sleeper]
    assert sleeper.alive()
    process.end([sleeper], grace=0)
    assert not sleeper.alive()
    assert not Path(f"/proc/{sleeper.pid}").exists(), "a zombie is left"


@pytest.mark.parametrize("change", [{"started": 1}, {"argv": ["sleep", "301"]}])
def test_a_process_that_got_the_number_later_is_left_alone(
    sleeper: process.Recorded, change: dict[str, object]
) -> None:
    another = replace(sleeper, **change)  # type: ignore[arg-type]  # one of the fields
    assert not another.alive()
    process.end([another], grace=0)
    assert sleeper.alive()


def test_a_stubborn_process_is_killed(tmp_path: Path) -> None:
    argv = [
        sys.executable,
        "-c",
        "import signal; signal.signal(15, signal.SIG_IGN); print(1, flush=True); signal.pause()",
    ]
    stubborn = process.start(process.Daemon("stubborn", argv), records=tmp_path, logs=tmp_path)
    while not (tmp_path / "stubborn.log").read_text():
        assert stubborn.alive()
    process.end([stubborn], grace=0.2)
    assert not stubborn.alive()


def test_half_written_record_counts_as_none(tmp_path: Path) -> None:
    (tmp_path / "etcd.json").write_text('{"name": "etcd", "pi')
    assert process.recorded_processes(tmp_path) == []


def test_missing_program_is_named(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="etcd: /nowhere/etcd is not installed"):
        process.start(process.Daemon("etcd", ["/nowhere/etcd"]), records=tmp_path, logs=tmp_path)


def test_process_dies_with_its_parent(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from hack.devcluster.process import Daemon, start;"
        "p = Path(sys.argv[1]);"
        "print(start(Daemon('child', ['sleep', '300']), records=p, logs=p, die_with_parent=True).pid)"
    )
    root = str(ROOT)
    parent = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": root},
    )
    (child,) = process.recorded_processes(tmp_path)
    assert int(parent.stdout) == child.pid
    deadline = time.monotonic() + 5
    while child.alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not child.alive()


def test_lock_excludes_and_says_whom_it_waits_for(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "lock"
    code = (
        "import sys; from pathlib import Path; from hack.devcluster.lock import exclusive\n"
        "with exclusive(Path(sys.argv[1]), 'the cluster'): print('got it')"
    )
    root = str(ROOT)
    with exclusive(path, "the cluster"):
        other = subprocess.Popen(
            [sys.executable, "-c", code, str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": root},
        )
        assert other.stderr is not None
        assert "waiting for another process that holds the cluster" in other.stderr.readline()
        assert other.poll() is None
    assert other.communicate(timeout=10)[0] == "got it\n"
