"""A result of MQSim beside a run here: the figures that both simulators report, with the difference.

MQSim's `End_to_End_Request_Delay` counts from the arrival of a request at the host, as response times here do; it is in
whole microseconds. Ignored: figures of one side only, such as percentiles (ours) and times of transactions (theirs).
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import units
from ..errors import InputError
from .elements import printable
from .mqsim_files import child, tree

if TYPE_CHECKING:
    from rich.console import RenderableType

_ROOT = "MQSim_Results"
_HEADS = ("", "MQSim", "simulated", "difference")


@dataclass(frozen=True, slots=True)
class Row:
    """A figure on both sides, in units of ours; None where a side has none."""

    flow: str
    label: str
    theirs: float | None
    ours: float | None
    show: Callable[[float | None], str]

    def cells(self) -> tuple[str, ...]:
        """The row as texts; the difference is of ours to theirs."""
        both = self.theirs is not None and self.ours is not None
        if both and self.theirs == self.ours:
            said = "0 %"
        elif both and self.theirs:
            said = f"{100 * ((self.ours or 0) / self.theirs - 1):+,.1f} %"
        else:
            said = units.ABSENT
        return self.label, self.show(self.theirs), self.show(self.ours), said


class Theirs:
    """The figures of a result file. Raises InputError for other files."""

    def __init__(self, path: Path) -> None:
        self._path = path
        root = tree(path, _ROOT, "a result of MQSim such as workload_scenario_1.xml")
        self._flows = list(child(path, root, "Host").iter("Host.IO_Flow"))
        if not self._flows:
            raise InputError(f"{path}: Host has no element Host.IO_Flow; expected one for each flow")
        ftl = child(path, root, "SSDDevice").find("SSDDevice.FTL")
        self._ftl = {} if ftl is None else dict(ftl.attrib)

    def expect(self, flows: int) -> None:
        """Raises InputError unless the file has the figures of so many flows."""
        if len(self._flows) != flows:
            what = f"the result has {len(self._flows)} flows, and the scenario {flows}"
            raise InputError(f"{self._path}: {what}; expected the result of this scenario (--scenario)")

    def flow(self, at: int, name: str, factor: float = 1) -> float | None:
        """A figure of a flow."""
        found = self._flows[at].find(name)
        return None if found is None else self._number(name, found.text or "", factor)

    def layer(self, name: str) -> float | None:
        """A figure of the FTL."""
        return self._number(name, self._ftl[name], 1) if name in self._ftl else None

    def _number(self, name: str, text: str, factor: float) -> float | None:
        try:
            number = float(text)
        except ValueError:
            raise InputError(f"{self._path}: {name}: found {printable(text)!r}; expected a number") from None
        return number * factor if math.isfinite(number) else None


def rows(theirs: Theirs, result: Mapping[str, Any], flows: int) -> list[Row]:
    """The rows of all flows and of the flash."""
    theirs.expect(flows)
    parts = [result] if flows == 1 else list(result.get("jobs") or [])
    made: list[Row] = []
    for at, part in enumerate(parts[:flows]):
        made += _flow_rows(theirs, at, part, "" if flows == 1 else f"flow-{at}")
    return [*made, *_flash_rows(theirs, result)]


def _flow_rows(theirs: Theirs, at: int, part: Mapping[str, Any], name: str) -> Iterator[Row]:
    requests = part["requests"]
    served = sum(requests.values())
    rate = part["throughput"]["iops"]
    latency = (part["latency_ns"] or {}).get("all") or {}

    def share(count: float | None) -> float | None:
        return rate * count / served if rate and served and count is not None else None

    yield Row(name, "requests", theirs.flow(at, "Request_Count"), served, units.count)
    yield Row(name, "IOPS", theirs.flow(at, "IOPS"), rate, units.count)
    yield Row(name, "read IOPS", theirs.flow(at, "IOPS_Read"), share(requests["read"]), units.count)
    yield Row(name, "write IOPS", theirs.flow(at, "IOPS_Write"), share(requests["write"]), units.count)
    yield Row(name, "bandwidth", theirs.flow(at, "Bandwidth"), part["throughput"].get("bytes_per_s"), units.rate)
    for label, element, figure in (
        ("mean response time", "End_to_End_Request_Delay", "mean"),
        ("max response time", "Max_End_to_End_Request_Delay", "max"),
    ):
        yield Row(name, label, theirs.flow(at, element, 1000), latency.get(figure), units.nanoseconds)


def _flash_rows(theirs: Theirs, result: Mapping[str, Any]) -> Iterator[Row]:
    flash, gc = result["flash"], result["gc"]
    config = result.get("config") or {}
    part = config.get("part") or {}
    page, unit = (units.parse_bytes(part.get(name)) for name in ("page_size", "subpage_size"))
    erased = gc["erased_blocks"]
    moved = gc["moved_subpages"] * unit / page / erased if erased and page and unit else None
    for label, kind, ours in (
        ("read commands", "Read", flash["page_reads"]), ("program commands", "Program", flash["page_programs"]),
        ("erase commands", "Erase", flash["erases"]),
    ):  # fmt: skip
        forms = ("", "_Interleaved", "_Multiplane", "_Interleaved_Multiplane")
        found = [theirs.layer(f"Issued_Flash{form}_{kind}_CMD") for form in forms]
        known = [each for each in found if each is not None]
        yield Row("flash", label, sum(known) if known else None, ours, units.count)
    yield Row("flash", "blocks collected", theirs.layer("Total_GC_Executions"), erased, units.count)
    yield Row("flash", "pages moved a block", theirs.layer("Average_Page_Movement_For_GC"), moved, units.count)


def render(made: list[Row], path: Path) -> "RenderableType":
    """The rows as a table for rich."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    title = Text(f"beside MQSim ({printable(path.name)})")
    table = Table(title=title, box=None, padding=(0, 1, 0, 0), pad_edge=False, title_justify="left")
    for head in _HEADS:
        table.add_column(head, justify="right" if head else "left", no_wrap=True)
    flow = ""
    for row in made:
        if row.flow != flow:
            flow = row.flow
            table.add_row(Text(flow, style="bold underline"))
        table.add_row(*row.cells())
    notes = ["a multi-plane command of MQSim counts once, here a page or block of each plane"]
    if any(row.label == "IOPS" and row.theirs is None for row in made):
        notes.append("MQSim divides by whole seconds, so a shorter result has no IOPS")
    return Group(table, *(Text(f"note: {note}", style="yellow") for note in notes))
