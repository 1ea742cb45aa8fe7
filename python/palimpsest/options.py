"""The options of one run: the drive, the layer, the workload, and their defaults."""

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from .errors import InputError

FIDELITIES = ("timed", "count")
PAYLOADS = ("none", "tag", "bytes")
ARRIVALS = ("recorded", "spread")
REGISTRIES = (
    "ftls", "parts", "ssds", "workloads", "traces", "objects", "policies", "victims", "classifiers", "schemes", "codes",
    "faults", "plugins",
)  # fmt: skip
COMPARED_FTLS = ("page", "subpage")
"""Layers that `compare` runs by default."""
FIRST_OPERATIONS = "1..1000"
"""The default window of a timeline: the first measured requests."""

SPREAD = "spread"
"""The `start` of runs with several seeds that begin a trace at evenly spread requests."""

_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,59}")
_CLASS = re.compile(r"(?:[^=:]+\.py|object:\d+):(\w+)(?:@\w+)?")
# Values may have commas: a change begins with a key.
_CHANGES = re.compile(r",(?=(?:[a-z_]+\.[a-z_]+|ftl|ssd)=)")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """One run. The defaults give the main job: a full present-day drive under an OLTP load, in seconds.

    `palimpsest.api.Settings` describes the options in common. Others: `overrides`, each `key=value`; `sketch`, whether
    the result has distributions of latency that can be merged (`sketches`); `label`, the name in a comparison;
    `operations`, the window of the timeline, such as `1..1000` or `10ms..12ms`; `strict`, whether a failed command on a
    zone ends the run; `tenant`, the only one that runs: the
    number of a section, from 0, or of a volume; `fitted`, the figures of a drive scaled to the memory, as JSON.
    """

    ssd: str = "default"
    ftl: str | None = None
    workload: str = "oltp-zipf"
    overrides: tuple[str, ...] = ()
    precondition: str | None = "fill:90%,random:1x"
    requests: int | None = None
    warmup: str | None = None
    fidelity: str = "timed"
    payload: str = "tag"
    check: bool = False
    seed: int = 1
    skip_bad: bool = False
    format: str | None = None
    columns: str | None = None
    volumes: str | None = None
    arrivals: str = "recorded"
    start: str | None = None
    repeat: str | None = None
    until: str | None = None
    at_most: str | None = None
    tenant: int | None = None
    series: bool = False
    sketch: bool = False
    operations: str | None = None
    strict: bool = False
    label: str | None = None
    fitted: str | None = None

    def with_ftl(self, ftl: str | None) -> "RunOptions":
        """The same run on another layer."""
        return replace(self, ftl=ftl)

    def labelled(self, text: str) -> "RunOptions":
        """The same run with changes: `LAYER`, `FILE.py:CLASS`, or `LABEL:KEY=VALUE,...` with keys, `ftl` or `ssd`.

        Raises InputError for other texts.
        """
        if found := _CLASS.fullmatch(text):
            return replace(self, ftl=text, label=found[1])
        label, colon, changes = text.partition(":")
        if not _LABEL.fullmatch(label):
            expected = "expected a layer, or LABEL:KEY=VALUE,... with letters, digits, '.', '_', '+' or '-' as label"
            raise InputError(f"run {text!r}: {expected}")
        if not colon:
            return replace(self, ftl=label, label=None)
        made = replace(self, label=label)
        for part in _CHANGES.split(changes):
            key, equals, value = part.partition("=")
            if not equals or not key or not value:
                raise InputError(f"run {text!r}: {part!r}: expected KEY=VALUE, such as ftl.victim=greedy or ftl=mga")
            if key == "ftl":
                made = replace(made, ftl=value)
            elif key == "ssd":
                made = replace(made, ssd=value)
            else:
                made = replace(made, overrides=(*made.overrides, part))
        return made

    def described(self) -> str:
        """The run as TOML comments for the head of its configuration file."""
        lines = ["The resolved configuration of this run; `--ssd config.toml` runs it again.", ""]
        lines += [
            f"workload = {self.workload}",
            f"precondition = {self.precondition}",
            f"requests = {self.requests or 'all'}, warmup = {self.warmup or 'auto'}",
            f"fidelity = {self.fidelity}, payload = {self.payload}, check = {self.check}, seed = {self.seed}",
        ]
        if self.fitted is not None:
            lines.append(f"--fit-memory: {json.loads(self.fitted)['text']}")
        return "".join(f"# {line}".rstrip() + "\n" for line in lines) + "\n"

    def to_json(self) -> str:
        """The form for the native module."""
        options: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        options["set"] = list(options.pop("overrides"))
        del options["label"], options["fitted"]
        return json.dumps(options)
