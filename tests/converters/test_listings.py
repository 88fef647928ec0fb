"""Listings of buckets: what no folder can hold is refused for good, and what stands for a folder is no file."""

from pathlib import Path
from typing import Any

import pytest

from tests.converters.cloud_server import MODIFIED, Cloud
from tests.converters.https_server import Server
from tests.converters.test_bucket import failure, with_secret
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.fetch import bucket

TAGGED = "<ETag>x</ETag>"


class Listing:
    """A bucket of S3 whose listing has these keys, sizes and more, and whose objects hold one byte."""

    def __init__(self, *entries: tuple[str, int, str]) -> None:
        self.listed = "".join(
            f"<Contents><Key>{key}</Key><Size>{size}</Size>{more}"
            "<LastModified>2026-11-23T09:00:00.000Z</LastModified></Contents>"
            for key, size, more in entries
        )

    def answer(self, path: str, authorization: str) -> tuple[int, dict[str, str], bytes]:
        if "list-type" in path:
            body = f"<ListBucketResult><IsTruncated>false</IsTruncated>{self.listed}</ListBucketResult>"
            return 200, {"Content-Type": "application/xml"}, body.encode()
        return (404, {}, b"") if path.endswith("/ocr") else (200, {"ETag": '"e"', "Last-Modified": MODIFIED}, b"x")


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([("ocr/a", 1, ""), ("ocr/a", 1, TAGGED)], "has two files with one name"),
        ([("ocr/a", 1, TAGGED), ("ocr/a", 2, TAGGED)], "has two files with one name"),
        ([("ocr/a", 1, ""), ("ocr/a/b", 1, "")], "has a file with the name of a folder"),
        ([("ocr/" + "a" * 256, 1, "")], "has an object with a name that is too long"),
        ([("ocr/" + "a/" * 600 + "a", 1, "")], "has an object with a name that is too long"),
    ],
)
def test_a_listing_that_no_folder_can_hold_is_refused_for_good(
    server: Server, entries: list[tuple[str, int, str]], words: str
) -> None:
    server.behaviour.hub = Listing(*entries)
    with_secret(AWS_ENDPOINT_URL=f"https://{server.host}")
    error = failure()
    assert (error.reason, error.final) == (Reason.SOURCE_INVALID, True)
    assert words in error.message


def test_an_object_with_a_name_that_is_too_long_is_refused_for_good(server: Server) -> None:
    server.behaviour.hub = Cloud({"a" * 256: b"x"}, "/models")
    with_secret(AWS_ENDPOINT_URL=f"https://{server.host}")
    error = failure(f"s3://models/{'a' * 256}")
    assert (error.reason, error.final) == (Reason.SOURCE_INVALID, True)


@pytest.mark.parametrize(
    "names", [["ocr/a", "ocr/a/b"], ["ocr/..data"], ["ocr/a\\b"], ["ocr/lost+found/a"], ["ocr/.triton-operator/a"]]
)
def test_names_that_no_source_has_are_refused(mount: Path, names: list[str]) -> None:
    listed: Any = [{"path": name, "size": 1} for name in names]
    with pytest.raises(StageError) as caught:
        bucket._files(listed, "ocr", "s3://models/ocr")
    assert caught.value.reason is Reason.SOURCE_INVALID


def test_an_empty_object_may_stand_for_a_folder(mount: Path) -> None:
    names = {"ocr/a": 0, "ocr/a/b": 0, "ocr/a/b/c": 1, "ocr/a-b": 0, "ocr/d": 0}
    listed: Any = [{"path": name, "size": size} for name, size in names.items()]
    assert [each.name for each in bucket._files([listed[0], *listed], "ocr", "")] == ["a/b/c", "a-b", "d"]
