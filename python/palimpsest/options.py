"""What one run is made of: the drive, the layer, the workload, and how they are run; with the defaults of each."""

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from .errors import InputError

FIDELITIES = ("timed", "count")
PAYLOADS = ("none", "tag", "bytes")
ARRIVALS = ("recorded", "spread")
REGISTRIES = ("ftls", "parts", "ssds", "workloads", "traces", "victims", "classifiers", "schemes", "codes")
COMPARED_FTLS = ("page", "subpage")
"""Layers that `compare` runs by default."""
FIRST_OPERATIONS = "1..1000"
"""The window of a timeline of operations where none is given: the first measured requests."""


_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,59}")
# Values may have commas: a change begins with a key.
_CHANGES = re.compile(r",(?=(?:[a-z_]+\.[a-z_]+|ftl|ssd)=)")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """One run. The defaults give the main job: a full present-day drive under an OLTP load, in seconds.

    Attributes:
        ssd: preset or TOML file of the drive.
        ftl: translation layer; the preset's own where None.
        workload: preset, trace file, fio job file or fio-like specification.
        overrides: configuration keys, each `key=value`.
        precondition: what happens to the drive before the run, at count fidelity.
        requests: requests to run; all that the workload has where None.
        warmup: requests (`N`) or share (`N%`) at the start that are not measured.
        fidelity: `timed`, or `count` for operation counts only.
        payload: `none`, `tag` (every read is checked against what was written) or `bytes`.
        check: whether data and times are verified: at least the payload `tag`, and a timed run.
        seed: seed of everything random.
        skip_bad: whether bad lines of a trace are counted and skipped instead of ending the run.
        format: the format of a trace; recognised by its content where None.
        columns: where a text without a known format has what, such as `time=1:us,op=3,offset=5:sectors,size=4`.
        volumes: where the volumes of a trace lie: `apart`, `overlaid`, or numbers such as `3,7` of those that are
            played; apart where None, if the format has volumes.
        arrivals: `recorded`, or `spread` for requests of one time over the tick of the trace's clock.
        repeat: how often the workload is played: times such as `3`, or `2dw` until the drive was written twice.
        until: `worn-out`: the workload is played again until the drive can write no more (`faults.wear_out`).
        series: whether time series and histograms are kept.
        sketch: whether the result has its distributions of latency in a small form that can be merged: see `sketches`.
        label: what a comparison calls it; its layer where None.
        operations: the window whose flash operations are kept with their times: requests such as `1..1000`, or times
            such as `10ms..12ms`; none where None.
    """

    ssd: str = "default"
    ftl: str | None = None
    workload: str = "oltp-zipf"
    overrides: tuple[str, ...] = ()
    precondition: str | None = "fill:90%,random:1x"
    requests: int | None = None
    warmup: str | None = None
    fidelity: str = "timed"
    payload: str = "none"
    check: bool = False
    seed: int = 1
    skip_bad: bool = False
    format: str | None = None
    columns: str | None = None
    volumes: str | None = None
    arrivals: str = "recorded"
    repeat: str | None = None
    until: str | None = None
    series: bool = False
    sketch: bool = False
    operations: str | None = None
    label: str | None = None

    def with_ftl(self, ftl: str) -> "RunOptions":
        """The same run on another layer."""
        return replace(self, ftl=ftl)

    def labelled(self, text: str) -> "RunOptions":
        """The same run with changes: `LAYER`, or `LABEL:KEY=VALUE,...` with configuration keys, `ftl` or `ssd`.

        Raises:
            InputError: it is neither.
        """
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
        """What is run, as TOML comments for the head of its configuration file."""
        lines = ["The resolved configuration of this run; `--ssd config.toml` runs it again.", ""]
        lines += [
            f"workload = {self.workload}",
            f"precondition = {self.precondition}",
            f"requests = {self.requests or 'all'}, warmup = {self.warmup or 0}",
            f"fidelity = {self.fidelity}, payload = {self.payload}, check = {self.check}, seed = {self.seed}",
        ]
        return "".join(f"# {line}".rstrip() + "\n" for line in lines) + "\n"

    def to_json(self) -> str:
        """The form that the native module takes."""
        options: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        options["set"] = list(options.pop("overrides"))
        options.pop("label")
        return json.dumps(options)
