"""Fit ResNet-50's last layer to real handwritten digits, and publish what the example needs.

The body's weights are drawn from a seed and its normalisations are set from pictures; the last layer, 2,048 features to
1,000 classes of which the first ten occur, is fitted by least squares. Below --directory: model/ (user files,
resnet50.weights.h5 and the same model as the SavedModel resnet50) and data/ (held-out.npz). model/ appears last, by one
rename, so a reader finds all or nothing.
"""

import argparse
import shutil
import time
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from dataloader import get_dataloader_fn
from metrics import MetricsCalculator
from model import CLASSES, SIZE, resnet50

SEED = 0
MEAN, DEVIATION = (123.68, 116.78, 103.94), 58.0
"""The statistics of ImageNet's channels, 0 to 255; grey pictures have the same value in each."""
NORMALISED_BY = 16
"""Pictures whose statistics the normalisations take."""
BRANCH = 0.2
"""Weight of a bottleneck's branch relative to its shortcut: drawn branches blur what they see."""
BATCH_SIZE = 8
RIDGE = 1e-2
"""The ridge as a share of the mean square of the features."""
SHARPNESS = 12.0
"""Score of a class that is certainly right: its probability is then close to 1 among 1,000."""
ENTRYPOINTS = ("model.py", "dataloader.py", "metrics.py")


def enlarge(images: np.ndarray) -> np.ndarray:
    """Digits (n, 8, 8), 0 to 16, as pictures (n, 224, 224, 3), with ImageNet's means taken off."""
    grey = tf.image.resize(images[..., None] * (255.0 / 16.0), (SIZE, SIZE), method="bilinear")
    return ((grey - tf.constant(MEAN)) / DEVIATION).numpy().astype(np.float32)


def draw(pictures: np.ndarray) -> keras.Model:
    """The network with seeded weights, each normalisation set to the statistics of ``pictures`` there."""
    keras.utils.set_random_seed(SEED)
    model = resnet50()
    for layer in model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = 0.0
        if isinstance(layer, keras.layers.Add):
            branch = layer.input[0]._keras_history.operation
            branch.gamma.assign(tf.fill(branch.gamma.shape, BRANCH))
    tf.function(model)({"input": tf.constant(pictures)}, training=True)
    return model


def fit(model: keras.Model, pictures: np.ndarray, classes: np.ndarray) -> None:
    """Give each class its indicator, by ridge regression on the features."""
    body = tf.function(keras.Model(model.input, model.get_layer("features").output), reduce_retracing=True)
    parts = np.array_split(pictures, -(-len(pictures) // BATCH_SIZE))
    answers = [body({"input": tf.constant(part)}, training=False).numpy() for part in parts]
    features = np.concatenate(answers).astype(np.float64)
    wanted = SHARPNESS * np.eye(CLASSES)[classes]
    centre, share = features.mean(axis=0), wanted.mean(axis=0)
    kernel = (features - centre) @ (features - centre).T
    kernel += RIDGE * kernel.diagonal().mean() * np.eye(len(kernel))
    weight = (features - centre).T @ np.linalg.solve(kernel, wanted - share)
    model.get_layer("scores").set_weights([weight, share - centre @ weight])


def main() -> None:
    """Fit, publish, and say how good the network is on the digits it has not seen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--digits", type=Path, required=True)
    parser.add_argument("--directory", type=Path, required=True)
    options = parser.parse_args()
    start = time.monotonic()
    with np.load(options.digits) as digits:
        pictures, held_out = enlarge(digits["fitted"]), enlarge(digits["held_out"])
        classes, held_out_classes = digits["fitted_classes"], digits["held_out_classes"]
    model = draw(pictures[:NORMALISED_BY])
    fit(model, pictures, classes)
    print(f"last layer fitted to {len(pictures)} digits in {time.monotonic() - start:.1f} s", flush=True)

    data, target = options.directory / "data", options.directory / "model"
    data.mkdir(exist_ok=True)
    np.savez(data / "held-out.npz", pictures=held_out, classes=held_out_classes)
    ids, inputs, labels = next(get_dataloader_fn(str(data), batch_size=BATCH_SIZE)())
    answers = {name: output.numpy() for name, output in model(inputs, training=False).items()}
    print(
        f"on {len(ids)} held-out digits: {MetricsCalculator().calc(ids=ids, y_pred=answers, x=inputs, y_real=labels)}"
    )

    partial = options.directory / ".model.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    for name in ENTRYPOINTS:
        shutil.copyfile(Path(__file__).parent / name, partial / name)
    model.save_weights(partial / "resnet50.weights.h5")
    tf.saved_model.save(model, str(partial / "resnet50"), signatures={"serving_default": serving(model)})
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)


def serving(model: keras.Model) -> tf.types.experimental.ConcreteFunction:
    """The function that a server calls; batches of any size."""
    pictures = tf.TensorSpec((None, SIZE, SIZE, 3), tf.float32, "input")
    return tf.function(lambda input: model({"input": input}, training=False)).get_concrete_function(pictures)


if __name__ == "__main__":
    main()
