"""Termination messages that user code could leave, as bytes, for the reader alone and for a real kubelet."""

import base64
import json
import zlib
from functools import cache
from typing import Any

OWNED = "owned"
"""A word in every message: whoever shows one shows this, and nothing that a terminal or a page obeys."""


def messages(stage: str, key: str) -> dict[str, bytes]:
    """Return messages by what they try; ``stage`` and ``key`` are those of the Job that is lied for."""

    def failed(message: str, **others: Any) -> bytes:
        return _json({"stage": stage, "key": key, "reason": "UserCodeFailed", "message": message} | others)

    def said(result: Any, **others: Any) -> bytes:
        return _json({"stage": stage, "key": key, "result": result} | others)

    good = {"digest": "0" * 64, "files": 1, "bytes": 1}
    return {
        "nothing": b"",
        "only blanks": b" \n\t\r" * 500,
        "no JSON": b"<html><script>alert('owned')</script>",
        "HTML in a failure": failed("<img src=x onerror=alert('owned')>"),
        "terminal escapes": failed("\x1b]0;owned\x07\x1b[2J\x1b[31mowned\x9b1m\r\x08"),
        "terminal escapes without JSON": b"\x1b]0;owned\x07\x1b[2J\x1b[1A\x9b31m\x08\x08\x08owned\r\n\x1bc",
        "text that is written backwards": failed("\u202eowned\u2066\u200b\u2028"),
        "NULs": b"\x00" * 4096,
        "NULs in a failure": failed("owned\x00\x00"),
        "invalid UTF-8": b"owned \xff\xfe\xc0\x80 \xed\xa0\x80 " + bytes(range(128, 256)) * 20,
        "half a character where the kubelet cuts": b"owned" + b"x" * 4090 + "\N{SNOWMAN}".encode(),
        "a lone surrogate": failed("owned \ud800"),
        "a lone surrogate for a reason": failed("owned", reason="\udfff"),
        "deep brackets": b"[" * 4096,
        "deep brackets in a result": b'{"stage": "%s", "key": "%s", "result": ' % (stage.encode(), key.encode())
        + b"[" * 1900
        + b"]" * 1900
        + b"}",
        "deep objects": b'{"result":' * 400,
        "a number of 4,000 digits": said({"files": 1}).replace(b"1}", b"9" * 3900 + b"}"),
        "infinity": said({"digest": "0" * 64, "files": float("inf"), "bytes": float("nan")}),
        "a number past every limit": said({"digest": "0" * 64, "files": 10**400, "bytes": -(10**400)}),
        "a deflate bomb": _deflated(stage, key, b" ", 64 * 2**20),
        "brackets, deflated": _deflated(stage, key, b"[" * 60_000),
        "what is deflated is cut": _deflated(stage, key, json.dumps(good).encode())[:-40] + b'"}',
        "a result for another stage": _json({"stage": "measure", "key": key, "result": good}),
        "a result for another key": _json({"stage": stage, "key": "f" * 16, "result": good}),
        "a stage that has no results": _json({"stage": "clean", "key": key, "result": {}}),
        "a stage that is a list": _json({"stage": [stage], "key": key, "result": good}),
        "a result and a failure": said(None, reason="Ready", message="owned"),
        "a reason of the operator": failed("owned", reason="Ready"),
        "a reason that nobody knows": failed("owned", reason="Owned" * 20),
        "a formula": failed("=cmd|' /C owned'!A0"),
        "a template": failed("{{ owned }} ${owned} %s%n `owned`"),
        "a line of a log that says it is another": b'owned\n{"level": "error", "message": "operator ended"}\n' * 40,
        "4,096 bytes": failed("owned" + "x" * 3900).ljust(4096),
        "4,097 bytes": failed("owned" + "x" * 3900).ljust(4097),
        "100 KB": failed("owned" * 20_000),
        "two documents": failed("owned") * 2,
        "keys twice": b'{"stage": "x", "key": "y", ' + failed("owned")[1:],
    }


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True).encode()


def _deflated(stage: str, key: str, plain: bytes, times: int = 1) -> bytes:
    return _json({"stage": stage, "key": key, "deflated": _packed(plain, times)})


@cache
def _packed(plain: bytes, times: int) -> str:
    # Kept: a bomb takes long to pack, and is the same for every stage.
    return base64.b85encode(zlib.compress(plain * times, 9)).decode()
