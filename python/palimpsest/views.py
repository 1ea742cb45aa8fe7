"""The `Views` of results: text, HTML, plots, and files. Each is imported on use, as rich and plotly load slowly."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .result import Result

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from rich.console import RenderableType


def text(results: Sequence[Result], *, together: bool) -> "RenderableType":
    """The summary of one run, or `together` the comparison, for rich."""
    from . import comparison, summary

    return comparison.render(results) if together else summary.render(results[0])


def html(results: Sequence[Result]) -> str:
    """The figures as HTML tables without a page."""
    from . import report

    return report.fragment(results)


def checks(results: Sequence[Result]) -> list[dict[str, Any]]:
    """The findings on a comparison, as in its JSON."""
    from . import fair

    return [each.to_dict() for each in fair.checks(results)]


def figure(name: str, results: Sequence[Result]) -> "go.Figure":
    """A chart as a plotly figure. Raises ValueError if the results have no data for the chart."""
    from . import charts

    return charts.figure(name, results)


def save(
    results: Sequence[Result], folder: Path, *, together: bool, more: Mapping[str, str],
    places: Sequence[str] | None = None, shown: Sequence[Result] | None = None,
) -> Path:  # fmt: skip
    """Writes the files of one run, or `together` of a comparison; see `outputs.save`."""
    from . import outputs

    return outputs.save(results, folder, together=together, more=more, places=places, shown=shown)
