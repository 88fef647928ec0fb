"""What kind of model a file or directory of the source is, by its content and not by its name. Standard library only.

Nothing is unpickled, unpacked or loaded: the first bytes tell, the names in an archive, or the fields of a protobuf.
"""
