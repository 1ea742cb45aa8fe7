"""How to cite: BibTeX of this version. `CITATION.cff` says the same."""

from . import _core

AUTHOR = "{The Palimpsest developers}"
TITLE = "{Palimpsest: a laboratory for solid-state drives}"


def bibtex() -> str:
    """An entry for the version that runs, with the digest of its sources."""
    return (
        "@software{palimpsest,\n"
        f"  author  = {{{AUTHOR}}},\n"
        f"  title   = {{{TITLE}}},\n"
        f"  version = {{{_core.version()}}},\n"
        "  year    = {2026},\n"
        f"  note    = {{Simulator of flash translation layers; sources {_core.build()}}},\n"
        "}\n"
    )
