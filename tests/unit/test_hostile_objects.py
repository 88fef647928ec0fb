"""What strangers make with the operator's labels costs little, and is never taken for an object's own."""

import json
import random
import subprocess
import sys
import tracemalloc
from typing import Any

import pytest

from triton_operator.api.triton_deployment import InvalidSpecError, parse
from triton_operator.kube.kinds import CONFIG_MAP, DEPLOYMENT, EVENT, JOB, NETWORK_POLICY, POD, TRITON_DEPLOYMENT
from triton_operator.runtime import store as store_module
from triton_operator.runtime.store import Key, Store
from triton_operator.runtime.store_facts import memory_of

LABELS = {"app.kubernetes.io/managed-by": "triton-operator", "triton-operator.dev/deployment": "digits"}
KEY = Key("victim", "digits")


def a_body(name: str, version: int = 5, **others: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "victim", "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": metadata | {"labels": LABELS}, **others}


def an_event(namespace: str, message: str, version: int) -> dict[str, Any]:
    metadata = {"name": "real", "namespace": namespace, "uid": namespace, "resourceVersion": str(version)}
    return {"metadata": metadata, "involvedObject": {"uid": "uid-job"}, "message": message}


def kept(store: Store) -> list[str]:
    return [each["metadata"]["name"] for each in store.children(KEY)]


def test_an_event_of_another_namespace_is_not_the_objects() -> None:
    store = Store()
    store.put(JOB, a_body("job"))
    assert store.put(EVENT, an_event("victim", "truth", 6)) == KEY
    assert store.put(EVENT, an_event("attacker", "lies", 7)) is None
    assert [each["message"] for each in store.children(KEY) if "message" in each] == ["truth"]


def test_of_config_maps_only_the_results_are_kept() -> None:
    store = Store()
    assert store.put(CONFIG_MAP, a_body("other", data={"a": "b"})) is None
    assert store.put(CONFIG_MAP, a_body("digits-results", data={"a": "b"})) == KEY
    assert kept(store) == ["digits-results"]


def test_an_object_that_became_too_long_is_forgotten() -> None:
    store = Store()
    store.put(JOB, a_body("job"))
    assert store.put(JOB, a_body("job", 6, spec={"a": "b" * 600_000})) == KEY
    assert kept(store) == []


def test_a_long_object_of_a_user_is_known_so_that_its_conditions_can_say_so() -> None:
    store = Store()
    body = a_body("digits", spec={"a": "b" * 600_000, "serving": {"replicas": 2}})
    assert store.put(TRITON_DEPLOYMENT, body) == KEY
    known = store.owner(KEY) or {}
    assert len(json.dumps(known)) < 1_000
    with pytest.raises(InvalidSpecError, match=r"^the spec has 600017 bytes as JSON, more than 65536: .*in spec\.a$"):
        parse(known)


def noise(number: int) -> str:
    return random.Random(number).randbytes(200_000).hex()


@pytest.mark.parametrize("is_there", [True, False], ids=["of one object", "of none"])
def test_what_is_made_for_one_object_or_for_none_fills_no_memory(
    is_there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "MOST_BYTES", 1_000_000)
    store = Store()
    if is_there:
        store.put(TRITON_DEPLOYMENT, a_body("digits"))
    else:
        store.put(TRITON_DEPLOYMENT, a_body("other"))
    for number in range(20):
        body = a_body(f"job-{number}", 10 + number, spec={"a": noise(number)})
        owner = "digits" if is_there else f"gone-{number}"
        body["metadata"]["labels"] = LABELS | {"triton-operator.dev/deployment": owner}
        store.put(JOB, body)
    sizes = [len(known.packed) for family in store._families.values() for known in family.members.values()]
    assert 800_000 < sum(sizes) < 1_001_000
    # What was left out is there once there is room, though it has not changed.
    for number in range(19):
        store.remove(JOB, a_body(f"job-{number}", 50))
    assert store.put(JOB, a_body("job-19", 29, spec={"a": noise(19)})) is not None


@pytest.mark.parametrize("is_new", [True, False])
def test_pods_leave_room_for_the_results_and_the_servers(is_new: bool) -> None:
    store, grown = Store(), {"a": "b" * 400_000}
    store.put(TRITON_DEPLOYMENT, a_body("digits"))
    if not is_new:
        store.put(CONFIG_MAP, a_body("digits-results", data={"a": "b"}))
        store.put(DEPLOYMENT, a_body("digits-0"))
    for number in range(200):
        store.put(POD, a_body(f"pod-{number}", 10 + number, spec=grown))
    assert len(kept(store)) < 200, "the pods find no room"
    store.put(CONFIG_MAP, a_body("digits-results", 500, data=grown))
    store.put(DEPLOYMENT, a_body("digits-0", 501, spec=grown))
    found = {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in store.children(KEY)}
    assert (found.get("digits-results"), found.get("digits-0")) == ("500", "501")


def test_what_is_known_and_grows_without_room_is_not_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "MOST_BYTES", 150_000)
    store = Store()
    store.put(TRITON_DEPLOYMENT, a_body("digits"))
    store.put(DEPLOYMENT, a_body("digits-0", 6))
    assert store.put(DEPLOYMENT, a_body("digits-0", 7, spec={"a": noise(0)})) is None
    assert kept(store) == ["digits-0"]
    assert store.put(DEPLOYMENT, a_body("digits-0", 8)) == KEY


