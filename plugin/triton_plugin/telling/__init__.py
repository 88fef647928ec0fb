"""What is told of an object: reports, tables, explanations, and what a command would do to it."""
