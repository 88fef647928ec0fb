"""What a requirements file may ask for."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.packages import image, requirements_file
from triton_converters.packages.requirements_file import LARGEST_BYTES, LONGEST, MOST_REQUIREMENTS

SHA256 = f"sha256:{'a' * 64}"


def read(folder: Path, text: str | bytes) -> list[str]:
    file = folder / "requirements.txt"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return [f"{line.place}: {line}" for line in requirements_file.read(file, "requirements.txt")]


def refusal(folder: Path, text: str | bytes) -> str:
    with pytest.raises(StageError) as caught:
        read(folder, text)
    assert caught.value.reason is Reason.REQUIREMENTS_INVALID
    assert caught.value.final
    return caught.value.message


def test_plain_requirements_are_taken_with_their_lines(tmp_path: Path) -> None:
    text = f"""\ufeff# what model.py imports
timm==1.0.9          # pinned
transformers[torch] >=4.40, <5 ; python_version >= "3.11"

tokenizers==0.20.0 \\
    --hash={SHA256} \\
    --hash=sha512:{"b" * 128}
    # the end
"""
    assert read(tmp_path, text) == [
        "requirements.txt:2: timm==1.0.9",
        'requirements.txt:3: transformers[torch]<5,>=4.40; python_version >= "3.11"',
        f"requirements.txt:5: tokenizers==0.20.0 --hash={SHA256} --hash=sha512:{'b' * 128}",
    ]


def test_an_empty_file_asks_for_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, "\n# nothing yet\n") == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("-e .", "is an option of pip"),
        ("-r other.txt", "is an option of pip"),
        ("--index-url https://elsewhere.example/simple", "is an option of pip"),
        ("--extra-index-url=https://elsewhere.example/simple", "is an option of pip"),
        (f"--hash={SHA256}", "is an option of pip"),
        ("./local", "names a place"),
        ("/etc/passwd", "names a place"),
        ("~/wheels/timm.whl", "names a place"),
        ("timm-1.0.9-py3-none-any.whl", "names a place"),
        ("timm.tar.gz", "names a place"),
        ("timm==1.0+a.zip", "names a place"),
        ("timm===1.tar.gz", "names a place"),
        ('timm!=1.0+b.zip; os_name == "posix"', "names a place"),
        ("https://elsewhere.example/timm.whl", "names a place"),
        ("timm @ https://elsewhere.example/timm.whl", "names a place"),
        ("timm @ file:///tmp/timm.whl", "names a place"),
        ("timm@./timm", "names a place"),
        ("git+https://elsewhere.example/timm.git", "names a place"),
        ('timm; platform_version == "${PIP_INDEX_URL}"', "names a place"),
        *(
            (f'timm; platform_version == "{text}"', words)
            for text, words in {
                r"\x24{PIP_INDEX_URL}": r"holds '\\'",
                r"\44{PIP_INDEX_URL}": r"holds '\\'",
                r"https:\x2f/elsewhere.example": "holds ':'",
                "\x1b[31m": r"holds '\x1b'",
                "\x9b31m": r"holds '\x9b'",
                "x # y": "is not a requirement",
                "x#y": "holds '#'",
                "x --index-url=y": "takes for an option",
                "x' or 'y": "a quote within quotes",
            }.items()
        ),
        ("timm; platform_version == 'x\" or os_name == \"y'", "a quote within quotes"),
        (f'timm; platform_version == "{"x" * LONGEST}"', f"longer than {LONGEST} characters"),
        (f"timm; {'(' * 100}os_name == 'x'{')' * 100}", "parentheses"),
        ("timm==1.0 --global-option=x", "is not a requirement"),
        ("timm==1.0 --config-settings x=y", "is not a requirement"),
        ("timm=1.0", "is not a requirement"),
        ("folder/timm", "is not a requirement"),
        ("timm==1.0 --hash=md5:abc", "is no hash"),
    ],
)
def test_everything_else_is_refused_and_the_line_is_named(tmp_path: Path, line: str, words: str) -> None:
    message = refusal(tmp_path, f"numpy\n\n{line}\n")
    assert message.startswith("requirements.txt:3: ")
    assert words in message


def test_a_line_may_hold_many_hashes(tmp_path: Path) -> None:
    """What tools write for a package with a wheel for each Python and platform."""
    (line,) = read(tmp_path, f"timm==1.0.9 {f'--hash={SHA256} ' * 300}")
    assert line.count(SHA256) == 300


def test_a_comment_does_not_go_on_in_the_next_line(tmp_path: Path) -> None:
    assert "requirements.txt:2" in refusal(tmp_path, "# harmless \\\n-e .\n")
    assert "requirements.txt:1" in refusal(tmp_path, "timm \\\n--index-url x\n")


def test_a_file_is_bounded(tmp_path: Path) -> None:
    assert f"more than {LARGEST_BYTES} bytes" in refusal(tmp_path, "#" * (LARGEST_BYTES + 1))
    assert f"at most {MOST_REQUIREMENTS}" in refusal(tmp_path, "timm\n" * (MOST_REQUIREMENTS + 1))
    assert "not UTF-8" in refusal(tmp_path, b"timm\xff")
    assert len(refusal(tmp_path, "-" + "x" * 5000)) < 300


@given(st.lists(st.text(alphabet=" \t\\#-=[]();@:/.,~!<>'\"${}\r\n\x0b\x0cabc1"), max_size=8).map("\n".join))
def test_nothing_that_is_read_is_more_than_a_requirement(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.getbasetemp() / "any.txt"
    file.write_bytes(text.encode())
    try:
        lines = requirements_file.read(file, "any.txt")
    except StageError:
        return
    for line in lines:
        said = str(line)
        assert "\n" not in said
        assert said[0].isalnum()
        assert line.requirement.url is None
        assert "$" not in said
        assert "://" not in said


@pytest.mark.parametrize(
    "marker", ["os_name ~= 'x'", "os_name === 'x'", "python_version ~= '3'", "extra ~= 'x'", "'x' ~= 'y'"]
)
def test_a_marker_that_nobody_can_judge_names_the_line_and_is_final(tmp_path: Path, marker: str) -> None:
    (tmp_path / "requirements.txt").write_text(f"timm; {marker}\n")
    with pytest.raises(StageError) as caught:
        image.check(requirements_file.read(tmp_path / "requirements.txt", "requirements.txt"), {})
    assert (caught.value.reason, caught.value.final) == (Reason.REQUIREMENTS_INVALID, True)
    assert "requirements.txt:1: the marker cannot be judged" in caught.value.message
