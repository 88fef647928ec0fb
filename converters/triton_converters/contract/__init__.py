"""The documents that the operator and its Jobs exchange; standard library only, Python 3.11."""
