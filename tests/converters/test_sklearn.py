"""Models of scikit-learn, converted: each answers as scikit-learn does, or is refused by name before it runs."""

import functools
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy
import onnxruntime
import pytest
import skops.io
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingRegressor,
    VotingClassifier,
)
from sklearn.feature_selection import VarianceThreshold
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_array

from tests.converters.saved_pipelines import (
    CODES,
    CONVERTED,
    IS_SICK,
    KINDS,
    REFUSED,
    SICK,
    UNCONVERTED,
    WINE,
    altered,
    saved,
    trained,
)
from triton_converters.convert.sklearn_onnx import graph
from triton_converters.load.sklearn_model import opened
from triton_converters.load.sklearn_pipeline import SklearnFramework
from triton_converters.trees import skops_file
from triton_converters.trees.forest import BrokenError, UnsupportedError


def read(folder: Path, content: bytes) -> SklearnFramework:
    """A model that is opened from a file."""
    file = folder / "m.skops"
    file.write_bytes(content)
    model = opened(file)
    nodes = len(model.forest.left) if model.forest is not None else 0
    return SklearnFramework(model, "scikit-learn", folder, file.name, numpy.zeros(nodes, bool))


def shuffled(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Rows of the same values in each column, put together by chance."""
    random = numpy.random.default_rng(3)
    return {name: random.permuted(array, axis=0) for name, array in inputs.items()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CONVERTED)
def test_a_graph_answers_as_the_library(tmp_path: Path, name: str) -> None:
    framework = read(tmp_path, saved(CONVERTED[name]()))
    session = onnxruntime.InferenceSession(graph(framework.model).SerializeToString())
    made = framework.rows(256, numpy.random.default_rng(0))
    assert {each.name: tuple(each.shape) for each in session.get_inputs()} == {
        each.name: each.dims for each in framework.declared
    }
    for inputs in (made, shuffled(made)):
        given = {name: array.astype(object) if array.dtype.kind == "U" else array for name, array in inputs.items()}
        expected = framework(inputs)["prediction"]
        assert expected.dtype == numpy.float32
        (found,) = session.run(None, given)
        numpy.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * max(1, numpy.abs(expected).max()))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_converted_is_refused_by_name(tmp_path: Path, name: str) -> None:
    made, words = REFUSED[name]
    with pytest.raises(UnsupportedError, match=words):
        read(tmp_path, saved(made()))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", UNCONVERTED)
def test_what_skl2onnx_does_not_convert_is_told(tmp_path: Path, name: str) -> None:
    made, words = UNCONVERTED[name]
    with pytest.raises(Exception, match=words):
        graph(read(tmp_path, saved(made())).model)


def test_a_model_in_a_model_and_a_booster_in_it_are_named(tmp_path: Path) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    booster = lightgbm.LGBMClassifier(n_estimators=2, verbose=-1).fit(WINE, KINDS)
    (tmp_path / "m.skops").write_bytes(saved(booster))
    with pytest.raises(UnsupportedError, match=r"holds (lightgbm|collections).*"):
        skops_file.check(tmp_path / "m.skops")


# Rows ---------------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "share"),
    [("words for boosting", 0.95), ("words and gaps for histograms", 0.9), ("scaled times for a forest", 0.4)],
)
def test_rows_of_a_pipeline_reach_leaves_behind_its_steps(tmp_path: Path, name: str, share: float) -> None:
    framework = read(tmp_path, saved(CONVERTED[name]()))
    framework(framework.rows(256, numpy.random.default_rng(0)))
    assert framework.leaves is not None
    reached, total = framework.leaves
    by_chance = read(tmp_path, saved(CONVERTED[name]()))
    random = numpy.random.default_rng(1)
    by_chance({name: random.permuted(each, axis=0) for name, each in framework.rows(16, random).items()})
    assert by_chance.leaves is not None
    assert reached > share * total > by_chance.leaves[0] * 0.5


@pytest.mark.filterwarnings("ignore")
def test_rows_have_each_word_and_one_that_is_unknown_and_missing_numbers(tmp_path: Path) -> None:
    framework = read(tmp_path, saved(CONVERTED["words for a linear model"]()))
    rows = framework.rows(256, numpy.random.default_rng(0))
    assert {"Oslo", "Pécs", "Rome", "São Paulo", "something else", ""} <= set(rows["x1"].ravel().tolist())
    assert numpy.isnan(rows["x0"]).any()
    strict = read(tmp_path, saved(CONVERTED["columns that are left over"]()))
    refused = strict.rows(256, numpy.random.default_rng(0))
    assert set(refused["x1"].ravel().tolist()) == {"Oslo", "Pécs", "Rome", "São Paulo"}
    assert not numpy.isnan(refused["x0"]).any()


@pytest.mark.filterwarnings("ignore")
def test_columns_have_the_names_of_a_table_of_pandas(tmp_path: Path) -> None:
    model = CONVERTED["words for a forest"]()
    model.steps[0][1].feature_names_in_ = numpy.array(["size", "city", "number", "is new", "_"], object)
    framework = read(tmp_path, saved(model))
    assert framework.inputs == ("size", "city", "number", "is new", "_")
    assert [each.type for each in framework.declared] == ["float64", "str", "float64", "str", "float64"]
    rows = framework.rows(32, numpy.random.default_rng(0))
    session = onnxruntime.InferenceSession(graph(framework.model).SerializeToString())
    given = {name: array.astype(object) if array.dtype.kind == "U" else array for name, array in rows.items()}
    numpy.testing.assert_allclose(session.run(None, given)[0], framework(rows)["prediction"], atol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_a_column_that_no_step_takes_is_no_input(tmp_path: Path) -> None:
    assert read(tmp_path, saved(CONVERTED["words, and columns that are dropped"]())).inputs == ("x0", "x3")
    assert read(tmp_path, saved(CONVERTED["three columns of five"]())).inputs == ("x0", "x2", "x4")


# Files that skops did not write ---------------------------------------------------------------------------------------

TREE = trained(DecisionTreeClassifier(max_depth=3), WINE, KINDS)
HISTOGRAMS = trained(HistGradientBoostingClassifier(max_iter=2, categorical_features=[0, 5]), CODES, KINDS)
Change = Callable[[Any, dict[str, bytes]], None]


def nodes(schema: Any, loader: str) -> list[Any]:
    """All nodes of a kind."""
    found = []
    left = [schema]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            found += [each] if each.get("__loader__") == loader else []
            left.extend(each.values())
        elif isinstance(each, list):
            left.extend(each)
    return found


def rewritten(files: dict[str, bytes], name: str, change: Callable[[Any], Any]) -> None:
    """Change an array of the file."""
    from io import BytesIO

    array = numpy.load(BytesIO(files[name]))
    made = BytesIO()
    numpy.save(made, change(array))
    files[name] = made.getvalue()


def in_tree(column: str, value: Any, row: int = 0) -> Change:
    """Change a node of the tree."""

    def change(schema: Any, files: dict[str, bytes]) -> None:
        def put(array: Any) -> Any:
            array[column][row] = value
            return array

        (tree,) = nodes(schema, "TreeNode")
        rewritten(files, tree["content"]["content"]["nodes"]["file"], put)

    return change


def of_tree(*path: Any, value: Any) -> Change:
    """Change what the schema says of the tree."""

    def change(schema: Any, files: dict[str, bytes]) -> None:
        (place,) = nodes(schema, "TreeNode")
        for each in path[:-1]:
            place = place[each]
        place[path[-1]] = value

    return change


def longer(schema: Any, files: dict[str, bytes]) -> None:
    """Give the tree a list of classes that is too short for its outputs."""
    (tree,) = nodes(schema, "TreeNode")
    tree["__reduce__"]["args"]["content"][2]["content"] = "1000000"


def number_in_a_file(schema: Any, files: dict[str, bytes]) -> None:
    """Let skops read the number of nodes from a file, and not where it is checked."""
    (tree,) = nodes(schema, "TreeNode")
    count, array = (tree["content"]["content"][name] for name in ("node_count", "values"))
    count.update({**array, "__id__": 1, "content": count["content"], "__module__": "numpy", "__class__": "int64"})


def without_bytes(schema: Any, files: dict[str, bytes]) -> None:
    """Put an array of 10**15 elements into a few bytes."""
    from io import BytesIO

    made = BytesIO()
    numpy.lib.format.write_array_header_1_0(made, {"descr": "|V0", "fortran_order": False, "shape": (10**15,)})
    files[next(name for name in files if name.endswith(".npy"))] = made.getvalue()


def another(schema: Any, files: dict[str, bytes]) -> None:
    """Let skops take another array for the tree's nodes: one that it has loaded before, by the number."""
    (tree,) = nodes(schema, "TreeNode")
    array = next(each for each in nodes(schema, "NdArrayNode") if each["file"] != tree["content"]["content"]["nodes"])
    array["__id__"] = tree["content"]["content"]["nodes"]["__id__"]


def replaced(loader: str, name: str) -> Change:
    """Replace a type."""

    def change(schema: Any, files: dict[str, bytes]) -> None:
        place = nodes(schema, "ObjectNode")[0]
        module, _, kind = name.rpartition(".")
        place.update({"__loader__": loader, "__module__": module, "__class__": kind})

    return change


def partial(schema: Any, files: dict[str, bytes]) -> None:
    """Call a function as the file is loaded."""
    inner = {"__module__": "builtins", "__class__": "tuple", "__loader__": "TupleNode", "__id__": 1, "content": []}
    function = {"__module__": "os", "__class__": "system", "__loader__": "FunctionNode", "__id__": 2}
    content = {"func": function, "args": inner, "kwds": inner, "namespace": inner}
    replaced("PartialNode", "functools.partial")(schema, files)
    nodes(schema, "PartialNode")[0]["content"] = content


def objects(schema: Any, files: dict[str, bytes]) -> None:
    """Put a pickle into an array."""
    from io import BytesIO

    made = BytesIO()
    numpy.save(made, numpy.array([print], object), allow_pickle=True)
    name = next(name for name in files if name.endswith(".npy"))
    files[name] = made.getvalue()


def deep(schema: Any, files: dict[str, bytes]) -> None:
    """Put lists into each other."""
    inner: Any = {"__loader__": "ListNode", "__module__": "builtins", "__class__": "list", "__id__": 1, "content": []}
    for number in range(2, 300):
        inner = {**inner, "__id__": number, "content": [inner]}
    nodes(schema, "ListNode")[0]["content"].append(inner)


BROKEN: dict[str, Change] = {
    "a circle": in_tree("left_child", 0),
    "a child twice": in_tree("left_child", 2),
    "a far child": in_tree("right_child", 10**8),
    "a feature that is none": in_tree("feature", 99),
    "a negative feature": in_tree("feature", -9),
    "more nodes than there are": of_tree("content", "content", "node_count", "content", value="100000"),
    "deeper than it is": of_tree("content", "content", "max_depth", "content", value="-5"),
    "other numbers of outputs": longer,
    "another number of features": of_tree("__reduce__", "args", "content", 0, "content", value='"many"'),
    "a number in a file": number_in_a_file,
    "elements without bytes": without_bytes,
    "an array of objects": objects,
    "another array by its number": another,
    "objects inside each other": deep,
    "a short array": lambda schema, files: files.update({next(iter(files)): b"\x93NUMPY"}),
    "a missing array": lambda schema, files: [files.pop(name) for name in list(files) if name != "schema.json"],
    "a file of its own": lambda schema, files: files.update({"../evil.py": b"1"}),
    "a list for a schema": lambda schema, files: schema.clear(),
}
FOREIGN: dict[str, Change] = {
    "os.system": replaced("FunctionNode", "os.system"),
    "functools.partial of os.system": partial,
    "operator.methodcaller": replaced("OperatorFuncNode", "operator.methodcaller"),
    "my_module.Model": replaced("ObjectNode", "my_module.Model"),
    "xgboost.core.Booster": replaced("ObjectNode", "xgboost.core.Booster"),
    "sklearn.utils._bunch.Bunch": replaced("MethodNode", "sklearn.utils._bunch.Bunch"),
    "of skops' protocol 0": lambda schema, files: schema.update(protocol=0),
}


@pytest.fixture
def never_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*_: Any, **__: Any) -> None:
        pytest.fail("skops loaded it")

    monkeypatch.setattr(skops.io, "load", load)


