"""Stage ``source``: publish the user's files on the claim under their digest (``claim_store.digest``).

They are copied from a mounted volume, or downloaded to the claim first (``fetch``). Names that begin with ``..``
belong to the kubelet in a mounted ConfigMap. See docs/source.md.
"""

import importlib
import os
from collections.abc import Mapping
from pathlib import Path

from triton_converters.claim_store.digest import SourceFile, digest_of, hashes_of, is_intact, sha256_of
from triton_converters.claim_store.publish import (
    link_or_copy,
    publish_directory,
    resumable_directory,
    temporary_directory,
)
from triton_converters.contract import layout, uris
from triton_converters.contract.conversion_requests import SourceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import FORMATS
from triton_converters.contract.model_repository import CONFIG
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import RepositoryModel, SourceResult
from triton_converters.contract.uris import Uri
from triton_converters.fetch import credentials, mounted
from triton_converters.fetch.remote import FILES, Fetched, Remote, wanted
from triton_converters.found import repository
from triton_converters.found.batches import has_batch_dimension
from triton_converters.found.formats import found_format
from triton_converters.model_config import given

SERVICE_ACCOUNT = "SOURCE_SERVICE_ACCOUNT"
"""Environment variable with the name of the ServiceAccount by which a cloud knows the pod."""


def run(request: SourceRequest) -> SourceResult:
    """Publish ``sources/<digest>/`` unless it exists with just that content.

    Raises StageError: SourceNotFound, SourceInvalid (a link that leaves the source, a special or unreadable file),
    DigestMismatch, what ``_model`` raises, and for a download what ``fetch`` raises. OSError: the claim is full.
    """
    try:
        uri = uris.split(request.uri)
    except ValueError as error:
        raise StageError(Reason.SOURCE_INVALID, f"spec.source.uri: {error}") from error
    return _downloaded(request, uri) if uri.is_remote else _mounted(request)


def _mounted(request: SourceRequest) -> SourceResult:
    root = mounted.locate(request.path, request.uri)
    found = mounted.files(root, Path(request.path).name)
    files = [file for file in found if wanted(file.name, request.include)]
    if not files:
        named = " that spec.source.include names" if request.include else ""
        raise StageError(Reason.SOURCE_NOT_FOUND, f"{request.uri} holds no file{named}")
    hashes = {file.name: mounted.sha256_of(file) for file in files}
    digest = digest_of(hashes, root.is_file())
    _expect(request, digest)
    target = layout.source_directory(digest)
    # User code of an earlier Job may have made or changed the directory.
    if not is_intact(target):
        _copy(files, hashes, target)
    return _result(request, digest, files)


def _copy(files: list[SourceFile], hashes: Mapping[str, str], target: Path) -> None:
    """Copy the files and publish the copies if they have these digests."""
    with temporary_directory(target) as directory:
        for file in files:
            mounted.copy(file, directory / file.name)
        if {file.name: sha256_of(SourceFile(file.name, directory / file.name)) for file in files} != hashes:
            raise mounted.changed()
        publish_directory(directory, target, is_intact)


def _downloaded(request: SourceRequest, uri: Uri) -> SourceResult:
    """Download the files to the claim, next to where they are published, so that they are only renamed."""
    name = uri.path.rpartition("/")[2]
    if request.sha256 and is_intact(layout.source_directory(request.sha256)):
        print(f"{request.uri} is on the claim already, with the expected SHA-256", flush=True)
        return _known(request, request.sha256, name)
    with resumable_directory(layout.source_directory(request.key).parent, request.key) as place:
        scheme = importlib.import_module(f"triton_converters.fetch.{uri.scheme}")
        account = os.environ.get(SERVICE_ACCOUNT, "")
        remote = Remote(uri, credentials.read(), request.revision, request.include, account)
        fetched: Fetched = scheme.fetch(remote, place)
        if fetched.published:
            _expect(request, fetched.published)
            print(f"{request.uri} is on the claim already: nothing was downloaded", flush=True)
            return _known(request, fetched.published, name, fetched.resolved)
        # All that lies there is published, so all of it is digested.
        hashes = hashes_of(place / FILES)
        _check(request, fetched, hashes)
        digest = digest_of(hashes, fetched.single)
        target = layout.source_directory(digest)
        if not is_intact(target):
            for each in hashes:
                (place / FILES / each).chmod(0o444)
            publish_directory(place / FILES, target, is_intact)
        return _result(request, digest, [SourceFile(each, target / each) for each in hashes], fetched.resolved)


