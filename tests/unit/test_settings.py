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


def test_what_the_installation_demands_and_allows() -> None:
    given = {
        "USER_CODE_RUNTIME_CLASS": "gvisor",
        "USER_CODE_HOST_USERS": "false",
        "ALLOWED_IMAGES": "registry.example/team/, registry.example/nvidia/",
        "ALLOWED_CLAIMS": "team-*",
    }
    settings = Settings.from_environment(IMAGES | given)
    assert (settings.user_code_runtime_class, settings.user_code_host_users) == ("gvisor", False)
    assert settings.allowed_images == ("registry.example/team/", "registry.example/nvidia/")
    assert settings.allowed_claims == ("team-*",)
    assert Settings.from_environment(IMAGES).user_code_host_users is None
    with pytest.raises(SettingsError, match="USER_CODE_HOST_USERS"):
        Settings.from_environment(IMAGES | {"USER_CODE_HOST_USERS": "no"})


def test_no_more_server_arguments_than_a_status_holds() -> None:
    most = " ".join(f"--a{number}=1" for number in range(32))
    assert len(Settings.from_environment(IMAGES | {"SERVER_ARGUMENTS": most}).server_arguments) == 32
    with pytest.raises(SettingsError, match="SERVER_ARGUMENTS has 33 arguments; it takes at most 32"):
        Settings.from_environment(IMAGES | {"SERVER_ARGUMENTS": f"{most} --one-more"})


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
