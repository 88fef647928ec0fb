"""The installation's settings: what the environment says, and what it may not say."""

import pytest

from triton_operator.settings import Resources, Settings, SettingsError

IMAGES = {"CONVERTER_IMAGE": "c:1", "SERVER_IMAGE": "s:1", "CONVERTER_TENSORFLOW_IMAGE": "t:1"}


def test_the_default_resources_are_json() -> None:
    text = '{"requests": {"memory": "256Mi"}, "limits": {"memory": "16Gi", "ephemeral-storage": "2Gi"}}'
    settings = Settings.from_environment(IMAGES | {"JOB_RESOURCES": text})
    assert settings.job_resources == Resources(
        requests={"memory": "256Mi"}, limits={"memory": "16Gi", "ephemeral-storage": "2Gi"}
    )
    assert settings.server_resources == Resources()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("16Gi", "it takes JSON"),
        ("[]", "it takes JSON"),
        ('{"limit": {"memory": "1Gi"}}', "limit"),
        ('{"limits": {"memory": "16GB"}}', "memory: '16GB'"),
        ('{"limits": {"memory": 1}}', "memory: 1"),
        ('{"limits": {"cpu": "2"}}', "cpu"),
    ],
)
def test_default_resources_that_no_pod_could_have_are_refused(text: str, words: str) -> None:
    with pytest.raises(SettingsError, match="SERVER_RESOURCES") as error:
        Settings.from_environment(IMAGES | {"SERVER_RESOURCES": text})
    assert words in str(error.value)