def _known(request: SourceRequest, digest: str, name: str, resolved: str = "") -> SourceResult:
    """Return the result for a source that is published; ``name``: what the file is called if it is a single one."""
    files = list(mounted.files(layout.source_directory(digest), ""))
    single = sha256_of(files[0]) == digest
    return _result(request, digest, [SourceFile(name, files[0].path)] if single else files, resolved)


def _check(request: SourceRequest, fetched: Fetched, hashes: Mapping[str, str]) -> None:
    """Raise StageError unless the files that came, by their SHA-256, are those that the server and the spec name."""
    if differing := fetched.files ^ set(hashes):
        message = (
            f"{min(differing)} of {request.uri} is there but not listed, or listed but not there; give the files names"
            " that the claim's file system tells apart"
        )
        raise StageError(Reason.SOURCE_INVALID, message)
    for name, sha256 in fetched.hashes.items():
        if hashes[name] != sha256:
            message = (
                f"{name} of {request.uri} has not the SHA-256 that the server tells; type: kubectl triton retry NAME"
            )
            raise StageError(Reason.DIGEST_MISMATCH, message)
    _expect(request, digest_of(hashes, fetched.single))


def _expect(request: SourceRequest, digest: str) -> None:
    """Raise StageError(DigestMismatch) if the spec has another digest."""
    if request.sha256 and digest != request.sha256:
        message = f"{request.uri} has SHA-256 {digest}, but spec.source.sha256 is {request.sha256} (see docs/source.md)"
        raise StageError(Reason.DIGEST_MISMATCH, message)


def _name_too(directory: Path, name: str) -> None:
    """Let the one file of a published source be found under another name too."""
    with temporary_directory(directory) as place:
        link_or_copy(next(directory.iterdir()), place / name)
        os.replace(place / name, directory / name)


def _result(request: SourceRequest, digest: str, files: list[SourceFile], resolved: str = "") -> SourceResult:
    """Return the result for files that are published; the digest of a single file does not cover its name."""
    target = layout.source_directory(digest)
    for file in files:
        if not (target / file.name).exists():
            _name_too(target, file.name)
    total = sum((target / file.name).stat().st_size for file in files)
    models = {path: _model(target, path) for path in request.models}
    repositories = {path: each for path, (_, each) in models.items() if each is not None}
    graphs = (repositories[path].file if path in repositories else path for path in request.graphs)
    return SourceResult(
        digest=digest,
        files=len(files),
        total_bytes=total,
        formats=tuple(models[path][0] for path in request.models),
        resolved=resolved,
        batched=tuple(has_batch_dimension(target, path) for path in graphs),
        repositories=tuple(map(repositories.get, request.models)) if repositories else (),
        requirements=_requirements(request, target, files) if request.requirements else "",
    )


def _model(source: Path, path: str) -> tuple[str, RepositoryModel | None]:
    """Return the format of a model and, for a folder of a Triton repository, what its config.pbtxt says."""
    if not repository.is_model(source, path):
        return found_format(source, path), None
    try:
        with (source / path / CONFIG).open("rb") as text:
            config = given.read(text.read(given.LONGEST + 1))
        file, form = repository.model_file(source, path, config.backend, config.file, config.versions)
        return form, config.taken(file, FORMATS[form].backend)
    except given.RefusedError as error:
        raise repository.refused(path, str(error)) from error


def _requirements(request: SourceRequest, target: Path, files: list[SourceFile]) -> str:
    """Return the SHA-256 of the requirements file; raises StageError(RequirementsMissing)."""
    path = request.requirements
    if all(file.name != path for file in files):
        texts = ", ".join([file.name for file in files if file.name.endswith(".txt")][:10]) or "none"
        message = f"{request.uri} has no file {path}, which spec.conversion.requirements names; its text files: {texts}"
        raise StageError(Reason.REQUIREMENTS_MISSING, message)
    return sha256_of(SourceFile(path, target / path))