def test_what_is_short_only_while_it_is_compressed_fills_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "MOST_UNPACKED", 20_000_000)
    store = Store()
    store.put(TRITON_DEPLOYMENT, a_body("digits"))
    spec = {"ingress": [{"from": [{"ipBlock": {"cidr": "1.1.1.1/32"}}] * 13_000}]}
    for number in range(20):
        store.put(NETWORK_POLICY, a_body(f"np-{number}", 10 + number, spec=spec))
    assert store._families[KEY].packed < 100_000, "compressed, all of them would be short"
    tracemalloc.start()
    children = store.children(KEY)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert children
    assert taken < 20_000_000
    # What was left out is there once there is room.
    assert store.put(NETWORK_POLICY, a_body("np-0", 40)) == KEY
    assert store.put(NETWORK_POLICY, a_body("np-19", 29, spec=spec)) == KEY


@pytest.mark.parametrize(
    "spec", [{"a": [{}] * 10_000}, {"a": {f"k{n}": "v" for n in range(10_000)}}, {"a": "b" * 10**5}]
)
def test_what_a_body_takes_is_not_taken_for_less(spec: Any) -> None:
    text = json.dumps(spec)
    tracemalloc.start()
    parsed = json.loads(text)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert parsed == spec
    assert taken < memory_of(text)


def test_room_comes_back() -> None:
    store = Store()
    for number in range(3):
        store.put(JOB, a_body("job", 10 + number, spec={"a": noise(number)}))
    store.put(TRITON_DEPLOYMENT, a_body("digits", 20))
    assert store._strays == 0
    store.remove(TRITON_DEPLOYMENT, a_body("digits", 21))
    assert store._strays == sum(each.packed for each in store._families.values()) > 200_000
    store.remove(JOB, a_body("job", 22))
    assert (store._strays, store._families) == (0, {})


PROGRAM = """
import json, sys
from triton_operator.kube.cluster import Cluster
from triton_operator.kube.kinds import CONFIG_MAP
from triton_operator.runtime.store import Key, Store

LABELS = json.loads(sys.argv[1])
COUNT = 40

def text(number):
    name = "digits-results" if number == 3 else f"cm-{number}"
    metadata = {"name": name, "namespace": "t", "uid": f"u{number}", "resourceVersion": str(number + 2)}
    keys = range(number * 10**6, number * 10**6 + 85_000)
    return json.dumps({"metadata": metadata | {"labels": LABELS}, "data": {f"{key:x}": "" for key in keys}})

class Pages:
    def request(self, method, path, query, *rest):
        begin, limit = int(query.get("continue", 0)), int(query["limit"])
        found = range(begin, min(COUNT, begin + limit))
        metadata = {"resourceVersion": "99", "continue": str(found.stop) if found.stop < COUNT else ""}
        return json.loads(f'{{"metadata":{json.dumps(metadata)},"items":[{",".join(map(text, found))}]}}')

store = Store()
store.replace(CONFIG_MAP, None, *Cluster(Pages()).list_all(CONFIG_MAP, None))
children = store.children(Key("t", "digits"))
assert [each["metadata"]["name"] for each in children] == ["digits-results"]
print(int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) // 1024)
"""


def test_many_long_config_maps_of_a_stranger_fit_into_the_charts_memory() -> None:
    command = [sys.executable, "-c", PROGRAM, json.dumps(LABELS)]
    peak = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert peak < 400, f"{peak} MiB; the chart's limit is 512"


LONG_PAGES = """
import json, sys, threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit
from kubernetes import client
from triton_operator.kube.cluster import Cluster
from triton_operator.kube.connection import Connection
from triton_operator.kube.kinds import NETWORK_POLICY
from triton_operator.runtime.store import Key, Store

LABELS = json.loads(sys.argv[1])
COUNT = 28
PEERS = [{"ipBlock": {"cidr": f"10.{number >> 8}.{number & 255}.0/32"}} for number in range(38_000)]
SPEC = json.dumps({"ingress": [{"from": PEERS}]}, separators=(",", ":"))

def text(number):
    metadata = {"name": f"np-{number}", "namespace": "t", "uid": f"u{number}", "resourceVersion": str(number + 2)}
    spec = "{}" if number % 4 == 3 else SPEC
    return f'{{"metadata":{json.dumps(metadata | {"labels": LABELS})},"spec":{spec}}}'

class ApiServer(BaseHTTPRequestHandler):
    def do_GET(self):
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        begin, limit = int(query.get("continue", 0)), int(query["limit"])
        found = range(begin, min(COUNT, begin + limit))
        self.send_response(200)
        self.end_headers()
        token = str(found.stop) if found.stop < COUNT else ""
        try:
            self.wfile.write(f'{{"metadata":{{"resourceVersion":"99","continue":"{token}"}},"items":['.encode())
            for number in found:
                self.wfile.write(("," * (number > begin) + text(number)).encode())
            self.wfile.write(b"]}")
        except OSError:
            pass

    def log_message(self, *_):
        pass

server = HTTPServer(("127.0.0.1", 0), ApiServer)
threading.Thread(target=server.serve_forever, daemon=True).start()
settings = client.Configuration(host=f"http://127.0.0.1:{server.server_port}")
store = Store()
store.replace(NETWORK_POLICY, None, *Cluster(Connection(settings, "test", 5.0)).list_all(NETWORK_POLICY, None))
assert len(store.children(Key("t", "digits"))) == COUNT / 4, "what is short is known"
print(int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) // 1024)
"""


def test_many_long_objects_of_a_stranger_fit_into_the_charts_memory() -> None:
    command = [sys.executable, "-c", LONG_PAGES, json.dumps(LABELS)]
    peak = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert peak < 250, f"{peak} MiB; the chart's limit is 512"


@pytest.mark.parametrize("namespace", ["victim", "attacker"])
def test_an_event_about_nothing_that_is_known_is_not_kept(namespace: str) -> None:
    store = Store()
    assert store.put(EVENT, an_event(namespace, "words", 6)) is None
