"""Objects keep their images, so what a Job of an older image fails for is read as it says it."""

import pytest

from triton_converters.contract.envelope import Outcome

OLD = """
ArgumentsInvalid BatchingUnsupported CheckpointInvalid ClaimNotWritable ConversionFailed ConversionUnsupported
Crashed DataloaderEmpty DataloaderInvalid DigestMismatch EntrypointInvalid EntrypointMissing FormatNotFound
FrameworkFailed IndexAccessDenied IndexUnreachable InferenceFailed InputsNotGenerated InvalidSpec LabelsMissing
MeasurementFailed MetricFailed ModelConfigMismatch ModelConfigRefused ModelInTrainingMode ModelLoadFailed
NamingUnsupported OutOfMemory OutputsDiffer OutputsNotFinite PackageConflict PackageHashMismatch PackageNotFound
PickleRefused PrecisionMismatch ReferenceConstant ReferenceNotFinite ReferenceNotReproducible RepositoryDamaged
RepositoryUnknown RequirementsInvalid RequirementsMissing ResultMissing ServerCrashed ServerUnreachable
SignatureMismatch SourceAccessDenied SourceCertificateInvalid SourceGated SourceInvalid SourceNotFound
SourceTruncated SourceUnreachable StorageFull TensorRtUnavailable TensorRtVersionMismatch UserCodeExited
UserCodeFailed WeightsWithoutModel
"""
"""The reasons with which containers of 2bb6dae5 end: those that its ``converters`` name outside the contract."""


@pytest.mark.parametrize("reason", OLD.split())
def test_a_failure_of_an_older_image_keeps_its_reason(reason: str) -> None:
    text = f'{{"stage":"convert","key":"0123456789abcdef","reason":"{reason}","message":"m"}}'
    assert Outcome.from_json(text).reason == reason
