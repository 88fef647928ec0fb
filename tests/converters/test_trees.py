"""Models of trees, converted: each answers as its own library does, at thresholds too, or is refused by name."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import onnxruntime
import pytest
import xgboost
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.converters import grown
from tests.converters.grown import LIGHTGBM, XGBOOST, boosted, light, saved, stopped
from triton_converters.claim_store.dump import Array
from triton_converters.convert.trees_onnx import graph_of
from triton_converters.load import lightgbm_trees, xgboost_trees
from triton_converters.trees import lightgbm_model, ubjson, xgboost_model
from triton_converters.trees.forest import BrokenError, Forest, UnsupportedError
from triton_converters.trees.rows import rows

VERSION = [int(each) for each in xgboost.__version__.split(".")]
TINY = float(numpy.float32(1e-35))
ODD = (numpy.nan, 0.0, -0.0, 1e-36, -TINY, TINY)
"""Values that libraries take for another one."""


def read_xgboost(content: bytes) -> Forest:
    """The trees of a file that is read by the version that wrote it."""
    return xgboost_model.read(content, VERSION)


def asked(forest: Forest, categories: bool) -> Iterator[tuple[str, Array]]:
    """Yield rows that lead to leaves, rows at thresholds, and odd ones."""
    random = numpy.random.default_rng(5)
    leading = rows(forest, 256, random)
    yield "leading to leaves", leading
    yield "at thresholds", numpy.concatenate([rows(forest, 4, numpy.random.default_rng(each)) for each in range(60)])
    odd = leading[random.integers(0, len(leading), 600)]
    for value in ODD[: 2 if categories else None]:
        odd[random.random(odd.shape) < 0.05] = value
    yield "odd", odd
    if categories:
        for shift in (0.4, -0.3, 1000):
            moved = leading.copy()
            moved[:, 4:] += shift
            yield f"categories moved by {shift}", moved


def check(forest: Forest, predict: Callable[[Array], Array], *, categories: bool) -> None:
    """The graph answers all rows as the library does, up to rounding."""
    session = onnxruntime.InferenceSession(graph_of(forest).SerializeToString())
    for what, table in asked(forest, categories):
        expected = numpy.asarray(predict(table)).reshape(len(table), -1)
        (found,) = session.run(None, {"features": table})
        assert found.dtype == numpy.float32
        size = numpy.abs(expected).max()
        numpy.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * size, err_msg=what)


@pytest.mark.parametrize("name", XGBOOST)
def test_a_model_of_xgboost_answers_as_xgboost_does(name: str) -> None:
    model = XGBOOST[name]()
    texts = [saved(model, suffix) for suffix in ("json", "ubj")]
    forest, binary = map(read_xgboost, texts)
    assert graph_of(forest) == graph_of(binary), "both forms of a file say the same"
    check(forest, xgboost_trees.opened(texts[0]), categories="categor" in name)


def test_a_class_to_which_no_tree_adds_keeps_its_base() -> None:
    """ONNX Runtime answers 0 for it."""
    classes = numpy.where(numpy.arange(grown.ROWS) == 0, 2, grown.CLASSES % 2)
    model = boosted("multi:softprob", target=classes, num_class=3, min_child_weight=5, base_score=[0.5, 1.0, 2.0])()
    text = saved(model, "json")
    forest = read_xgboost(text)
    assert len(forest.roots) == 16, "the third class has trees of one leaf"
    check(forest, xgboost_trees.opened(text), categories=False)


@pytest.mark.parametrize("name", LIGHTGBM)
def test_a_model_of_lightgbm_answers_as_lightgbm_does(name: str) -> None:
    text = saved(LIGHTGBM[name](), "txt")
    check(lightgbm_model.read(text), lightgbm_trees.opened(text), categories="categor" in name)


def test_a_model_that_was_stopped_early_answers_by_its_best_rounds() -> None:
    """As XGBClassifier.predict_proba does; a Booster of the same file uses all."""
    model = stopped(boosted("multi:softprob", target=grown.CLASSES, num_class=3)(), 3)
    text = saved(model, "json")
    forest = read_xgboost(text)
    assert len(forest.roots) == 9
    check(forest, xgboost_trees.opened(text), categories=False)
    model.set_attr(scikit_learn=None)
    assert len(read_xgboost(saved(model, "json")).roots) == 24


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (saved(boosted("reg:squarederror", booster="gblinear")(), "json"), "has the booster gblinear"),
        (
            saved(boosted("reg:squarederror")(), "json").replace(b"reg:squarederror", b"reg:ownobjective"),
            "objective reg:own",
        ),
        (saved(boosted("reg:squarederror", target=numpy.ones(grown.ROWS))(), "json"), "no tree that splits"),
        (saved(boosted("reg:quantileerror", quantile_alpha=[0.1, 0.9])(), "json"), "train a model for each"),
        (saved(light("regression", linear_tree=True)(), "txt"), "linear_tree"),
        (saved(light("regression")(), "txt").replace(b"objective=regression", b"objective=own"), "objective own"),
    ],
)
def test_what_is_not_converted_is_refused_by_name(text: bytes, words: str) -> None:
    read = read_xgboost if text.startswith(b"{") else lightgbm_model.read
    with pytest.raises(UnsupportedError, match=words):
        read(text)


def test_a_file_of_a_later_xgboost_is_refused_with_both_versions() -> None:
    """XGBoost 3.2 reads a model of dart that 3.4 saved, and leaves out the weights of its trees."""
    content = saved(boosted("reg:squarederror")(), "json")
    with pytest.raises(
        UnsupportedError, match=rf"is of XGBoost {xgboost.__version__}, and XGBoost 2.9.9 reads it here"
    ):
        xgboost_model.read(content, (2, 9, 9))
    later = content.replace(b'"trees":', b'"tilts":[],"trees":')
    with pytest.raises(UnsupportedError, match="has tilts, which is not known here"):
        read_xgboost(later)


def test_the_weights_of_dropped_trees_are_in_the_model_since_version_3_4() -> None:
    document = json.loads(saved(XGBOOST["dropped trees"](), "json"))
    booster = document["learner"]["gradient_booster"]
    weights = booster.get("weight_drop") or booster["model"]["weight_drop"]
    model = booster.get("gbtree", booster)["model"] | {"weight_drop": weights}
    old = {"name": "dart", "gbtree": {"name": "gbtree", "model": model}, "weight_drop": weights}
    forests = []
    for each in (old, {"name": "gbtree", "model": model}):
        document["learner"]["gradient_booster"] = each
        forests.append(read_xgboost(json.dumps(document).encode()))
    assert len(set(weights)) > 1
    assert graph_of(forests[0]) == graph_of(forests[1])


def test_zeros_that_are_missing_in_some_splits_alone_are_refused() -> None:
    text = saved(LIGHTGBM["zeros are missing"](), "txt").decode()
    kinds = re.search(r"^decision_type=(.*)$", text, re.MULTILINE)
    assert kinds is not None
    others = " ".join(str((int(each) | 8) & ~4) for each in kinds[1].split())
    with pytest.raises(UnsupportedError, match="takes 0 for missing in some splits of feature"):
        lightgbm_model.read(text.replace(kinds[0], f"decision_type={others}", 1).encode())


def test_rows_reach_all_leaves_if_there_may_be_enough() -> None:
    forest = lightgbm_model.read(saved(LIGHTGBM["missing values"](), "txt"))
    leaves = set(forest.adding.tolist())
    random = numpy.random.default_rng(0)
    assert set(forest.leaves(rows(forest, 256, random)).ravel().tolist()) == leaves
    few = rows(forest, 8, random)
    assert few.shape == (8, forest.features)
    by_chance = forest.leaves(random.random((8, forest.features)))
    assert len(numpy.unique(by_chance)) < len(numpy.unique(forest.leaves(few))) < len(leaves)


# Files that no library wrote ----------------------------------------------------------------------------------------


def altered(change: Callable[[Any, Any], None]) -> bytes:
    """A model of XGBoost with categories; ``change`` gets the learner and its first tree."""
    document = json.loads(saved(XGBOOST["categories"](), "json"))
    learner = document["learner"]
    change(learner, learner["gradient_booster"]["model"]["trees"][0])
    return json.dumps(document).encode()


def _set(*path: Any) -> Callable[[Any, Any], None]:
    *way, last, value = path

    def change(learner: Any, tree: Any) -> None:
        place = learner if way and way[0] in learner else tree
        for each in way:
            place = place[each]
        place[last] = value

    return change


PARAMETERS, TREES = "learner_model_param", ("gradient_booster", "model")
BROKEN = {
    "a circle": _set("left_children", 1, 0),
    "a child twice": lambda learner, tree: tree.update(
        left_children=[1, *tree["left_children"][1:]], right_children=[1, *tree["right_children"][1:]]
    ),
    "a far child": _set("left_children", 0, 10**8),
    "a negative child": _set("left_children", 0, -77),
    "a far feature": _set("split_indices", 0, 10**8),
    "a short list": lambda learner, tree: tree.update(split_conditions=tree["split_conditions"][:2]),
    "a text in a list": _set("split_conditions", 0, "a"),
    "a large number": _set("left_children", 0, 2**70),
    "a threshold that is none": _set("split_conditions", 0, float("nan")),
    "a tree of a far class": _set(*TREES, "tree_info", 0, 10**6),
    "no feature": _set(PARAMETERS, "num_feature", "many"),
    "a base that is none": _set(PARAMETERS, "base_score", "[]"),
    "categories elsewhere": _set("categories_segments", 0, 10**9),
    "many categories": _set("categories_sizes", 0, 10**9),
    "a negative category": _set("categories", 0, -1),
    "the same categories for many nodes": lambda learner, tree: tree.update(
        categories_segments=[0] * len(tree["categories_sizes"]),
        categories_sizes=[len(tree["categories"])] * len(tree["categories_sizes"]),
    ),
    "a large category": _set("categories", 0, 2**24),
    "trees before the first round": lambda learner, tree: learner["gradient_booster"]["model"][
        "iteration_indptr"
    ].__setitem__(0, 2),
    "a list in a list": _set("split_conditions", 0, [1.0]),
    "vectors": _set("tree_param", "size_leaf_vector", "1000000"),
    "a list for a tree": _set(*TREES, "trees", 0, []),
    "no model": lambda learner, tree: learner["gradient_booster"].clear(),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_model_of_xgboost_is_refused_before_xgboost_reads_it(name: str) -> None:
    with pytest.raises(BrokenError):
        read_xgboost(altered(BROKEN[name]))


@pytest.mark.parametrize("size", ["2000000000", "10001"])
def test_a_table_of_any_size_is_not_made(size: str) -> None:
    with pytest.raises(UnsupportedError, match=f"has {size} features"):
        read_xgboost(altered(_set(PARAMETERS, "num_feature", size)))


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 10**6,
        b'{"learner":' * 10**5,
        b"{L" + (1).to_bytes(8, "big") + b"a" + b"[" * 10**6,
        b"{L" + (1).to_bytes(8, "big") + b"a[$d#L" + (2**60).to_bytes(8, "big"),
        b"{L" + (2**63).to_bytes(8, "big"),
        b"{L" + (1).to_bytes(8, "big") + b"a[#L" + (2**60).to_bytes(8, "big"),
        b"{}",
        b"",
    ],
)
def test_what_is_deep_or_long_by_its_word_alone_is_refused(content: bytes) -> None:
    with pytest.raises(BrokenError):
        read_xgboost(content)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_any_byte_of_ubjson_may_be_another(data: st.DataObject) -> None:
    content = bytearray(UBJSON)
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(1, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        forest = read_xgboost(bytes(content))
    except (BrokenError, UnsupportedError):
        return
    assert forest.leaves(rows(forest, 4, numpy.random.default_rng(0))).shape == (4, len(forest.roots))


UBJSON = saved(boosted("reg:squarederror", rounds=2)(), "ubj")


def test_ubjson_is_read_as_its_specification_says() -> None:
    text = b"{i\x01a[i\x01I\x00\x02TFZ]i\x01bSU\x02hii\x01c[$l#i\x01\x00\x00\x00\x07i\x01dD" + bytes.fromhex(
        "3ff0000000000000"
    )
    found = ubjson.loads(text + b"}")
    assert found["a"] == [1, 2, True, False, None]
    assert (found["b"], found["c"].tolist(), found["d"]) == ("hi", [7], 1.0)


LINES = {
    "a circle": (r"^left_child=\S+", "left_child=0"),
    "a far child": (r"^left_child=\S+", "left_child=100000000"),
    "a far leaf": (r"^left_child=\S+", "left_child=-100000000"),
    "a far feature": (r"^split_feature=\S+", "split_feature=100000000"),
    "many leaves": (r"^num_leaves=\d+", "num_leaves=2000000000"),
    "less than no leaf": (r"^num_leaves=\d+", "num_leaves=-5"),
    "a short list": (r"^threshold=.*$", "threshold=1 2"),
    "a text in a list": (r"^threshold=\S+", "threshold=a"),
    "a leaf that is none": (r"^leaf_value=\S+", "leaf_value=nan"),
    "another number of trees": (r"^tree_sizes=\d+", "tree_sizes="),
    "no objective's number": (r"^num_tree_per_iteration=\d+", "num_tree_per_iteration=x"),
    "categories elsewhere": (r"^cat_boundaries=.*$", "cat_boundaries=0 100000000"),
    "missing in a third way": (r"^decision_type=\d+", "decision_type=12"),
    "no line": (r"^leaf_value=.*\n", ""),
}


@pytest.mark.parametrize("name", LINES)
def test_a_broken_model_of_lightgbm_is_refused_before_lightgbm_reads_it(name: str) -> None:
    text = saved(LIGHTGBM["categories"](), "txt").decode()
    pattern, line = LINES[name]
    changed = re.sub(pattern, line, text, count=1, flags=re.MULTILINE)
    assert changed != text
    with pytest.raises(BrokenError):
        lightgbm_model.read(changed.encode())


def asking(words: int, nodes: int = 1) -> bytes:
    """A model of LightGBM whose nodes ask for every second category of so many words of 32 bits, the same for all."""
    head = saved(LIGHTGBM["regression"](), "txt").decode().partition("\nTree=")[0]
    numbers = range(nodes)
    lines = {
        "num_leaves": nodes + 1,
        "num_cat": 1,
        "split_feature": " ".join("0" for _ in numbers),
        "threshold": " ".join("0" for _ in numbers),
        "decision_type": " ".join("1" for _ in numbers),
        "left_child": " ".join(str(~each) for each in numbers),
        "right_child": " ".join([*map(str, numbers[1:]), str(~nodes)]),
        "leaf_value": " ".join(map(str, range(nodes + 1))),
        "cat_boundaries": f"0 {words}",
        "cat_threshold": " ".join([str(0x55555555)] * words),
    }
    tree = "".join(f"{name}={value}\n" for name, value in lines.items())
    return f"{re.sub('tree_sizes=.*', 'tree_sizes=1', head)}\nTree=0\n{tree}".encode()


def test_more_categories_than_a_runtime_loads_are_refused() -> None:
    """ONNX Runtime ends its process as it loads a chain of 20,000 splits, which 8 kB of text ask for."""
    forest = lightgbm_model.read(asking(60))
    onnxruntime.InferenceSession(graph_of(forest).SerializeToString())
    with pytest.raises(UnsupportedError, match="more than 2000 levels"):
        lightgbm_model.read(asking(63))


def test_categories_that_many_splits_share_are_refused() -> None:
    with pytest.raises(BrokenError, match="lists categories twice"):
        lightgbm_model.read(asking(2, nodes=2))


def test_half_a_model_of_lightgbm_is_refused(tmp_path: Path) -> None:
    text = saved(LIGHTGBM["regression"](), "txt")
    with pytest.raises(BrokenError):
        lightgbm_model.read(text[: len(text) // 3])
    with pytest.raises(BrokenError):
        lightgbm_model.read(b"tree\n\xff")
