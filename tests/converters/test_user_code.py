"""Importing and calling what the user wrote."""

import sys
from pathlib import Path

import numpy
import pytest

from tests.converters.sources import WriteSource
from triton_converters.contract.conversion_requests import Entrypoint
from triton_converters.contract.failure import StageError, TerminatedError
from triton_converters.contract.reasons import Reason
from triton_converters.user.user_code import call, load, running


def entry(path: str = "model.py", **arguments: str) -> Entrypoint:
    return Entrypoint(path, arguments)


def failure(source: Path, entrypoint: Entrypoint, target: str = "get_model") -> StageError:
    with pytest.raises(StageError) as caught:
        call(source, entrypoint, target)
    return caught.value


def test_siblings_and_packages_of_the_source_import_each_other(write_source: WriteSource) -> None:
    source = write_source(
        {
            "triton/model.py": "import helper\nfrom nets.small import WIDTH\ndef get(): return helper.NAME, WIDTH",
            "triton/helper.py": "NAME = 'sibling'",
            "nets/small.py": "WIDTH = 3",
        }
    )
    assert call(source, entry("triton/model.py"), "get") == ("sibling", 3)


def test_two_entrypoints_share_modules(write_source: WriteSource) -> None:
    source = write_source({"model.py": "TOKEN = object()", "loader.py": "import model\ndef get(): return model.TOKEN"})
    assert call(source, entry("loader.py"), "get") is load(source, "model.py").TOKEN


ENTRY = "import utils\ndef get(): return utils.WHOSE"
LATER = "def get():\n    import utils\n    return utils.WHOSE"


@pytest.mark.parametrize("first", [ENTRY, LATER])
@pytest.mark.parametrize("second", [ENTRY, LATER])
@pytest.mark.parametrize(
    ("names", "files"),
    [
        (("a/model.py", "b/loader.py"), {"a/utils.py": "WHOSE = 'a/'", "b/utils.py": "WHOSE = 'b/'"}),
        (("a/model.py", "loader.py"), {"a/utils.py": "WHOSE = 'a/'", "utils.py": "WHOSE = 'loa'"}),
        (("model.py", "b/loader.py"), {"utils.py": "WHOSE = 'mod'", "b/utils.py": "WHOSE = 'b/'"}),
        (("a/net.py", "b/net.py"), {"a/utils/__init__.py": "WHOSE = 'a/'", "b/utils.py": "WHOSE = 'b/'"}),
        (("a/net.py", "b/net.py"), {"utils.py": "WHOSE = 'b/'", "a/utils.py": "WHOSE = 'a/'"}),
    ],
)
def test_each_entrypoint_imports_the_files_of_its_own_folder(
    write_source: WriteSource, names: tuple[str, str], files: dict[str, str], first: str, second: str
) -> None:
    source = write_source({names[0]: first, names[1]: second, **files})
    for name in (*names, *names):
        assert name.startswith(call(source, entry(name), "get")), name


def test_an_entrypoint_s_own_imports_stay_its_own_while_it_runs(write_source: WriteSource) -> None:
    """As a model and a dataloader do, batch by batch; the packages here have no __init__.py."""
    later = "def get():\n    def answer():\n        from nets import small\n        return small\n    return answer"
    source = write_source(
        {"a/entry.py": later, "b/entry.py": later, "a/nets/small.py": "WHOSE = 'a'", "b/nets/small.py": "WHOSE = 'b'"}
    )
    answers = {f"{folder}/entry.py": call(source, entry(f"{folder}/entry.py"), "get") for folder in "ab"}
    seen = []
    for path in ("a/entry.py", "b/entry.py", "a/entry.py", "b/entry.py"):
        with running(source, path):
            seen.append(answers[path]())
    assert [module.WHOSE for module in seen] == ["a", "b", "a", "b"]
    assert seen[:2] == seen[2:]


