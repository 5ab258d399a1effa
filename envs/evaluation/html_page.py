"""Self-contained pages: rendered from a template with everything escaped, written aside and renamed."""

import os
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from envs.evaluation.plain import visible


def _shown(value: Any) -> Any:
    return visible(value) if type(value) is str else value  # not markup that a macro made


_environment = Environment(
    loader=PackageLoader("envs.evaluation"),
    autoescape=True,
    finalize=_shown,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def write_html(path: Path, template: str, **values: Any) -> None:
    """Render a template of this package into a file, which is whole or not there; whatever the values say is escaped."""
    aside = path.with_suffix(".partial")
    aside.write_text(_environment.get_template(template).render(**values), encoding="utf-8")
    os.replace(aside, path)
