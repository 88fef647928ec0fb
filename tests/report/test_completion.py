"""What a Tab offers after `kubectl triton`, and that it and help come without the libraries of the commands."""

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from triton_plugin import completion
from triton_plugin.argument_groups import Parser
from triton_plugin.command_line import COMMANDS
from triton_plugin.completion import completed, main

KUBECTL = """#!/bin/sh
echo "$@" >>{calls}
cat {answer}
"""


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kubectl that prints the file `answer` of this folder, and writes its arguments to `calls`."""
    program = tmp_path / "kubectl"
    program.write_text(KUBECTL.format(calls=tmp_path / "calls", answer=tmp_path / "answer"))
    program.chmod(0o755)
    (tmp_path / "answer").write_text("tritondeployment.triton-operator.dev/digits\ntritondeployment.x/ocr\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def options() -> Iterator[tuple[str, argparse.Action]]:
    """Each option of each command, with the command's name."""
    for name, (_, add_arguments) in COMMANDS.items():
        found = Parser()
        add_arguments(found)
        yield from ((name, each) for each in found._actions if each.option_strings)


def words(lines: list[str]) -> list[str]:
    return [line.partition("\t")[0] for line in lines]


def test_the_commands_are_offered_with_their_help() -> None:
    assert completed([], "") == ([f"{name}\t{text}" for name, (text, _) in COMMANDS.items()], ":4")


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_is_completed(name: str) -> None:
    lines, directive = completed(["-n", "vision", "--context=a"], name[:-1])
    assert name in words(lines)
    assert directive == ":4"


@pytest.mark.parametrize(("command", "option"), [*options()], ids=lambda each: each if isinstance(each, str) else "")
def test_each_option_is_completed_and_not_offered_again(command: str, option: argparse.Action) -> None:
    longest, text = option.option_strings[-1], option.help or ""
    lines, directive = completed([command], longest[:-1])
    assert f"{longest}\t{text}" in lines
    assert directive == ":4"
    again, _ = completed([command, longest, *(["value"] if option.nargs != 0 else [])], "-")
    assert (longest in words(again)) is isinstance(option, argparse._AppendAction)
    assert "%" not in text, "argparse would have replaced it"


@pytest.mark.parametrize(
    ("before", "last", "expected"),
    [
        (["report", "digits", "-o"], "", ["html", "md", "csv", "json"]),
        (["report", "digits", "--output"], "c", ["csv"]),
        (["report", "digits"], "--output=j", ["json"]),
        (["logs", "digits", "--stage"], "se", ["search"]),
        (["run", "a", "--format"], "tf-s", ["tf-savedmodel"]),
    ],
)
def test_the_values_of_an_option_are_completed(before: list[str], last: str, expected: list[str]) -> None:
    assert completed(before, last) == (expected, ":4")


@pytest.mark.parametrize(
    ("before", "last", "directive"),
    [
        (["run"], "", ":0"),
        (["validate", "a.yaml"], "", ":0"),
        (["validate", "-f"], "", ":0"),
        (["report", "digits", "--file"], "", ":0"),
        (["--kubeconfig"], "", ":0"),
        (["push", "folder"], "", ":4"),
        (["report", "digits"], "--no-such=", ":4"),
        (["watch", "digits", "--timeout"], "", ":4"),
        (["watch", "digits"], "", ":4"),
        (["approve", "digits"], "", ":4"),
        (["no-such-command"], "", ":4"),
        (["no-such-command"], "-", ":4"),
    ],
)
def test_files_are_offered_where_a_file_may_stand(before: list[str], last: str, directive: str) -> None:
    assert completed(before, last) == ([], directive)


@pytest.mark.parametrize("command", ["watch", "explain", "logs", "report", "approve", "retry", "history", "rollback"])
def test_the_name_of_an_object_is_completed(kubectl: Path, command: str) -> None:
    assert completed([command], "di")[0] == ["digits"]
    assert completed([command], "")[0] == ["digits", "ocr"]


def test_a_second_object_is_another_one(kubectl: Path) -> None:
    assert completed(["compare", "digits"], "")[0] == ["ocr"]
    assert completed(["compare", "digits"], "x")[1] == completion.FILES
    assert completed(["approve", "digits", "onnx-fp32"], "")[0] == []
    assert completed(["update-images", "digits"], "")[0] == ["ocr"]


@pytest.mark.parametrize(
    ("before", "asked"),
    [
        (["explain"], "get tritondeployments.triton-operator.dev --output=name --request-timeout=2s"),
        (
            ["-nvision", "--context", "a", "explain", "--kubeconfig=/k"],
            "get tritondeployments.triton-operator.dev --output=name --request-timeout=2s"
            " --context=a --kubeconfig=/k --namespace=vision",
        ),
        (["-n", "vision", "explain", "--context"], "config get-contexts --output=name --request-timeout=2s"),
        (["--context=a", "explain", "-n"], "get namespaces --output=name --request-timeout=2s --context=a"),
    ],
)
def test_kubectl_is_asked_for_the_cluster_on_the_line(kubectl: Path, before: list[str], asked: str) -> None:
    completed(before, "")
    assert (kubectl / "calls").read_text() == f"{asked}\n"


def test_no_text_of_a_cluster_but_a_name_gets_to_the_shell(kubectl: Path) -> None:
    bad = ["$(reboot)", "a;b", "`id`", "a\x1b[31m", "\u202eevil", "a'b"]
    (kubectl / "answer").write_text("\n".join(f"tritondeployment.x/{name}" for name in [*bad, "digits"]))
    assert completed(["watch"], "")[0] == ["digits"]
    (kubectl / "answer").write_bytes(b"\xff\xfe" + b"x/a\n" * 10_000)
    assert len(completed(["watch"], "")[0]) < 1_000


def test_a_kubectl_that_fails_hangs_or_is_missing_offers_nothing(
    kubectl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = kubectl / "kubectl"
    program.write_text("#!/bin/sh\necho no >&2\nexit 1\n")
    assert completed(["watch"], "") == ([], ":4")
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(completion, "SECONDS", -0.9)
    assert completed(["watch"], "") == ([], ":4")
    monkeypatch.setenv("PATH", str(kubectl / "none"))
    assert completed(["watch"], "") == ([], ":4")


def test_the_directive_is_the_last_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "digits", "-o", "h"]) == 0
    assert capsys.readouterr().out == "html\n:4\n"
    assert main([]) == 0
    assert capsys.readouterr().out.endswith("\n:4\n")


HELP_AND_TABS = """
import sys
from contextlib import suppress
before = {*sys.modules}
from triton_plugin import __main__, completion
for words in ([], *([name] for name in sys.argv[1:])):
    with suppress(SystemExit):
        __main__.main([*words, "--help"])
    completion.main([*words, "-"])
print(*{*sys.modules} - before)
"""


def test_help_and_completion_import_no_library() -> None:
    argv = [sys.executable, "-c", HELP_AND_TABS, *COMMANDS]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len([line for line in said if line.startswith("usage: ")]) == len(COMMANDS) + 1
    imported = {name.partition(".")[0] for name in said[-1].split()} - sys.stdlib_module_names
    assert imported == {"triton_plugin", "triton_converters"}