def test_entrypoints_of_several_folders_share_what_one_of_them_has(write_source: WriteSource) -> None:
    source = write_source(
        {
            "a/model.py": "import shared\nTOKEN = shared.TOKEN",
            "b/loader.py": "import model, shared\ndef get(): return model.TOKEN is shared.TOKEN",
            "shared.py": "TOKEN = object()",
        }
    )
    load(source, "a/model.py")
    assert call(source, entry("b/loader.py"), "get") is True


def test_a_second_import_is_the_same_module_whatever_its_name(write_source: WriteSource) -> None:
    source = write_source({f"{folder}/json.py": "TOKEN = object()" for folder in "ab"})
    modules = [load(source, f"{folder}/json.py") for folder in "abab"]
    assert modules[:2] == modules[2:]
    assert modules[0] is not modules[1]


def test_a_file_named_like_a_library_does_not_replace_it(write_source: WriteSource) -> None:
    import json

    source = write_source({"json.py": "def get_model(): return 'mine'"})
    assert call(source, entry("json.py"), "get_model") == "mine"
    assert sys.modules["json"] is json


@pytest.mark.parametrize("place", ["top", "function"])
def test_a_command_line_that_the_code_reads_is_that_of_a_script_without_arguments(
    write_source: WriteSource, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["triton_converters/__main__.py", "produce", "reference"])
    read = "parser.parse_args().size"
    head = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--size', type=int, default=3)\n"
    body = {"top": f"SIZE = {read}\ndef get_model(): return SIZE\n", "function": f"def get_model(): return {read}\n"}
    assert call(write_source({"model.py": head + body[place]}), entry(), "get_model") == 3
    assert sys.argv == ["triton_converters/__main__.py", "produce", "reference"]


def test_what_the_code_asks_numpy_to_raise_is_not_raised_in_the_converters(write_source: WriteSource) -> None:
    before = numpy.geterr()
    text = "import numpy\nnumpy.seterr(all='raise')\ndef get_model(): return numpy.seterr(all='raise')\n"
    call(write_source({"model.py": text}), entry(), "get_model")
    assert numpy.geterr() == before
    assert numpy.float32(1e-9).astype(numpy.float16) == 0, "many weights are as small"


def test_the_working_directory_is_the_source(write_source: WriteSource) -> None:
    source = write_source({"model.py": "def get_model(): return open('notes.txt').read()", "notes.txt": "here"})
    before = Path.cwd()
    assert call(source, entry(), "get_model") == "here"
    assert Path.cwd() == before


@pytest.mark.parametrize("module", ["deployment_toolkit.core", "triton.deployment_toolkit.core"])
def test_the_toolkit_is_importable_under_both_names(write_source: WriteSource, module: str) -> None:
    source = write_source(
        {
            "metrics.py": f"""
from {module} import BaseMetricsCalculator
class MetricsCalculator(BaseMetricsCalculator):
    def __init__(self, output_used_for_metrics: str):
        self.output = output_used_for_metrics
    def calc(self, *, ids, y_pred, x, y_real):
        return {{self.output: float(len(ids))}}
"""
        }
    )
    calculator = call(source, entry("metrics.py", output_used_for_metrics="OUTPUT__0"), "MetricsCalculator")
    assert calculator.calc(ids=[1, 2], y_pred={}, x={}, y_real={}) == {"OUTPUT__0": 2.0}


def test_the_older_toolkit_s_update_and_metrics_give_calc(write_source: WriteSource) -> None:
    source = write_source(
        {
            "metrics.py": """
from deployment_toolkit.core import BaseMetricsCalculator
class MetricsCalculator(BaseMetricsCalculator):
    total = 0
    def update(self, ids, y_pred, x, y_real):
        self.total += len(ids)
    @property
    def metrics(self):
        return {"samples": self.total}
"""
        }
    )
    calculator = call(source, entry("metrics.py"), "MetricsCalculator")
    assert calculator.calc(ids=[1, 2], y_pred={}, x={}, y_real={}) == {"samples": 2}


