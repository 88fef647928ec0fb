"""Where the source comes from makes no difference; suspended, nothing is done with it."""

from tests.e2e.configmap import FromConfigMap


def test_a_suspended_object_starts_no_job(from_configmap: FromConfigMap) -> None:
    assert from_configmap.jobs_while_suspended == ()
    assert from_configmap.suspended.says("SourceResolved", "Suspended"), from_configmap.suspended.summary()


def test_a_configmap_serves_as_well_as_a_claim(from_configmap: FromConfigMap) -> None:
    assert from_configmap.ready.status["source"]["digest"] == f"sha256:{from_configmap.digest}"
    assert from_configmap.ready.status["serving"]["candidate"] == "onnx-fp32"
