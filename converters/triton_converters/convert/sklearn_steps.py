"""Steps of scikit-learn that skl2onnx converts wrong, or not in double precision, as graphs of our own.

skl2onnx thinks integers of all categories, gives imputers an operator that ONNX Runtime has in single precision alone,
and sends missing values of trees wrong.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy
from onnx import ModelProto, TensorProto, helper, numpy_helper

from triton_converters.claim_store.dump import Array
from triton_converters.convert.trees_onnx import ML_OPSET, OPSET, graph_of
from triton_converters.graph.opsets import READ_BY_ALL
from triton_converters.trees.sklearn_trees import READERS, forest_of

Made = Callable[[Any, Sequence[Any]], ModelProto]
"""Makes the graph of an estimator, and of inputs as skl2onnx declares them."""


def use() -> None:
    """Let skl2onnx convert these steps by the functions below, wherever they are in a model of this process."""
    from skl2onnx._supported_operators import sklearn_operator_name_map
    from skl2onnx.common._registration import get_converter, register_converter, register_shape_calculator

    for kind, alias in list(sklearn_operator_name_map.items()):
        name = kind.__name__
        if name in READERS:
            options = get_converter(alias).get_allowed_options()
            register_converter(alias, _convert_trees, overwrite=True, options=options)
        elif made := _MADE.get(name):
            register_converter(alias, _converter(made), overwrite=True, options=[])
            register_shape_calculator(alias, _shape(made), overwrite=True)


def _converter(made: Made) -> Callable[[Any, Any, Any], None]:
    def convert(scope: Any, operator: Any, container: Any) -> None:
        _add(scope, operator, container, made(operator.raw_operator, operator.inputs))

    return convert


def _add(scope: Any, operator: Any, container: Any, made: ModelProto) -> None:
    """Put a graph into skl2onnx's, which orders nodes by their names."""
    from skl2onnx.helpers import add_onnx_graph

    for number, node in enumerate(made.graph.node):
        node.name = f"own_{number}"
    add_onnx_graph(scope, operator, container, made)


def _shape(made: Made) -> Callable[[Any], None]:
    def shape(operator: Any) -> None:
        from skl2onnx.common.data_types import DoubleTensorType, StringTensorType

        answer = made(operator.raw_operator, operator.inputs).graph.output[0].type.tensor_type
        kind = StringTensorType if answer.elem_type == TensorProto.STRING else DoubleTensorType
        operator.outputs[0].type = kind([None, answer.shape.dim[1].dim_value])

    return shape


