"""Stage ``search``: walk this part of a search's path on the pod's own server."""
