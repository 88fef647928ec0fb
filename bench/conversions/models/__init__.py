"""Small models, which are trained in a virtual environment of their own: its packages are not the project's."""
