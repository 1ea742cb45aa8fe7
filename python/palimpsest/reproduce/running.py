"""A reproduction: runs, then claims and figures, under the assumed setting, the implied setting, or both."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from ..options import RunOptions
from . import drawing
from .batch import Batch
from .claims import ASSUMED, IMPLIED, Claim, left
from .figures import Figure
from .outputs import Reproduction
from .study import ASSUMED_POINT, Point, Study, has_implied, stated

__all__ = ["neighbours", "planned", "replayed", "reproduce"]

_Made = TypeVar("_Made", Claim, Figure)
_Join = Callable[[Claim, Claim], Claim]


def planned(study: Study, settings: str) -> Iterator[RunOptions]:
    """The simulations of a paper, so that all run side by side; a table may ask for a few more."""
    if study.found.files:
        replaying = study.replaying()
        yield from replaying.runs(study.real["grids"])
        yield from replaying.runs(study.data["mechanism"]["grids"], study.mechanisms(ASSUMED_POINT)[""][1])
    implied, near = settings != ASSUMED and has_implied(study.name), study.data.get("near", {})
    if implied:
        yield from study.runs(near.get("implied", near["grids"]), study.implied)
        yield from _without(study, study.implied)
        for point in study.neighbours if _shows_neighbours(study) else []:
            yield from study.runs(near["grids"], point)
    if settings != IMPLIED or not implied:
        yield from study.runs([name for name, grid in study.data["grids"].items() if "only" not in grid])
        for point in study.unknowns:
            yield from study.runs(study.data["sweep"]["grids"], point)
        yield from _without(study, ASSUMED_POINT)


def _without(study: Study, of: Point) -> Iterator[RunOptions]:
    """The simulations with each mechanism off, and with all of them on."""
    if "mechanism" in study.data:
        for _says, point in study.mechanisms(of).values():
            yield from study.runs(study.data["mechanism"]["grids"], point)


def _shows_neighbours(study: Study) -> bool:
    return study.full or not study.data["near"].get("only_full", False)


def _reproduction(study: Study, about: Sequence[str], claims: Sequence[Claim], made: Sequence[Figure]) -> Reproduction:
    verdict = study.text(study.data.get("verdict", ""))
    return Reproduction(
        study.name, study.data["title"], tuple(about), tuple(claims), tuple(made), verdict, stated(study.name),
        tuple(study.checks()),
    )  # fmt: skip


def _assumed(study: Study) -> Reproduction:
    """Claims and figures of the assumed setting."""
    made = list(study.figures())
    claims, shares = _mechanisms(study, study.functions.claims(study), ASSUMED_POINT)
    last = [made.pop()] if made[-1].id == "traces" else []
    return _reproduction(study, study.sentences("about"), claims, [*made, *shares, *last])


def _mechanisms(study: Study, claims: Sequence[Claim], of: Point) -> tuple[list[Claim], list[Figure]]:
    """The claims with the share of each effect that is left without the paper's mechanism, and a figure of the shares.

    The runs of `[mechanism]` are repeated with each mechanism off, from the first seed.
    """
    if "mechanism" not in study.data:
        return list(claims), []
    points = study.mechanisms(of)
    found = {
        name: {claim.id: claim for claim in study.functions.near_claims(study, point)}
        for name, (_says, point) in points.items()
    }
    on = found.pop("")
    shares = {name: {each: left(on[each], claim.ours) for each, claim in found[name].items()} for name in found}
    made = [
        claim.without(points[claim.cause][0], shares[claim.cause].get(claim.id)) if claim.cause in shares else claim
        for claim in claims
    ]
    rows = [
        {"claim": each, "off": points[name][0], "with": on[each].ours, "without": claim.ours, "unit": claim.unit,
         "left_percent": shares[name][each]}
        for name, claimed in found.items() for each, claim in claimed.items() if not claim.data
    ]  # fmt: skip
    return made, [drawing.mechanisms(rows, implied=bool(of))]


def _implied(study: Study) -> tuple[list[Claim], list[Figure]]:
    """Claims and figures at the implied setting, the figure of neighbours included."""
    claims, shares = _mechanisms(study, study.functions.implied_claims(study), study.implied)
    made = [*study.figures(implied=True), *shares]
    return claims, [*made, *([neighbours(study)] if _shows_neighbours(study) else [])]


def neighbours(study: Study) -> Figure:
    """The figure of the implied point and of the points next to the implied point."""
    near, points = study.data["near"], study.neighbours
    study.batch.run(run for point in points for run in study.runs(near["grids"], point))
    judged = [(point["what"], point["value"], study.functions.near_claims(study, point)) for point in points]
    return drawing.neighbours(judged, study.text(near["note"]), height=near["height"])


def _joined(
    made: Reproduction,
    about: Sequence[str],
    claims: Sequence[Claim],
    added: Sequence[Figure],
    join: _Join = Claim.beside,
) -> Reproduction:
    """A reproduction with the claims of another setting, of the same names, and its figures; real traces come last."""
    by_name = {claim.id: claim for claim in claims}
    return replace(
        made,
        about=(*made.about, *about),
        claims=tuple(join(claim, by_name[claim.id]) if claim.id in by_name else claim for claim in made.claims),
        figures=tuple(sorted((*made.figures, *added), key=lambda each: each.id == "traces")),
    )


def replayed(study: Study) -> tuple[list[Claim], list[Figure]]:
    """Claims and figures of the real traces that were found; without those that need the reads or writes they lack."""
    if not study.found.files:
        return [], []
    replaying, point = study.replaying(), study.mechanisms(ASSUMED_POINT)[""][1]
    judged = _measured(study, lambda: replaying.functions.near_claims(replaying, point))
    claims = [claim for claim in judged if study.found.has(study.real["claims"], claim.id)]
    return claims, [made for each in study.real["figures"] for made in _measured(study, replaying.figures_of, each)]


def _measured(study: Study, make: Callable[..., Iterable[_Made]], *of: str) -> list[_Made]:
    try:
        return list(make(*of))
    except (TypeError, ZeroDivisionError):
        if not study.batch.is_one_sided(study.found.files.values()):
            raise
        return []


def reproduce(name: str, batch: Batch, *, full: bool, settings: str) -> Reproduction:
    """Runs all simulations of a paper, and measures claims and figures."""
    study = Study(name, batch, full=full)
    batch.run(planned(study, settings))
    about = [study.found.described(study.real.get("published", ""))]
    return _joined(_at_settings(study, settings), about, *replayed(study), join=Claim.replayed)


def _at_settings(study: Study, settings: str) -> Reproduction:
    if settings == ASSUMED or not has_implied(study.name):
        return _assumed(study)
    claims, added = _implied(study)
    about = study.sentences("about_implied")
    if settings == IMPLIED:
        kept = study.data["near"].get("kept_about")
        return _reproduction(study, (*study.sentences("about")[:kept], *about), claims, added)
    return _joined(_assumed(study), about, claims, added)
