"""The BibTeX entry of this version; `CITATION.cff` has the same content."""

from . import _core

AUTHOR = "{The Palimpsest developers}"
TITLE = "{Palimpsest: a laboratory for solid-state drives}"


def bibtex() -> str:
    """Returns the entry of the running version, with the digest of the sources."""
    return (
        "@software{palimpsest,\n"
        f"  author  = {{{AUTHOR}}},\n"
        f"  title   = {{{TITLE}}},\n"
        f"  version = {{{_core.version()}}},\n"
        "  year    = {2026},\n"
        f"  note    = {{Simulator of flash translation layers; sources {_core.build()}}},\n"
        "}\n"
    )
