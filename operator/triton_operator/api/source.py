"""Where the model comes from, and the user's Python files."""

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints

from triton_converters.contract import uris
from triton_operator.api.duration import Span, Within, seconds
from triton_operator.api.pod import LocalReference
from triton_operator.api.schema import ApiType, Arguments, DnsName, PythonFile, Version, cel_list, rules


def _checked(uri: str) -> str:
    uris.split(uri)
    return uri


def _in_a_folder(uri: str) -> str:
    if uri.startswith(CLAIM) and not uris.split(uri).path:
        raise ValueError(WHOLE_CLAIM)
    return uri


_ANY_URI = "|".join(scheme.pattern for scheme in uris.SCHEMES.values())
SourceUri = Annotated[
    str,
    StringConstraints(max_length=1024),
    AfterValidator(_checked),
    Field(
        json_schema_extra=rules(
            (
                f"!self.matches('{uris.FORBIDDEN}')",
                "uri must have no query, no fragment and no credentials: remove them; put credentials into a Secret,"
                " and name it in secretRef",
            ),
            (
                f"self.matches('{uris.FORBIDDEN}') || self.matches('^({_ANY_URI})$')",
                f"uri must be one of {uris.shapes()}: correct it",
            ),
        )
    ),
]
Pattern = Annotated[str, StringConstraints(max_length=256, pattern=r"^[A-Za-z0-9_.*?/-]+$")]
CLAIM = "pvc://"
WHOLE_CLAIM = (
    f"user code never gets a whole claim, which may hold what others keep there: move the data into a folder, and name"
    f" it as in {uris.SCHEMES['pvc'].shape}"
)


def _has_scheme(chosen: Callable[[uris.Scheme], bool]) -> str:
    """CEL expression on files: whether their URI has one of these schemes."""
    names = cel_list(name for name, scheme in uris.SCHEMES.items() if chosen(scheme))
    return f"{names}.exists(s, self.uri.startsWith(s + '://'))"


FILE_RULES = (
    (
        f"!({_has_scheme(lambda scheme: scheme.needs_revision)}) || (has(self.version) && self.version != '')",
        f"{uris.shapes(lambda scheme: scheme.needs_revision)} needs a version: set version to an alias, or to a number",
    ),
    (
        f"!has(self.secretRef) || {_has_scheme(lambda scheme: scheme.is_remote)}",
        f"secretRef is only for files that are downloaded: remove it, or set uri to one of"
        f" {uris.shapes(lambda scheme: scheme.is_remote)}",
    ),
    (
        f"!has(self.serviceAccountName) || {_has_scheme(lambda scheme: scheme.knows_accounts)}",
        f"serviceAccountName is only for buckets: remove it, or set uri to one of"
        f" {uris.shapes(lambda scheme: scheme.knows_accounts)}",
    ),
)


class Source(ApiType):
    """Files that are published on the repository claim under their digest."""

    model_config = ConfigDict(json_schema_extra=rules(*FILE_RULES))
    uri: SourceUri
    """URI of the files: `pvc://CLAIM/PATH`, `configmap://NAME`, `https://HOST/PATH/FILE`, `hf://OWNER/REPOSITORY`,
    `mlflow://SERVER/NAME`, `oci://REGISTRY/REPOSITORY:TAG`, `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX` or
    `azure://CONTAINER/PREFIX` (docs/source.md)."""
    version: Version = ""
    """Branch, tag or commit of `hf`, by default `main`; alias or number of a version of `mlflow`; otherwise any text. A
    change has the URI read again. Default: empty."""
    sha256: Annotated[str, StringConstraints(max_length=64, pattern=r"^([0-9a-f]{64})?$")] = ""
    """Expected SHA-256 of the file or, of a folder or a ConfigMap, of the lines that `sha256sum` prints, sorted by path
    (docs/source.md). Of `spec.source`, all files are then taken, or those of `include`. Default: not checked."""
    secret_ref: LocalReference | None = None
    """Secret with the credentials of the download, which only the source Job mounts (keys: docs/source.md). Default:
    none."""
    service_account_name: DnsName | None = None
    """ServiceAccount of the source Job, for workload identity. The Helm value `allowed.serviceAccounts` must name it.
    Default: none."""
    include: Annotated[list[Pattern], Field(max_length=32)] = Field(default_factory=list)
    """Patterns of the paths of files to take, such as `*.safetensors`; `*` matches slashes too. Default: all files; of
    models that are files, their folders (docs/source.md)."""

    @property
    def version_names_files(self) -> bool:
        """Whether another `version` asks for other files. Otherwise it only says when to look again."""
        return uris.SCHEMES[uris.split(self.uri).scheme].has_revisions


FOLLOWS = frozenset({"interval", "on_change"})
"""The fields of a source that say how it is followed, and not which files are asked for."""


class FollowedSource(Source):
    """The files of the model, which the operator may follow as they change."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            *FILE_RULES,
            (
                f"!has(self.interval) || ({_has_scheme(lambda scheme: scheme.is_remote)}"
                " && !self.uri.contains('@sha256:'))",
                f"interval is only for files that are downloaded and may change at their URI: remove it, or set uri to"
                f" one of {uris.shapes(lambda scheme: scheme.is_remote)}",
            ),
            (
                "!has(self.interval) || !has(self.sha256) || self.sha256 == ''",
                "sha256 allows one version alone, and interval asks for newer ones: remove one of them",
            ),
            ("!has(self.onChange) || has(self.interval)", "onChange says what becomes of newer files: set interval"),
        )
    )
    interval: Annotated[Span, Within("5m", "168h")] | None = None
    """How often the operator looks for a newer version at the URI, from 5m to 168h (docs/follow.md). Default: never;
    the version that was read first stays."""
    on_change: Literal["Serve", "Stage", "Notify"] = "Serve"
    """What becomes of a newer version: `Serve` verifies it and rolls it out, `Stage` does all but the roll-out, which
    waits for `selection.approvedRevision`, and `Notify` only tells of it. Where inputs or outputs change, `Serve` is
    `Stage`. Default: Serve."""

    @property
    def interval_seconds(self) -> float | None:
        """Seconds between two looks; None: the source is not followed."""
        return seconds(self.interval) if self.interval is not None else None


class Dataset(Source):
    """The data that the dataloader reads. On a claim it is not copied and has no digest; other data is published."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            *FILE_RULES,
            (
                f"!self.uri.startsWith('{CLAIM}') || ((!has(self.sha256) || self.sha256 == '')"
                " && (!has(self.include) || self.include.size() == 0))",
                "data on a claim is mounted as it is, without a digest: remove sha256 and include",
            ),
            (f"!self.uri.matches('^{CLAIM}[^/]*/?$')", WHOLE_CLAIM),
        )
    )
    uri: Annotated[SourceUri, AfterValidator(_in_a_folder)]
    """URI of the data. `pvc://CLAIM/PATH` is mounted, without a copy; all other data is published like the source."""
    version: Version = ""
    """Version, as in `spec.source`. Change it when the data changes. Default: empty."""

    @property
    def is_mounted(self) -> bool:
        """Whether the data is mounted from the claim that holds it."""
        return self.uri.startswith(CLAIM)


class UserEntrypoint(ApiType):
    """A Python file in the source, and the arguments of its function or class."""

    entrypoint: PythonFile
    """Path of the Python file, relative to the root of the source."""
    arguments: Arguments = Field(default_factory=dict)
    """Arguments by name, converted to the types that the code declares. `$(DATASET)` and `$(WEIGHTS)` become the paths
    of `spec.dataset` and `spec.weights`. Default: none."""
