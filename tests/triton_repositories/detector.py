"""Save a detector as a SavedModel: `python3 detector.py FOLDER`, where TensorFlow is. It finds a box in any picture."""

import sys

import tensorflow as tf

BOXES, ANCHORS = 100, 76725


class Detector(tf.Module):
    """What the configuration of gianpd's model `od` declares."""

    @tf.function(input_signature=[tf.TensorSpec([1, None, None, 3], tf.uint8, "input_tensor")])
    def __call__(self, input_tensor: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return boxes near the picture's middle, whose scores and places vary with its brightness."""
        light = tf.reduce_mean(tf.cast(input_tensor, tf.float32)) / 255
        order = tf.range(BOXES, dtype=tf.float32) / BOXES
        scores = 0.8 + 0.2 * light * (1 - order)
        corner = 0.3 + 0.1 * light + 0.05 * order
        boxes = tf.stack([corner, corner, corner + 0.2, corner + 0.2], axis=1)
        raw = tf.range(ANCHORS, dtype=tf.float32)[:, None] / ANCHORS * light
        return {
            "detection_multiclass_scores": scores[None, :, None],
            "detection_anchor_indices": light + tf.range(BOXES, dtype=tf.float32)[None],
            "raw_detection_scores": raw[None],
            "detection_scores": scores[None],
            "raw_detection_boxes": tf.repeat(raw, 4, axis=1)[None],
            "detection_boxes": boxes[None],
            "num_detections": tf.reshape(light * BOXES, [1]),
            "detection_classes": 1 + order[None] * light,
        }


if __name__ == "__main__":
    detector = Detector()
    tf.saved_model.save(detector, sys.argv[1], signatures={"serving_default": detector.__call__})
