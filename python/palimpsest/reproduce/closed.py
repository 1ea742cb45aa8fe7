"""Claims in closed form: the number is an expression over the names of the paper, `ours` of the claim in the TOML.

Such a claim needs no run and is the same at every setting. Ignored: spread over seeds and mechanisms, which need runs.
"""

from .claims import Claim
from .study import Study
from .templates import evaluate

__all__ = ["closed_claims"]


def closed_claims(study: Study) -> list[Claim]:
    """The claims with `ours`, in the order of the TOML, each with the entry of `[notes.closed]` of its name."""
    notes = study.data["notes"]["closed"]
    return [
        study.claim(name, evaluate(described["ours"], study.names)).with_note(notes.get(name, ""))
        for name, described in study.data["claims"].items()
        if "ours" in described
    ]