TRITON_SOURCE = {
    "triton/model.py": """
from triton.deployment_toolkit.core import BaseMetricsCalculator
def get_model():
    import triton
    return triton.WHOSE
""",
    "triton/__init__.py": "WHOSE = 'the folder in the source'",
    "triton/deployment_toolkit/core.py": "raise ImportError('the copy in the source is not consulted')",
}


def test_a_folder_named_triton_is_not_taken_for_torch_s_compiler(write_source: WriteSource) -> None:
    error = failure(write_source(TRITON_SOURCE), entry("triton/model.py"))
    assert (error.reason, error.message.split(":")[:2]) == (Reason.USER_CODE_FAILED, ["triton/model.py", "4"])
    assert "No module named 'triton'" in error.message
    assert "triton" not in sys.modules


def test_a_package_may_ask_whether_there_is_a_compiler(write_source: WriteSource) -> None:
    """As transformers does when it is imported."""
    code = "import importlib.util\ndef get_model(): return importlib.util.find_spec('triton') is None\n"
    assert call(write_source({"model.py": code}), entry(), "get_model") is True


def test_a_missing_package_is_told_with_who_imported_it(
    write_source: WriteSource, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"model.py": "import helper\ndef get_model(): ...\n", "helper.py": "import absent_package\n"}
    assert failure(write_source(files), entry()).reason is Reason.USER_CODE_FAILED
    assert "helper.py" in capsys.readouterr().err


def test_torch_s_own_triton_package_is_not_hidden(
    write_source: WriteSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site" / "triton").mkdir(parents=True)
    (tmp_path / "site" / "triton" / "__init__.py").write_text("WHOSE = 'the installed one'")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "site")])
    assert call(write_source(TRITON_SOURCE), entry("triton/model.py"), "get_model") == "the installed one"


def test_checkpoints_are_paths_below_the_source(write_source: WriteSource) -> None:
    source = write_source({"model.py": "def get_model(checkpoint): return checkpoint", "weights/net.pt": ""})
    assert call(source, entry(checkpoint="weights/net.pt"), "get_model") == str(source / "weights" / "net.pt")
    missing = failure(source, entry(checkpoint="net.pt"))
    assert missing.reason is Reason.CHECKPOINT_INVALID
    assert "'net.pt'" in missing.message
    assert "weights/net.pt" in missing.message
    outside = failure(source, entry(checkpoint="../net.pt"))
    assert outside.reason is Reason.INVALID_SPEC


def test_an_absolute_checkpoint_stays(write_source: WriteSource, tmp_path: Path) -> None:
    (tmp_path / "data.pt").write_text("")
    source = write_source({"model.py": "def get_model(checkpoint): return checkpoint"})
    assert call(source, entry(checkpoint=str(tmp_path / "data.pt")), "get_model") == str(tmp_path / "data.pt")


def test_a_missing_entrypoint_lists_the_files_there_are(write_source: WriteSource) -> None:
    error = failure(write_source({"net.py": ""}), entry())
    assert error.reason is Reason.ENTRYPOINT_INVALID
    assert "'model.py'" in error.message
    assert "net.py" in error.message


@pytest.mark.parametrize("path", ["../outside.py", "/etc/hosts.py", "a/../../outside.py", "link.py"])
def test_an_entrypoint_cannot_lie_outside(write_source: WriteSource, tmp_path: Path, path: str) -> None:
    (tmp_path / "outside.py").write_text("raise SystemExit('imported')")
    source = write_source({"a/b.py": ""})
    (source / "link.py").symlink_to("../outside.py")
    error = failure(source, entry(path))
    assert error.reason is Reason.ENTRYPOINT_INVALID


@pytest.mark.parametrize("text", ["", "get_model = 3"])
def test_a_file_without_the_function_is_invalid(write_source: WriteSource, text: str) -> None:
    error = failure(write_source({"model.py": text}), entry())
    assert error.reason is Reason.ENTRYPOINT_INVALID
    assert "get_model" in error.message


