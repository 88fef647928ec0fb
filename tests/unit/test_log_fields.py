"""The fields of log lines in JSON."""

import io
import json
import logging
from concurrent.futures import ThreadPoolExecutor

import kopf
import pytest

from triton_operator.runtime import log_fields
from triton_operator.runtime.log_fields import FieldsFilter
from triton_operator.runtime.printable_log import protect


@pytest.fixture
def log() -> tuple[logging.Logger, io.StringIO]:
    """A logger whose handler is as the operator's."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    kopf.configure(log_format=kopf.LogFormat.JSON)
    (made,) = [each for each in root.handlers if each not in handlers]
    root.handlers, root.level = handlers, level
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(made.formatter)
    handler.addFilter(FieldsFilter())
    logger = logging.Logger("triton_operator.test")
    logger.addHandler(handler)
    protect(logger)
    return logger, written


def lines(written: io.StringIO) -> list[dict[str, object]]:
    found = [json.loads(line) for line in written.getvalue().splitlines()]
    return [{name: value for name, value in line.items() if name not in ("timestamp", "severity")} for line in found]


def test_lines_of_a_pass_name_the_object_and_others_do_not(log: tuple[logging.Logger, io.StringIO]) -> None:
    logger, written = log
    logger.info("before")
    with log_fields.fields(namespace="vision", object="digits"):
        logger.info("read")
        log_fields.add(generation=3)
        logger.info("applied", extra={"stage": "convert"})
    logger.info("after")
    log_fields.add(generation=4)
    logger.info("nothing is added outside")
    digits = {"namespace": "vision", "object": "digits"}
    assert lines(written) == [
        {"message": "before"},
        {"message": "read", **digits},
        {"message": "applied", **digits, "generation": 3, "stage": "convert"},
        {"message": "after"},
        {"message": "nothing is added outside"},
    ]


def test_passes_in_other_threads_keep_their_own_fields(log: tuple[logging.Logger, io.StringIO]) -> None:
    logger, written = log

    def work(number: int) -> None:
        with log_fields.fields(object=f"object-{number}"):
            for _ in range(20):
                logger.info("object-%d", number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    found = lines(written)
    assert len(found) == 160
    assert all(line["message"] == line["object"] for line in found)


def test_a_hostile_field_forges_no_line(log: tuple[logging.Logger, io.StringIO]) -> None:
    logger, written = log
    with log_fields.fields(object='x"}\n{"message": "forged'):
        logger.info("read")
    assert [line["message"] for line in lines(written)] == ["read"]
