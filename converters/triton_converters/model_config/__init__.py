"""config.pbtxt and Triton's data types."""