@pytest.mark.usefixtures("never_loaded")
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_before_skops_loads_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(BrokenError):
        read(tmp_path, altered(saved(TREE()), BROKEN[name]))


@pytest.mark.usefixtures("never_loaded")
@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_type_is_refused_before_skops_loads_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnsupportedError, match=re.escape(name)):
        read(tmp_path, altered(saved(TREE()), FOREIGN[name]))


@pytest.mark.usefixtures("never_loaded")
def test_a_zip_that_unpacks_to_much_more_is_refused(tmp_path: Path) -> None:
    def grow(schema: Any, files: dict[str, bytes]) -> None:
        files["1.npy"] = bytes(2**24)

    with pytest.raises(BrokenError, match="bytes unpacked"):
        read(tmp_path, altered(saved(TREE()), grow, compression=zipfile.ZIP_DEFLATED))


@pytest.mark.usefixtures("never_loaded")
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_link_and_a_name_twice_are_refused(tmp_path: Path) -> None:
    for name in ("1.npy", "schema.json"):
        with zipfile.ZipFile(tmp_path / "m.skops", "w") as archive:
            archive.writestr("schema.json", "{}")
            link = zipfile.ZipInfo(name)
            link.external_attr = 0o120777 << 16
            archive.writestr(link, "/etc/passwd")
        with pytest.raises(BrokenError, match="link" if name == "1.npy" else "different names"):
            skops_file.check(tmp_path / "m.skops")


