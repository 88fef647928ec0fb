import pytest
from triton_cpu.config import ModelError, Tensor, parse
from triton_cpu.onnx_signature import check, value

from tests.images.test_model_config import arguments

ANY = ["batch", "height", 4]


def check_dims(batch: int, inputs: list[int], outputs: list[int], model: list[object]) -> None:
    config = parse(
        arguments(
            max_batch_size=batch,
            input=[{"name": "x", "data_type": "TYPE_FP32", "dims": inputs}],
            output=[{"name": "y", "data_type": "TYPE_FP32", "dims": outputs}],
        )
    )
    check(config, [value("x", "tensor(float)", model)], [], [value("y", "tensor(float)", model)])


def test_free_dimensions() -> None:
    assert value("x", "tensor(float)", ["batch", None, 4]).dims == (-1, -1, 4)
    check_dims(8, [-1, 4], [-1, 4], ANY)
    check_dims(8, [16, 4], [-1, 4], ANY)  # an input may be narrower than the model
    check_dims(0, [1, -1, 4], [-1, -1, 4], ANY)


@pytest.mark.parametrize(
    ("batch", "inputs", "outputs"),
    [
        (8, [-1, 5], [-1, 4]),  # another size
        (8, [-1, 4], [16, 4]),  # an output may not be narrower
        (8, [-1, -1], [-1, 4]),  # wider than the model
        (8, [4], [-1, 4]),  # another rank
        (0, [-1, 4], [-1, -1, 4]),  # the batch dimension is missing
    ],
)
def test_dimensions_that_do_not_fit(batch: int, inputs: list[int], outputs: list[int]) -> None:
    with pytest.raises(ModelError, match="but the model configuration specifies"):
        check_dims(batch, inputs, outputs, ANY)


@pytest.mark.parametrize("model", [[1, 8, 4], []])
def test_batching_needs_a_free_first_dimension(model: list[object]) -> None:
    with pytest.raises(ModelError, match="the first dimension must be -1"):
        check_dims(8, [8, 4], [8, 4], model)


def test_scalars() -> None:
    check_dims(0, [1], [1], [])
    with pytest.raises(ModelError, match=r"scalar tensor 'x', should only provide 1 .* provided: \[2\]"):
        check_dims(0, [2], [1], [])


def test_optional_inputs_are_initializers() -> None:
    tensors = [
        {"name": "x", "data_type": "TYPE_FP32", "dims": [2]},
        {"name": "scale", "data_type": "TYPE_FP32", "dims": [2], "optional": True},
    ]
    x, scale = (value(name, "tensor(float)", [2]) for name in ("x", "scale"))
    check(parse(arguments(max_batch_size=0, input=tensors)), [x], [scale], [])
    with pytest.raises(ModelError, match="optional input 'scale' is not supported for models that support batching"):
        check(parse(arguments(input=[tensors[1]])), [], [scale], [])
    assert parse(arguments(input=tensors)).inputs[1] == Tensor("scale", "TYPE_FP32", (2,), True)
