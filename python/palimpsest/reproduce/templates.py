"""Expressions and templates of a paper's TOML: Python expressions over named values, alone or in the braces of a text.

The files belong to the package, so that expressions are trusted: a user's text never reaches `evaluate`. A format may
end a braced expression, as in `{requests:,}`. Ignored: braces inside braces.
"""

import re
from collections.abc import Mapping
from functools import cache
from types import CodeType
from typing import Any

__all__ = ["Fields", "evaluate", "fields", "fill"]

_BRACES = re.compile(r"\{([^{}]*?)(?::([-+,.\d]*[a-z%]?))?\}")


class Fields(dict[str, Any]):
    """A mapping whose items are attributes, too."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - values of a result or of a TOML file
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(f"no {name!r} among {', '.join(self)}") from error


def fields(value: Any) -> Any:  # noqa: ANN401
    """The same value with `Fields` for each mapping, nested mappings included."""
    return Fields({key: fields(each) for key, each in value.items()}) if isinstance(value, dict) else value


@cache
def _compiled(expression: str) -> CodeType:
    return compile(expression.strip(), f"<{expression}>", "eval")


def evaluate(expression: str, scope: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any value
    """Value of a Python expression over the names of a scope."""
    return eval(_compiled(expression), dict(scope))


def fill(template: Any, scope: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Value of a template over the names of a scope.

    A text that is one braced expression becomes the value of the expression; other texts have each braced expression
    replaced. Lists and tables are filled item by item.
    """
    if isinstance(template, str):
        whole = _BRACES.fullmatch(template)
        if whole and whole[2] is None:
            return evaluate(whole[1], scope)
        return _BRACES.sub(lambda match: format(evaluate(match[1], scope), match[2] or ""), template)
    if isinstance(template, dict):
        return {key: fill(value, scope) for key, value in template.items()}
    if isinstance(template, list):
        return [fill(each, scope) for each in template]
    return template
