"""The generators of documentation. Each module has ``pages()``: the text of every file that it writes, by path."""