RAISES = {"model.py": "import os\n\ndef get_model():\n    raise ValueError('no weights')"}
RAISES_ON_IMPORT = {"model.py": "x = 1\nraise KeyError('gone')"}
UNFINISHED = {"model.py": "def get_model():\n    return (\n"}
RAISES_BELOW = {"model.py": "import deep\ndef get_model():\n    deep.fail()", "deep.py": "def fail():\n    [].pop()"}
LIBRARY_RAISES = {"model.py": "import json\ndef get_model():\n    json.loads('{')"}
LACKS_PACKAGE = {"model.py": "import timm_is_not_here"}
RELATIVE = {"nets/__init__.py": "", "nets/small.py": "WIDTH = 3", "model.py": "from .nets.small import WIDTH"}
BESIDE = {"model.py": "import nets.net", "nets/net.py": "from ..width import WIDTH", "width.py": "WIDTH = 3"}


@pytest.mark.parametrize(
    ("files", "place", "words"),
    [
        (RAISES, "model.py:4", "ValueError: no weights"),
        (RAISES_ON_IMPORT, "model.py:2", "KeyError: 'gone'"),
        (UNFINISHED, "model.py:2", "SyntaxError"),
        (RAISES_BELOW, "deep.py:2", "IndexError"),
        (LIBRARY_RAISES, "model.py:3", "JSONDecodeError"),
        (LACKS_PACKAGE, "model.py:1", "conversion.image"),
        (RELATIVE, "model.py:1", "import it by its name, without the dots"),
        (BESIDE, "nets/net.py:1", "import it by its name, without the dots"),
    ],
)
def test_exceptions_name_the_user_s_own_line(
    write_source: WriteSource, files: dict[str, str], place: str, words: str
) -> None:
    error = failure(write_source(files), entry())
    assert error.reason is Reason.USER_CODE_FAILED
    assert error.message.startswith(f"{place}:")
    assert words in error.message


@pytest.mark.parametrize("code", ["0", "", "1", "'bye'"])
def test_exit_is_not_a_result(write_source: WriteSource, code: str) -> None:
    error = failure(write_source({"model.py": f"import sys\ndef get_model():\n    sys.exit({code})"}), entry())
    assert error.reason is Reason.USER_CODE_FAILED
    assert error.message.startswith("model.py:3:")


@pytest.mark.parametrize("raised", ["KeyboardInterrupt()", "asyncio.CancelledError()", "BaseException('own')"])
def test_what_programs_rarely_catch_is_an_exception_of_the_code(write_source: WriteSource, raised: str) -> None:
    code = f"import asyncio\ndef get_model():\n    raise {raised}\n"
    error = failure(write_source({"model.py": code}), entry())
    assert error.reason is Reason.USER_CODE_FAILED
    assert error.message.startswith("model.py:3: ")


def test_exit_while_importing_is_not_a_result(write_source: WriteSource) -> None:
    error = failure(write_source({"model.py": "raise SystemExit(0)"}), entry())
    assert error.reason is Reason.USER_CODE_FAILED


def test_a_stop_signal_passes_through(write_source: WriteSource) -> None:
    source = write_source({"model.py": ""})
    with pytest.raises(TerminatedError), running(source, "model.py"):
        raise TerminatedError


def test_the_reason_of_later_calls_can_be_another(write_source: WriteSource) -> None:
    source = write_source({"metrics.py": "def calc():\n    return 1 / 0"})
    module = load(source, "metrics.py")
    with pytest.raises(StageError) as caught, running(source, "metrics.py", Reason.METRIC_FAILED):
        module.calc()
    assert caught.value.reason is Reason.METRIC_FAILED
    assert caught.value.message == "metrics.py:2: ZeroDivisionError: division by zero"


def test_a_failed_import_can_be_repeated(write_source: WriteSource) -> None:
    source = write_source({"model.py": "raise ValueError"})
    for _ in range(2):
        assert failure(source, entry()).reason is Reason.USER_CODE_FAILED
