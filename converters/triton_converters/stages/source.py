"""Stage ``source``: publish the user's files on the claim under their digest (``claim_store.digest``).

They are copied from a mounted volume, or downloaded to the claim first (``fetch``). Names that begin with ``..``
belong to the kubelet in a mounted ConfigMap. See docs/source.md.
"""

from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath

from triton_converters.claim_store import sources
from triton_converters.claim_store.digest import SourceFile, digest_of, hashes_of, sha256_of
from triton_converters.claim_store.publish import resumable_directory, temporary_directory
from triton_converters.contract import layout, uris
from triton_converters.contract.conversion_requests import SourceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import FORMATS, MLMODEL
from triton_converters.contract.model_repository import CONFIG
from triton_converters.contract.reasons import Reason
from triton_converters.contract.repository_config import LONGEST
from triton_converters.contract.results import RepositoryModel, SourceResult
from triton_converters.contract.uris import Uri
from triton_converters.fetch import field, mounted, scheme
from triton_converters.fetch.folder import changed
from triton_converters.fetch.remote import FILES, Fetched, check_named, taken
from triton_converters.found import mlflow, repository
from triton_converters.found.batches import counts_length, has_batch_dimension
from triton_converters.found.formats import found_format
from triton_converters.model_config import given


def run(request: SourceRequest) -> SourceResult:
    """Publish ``sources/<digest>/`` unless it exists with just that content.

    Raises StageError: SourceNotFound, SourceInvalid (a link that leaves the source, a special or unreadable file),
    DigestMismatch, what ``_model`` raises, and for a download what ``fetch`` raises; InputMissing (what an earlier Job
    published is gone). OSError: the claim is full.
    """
    uri = scheme.uri_of(request)
    if request.published:
        return _published(request)
    result = _downloaded(request, uri) if uri.is_remote else _mounted(request)
    sources.receive(result.digest)
    return result


def _published(request: SourceRequest) -> SourceResult:
    sources.check_received(request.published)
    if files := sources.under(request.published):
        return _result(request, request.published, files, request.resolved)
    message = f"{layout.source_directory(request.published)} is no longer on the repository claim"
    raise StageError(Reason.INPUT_MISSING, f"{message}; the source is read again", final=False)


def _mounted(request: SourceRequest) -> SourceResult:
    root = mounted.locate(request.path, request.uri, layout.SOURCE_MOUNT)
    found = {file.name: file for file in mounted.files(root, request)}
    files = [found[name] for name in sorted(taken(found, request))]
    hashes = {file.name: mounted.sha256_of(file) for file in files}
    # A push may have replaced the folder by one with other files.
    if {file.name: file for file in mounted.files(root, request)} != found:
        raise changed()
    single = root.is_file()
    _expect(request, digest_of(hashes, single))
    digest = sources.find(hashes, single) or _copied(files, hashes, single)
    return _result(request, digest, hashes)


def _copied(files: list[SourceFile], hashes: Mapping[str, str], single: bool) -> str:
    """Copy the files and publish the copies if they have these digests; return the source's digest."""
    with temporary_directory(layout.source_directory(digest_of(hashes, single))) as directory:
        for file in files:
            mounted.copy(file, directory / file.name)
        if hashes_of(directory) != hashes:
            raise changed()
        return sources.publish(directory, hashes, single)


def _downloaded(request: SourceRequest, uri: Uri) -> SourceResult:
    """Download the files to the claim, next to where they are published, so that they are only renamed."""
    name = uri.path.rpartition("/")[2] if uris.SCHEMES[uri.scheme].may_be_file else ""
    if request.sha256 and (result := _known(request, name)):
        print(f"{request.uri} is on the claim already, with the expected SHA-256", flush=True)
        return result
    with resumable_directory(layout.source_directory(request.key).parent, request.key) as place:
        module, remote = scheme.of(request, uri)
        fetched: Fetched = module.fetch(remote, place)
        if fetched.published:
            _expect(request, digest_of(fetched.hashes, single=False))
            print(f"{request.uri} is on the claim already: nothing was downloaded", flush=True)
            return _result(request, fetched.published, fetched.hashes, fetched.resolved)
        # All that lies there is published, so all of it is digested.
        hashes = hashes_of(place / FILES)
        _check(request, fetched, hashes)
        digest = sources.find(hashes, fetched.single)
        if not digest:
            for each in hashes:
                (place / FILES / each).chmod(0o444)
            digest = sources.publish(place / FILES, hashes, fetched.single)
        return _result(request, digest, hashes, fetched.resolved)


def _known(request: SourceRequest, name: str) -> SourceResult | None:
    """Return the result for a pinned source that the object has received before; None: some of it is not there.

    ``name``: what the file is called if it is a single one; empty: it is a directory.
    """
    hashes = {name: request.sha256}
    if (found := sources.find(hashes, single=True)) and sources.is_received(found):
        return _result(request, found, hashes)
    there = sources.under(request.sha256) if sources.is_received(request.sha256) else {}
    is_directory = there and digest_of(there, single=False) == request.sha256
    return _result(request, request.sha256, there) if is_directory else None


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
        message = (
            f"{request.uri} has SHA-256 {digest}, but {field.of('sha256')} is {request.sha256} (see docs/source.md)"
        )
        raise StageError(Reason.DIGEST_MISMATCH, message)


def _result(request: SourceRequest, digest: str, files: Collection[str], resolved: str = "") -> SourceResult:
    """Return the result for files that are published; ``files``: their names. Raises what `check_named` raises."""
    check_named(files, request)
    target = layout.source_directory(digest)
    total = sum((target / name).stat().st_size for name in files)
    models = {path: _model(target, path) for path in request.models}
    repositories = {path: each for path, (_, each) in models.items() if each is not None}
    graphs = [repositories[path].file if path in repositories else path for path in request.graphs]
    batched = tuple(has_batch_dimension(target, path) for path in graphs)
    lengths = tuple(known and counts_length(target, path) for path, known in zip(graphs, batched, strict=True))
    requirements = {path: sha256_of(SourceFile(path, target / path)) for path in request.files}
    return SourceResult(
        digest=digest,
        files=len(files),
        total_bytes=total,
        formats=tuple(models[path][0] for path in request.models),
        resolved=resolved,
        batched=batched,
        lengths=lengths if any(lengths) else (),
        repositories=tuple(map(repositories.get, request.models)) if repositories else (),
        requirements=requirements.get(request.requirements, ""),
        step_requirements=tuple(requirements[path] for path in request.step_requirements),
        files_key=request.files_key,
    )


def _model(source: Path, path: str) -> tuple[str, RepositoryModel | None]:
    """Return the format of a model and, for a folder of a Triton repository or an MLmodel, what that says."""
    if PurePosixPath(path).name == MLMODEL:
        file, form = mlflow.model_file(source, path)
        return form, mlflow.repository_model(file)
    if not repository.is_model(source, path):
        return found_format(source, path), None
    try:
        with (source / path / CONFIG).open("rb") as text:
            config = given.read(text.read(LONGEST + 1))
        file, form = repository.model_file(source, path, config.backend, config.file, config.versions)
        return form, config.repository_model(file, FORMATS[form].backend)
    except given.RefusedError as error:
        raise repository.not_taken(path, str(error)) from error
