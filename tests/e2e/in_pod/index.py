"""python3 index.py FOLDER OTHERS CERTIFICATE AUTHORIZATION: an index of Python packages, whose pages are listings.

What FOLDER lacks is looked for in the folders whose paths match OTHERS.
"""

import functools
import glob
import http.server
import os
import ssl
import sys

folder, others, certificate, authorization = sys.argv[1:]


class Index(http.server.SimpleHTTPRequestHandler):
    """Answers those who know the password."""

    def translate_path(self, path: str) -> str:
        """Return the file or the folder of a URL's path."""
        found = super().translate_path(path)
        elsewhere = (found.replace(folder, each, 1) for each in glob.glob(others))
        return next(filter(os.path.exists, (found, *elsewhere)), found)

    def do_GET(self) -> None:
        """Answer a request."""
        if self.headers.get("Authorization") == authorization:
            super().do_GET()
            return
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="packages"')
        self.send_header("Content-Length", "0")
        self.end_headers()


server = http.server.ThreadingHTTPServer(("", 443), functools.partial(Index, directory=folder))
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