class _Graph:
    """A graph that is being made."""

    def __init__(self, inputs: Sequence[Any]) -> None:
        from skl2onnx.common.data_types import guess_proto_type

        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._types = [guess_proto_type(each.type) for each in inputs]
        self._inputs = [
            helper.make_tensor_value_info(f"given{number}", kind, [None, None])
            for number, kind in enumerate(self._types)
        ]
        self._widths = [each.type.shape[1] for each in inputs]

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node; returns the name of its output."""
        name = f"{operator}{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, inputs, [name], domain=domain, **attributes))
        return name

    def constant(self, array: Any) -> str:
        """Add an array; returns its name."""
        name = f"constant{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(numpy.asarray(array), name))
        return name

    @property
    def width(self) -> int:
        """Number of columns of all inputs."""
        return sum(self._widths)

    @property
    def is_text(self) -> bool:
        """Whether the inputs hold words."""
        return bool(self._types[0] == TensorProto.STRING)

    def table(self) -> str:
        """Return all columns, [rows, columns]; numbers are doubles."""
        given = [self._given(number) for number in range(len(self._types))]
        return given[0] if len(given) == 1 else self.add("Concat", *given, axis=1)

    def columns(self) -> list[tuple[str, bool]]:
        """Return each column, [rows, 1], with whether it holds words; numbers are doubles."""
        found = []
        for number, (kind, width) in enumerate(zip(self._types, self._widths, strict=True)):
            given = self._given(number)
            parts = [self.add("Gather", given, self.constant([place]), axis=1) for place in range(width)]
            found += [(part, kind == TensorProto.STRING) for part in parts]
        return found

    def _given(self, number: int) -> str:
        name = f"given{number}"
        return name if self._types[number] == TensorProto.STRING else self.add("Cast", name, to=TensorProto.DOUBLE)

    def model(self, answer: str, width: int, kind: int = TensorProto.DOUBLE) -> ModelProto:
        """Return the whole with its answer, [rows, width]."""
        output = helper.make_tensor_value_info(answer, kind, [None, width])
        graph = helper.make_graph(self._nodes, "step", self._inputs, [output], self._constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=READ_BY_ALL)


def _encoder(encoder: Any, inputs: Sequence[Any]) -> ModelProto:
    """Look up what the encoder itself makes of each category, and of one that it does not know."""
    graph = _Graph(inputs)
    tables = _encoded(encoder)
    parts = [
        graph.add("Gather", graph.constant(table), _place(graph, column, known, is_text))
        for (column, is_text), known, table in zip(graph.columns(), encoder.categories_, tables, strict=True)
    ]
    return graph.model(graph.add("Concat", *parts, axis=1), sum(table.shape[1] for table in tables))


def _one_hot(encoder: Any, inputs: Sequence[Any]) -> ModelProto:
    """Compare the place of a category, as the encoder itself has it, with all: a table would be as long as wide."""
    graph = _Graph(inputs)
    encoder.sparse_output = True
    parts = []
    width = 0
    for number, ((column, is_text), known) in enumerate(zip(graph.columns(), encoder.categories_, strict=True)):
        found = _asked(encoder, number).tocsc()[:, width : width + encoder._n_features_outs[number]].tocsr()
        places = numpy.full((len(known) + 1, 1), -1)
        places[: found.shape[0]][numpy.diff(found.indptr) > 0, 0] = found.indices
        own = graph.add("Gather", graph.constant(places), _place(graph, column, known, is_text))
        equal = graph.add("Equal", own, graph.constant(numpy.arange(found.shape[1])[None]))
        parts.append(graph.add("Cast", equal, to=TensorProto.DOUBLE))
        width += found.shape[1]
    return graph.model(graph.add("Concat", *parts, axis=1), width)


def _place(graph: _Graph, column: str, known: Array, is_text: bool) -> str:
    """Return the place of each value of a column among the categories, [rows]; their number for no category."""
    if is_text:
        words = [str(each) if isinstance(each, str) else f"\0{number}" for number, each in enumerate(known)]
        places = {"values_int64s": list(range(len(words))), "default_int64": len(words)}
        found = graph.add("LabelEncoder", column, domain="ai.onnx.ml", keys_strings=words, **places)
        return graph.add("Reshape", found, graph.constant([-1]))
    numbers = _numbers(known)
    equal = graph.add("Equal", column, graph.constant(numbers[None]))
    if numpy.isnan(numbers).any():
        both = graph.add("And", graph.add("IsNaN", column), graph.constant(numpy.isnan(numbers)[None]))
        equal = graph.add("Or", equal, both)
    found = graph.add("Cast", equal, to=TensorProto.FLOAT)
    best = graph.add("ArgMax", found, axis=1, keepdims=0)
    is_known = graph.add("Cast", graph.add("ReduceMax", found, axes=[1], keepdims=0), to=TensorProto.BOOL)
    return graph.add("Where", is_known, best, graph.constant(len(numbers)))


def _numbers(known: Array) -> Array:
    return numpy.array([numpy.nan if each is None else each for each in known], numpy.float64)


def _asked(encoder: Any, place: int) -> Any:
    """Return what an encoder makes of a column's categories and, if it answers that, of an unknown one."""
    rows = [[known[0] for known in encoder.categories_]] * (len(encoder.categories_[place]) + 1)
    table = numpy.array(rows, object)
    known = encoder.categories_[place]
    table[:-1, place] = known
    is_text = any(isinstance(each, str) for each in known)
    table[-1, place] = "".join(map(str, known)) + "?" if is_text else numpy.nanmax(_numbers(known), initial=0.0) + 1
    try:
        return encoder.transform(table)
    except ValueError:
        return encoder.transform(table[:-1])


def _encoded(encoder: Any) -> list[Array]:
    """Return what it makes of each column's categories and of an unknown one, [categories + 1, outputs], by column.

    An unknown one that it refuses is NaN.
    """
    found = []
    for place, known in enumerate(encoder.categories_):
        made = numpy.asarray(_asked(encoder, place), numpy.float64)
        width = made.shape[1] // len(encoder.categories_)
        table = numpy.full((len(known) + 1, width), numpy.nan)
        table[: len(made)] = made[:, place * width : (place + 1) * width]
        found.append(table)
    return found


def _imputer(imputer: Any, inputs: Sequence[Any]) -> ModelProto:
    """Fill in what was learned where a number is missing; words never are."""
    graph = _Graph(inputs)
    given = graph.table()
    missing, learned = imputer.missing_values, imputer.statistics_
    if graph.is_text:
        if not isinstance(missing, str):
            return graph.model(graph.add("Identity", given), graph.width, TensorProto.STRING)
        raise NotImplementedError("SimpleImputer with missing_values as a word")
    learned = numpy.asarray(learned, numpy.float64)
    if numpy.isnan(learned).any():
        raise NotImplementedError("SimpleImputer that leaves out a column without any value")
    is_nan = missing is None or numpy.isnan(missing)
    is_missing = graph.add("IsNaN", given) if is_nan else graph.add("Equal", given, graph.constant([[float(missing)]]))
    filled = graph.add("Where", is_missing, graph.constant(learned[None]), given)
    if imputer.indicator_ is None:
        return graph.model(filled, graph.width)
    places = numpy.asarray(imputer.indicator_.features_, numpy.int64)
    told = graph.add("Gather", graph.add("Cast", is_missing, to=TensorProto.DOUBLE), graph.constant(places), axis=1)
    return graph.model(graph.add("Concat", filled, told, axis=1), graph.width + len(places))


