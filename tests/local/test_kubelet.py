"""Real containers of this machine's own programs: what a pod's containers see, and what its status says of them."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import Attack
from tests.local.pods import PATIENCE_SECONDS, SYSTEM, Cluster, a_container, an_owner, ended, of
from triton_local.kubelet import expanded
from triton_local.plain import Plain
from triton_local.volumes import _memory

DOWNLOADS = {"triton-operator.dev/downloads": "true"}
SIDECAR = {"restartPolicy": "Always"}
EMPTY = {"name": "shared", "emptyDir": {}}
SHARED = {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    found = Cluster(tmp_path, {"texts": {"a": b"of a", "b": b"of b"}})
    yield found
    found.close()


def test_containers_run_one_after_the_other_and_share_a_volume(cluster: Cluster) -> None:
    first = a_container("first", "echo one >/shared/words", **SHARED)
    second = a_container("second", "echo two >>/shared/words", **SHARED)
    main = a_container("main", "cat /shared/words", **SHARED)
    status = cluster.run(an_owner(first, second, main=main, volumes=[EMPTY]))
    assert status["phase"] == "Succeeded"
    assert cluster.log("main") == "one\ntwo\n"
    assert [ended(status, name) for name in ("first", "second", "main")] == [(0, "")] * 3


def test_after_a_container_that_failed_no_other_starts(cluster: Cluster) -> None:
    first = a_container("first", "echo of it >/dev/termination-log; exit 42")
    status = cluster.run(an_owner(first, main=a_container("main", "true")))
    assert status["phase"] == "Failed"
    assert ended(status, "first") == (42, "of it\n")
    assert of(status, "main")["state"] == {"waiting": {"reason": "PodInitializing"}}


def test_a_sidecar_counts_once_its_startup_probe_succeeds_and_ends_last(cluster: Cluster) -> None:
    script = "trap 'echo over; exit 0' TERM; sleep 1; touch /shared/up; while true; do sleep 0.05; done"
    probe = {"exec": {"command": ["sh", "-c", "until test -e /shared/up; do sleep 0.05; done"]}, "timeoutSeconds": 600}
    server = a_container("server", script, startupProbe=probe, **SIDECAR, **SHARED)
    main = a_container("main", "test -e /shared/up && echo up", **SHARED)
    status = cluster.run(an_owner(server, main=main, volumes=[EMPTY]))
    assert status["phase"] == "Succeeded"
    assert cluster.log("main") == "up\n"
    assert cluster.log("server") == "over\n"
    assert of(status, "server")["restartCount"] == 0


def test_a_container_sees_its_files_and_volumes_and_nothing_else(cluster: Cluster) -> None:
    claim = {"name": "claim", "persistentVolumeClaim": {"claimName": "models"}}
    texts = {"name": "texts", "configMap": {"name": "texts", "items": [{"key": "b", "path": "folder/c"}]}}
    (cluster.folder / "claims" / "models" / "ocr").mkdir(parents=True)
    (cluster.folder / "claims" / "models" / "ocr" / "file").write_text("of the claim")
    mounts = [
        {"name": "claim", "mountPath": "/source", "subPath": "ocr", "readOnly": True},
        {"name": "texts", "mountPath": "/texts", "readOnly": True},
    ]
    script = "cat /source/file /texts/folder/c; ls /; id -u; ls /proc | grep -c '^[0-9]'; touch /source/new"
    status = cluster.run(an_owner(main=a_container("main", script, volumeMounts=mounts), volumes=[claim, texts, EMPTY]))
    assert status["phase"] == "Failed"
    words = cluster.log("main")
    assert "of the claimof b" in words
    assert "home" not in words.split()
    assert "var" not in words.split()
    assert "1000" in words.split()
    assert "Read-only file system" in words


@pytest.mark.parametrize(
    "script",
    [
        "touch /usr/planted",
        "touch /planted",
        "mount -t tmpfs none /tmp",
        "cat /proc/1/environ | grep -q SECRET_OF_THE_ENGINE",
        "python3 -c 'import os; os.setuid(0)'",
        "python3 -c 'import os; os.sethostname(\"other\")'",
    ],
)
def test_a_container_changes_nothing_and_gains_nothing(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_ENGINE", "1")
    assert cluster.run(an_owner(main=a_container("main", script)))["phase"] == "Failed"


def test_a_job_reaches_its_own_loopback_and_no_server_of_this_machine(cluster: Cluster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ask = a_container("main", f"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 5)'")
        assert cluster.run(an_owner(main=ask))["phase"] == "Failed"
        assert cluster.run(an_owner(main=ask, stage="measure"))["phase"] == "Failed"
        accepted = threading.Thread(target=server.accept, daemon=True)
        accepted.start()
        assert cluster.run(an_owner(main=ask, labels=DOWNLOADS))["phase"] == "Succeeded"
    program = "import socket; s = socket.create_server(('127.0.0.1', 8000)); socket.create_connection(s.getsockname())"
    own = f'python3 -c "{program}"'
    assert cluster.run(an_owner(main=a_container("main", own)))["phase"] == "Succeeded"


def test_a_server_is_asked_by_jobs_that_measure_and_by_nothing_else_of_this_machine(cluster: Cluster) -> None:
    ports = [{"name": "http", "containerPort": 18302}]
    probe = {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 1}
    serves = a_container(
        "main", "exec python3 -m http.server --bind localhost 18302", ports=ports, readinessProbe=probe
    )
    for _ in range(2):
        cluster.until(cluster.start(an_owner(main=serves, kind="Deployment")), ready=True)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.77.0.1", 18302), 5)
    for number in (1, 2):
        words = f'import socket; socket.create_connection(("127.77.0.{number}", 18302), 5)'
        ask = a_container("main", f"python3 -c '{words}'")
        assert cluster.run(an_owner(main=ask, stage="measure"))["phase"] == "Succeeded"
        assert cluster.run(an_owner(main=ask, stage="profile"))["phase"] == "Failed"
        # The network goes on after the pod that was its first.
        cluster.pods[0].end()
        cluster.pods[0].join(60)


@pytest.mark.parametrize(
    "script",
    [
        "truncate -s 1T /dev/termination-log; exit 1",
        "chmod 0 /dev/termination-log; exit 1",
        "python3 -c 'import os; os.ftruncate(1, 2**40)'; exit 1",
    ],
)
def test_last_words_without_an_end_or_a_reader_cost_the_engine_nothing(
    cluster: Cluster, attack: Attack, script: str
) -> None:
    main = a_container("main", script, terminationMessagePolicy="FallbackToLogsOnError")
    code, words = ended(cluster.run(an_owner(main=main)), "main")
    attack("user code", f"the engine, by last words: {script}", f"exit code {code}, {len(words)} characters")
    assert code == 1
    assert len(words) <= 4096


def test_a_link_in_a_claim_leads_nowhere_else(cluster: Cluster, attack: Attack) -> None:
    claim = cluster.folder / "claims" / "models"
    claim.mkdir(parents=True)
    (cluster.folder / "home").mkdir()
    (claim / "ocr").symlink_to(cluster.folder / "home")
    mount = {"name": "claim", "mountPath": "/source", "subPath": "ocr", "readOnly": True}
    main = a_container("main", "true", volumeMounts=[mount])
    volume = {"name": "claim", "persistentVolumeClaim": {"claimName": "models"}}
    pod = cluster.start(an_owner(main=main, volumes=[volume]))
    waiting = cluster.until(pod, imageID="", ready=False)
    while "leads out" not in str(waiting):
        waiting = cluster.until(pod, imageID="")
    attack(
        "a folder of models", "a link to the home folder, as the source's path", waiting["state"]["waiting"]["message"]
    )


def test_a_config_map_s_keys_are_names_of_files_in_its_folder(tmp_path: Path, attack: Attack) -> None:
    cluster = Cluster(tmp_path, {"texts": {"../../../../../planted": b"x"}})
    volume = {"name": "v", "configMap": {"name": "texts"}}
    mounted = a_container("main", "true", volumeMounts=[{"name": "v", "mountPath": "/v"}])
    cluster.start(an_owner(main=mounted, volumes=[volume]))
    said = cluster.event()["message"]
    cluster.close()
    attack("an object's file", "a ConfigMap's key that is a path to a file of the user", said)
    assert "leads out" in said
    assert not list(tmp_path.rglob("planted"))


def test_other_users_of_the_machine_reach_no_volume(cluster: Cluster, attack: Attack) -> None:
    memory = {"name": "memory", "emptyDir": {"medium": "Memory"}}
    mounts = [{"name": "shared", "mountPath": "/shared"}, {"name": "memory", "mountPath": "/dev/shm"}]
    main = a_container("main", "sleep 60", volumeMounts=mounts)
    pod = cluster.start(an_owner(main=main, volumes=[EMPTY, memory]))
    cluster.until(pod, started=True)
    folders = [cluster.folder / "pods" / pod.name, Path(f"/dev/shm/triton-local-{pod.name}")]
    modes = [f"{each.stat().st_mode & 0o777:o}" for each in folders]
    attack("another user of the machine", "volumes on disk and in /dev/shm", f"modes {', '.join(modes)}")
    assert modes == ["700", "700"]


def test_an_image_s_link_makes_nothing_outside_of_it(tmp_path: Path, attack: Attack) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    image = replace(SYSTEM, links={**SYSTEM.links, "/source": str(outside)})
    cluster = Cluster(tmp_path, image=image)
    mount = {"name": "shared", "mountPath": "/source/of/it"}
    status = cluster.run(
        an_owner(main=a_container("main", f"ls -d {outside}/of/it", volumeMounts=[mount]), volumes=[EMPTY])
    )
    cluster.close()
    attack("an image's archive", "a link in the place of a mount", "leads into the container's own root")
    assert status["phase"] == "Succeeded"
    assert list(outside.iterdir()) == []


def test_what_is_mounted_below_a_read_only_folder_is_read_only_too(tmp_path: Path) -> None:
    """A disk below a claim's folder, as a container of this machine's root has one."""
    script = "import sys; from triton_local import box; box.become(1000, box.NEW_NS)\n"
    folder = tmp_path / "folder"
    (folder / "below").mkdir(parents=True)
    script += (
        f"box.mount(None, '/', flags=box.REC | box.PRIVATE); box.mount('tmpfs', '{folder}/below', 'tmpfs')\n"
        f"box.bind('{folder}', '{tmp_path}', 'shown', box.RDONLY); open('{tmp_path}/shown/below/planted', 'w')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "Read-only file system" in done.stderr, done.stderr


def test_last_words_are_cut_as_a_kubelet_cuts_them_and_come_from_the_log_of_one_that_failed(cluster: Cluster) -> None:
    long = a_container("long", "head -c 9000 /dev/zero | tr '\\0' a >/dev/termination-log")
    silent = a_container("main", "seq 100000 100900; exit 3", terminationMessagePolicy="FallbackToLogsOnError")
    status = cluster.run(an_owner(long, main=silent))
    assert ended(status, "long") == (0, "a" * 4096)
    code, words = ended(status, "main")
    assert code == 3
    assert words.splitlines() == [str(each) for each in range(100821, 100901)]


def test_a_program_that_is_not_there_and_one_that_dies_by_a_signal(cluster: Cluster) -> None:
    absent = {"name": "main", "image": "system", "command": ["/usr/bin/absent"]}
    terminated = of(cluster.run(an_owner(main=absent)), "main")["state"]["terminated"]
    assert (terminated["exitCode"], terminated["reason"]) == (128, "StartError")
    assert "absent" in terminated["message"]
    crash = a_container("main", "exec python3 -c 'import ctypes; ctypes.string_at(0)'")
    assert of(cluster.run(an_owner(main=crash)), "main")["state"]["terminated"]["exitCode"] == 139


def test_a_pod_without_volumes_runs_without_namespaces(cluster: Cluster) -> None:
    cluster.node = replace(cluster.node, runtime=Plain())
    status = cluster.run(an_owner(main=a_container("main", "echo words")))
    assert (status["phase"], cluster.log("main")) == ("Succeeded", "words\n")


def test_the_machine_s_gpu_is_seen_by_those_that_ask_for_it(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/usr/local/nvidia/lib64")
    cluster.node = replace(cluster.node, runtime=Plain())
    script = 'echo "${CUDA_VISIBLE_DEVICES-unset} $CUDA_DEVICE_ORDER $LD_LIBRARY_PATH"'
    asks = a_container("run", script, resources={"limits": {"cpu": "1", "nvidia.com/gpu": "1"}})
    status = cluster.run(an_owner(asks, main=a_container("main", script, resources={"limits": {"cpu": "1"}})))
    assert status["phase"] == "Succeeded"
    assert cluster.log("run") == "0 PCI_BUS_ID /usr/local/nvidia/lib64\n"
    assert cluster.log("main").split() == []


def test_a_link_in_a_volume_leads_nowhere_else(cluster: Cluster) -> None:
    (cluster.folder / "claims" / "models").mkdir(parents=True)
    (cluster.folder / "secret").mkdir()
    (cluster.folder / "claims" / "models" / "link").symlink_to(cluster.folder / "secret")
    claim = {"name": "claim", "persistentVolumeClaim": {"claimName": "models"}}
    mounts = [{"name": "claim", "mountPath": "/source", "subPath": "link"}]
    pod = cluster.start(an_owner(main=a_container("main", "true", volumeMounts=mounts), volumes=[claim]))
    waiting = cluster.until(pod, imageID="", ready=False)
    while "CreateContainerConfigError" not in str(waiting):
        waiting = cluster.until(pod, imageID="")
    assert "leads out of it" in waiting["state"]["waiting"]["message"]


@pytest.mark.parametrize(
    ("word", "becomes"),
    [
        ("$(A)", "a"),
        ("x$(A)y$(A)", "xaya"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$a"),
        ("$(B) $(A $ $( $x a$$b", "$(B) $(A $ $( $x a$b"),
    ],
)
def test_variables_are_replaced_in_words(word: str, becomes: str) -> None:
    assert expanded(word, {"A": "a"}) == becomes


def test_a_value_is_not_expanded_again(cluster: Cluster) -> None:
    given = [{"name": "A", "value": "$$(B)"}, {"name": "B", "value": "b"}, {"name": "C", "value": "$(B)$(D)"}]
    cluster.run(an_owner(main=a_container("main", 'echo "$A $C $0"', args=["$(A)"], env=given)))
    assert cluster.log("main") == "$(B) b$(D) $(B)\n"


def test_a_pod_ends_at_its_deadline(cluster: Cluster) -> None:
    """The first process of a container ends by a signal only if it has a handler for it."""
    main = a_container("main", "exec sleep 600")
    status = cluster.run(an_owner(main=main, activeDeadlineSeconds=5, terminationGracePeriodSeconds=1))
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert of(status, "main")["state"]["terminated"]["exitCode"] == 137


@pytest.mark.parametrize(
    "volume", [{"configMap": {"name": "absent"}}, {"secret": {"secretName": "absent"}}, {"hostPath": {"path": "/"}}]
)
def test_a_volume_that_is_not_there_is_told_by_an_event_and_waited_for(
    cluster: Cluster, volume: dict[str, object]
) -> None:
    mounted = a_container("main", "true", volumeMounts=[{"name": "v", "mountPath": "/v"}])
    pod = cluster.start(an_owner(main=mounted, volumes=[{"name": "v", **volume}]))
    event = cluster.event()
    assert (event["reason"], event["involvedObject"]["name"]) == ("FailedMount", pod.name)
    assert "absent" in event["message"] or "hostPath" in event["message"]
    assert cluster.status(pod)["phase"] == "Pending"


def test_an_image_that_is_not_there_is_told_by_its_container(cluster: Cluster) -> None:
    main = a_container("main", "true") | {"image": "absent"}
    pod = cluster.start(an_owner(main=main))
    waiting = cluster.until(pod, imageID="", ready=False)
    while "ErrImagePull" not in str(waiting):
        waiting = cluster.until(pod, imageID="")
    assert "absent" in waiting["state"]["waiting"]["message"]


def test_two_servers_at_one_port_are_told_apart(cluster: Cluster) -> None:
    """Each is at home at its own address, so that no probe of one is answered by the other."""
    ports = [{"name": "http", "containerPort": 18301}]
    probe = {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 1}
    script = (
        "import http.server as h, socket\n"
        "h.test(h.SimpleHTTPRequestHandler, port=18301, bind=socket.gethostbyname('localhost'))"
    )
    serves = {"command": ["python3", "-c", script]}
    first = a_container("main", "", ports=ports, readinessProbe=probe) | serves
    cluster.until(cluster.start(an_owner(main=first, kind="Deployment")), ready=True)
    other = cluster.start(
        an_owner(main=a_container("main", "sleep 60", ports=ports, readinessProbe=probe), kind="Deployment")
    )
    cluster.until(other, started=True)
    time.sleep(2)
    assert cluster.until(other, started=True)["ready"] is False


def test_a_server_is_ready_while_its_probe_says_so_and_starts_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("triton_local.kubelet.FIRST_RESTART_SECONDS", 0.1)
    ports = [{"name": "http", "containerPort": 18300}]
    probe = {"httpGet": {"path": "/up", "port": "http"}, "periodSeconds": 1, "failureThreshold": 1}
    script = "cd /shared; touch up; exec python3 -m http.server --bind 127.77.0.1 18300"
    main = a_container("main", script, ports=ports, readinessProbe=probe, **SHARED)
    pod = cluster.start(an_owner(main=main, kind="Deployment", volumes=[EMPTY]))
    cluster.until(pod, ready=True)
    shared = cluster.folder / "pods" / "a-pod-0" / "volumes" / "shared" / "up"
    shared.unlink()
    cluster.until(pod, ready=False, restartCount=0)
    shared.touch()
    cluster.until(pod, ready=True)
    pod.end()
    pod.join(60)
    assert cluster.status(pod)["phase"] == "Succeeded"


ENDLESS = """
import socket, time
server = socket.create_server(("127.77.0.1", 8000))
while True:
    asking, _ = server.accept()
    asking.recv(4096)
    print("ASKED", flush=True)
    try:
        while True:
            asking.sendall(b"HTTP/1.1 100 Continue\\r\\n\\r\\n")
            time.sleep(0.3)
    except OSError as error:
        print(error, flush=True)
