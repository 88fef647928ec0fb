"""A whole Triton model repository as one object: what its folders say, and what becomes of it."""
