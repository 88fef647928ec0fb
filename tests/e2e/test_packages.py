"""Packages that a model's code imports and the image lacks, from an index that asks for a password."""

import json

from tests.e2e.requiring import PASSWORD, Required


def test_the_model_is_served_without_an_image_of_its_own(required: Required) -> None:
    assert required.ready.status["serving"]["candidate"] == "onnx-fp32", required.ready.summary()


def test_only_what_the_image_lacks_is_installed(required: Required) -> None:
    assert required.installed == ("compass-1.1.dist-info", "compass.py", "surveyor-1.2.dist-info", "surveyor.py")
    assert "installed: compass==1.1, surveyor==1.2" in required.log


def test_the_password_is_only_in_the_secret(required: Required) -> None:
    assert PASSWORD not in required.log
    assert PASSWORD not in json.dumps([required.job, required.ready.status])
