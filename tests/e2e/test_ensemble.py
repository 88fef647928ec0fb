"""Several models that answer one request together serve the frameworks' answers."""

from tests.e2e.ensemble import Scorer
from triton_operator.api.duration import seconds


def test_every_combination_passes_and_shows_its_members(scorer: Scorer) -> None:
    states = {name: each["state"] for name, each in scorer.state.candidates.items()}
    assert set(states.values()) <= {"Passed", "Selected"}, scorer.state.summary()
    assert {name: each["members"] for name, each in scorer.state.candidates.items()} == {
        "onnx-fp32": ["hps-fp32-none", "onnx-fp32-none"],
        "onnx-fp16": ["hps-fp32-none", "onnx-fp16-none"],
    }
    assert float(scorer.state.candidates["onnx-fp32"]["maxAbsoluteError"]) < 1e-5


def test_rows_count_samples(scorer: Scorer) -> None:
    rows = scorer.state.status["performance"]["offline"]
    assert [row["batchSize"] for row in rows] == [4, 16]
    for row in rows:
        # One request in flight: as many samples a second as fit one after the other, but for what the client does.
        assert float(row["throughput"]) <= 1.2 * row["batchSize"] / seconds(row["averageLatency"]), row


def test_the_backend_reads_its_tables_from_the_revision(scorer: Scorer) -> None:
    entry = scorer.parameter_server["models"][0]
    home = f"/repository/.triton-operator/revisions/{scorer.state.revision}/models/tables/1"
    assert entry["sparse_files"] == [f"{home}/0", f"{home}/1"]
    assert (entry["embedding_vecsize_per_table"], entry["gpucache"]) == ([4, 2], False)
    assert scorer.table_bytes == 50 * 4 * 4