"""


def test_a_probe_that_is_answered_for_ever_ends(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    main = a_container("main", "") | {
        "command": ["python3", "-c", ENDLESS],
        "ports": [{"name": "http", "containerPort": 8000}],
        "readinessProbe": {"httpGet": {"path": "/v2/health/ready", "port": "http"}, "periodSeconds": 2},
    }
    pod = cluster.start(an_owner(main=main, kind="Deployment", stage="serve", terminationGracePeriodSeconds=1))
    end = time.monotonic() + PATIENCE_SECONDS
    while "ASKED" not in cluster.log("main") and time.monotonic() < end:
        time.sleep(0.1)
    pod.end()
    pod.join(PATIENCE_SECONDS)
    assert not pod.is_alive()


@pytest.mark.parametrize(
    "filling", ["for i in $(seq 1500); do mkdir d; cd d; done", "mkdir d; touch d/data; chmod 0 d", "ln -s / d"]
)
def test_nothing_of_a_hostile_program_stays_in_memory(tmp_path: Path, filling: str) -> None:
    """A folder deeper than Python recurses, one of mode 0, and a link."""
    cluster = Cluster(tmp_path)
    words = {"volumeMounts": [{"name": "shm", "mountPath": "/scratch"}]}
    volumes = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
    main = a_container("main", f"cd /scratch; {filling}; echo DONE", **words)
    cluster.run(an_owner(main=main, volumes=volumes))
    assert "DONE" in cluster.log("main")
    assert not _memory(cluster.pods[0].name).exists()