def _bins(binner: Any, inputs: Sequence[Any]) -> ModelProto:
    """Count the edges of bins that a number has reached, the outer two not."""
    graph = _Graph(inputs)
    parts = []
    for (column, _), edges, count in zip(graph.columns(), binner.bin_edges_, binner.n_bins_.tolist(), strict=True):
        reached = graph.add("GreaterOrEqual", column, graph.constant(numpy.asarray(edges, numpy.float64)[None, 1:-1]))
        number = graph.add(
            "ReduceSum", graph.add("Cast", reached, to=TensorProto.INT64), graph.constant([1]), keepdims=0
        )
        table = numpy.arange(count, dtype=float)[:, None] if binner.encode == "ordinal" else numpy.eye(count)
        parts.append(graph.add("Gather", graph.constant(table), number))
    width = len(parts) if binner.encode == "ordinal" else int(sum(binner.n_bins_))
    return graph.model(graph.add("Concat", *parts, axis=1), width)


def _powers(polynomial: Any, inputs: Sequence[Any]) -> ModelProto:
    """Multiply columns: each answer is the product of as many as the degree, of which some are 1."""
    graph = _Graph(inputs)
    given = graph.table()
    first = graph.add("Gather", given, graph.constant([0]), axis=1)
    one = graph.add("Add", graph.add("Sub", first, first), graph.constant([[1.0]]))
    with_one = graph.add("Concat", one, given, axis=1)
    factors = [numpy.repeat(numpy.arange(1, len(each) + 1), each) for each in polynomial.powers_]
    degree = max(1, *map(len, factors))
    places = numpy.array([numpy.pad(each, (0, degree - len(each))) for each in factors])
    product = graph.add("Gather", with_one, graph.constant(places[:, 0]), axis=1)
    for each in places.T[1:]:
        product = graph.add("Mul", product, graph.add("Gather", with_one, graph.constant(each), axis=1))
    return graph.model(product, len(places))


def _selection(selector: Any, inputs: Sequence[Any]) -> ModelProto:
    """Take the columns that were chosen."""
    graph = _Graph(inputs)
    places = selector.get_support(indices=True)
    return graph.model(graph.add("Gather", graph.table(), graph.constant(places), axis=1), len(places))


_MADE: Mapping[str, Made] = {
    **dict.fromkeys(("OrdinalEncoder", "TargetEncoder"), _encoder),
    "OneHotEncoder": _one_hot,
    "KBinsDiscretizer": _bins,
    "PolynomialFeatures": _powers,
    "SelectFromModel": _selection,
    "SimpleImputer": _imputer,
}


def _convert_trees(scope: Any, operator: Any, container: Any) -> None:
    """Write the trees, and for a classifier the label of the largest answer in front of the answers."""
    from skl2onnx.common.data_types import guess_proto_type

    made = graph_of(forest_of(operator.raw_operator))
    graph = made.graph
    (table,), (answer,) = graph.input, graph.output
    for node in graph.node:
        node.input[:] = ["compared" if name == table.name else name for name in node.input]
    graph.node.insert(0, helper.make_node("Cast", [table.name], ["compared"], to=table.type.tensor_type.elem_type))
    table.type.tensor_type.elem_type = guess_proto_type(operator.inputs[0].type)
    kinds = [guess_proto_type(each.type) for each in operator.outputs]
    if hasattr(operator.raw_operator, "classes_"):
        classes = numpy.asarray(operator.raw_operator.classes_)
        classes = classes.astype(object if classes.dtype.kind in "OU" else numpy.int64)
        graph.initializer.append(numpy_helper.from_array(classes, "classes"))
        graph.node.append(helper.make_node("ArgMax", [answer.name], ["best"], axis=1, keepdims=0))
        graph.node.append(helper.make_node("Gather", ["classes", "best"], ["label"]))
        graph.output.insert(0, helper.make_tensor_value_info("label", kinds[0], [None]))
    graph.node.append(helper.make_node("Cast", [answer.name], ["numbers"], to=kinds[-1]))
    graph.output[-1].name = "numbers"
    _add(scope, operator, container, made)
