"""What all tests share: how hypothesis draws its examples."""

import os

from hypothesis import settings

# In CI the same examples every time: a verdict on a change is about the change. Elsewhere new ones are drawn.
settings.register_profile("ci", derandomize=True, database=None, deadline=None)
# No deadline: on a busy machine an example takes any time, and that is no fault of what is tested.
settings.register_profile("here", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "here")
