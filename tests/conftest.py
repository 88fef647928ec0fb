"""What all tests share: how hypothesis draws its examples."""

import os

from hypothesis import settings

# In CI the same examples every time: a verdict on a change is about the change. Elsewhere new ones are drawn.
settings.register_profile("ci", derandomize=True, database=None)
if os.environ.get("CI"):
    settings.load_profile("ci")