def in_histograms(column: str, value: Any) -> Change:
    """Change a node of the first tree."""

    def change(schema: Any, files: dict[str, bytes]) -> None:
        def put(array: Any) -> Any:
            array[column][0] = value
            return array

        first = next(each for each in nodes(schema, "ObjectNode") if each["__class__"] == "TreePredictor")
        rewritten(files, first["content"]["content"]["nodes"]["file"], put)

    return change


def fewer_sets(schema: Any, files: dict[str, bytes]) -> None:
    """Take the sets of categories away."""
    for each in nodes(schema, "ObjectNode"):
        if each["__class__"] == "TreePredictor":
            rewritten(files, each["content"]["content"]["raw_left_cat_bitsets"]["file"], lambda array: array[:0])


@pytest.mark.parametrize(
    "change", [in_histograms("left", 0), in_histograms("right", 2**31), in_histograms("feature_idx", 77), fewer_sets]
)
def test_broken_histograms_are_refused_before_they_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Change
) -> None:
    monkeypatch.setattr(HistGradientBoostingClassifier, "predict_proba", lambda *_: pytest.fail("it was asked"))
    with pytest.raises(BrokenError):
        read(tmp_path, altered(saved(HISTOGRAMS()), change))


# Files whose types and trees are right --------------------------------------------------------------------------------


