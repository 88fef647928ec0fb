"""What an ONNX model consists of, for whoever loads, converts or judges it: its graphs, names and operator sets."""
