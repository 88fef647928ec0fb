"""Downloads of sources: a module for each remote scheme of ``contract.uris.SCHEMES``.

Each has ``fetch(remote, place) -> Fetched`` and writes the files below ``place/files``. A second call with the same
``place`` goes on where a killed one stopped. Whatever a server says is hostile until it is checked, and no message
holds credentials or a URL that a server made.
"""
