"""Stage ``profile``: compare the served candidate with the reference, then sweep it.

The pod's own tritonserver serves one revision and nothing else. A gate that fails is this stage's result, not its
failure: the other candidates continue, and a model that is wrong is not measured.
"""
