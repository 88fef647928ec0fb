"""Downloads of sources: a module for each scheme of ``contract.uris.REMOTE``.

Each has ``fetch(uri, place, credentials) -> str``. It writes the files below ``place/files`` and returns what the
server calls their version. A second call with the same ``place`` goes on where a killed one stopped. Whatever a server
says is hostile until it is checked, and no message holds credentials or a URL that a server made.
"""