def any_method() -> Any:
    """A stack that lets an estimator train, which would read the pickles of a folder."""
    model = StackingRegressor([("a", LinearRegression())]).fit(SICK, IS_SICK)
    model.stack_method_ = ["fit_transform"]
    return model


def encoder(**options: Any) -> Any:
    """A pipeline with an encoder of two columns, whose second one has three categories."""
    rows = numpy.array([[0.0, 0.0], [1.0, 1.0], [0.0, 2.0]] * 4)
    return make_pipeline(OneHotEncoder(handle_unknown="ignore", **options), LinearRegression()).fit(rows, rows[:, 1])


def turned() -> Any:
    """An encoder whose search ends behind its categories."""
    model = encoder()
    model[0].categories_[1] = model[0].categories_[1][::-1]
    return model


def no_category() -> Any:
    """An encoder whose first column has -1 places."""
    model = encoder(drop="first")
    model[0].categories_[0] = numpy.zeros(0)
    return model


def rare() -> Any:
    """An encoder that groups categories which it does not have."""
    model = encoder(max_categories=2)
    model[0]._infrequent_indices[1] = numpy.array([10**7])
    return model


def lacking_columns() -> Any:
    """Histograms that leave out the columns which their trees read."""
    model = HISTOGRAMS()
    model._preprocessor.transformers_[1] = ("numerical", VarianceThreshold().fit(CODES[:, 1:5]), [1, 2, 3, 4])
    return model


def in_a_set() -> Any:
    """Votes of a tree that reads beyond the columns that it tells of."""
    model = VotingClassifier([("a", TREE())], voting="soft").fit(WINE, KINDS)
    wide = DecisionTreeClassifier(max_depth=1).fit(numpy.insert(WINE * 0, 0, KINDS, axis=1)[:, ::-1], KINDS)
    wide.n_features_in_ = 13
    model.estimators_ = {wide}
    return make_pipeline(StandardScaler().fit(WINE), model)


def a_method() -> Any:
    """A tree that does not check what it is given."""
    model = TREE()
    model._validate_X_predict = functools.partial(check_array, dtype=numpy.float32)
    return model


def other_classes() -> Any:
    """A forest of which one tree answers by its first class alone."""
    model = RandomForestClassifier(3).fit(WINE, KINDS)
    model.estimators_[0].n_classes_ = 1
    return model


