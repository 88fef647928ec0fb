"""Stage ``packages``: install the Python packages that the user's code needs and its image lacks.

pip decides where it writes by what wheels say, so it runs apart from the claim, and what it wrote is published as
something that anybody may have written. Wheels are unpacked and nothing of them is executed: the packages' own code
runs in the Jobs with user code alone.
"""

REQUIREMENTS, SITE = "requirements-{}.txt", "site"
"""Names in INCOMING_MOUNT: the files that ``prepare`` leaves, by their numbers, and the directory of modules that pip
leaves."""
