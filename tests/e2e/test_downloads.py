"""Files from everywhere serve like files of a claim; the Jobs that fetch them reach a proxy alone."""

from tests.converters.hub_server import COMMIT
from tests.e2e.applied import stage_of
from tests.e2e.downloading import NEWER_COMMIT, Downloaded


def test_what_came_serves(downloaded: Downloaded) -> None:
    for state in (downloaded.first, downloaded.second):
        assert state.status["serving"]["candidate"] == "onnx-fp32", state.summary()
        assert state.condition("Verified")["status"] == "True", state.summary()


def test_the_versions_are_recorded(downloaded: Downloaded) -> None:
    assert downloaded.first.status["source"]["downloadedVersion"] == downloaded.digest
    assert downloaded.second.status["source"]["downloadedVersion"] == COMMIT


def test_every_server_was_reached_through_the_proxy(downloaded: Downloaded) -> None:
    # Somebody else's Job may have asked for other hosts by then.
    assert downloaded.servers <= downloaded.connected


def test_the_same_files_from_elsewhere_are_the_same_revision(downloaded: Downloaded) -> None:
    assert downloaded.first.status["source"]["digest"] == downloaded.second.status["source"]["digest"]
    assert downloaded.first.revision == downloaded.second.revision


def test_who_follows_the_same_version_computes_nothing(downloaded: Downloaded) -> None:
    for before, after in zip((downloaded.first, downloaded.second), downloaded.followed, strict=True):
        assert after.revision == before.revision, after.summary()
        assert after.holds("Ready"), after.summary()


def test_a_look_with_credentials_through_the_proxy_finds_a_newer_version(downloaded: Downloaded) -> None:
    for state, version in zip(downloaded.newer, (downloaded.newer_digest, NEWER_COMMIT), strict=True):
        assert state.status["source"]["latest"]["version"] == version, state.summary()
        assert state.status["lastHandledRequestAt"] == "once-more"
        assert state.holds("Ready"), state.summary()


def test_only_source_jobs_mount_a_secret_and_only_users_code_reads_the_data(downloaded: Downloaded) -> None:
    for job in (*downloaded.first_jobs, *downloaded.second_jobs):
        pod = job["spec"]["template"]["spec"]
        secrets = [each for each in pod["volumes"] if "secret" in each]
        assert not secrets or stage_of(job) == "source"
        containers = [*pod.get("initContainers", []), *pod["containers"]]
        reading = {each["name"] for each in containers if any(m["mountPath"] == "/data" for m in each["volumeMounts"])}
        assert reading <= {"run"}