def other_estimators() -> Any:
    """A forest of which one answers by other trees than by that which it shows."""
    model = RandomForestClassifier(3).fit(WINE, KINDS)
    other = RandomForestClassifier(2).fit(WINE, KINDS)
    other.tree_ = model.estimators_[0].tree_
    model.estimators_[0] = other
    return model


def two_values() -> Any:
    """Boosting with trees of two values for each node, which compiled code takes for those of two nodes."""
    model = GradientBoostingClassifier(n_estimators=2).fit(SICK, IS_SICK)
    model.estimators_[0, 0].tree_ = DecisionTreeClassifier(max_depth=2).fit(SICK, IS_SICK).tree_
    return model


def turned_edges() -> Any:
    """Bins whose edges do not ascend."""
    model = make_pipeline(KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf"), LinearRegression())
    model.fit(WINE, KINDS)
    model[0].bin_edges_[0] = model[0].bin_edges_[0][::-1]
    return model


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("made", "words"),
    [
        (any_method, "asks its estimators for something else"),
        (turned, "do not ascend"),
        (no_category, "a column without categories"),
        (rare, "rare categories that it does not have"),
        (lacking_columns, "prepares its columns otherwise"),
        (in_a_set, "a feature that is none of 13"),
        (a_method, "that brings its own _validate_X_predict"),
        (other_classes, "different numbers of classes"),
        (other_estimators, "something else among its trees"),
        (two_values, "different numbers of features or outputs"),
        (turned_edges, "do not ascend"),
    ],
)
def test_what_compiled_code_would_trust_is_refused_before_it_runs(
    tmp_path: Path, made: Callable[[], Any], words: str
) -> None:
    with pytest.raises(BrokenError, match=words):
        read(tmp_path, saved(made()))


@pytest.mark.filterwarnings("ignore")
def test_the_places_of_an_encoder_are_computed_anew(tmp_path: Path) -> None:
    """By those of the file, scikit-learn would write beyond a matrix."""
    model = encoder(drop="first", max_categories=2)
    table = numpy.array([[1.0, 1.0], [0.0, 2.0]])
    expected = model.predict(table)
    model[0]._drop_idx_after_grouping = numpy.array([10**7, 10**7], object)
    model[0]._default_to_infrequent_mappings[1] = numpy.array([10**7] * 3)
    model[0]._n_features_outs = [1, 1]
    numpy.testing.assert_allclose(read(tmp_path, saved(model)).model.answers(table)[:, 0], expected)


@pytest.mark.filterwarnings("ignore")
def test_a_tree_is_its_own_and_not_those_that_it_shows(tmp_path: Path) -> None:
    model = DecisionTreeClassifier(max_depth=2).fit(WINE, KINDS)
    leaves = model.tree_.n_leaves
    model.estimators_ = [DecisionTreeClassifier().fit(WINE, KINDS)]
    framework = read(tmp_path, saved(model))
    assert framework.leaves is not None
    assert framework.leaves[1] == leaves


@pytest.mark.filterwarnings("ignore")
def test_a_pipeline_keeps_nothing_in_files(tmp_path: Path) -> None:
    model = make_pipeline(StandardScaler(), LinearRegression(), memory=str(tmp_path / "kept")).fit(SICK, IS_SICK)
    assert read(tmp_path, saved(model)).model.estimator.memory is None


def test_a_table_of_any_width_is_not_made(tmp_path: Path) -> None:
    model = TREE()
    model.n_features_in_ = 10**9
    with pytest.raises(UnsupportedError, match="has 1000000000 columns"):
        read(tmp_path, saved(model))


def test_a_forest_of_another_width_is_refused(tmp_path: Path) -> None:
    model = RandomForestClassifier(3).fit(SICK, IS_SICK)
    model.estimators_[1] = RandomForestClassifier(1).fit(SICK[:, :4], IS_SICK).estimators_[0]
    with pytest.raises(BrokenError, match="different numbers of features"):
        read(tmp_path, saved(model))


def test_any_byte_of_a_file_may_be_another(tmp_path: Path) -> None:
    random = numpy.random.default_rng(0)
    content = bytearray(saved(TREE()))
    for _ in range(150):
        changed = content.copy()
        changed[int(random.integers(len(changed)))] = int(random.integers(256))
        try:
            (tmp_path / "m.skops").write_bytes(changed)
            skops_file.check(tmp_path / "m.skops")
        except (BrokenError, UnsupportedError):
            continue
