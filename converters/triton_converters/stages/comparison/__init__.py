"""Stage ``comparison``: how far candidates' metrics are from those of earlier revisions, on the same samples."""
