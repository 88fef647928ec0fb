"""What a file or directory of the source is by its content: the kind of model, and whether it has a batch dimension.

Standard library only. Nothing is unpickled, unpacked or loaded: the first bytes tell, the names in an archive, or the
fields of a protobuf.
"""
