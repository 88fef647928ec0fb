"""What was spoken, in figures that show a changed spectrogram and changed lengths."""

from collections.abc import Mapping, Sequence

import numpy as np

FRAMES_PER_SECOND = 22050 / 256
LENGTH, DURATION, PITCH = "OUTPUT__1", "OUTPUT__2", "OUTPUT__4"


class MetricsCalculator:
    """The spectrogram's range, the seconds spoken, and how far durations and pitches are from the voice's rule."""

    def __init__(self, output_used_for_metrics: str = "OUTPUT__0") -> None:
        self.output = output_used_for_metrics

    def calc(
        self,
        *,
        ids: Sequence[object],
        y_pred: Mapping[str, np.ndarray],
        x: Mapping[str, np.ndarray],
        y_real: Mapping[str, np.ndarray],
    ) -> dict[str, float]:
        """Spectrograms (texts, 80, frames) end in NaN or zeros beyond each text's own length (texts, 1)."""
        mel, lengths = y_pred[self.output], y_pred[LENGTH]
        spoken = np.arange(mel.shape[2]) < lengths.reshape(-1, 1, 1)
        values = mel[np.broadcast_to(spoken, mel.shape)]
        written = y_real[DURATION] > 0
        return {
            "mel_range": float(values.max() - values.min()),
            "mel_mean": float(values.mean()),
            "seconds": float(lengths.sum() / FRAMES_PER_SECOND),
            "duration_error": float(np.abs(y_pred[DURATION] - y_real[DURATION])[written].mean()),
            "pitch_error": float(np.abs(y_pred[PITCH] - y_real[PITCH])[written].mean()),
        }
