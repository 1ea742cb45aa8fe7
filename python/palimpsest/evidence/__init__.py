"""The one door between results and all that speaks: verdicts, and the words that rest on evidence.

*Holds, agrees, passed, best, steady, fits*: terminal, page, JSON and captions take these words from here, and each word
takes its evidence as an argument. A module is a word, with the evidence that the word needs; `said` is the form of an
answer. A test finds the words elsewhere. Ignored: messages of the core, and words on repetitions, which `replicates`
judges.
"""

from .agreement import agrees, tally
from .best import is_best, legend
from .fitting import fits, whole
from .holding import all_hold, holds
from .life import lasts, leaves_out
from .passing import passed
from .said import CAUTION, Said
from .steady import Evidence, Verdict, converged, of, rows, sentence, spread

__all__ = [
    "CAUTION", "Evidence", "Said", "Verdict", "agrees", "all_hold", "converged", "fits", "holds", "is_best", "lasts",
    "leaves_out", "legend", "of", "passed", "rows", "sentence", "spread", "tally", "whole",
]  # fmt: skip
