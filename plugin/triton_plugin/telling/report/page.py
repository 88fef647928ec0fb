"""What every page has: its own style and its one script, both themes, and templates that escape every value."""

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from triton_plugin.telling.report.palette import variables


def render(template: str, **values: object) -> str:
    """Return a whole page that loads nothing and runs only its own script. ``template``: name of a file next to this.

    All values are escaped, but for those that are Markup.
    """
    script = _read("report.js")
    # The page says by hash which script may run, so the text between the tags must be these very characters.
    script_hash = "sha256-" + b64encode(sha256(script.encode()).digest()).decode()
    # The dependency's default is not to escape; every value here may be a user's.
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    return environment.from_string(_read(template)).render(
        light=Markup(variables(dark=False)),  # noqa: S704 - constants of this program
        dark=Markup(variables(dark=True)),  # noqa: S704 - constants of this program
        style=Markup(_read("report.css")),  # noqa: S704 - a file of this package
        script=Markup(script),  # noqa: S704 - a file of this package
        script_hash=script_hash,
        **values,
    )


def _read(name: str) -> str:
    return files("triton_plugin.telling.report").joinpath(name).read_text(encoding="utf-8")
