"""Stage ``measure``: sweep the target revision's server online, through its preview Service."""
