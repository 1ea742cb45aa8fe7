"""The flows of a scenario of MQSim (`workload.xml`) as jobs of a job file, or as the options of a trace.

Each flow of a scenario has a range of addresses of its own, in proportion to the planes that it may use: a namespace.
Ignored: MQSim's random numbers (the same distributions, other draws), and the start of a sequential flow at a random
address.
"""

import math
from itertools import product
from pathlib import Path
from statistics import NormalDist
from xml.etree import ElementTree as ET

from ..errors import InputError
from ..files import is_file
from .elements import Elements, printable
from .mqsim_drive import Device
from .mqsim_files import tree, values
from .record import LOST, Imported, Note, percent, time

_SECTOR = 512
_SYNTHETIC, _TRACE = "IO_Flow_Parameter_Set_Synthetic", "IO_Flow_Parameter_Set_Trace_Based"
_CACHED = {"WRITE_CACHE": True, "WRITE_READ_CACHE": True, "READ_CACHE": False, "TURNED_OFF": False}
_CLASSES = ("URGENT", "HIGH", "MEDIUM", "LOW")
_RESOURCES = ("Channel_IDs", "Chip_IDs", "Die_IDs", "Plane_IDs")
_QUANTILES = 20
_KNOWN = (
    "Priority_Class", "Device_Level_Data_Caching_Mode", *_RESOURCES, "Initial_Occupancy_Percentage",
    "Working_Set_Percentage", "Synthetic_Generator_Type", "Read_Percentage", "Address_Distribution",
    "Percentage_of_Hot_Region", "Generated_Aligned_Addresses", "Address_Alignment_Unit", "Request_Size_Distribution",
    "Average_Request_Size", "Variance_Request_Size", "Seed", "Average_No_of_Reqs_in_Queue", "Bandwidth", "Stop_Time",
    "Total_Requests_To_Generate", "File_Path", "Percentage_To_Be_Executed", "Relay_Count", "Time_Unit",
)  # fmt: skip


def scenario(path: Path, number: int, device: Device, of: Imported) -> int:
    """Maps the flows of a scenario, from 1; returns the number of scenarios. Raises InputError for other files."""
    root = tree(path, "MQSim_IO_Scenarios", "workloads of MQSim such as workload.xml")
    found = root.findall("IO_Scenario")
    if not found:
        raise InputError(f"{path}: MQSim_IO_Scenarios has no element IO_Scenario; expected one")
    if number > len(found):
        raise InputError(f"{path}: --scenario {number}: the file has {len(found)}; expected one of them")
    flows = list(found[number - 1])
    place = f"{path}: IO_Scenario {number}"
    if not flows:
        raise InputError(f"{place}: there is no flow; expected {_SYNTHETIC} or {_TRACE}")
    for flow in flows:
        if flow.tag not in (_SYNTHETIC, _TRACE):
            raise InputError(f"{place}: {printable(flow.tag)} is not a flow; expected {_SYNTHETIC} or {_TRACE}")
    traces = sum(flow.tag == _TRACE for flow in flows)
    if traces and len(flows) > 1:
        what = f"{len(flows)} flows, {traces} of them of traces: a run here plays one trace, or generated jobs"
        raise InputError(f"{place}: {what}; expected one flow of a trace, or flows without traces")
    _Scenario(path, place, flows, device, of).map()
    return len(found)


class _Scenario:
    """The flows of one scenario."""

    def __init__(self, path: Path, place: str, flows: list[ET.Element], device: Device, of: Imported) -> None:
        self._path, self._device, self._of, self._trees = path, device, of, flows
        self._flows = []
        for at, flow in enumerate(flows):
            of.flow = self._name(at)
            self._flows.append(Elements(f"{place}: flow {at}", values(flow, of), of))
        of.flow = ""

    def _name(self, at: int) -> str:
        return f"flow-{at}" if len(self._trees) > 1 else ""

    def map(self) -> None:
        """Maps the flows, and the keys of the drive that they decide together."""
        of, several = self._of, len(self._flows) > 1
        shares = self._spaces()
        occupied, cached, classes, reads, random = [], [], [], [], False
        for at, flow in enumerate(self._flows):
            of.flow = self._name(at)
            mode = flow.choice("Device_Level_Data_Caching_Mode", tuple(_CACHED))
            cached.append(_CACHED[mode])
            if mode in ("READ_CACHE", "WRITE_READ_CACHE"):
                of.near(flow.shown("Device_Level_Data_Caching_Mode"), "no data is cached for reads")
            else:
                of.about("same", flow.shown("Device_Level_Data_Caching_Mode"), "buffer.ack")
            classes.append(flow.choice("Priority_Class", _CLASSES))
            occupied.append(flow.count("Initial_Occupancy_Percentage", 0, 100))
            if self._trees[at].tag == _TRACE:
                self._trace(flow)
                reads.append(100)
                random = True
            else:
                span = shares[at] if not several else 1.0
                read, jumps = _Synthetic(flow, f"flow-{at}", span, of).map()
                reads.append(flow.count("Working_Set_Percentage", 0) if read else 0)
                random |= jumps
            flow.rest("MQSim does not read this element of such a flow", _KNOWN)
        of.flow = ""
        self._cache(cached)
        self._queues(classes)
        self._precondition(shares, occupied, reads, random=random)

    def _spaces(self) -> list[float]:
        """The share of the logical space of each flow, which also become namespaces if there are several flows."""
        device, of = self._device, self._of
        used: dict[tuple[int, ...], int] = {}
        sets = []
        for flow in self._flows:
            ids = [flow.numbers(name, most) for name, most in zip(_RESOURCES, device.resources, strict=True)]
            planes = set(product(*ids))
            sets.append(planes)
            for plane in planes:
                used[plane] = used.get(plane, 0) + 1
        total = math.prod(device.resources)
        shares = [sum(1 / used[plane] for plane in planes) / total for planes in sets]
        whole = all(len(planes) == total for planes in sets)
        # Namespaces with dies of their own have whole dies that no other flow uses.
        dies = [{plane[:3] for plane in planes} for planes in sets]
        apart = (
            len(sets) > 1 and set(used.values()) == {1} and len(used) == total
            and sum(map(len, dies)) == len(set.union(*dies))
        )  # fmt: skip
        for at, flow in enumerate(self._flows):
            of.flow = self._name(at)
            shown = flow.shown(*_RESOURCES)
            if whole:
                of.about("same", shown, "")
            elif apart:
                of.about("approximated", shown, "ftl.allocation = namespace", "as many dies, on all channels")
            else:
                of.lost(
                    shown, f"data lies on all planes; the flow has its {percent(round(shares[at], 4))} of the space"
                )
        of.flow = ""
        if len(sets) > 1:
            text = ":".join(percent(math.floor(share * 10_000) / 10_000) for share in shares)
            of.keys["ssd.namespaces"] = (text, "each flow has addresses of its own")
            if apart:
                of.keys["ftl.allocation"] = ("namespace", "flows have dies of their own")
        return shares

    def _cache(self, cached: list[bool]) -> None:
        key = "buffer.ack"
        mixed = len(set(cached)) > 1
        if mixed:
            why = "one setting for all flows: all are acknowledged in the buffer"
            self._of.about("approximated", "Device_Level_Data_Caching_Mode", f"{key} = buffer", why)
        self._of.keys[key] = ("buffer" if any(cached) else "program", "Device_Level_Data_Caching_Mode")
        if not any(cached):
            for name in ("buffer.t_write", "buffer.t_write_next"):
                self._of.keys.pop(name, None)
            self._of.notes = [
                Note(LOST, note.theirs, "", "no write is buffered") if note.ours.startswith("buffer.t_write") else note
                for note in self._of.notes
            ]

    def _queues(self, classes: list[str]) -> None:
        device, of = self._device, self._of
        for at, flow in enumerate(self._flows):
            of.flow = self._name(at)
            if len(set(classes)) > 1:
                why = "decides which command the controller fetches; in MQSim which transaction a chip starts, too"
                of.about("approximated", flow.shown("Priority_Class"), f"host.classes = {classes[at].lower()}", why)
            else:
                of.about("same", flow.shown("Priority_Class"), "", "all flows have this class")
        of.flow = ""
        if len(set(classes)) > 1:
            of.keys["host.arbitration"] = ("weighted", "Priority_Class")
            of.keys["host.classes"] = (":".join(each.lower() for each in classes), "Priority_Class")
        if device.is_sata:
            of.near(
                device.caching.shown("IO_Queue_Depth"),
                "the drive holds so many commands",
                ("controller.commands", device.depth),
            )
            of.lost(device.caching.shown("Queue_Fetch_Size"), "only NVMe drives have it, in MQSim too")
            return
        of.lost(device.caching.shown("IO_Queue_Depth"), "submission queues have room for all commands")
        held = device.fetched * len(classes)
        why = "commands in the controller, of all flows together"
        of.near(device.caching.shown("Queue_Fetch_Size"), why, ("controller.commands", held))

    def _precondition(self, shares: list[float], occupied: list[int], reads: list[int], *, random: bool) -> None:
        of, device = self._of, self._device
        of.flow = ""
        shown = "; ".join(dict.fromkeys(flow.shown("Initial_Occupancy_Percentage") for flow in self._flows))
        needed = 0 if not any(reads) else 100 if len(shares) > 1 else math.ceil(max(reads) * min(shares[0], 1))
        if not device.preconditions:
            spec = f"fill:{needed}%" if needed else "none"
            why = "MQSim places the data of unwritten pages when a read needs them, in no time" if needed else ""
            of.about("approximated" if needed else "same", device.caching.shown("Enabled_Preconditioning"), spec, why)
            of.lost(shown, "preconditioning is off, in MQSim too")
            of.options["precondition"] = spec
            return
        filled = sum(share * part for share, part in zip(shares, occupied, strict=True))
        level = max(math.ceil(filled / max(sum(shares), 1)), needed, 1)
        spec = f"fill:{level}%,random:1x" if random else f"fill:{level}%"
        why = "MQSim computes a steady state; here the drive is filled in order"
        why += " and overwritten at random once" if random else ""
        why += ", as far as flows read" if level == needed else ""
        of.about(
            "approximated", f"{device.caching.shown('Enabled_Preconditioning')}, {shown}", f"--precondition {spec}", why
        )
        of.options["precondition"] = spec

    def _trace(self, flow: Elements) -> None:
        of = self._of
        name = flow.text("File_Path", "the path of a trace")
        candidates = (Path(name), self._path.parent / name)
        file = next((each for each in candidates if name and is_file(each)), None)
        if file is None:
            raise flow.error("File_Path", f"there is no file {printable(name)!r}", "a trace, from here or the workload")
        of.workload = str(file)
        of.about("same", flow.shown("File_Path"), "--workload")
        units = {"PICOSECOND": "ns", "NANOSECOND": "ns", "MICROSECOND": "us"}
        unit = flow.choice("Time_Unit", tuple(units))
        of.options["columns"] = f"time=1:{units[unit]},offset=3:sectors,size=4:sectors,op=5:write=0,separator=blanks"
        if unit == "NANOSECOND":
            of.about("same", flow.shown("Time_Unit"), "--columns", "device numbers are ignored, as in MQSim")
        else:
            of.about("approximated", flow.shown("Time_Unit"), "--columns", "MQSim reads it and plays nanoseconds")
        if unit == "PICOSECOND":
            of.keys["host.speedup"] = (1000, "times of the trace are picoseconds")
        of.keys["host.fold"] = (True, "addresses beyond the flow's space are folded into it")
        times = flow.count("Relay_Count", 1, 10**6)
        share = flow.count("Percentage_To_Be_Executed", 0, 10**6)
        of.about("same", flow.shown("Relay_Count"), f"--repeat {times}")
        if times > 1:
            of.options["repeat"] = str(times)
            of.lost(flow.shown("Percentage_To_Be_Executed"), "MQSim plays all of a repeated trace")
            return
        with file.open("rb") as opened:
            lines = sum(1 for _ in opened)
        wanted = min(share, 100) * lines // 100
        if wanted == 0:
            raise flow.error("Percentage_To_Be_Executed", f"{share} of {lines} lines is no request", "at least one")
        if wanted < lines:
            of.options["requests"] = str(wanted)
        of.about("same", flow.shown("Percentage_To_Be_Executed"), f"--requests {wanted}")


class _Synthetic:
    """A generated flow as a section of a job file. `span`: the share of the drive if no namespace bounds the flow."""

    def __init__(self, flow: Elements, name: str, span: float, of: Imported) -> None:
        self._flow, self._span, self._of = flow, span, of
        self._lines = of.job
        self._lines += [f"[{name}]"]

    def _put(self, fate: str, names: tuple[str, ...], text: str, why: str = "") -> None:
        shown = self._flow.shown(*names)
        lines = text.split("\n")
        self._lines += [f"; {shown}", *lines]
        self._of.about(fate, shown, ", ".join(lines), why)

    def map(self) -> tuple[bool, bool]:
        """Writes the section; returns whether the flow reads, and whether its writes are random."""
        flow = self._flow
        share = flow.count("Read_Percentage", 0, 100)
        where = flow.choice("Address_Distribution", ("STREAMING", "RANDOM_UNIFORM", "RANDOM_HOTCOLD"))
        sector = self._sizes()
        self._addresses(share, where, sector)
        self._working_set()
        self._arrivals()
        self._end(sector)
        seed = flow.count("Seed", 0, 2**31 - 1)
        self._put("approximated", ("Seed",), f"randseed={seed}", "other generators, so other draws")
        self._lines.append("")
        return share > 0, share < 100 and where != "STREAMING"

    def _sizes(self) -> int:
        """Writes the sizes of requests; returns the mean in bytes."""
        flow = self._flow
        mean = flow.count("Average_Request_Size", 1, 1 << 21)
        kind = flow.choice("Request_Size_Distribution", ("FIXED", "NORMAL"))
        deviation = flow.real("Variance_Request_Size", 0, 1 << 21) if kind == "NORMAL" else 0.0
        names = ("Request_Size_Distribution", "Average_Request_Size")
        if deviation == 0:
            flow.skip("requests have one size, in MQSim too", "Variance_Request_Size")
            self._put("same", names, f"bs={mean * _SECTOR}")
            return mean * _SECTOR
        law = NormalDist(mean, deviation)
        sizes: dict[int, int] = {}
        for at in range(_QUANTILES):
            sectors = min(max(math.ceil(law.inv_cdf((at + 0.5) / _QUANTILES)), 1), 1 << 21)
            sizes[sectors] = sizes.get(sectors, 0) + 100 // _QUANTILES
        split = ":".join(f"{sectors * _SECTOR}/{part}" for sectors, part in sizes.items())
        why = f"{_QUANTILES} steps of the distribution; MQSim takes the variance as the deviation"
        self._put("approximated", (*names, "Variance_Request_Size"), f"bssplit={split}", why)
        return mean * _SECTOR

    def _addresses(self, share: int, where: str, mean: int) -> None:
        flow = self._flow
        verb = {0: "write", 100: "read"}.get(share, "rw")
        aligned = flow.flag("Generated_Aligned_Addresses")
        names: tuple[str, ...] = ("Generated_Aligned_Addresses",)
        unit = _SECTOR
        if aligned:
            unit = flow.count("Address_Alignment_Unit", 1, 1 << 21) * _SECTOR
            names = (*names, "Address_Alignment_Unit")
        else:
            flow.skip("addresses are not aligned, in MQSim too", "Address_Alignment_Unit")
        mix = f"\nrwmixread={share}" if verb == "rw" else ""
        if where == "STREAMING":
            gap = -mean % unit
            step = f":{gap}" if gap else ""
            why = "starts at the first address; MQSim starts at a random one"
            self._put("approximated", ("Read_Percentage", "Address_Distribution"), f"rw={verb}{step}{mix}", why)
            self._of.about("same", flow.shown(*names), f"rw={verb}{step}")
            flow.skip("only RANDOM_HOTCOLD reads it, in MQSim too", "Percentage_of_Hot_Region")
            return
        rand = f"rw=rand{verb}{mix}\nnorandommap"
        if where == "RANDOM_HOTCOLD":
            hot = flow.count("Percentage_of_Hot_Region", 0, 100)
            if not 0 < hot < 100:
                raise flow.error("Percentage_of_Hot_Region", f"found {hot}", "a whole number from 1 to 99")
            shares = f"random_distribution=zoned:{100 - hot}/{hot}:{hot}/{100 - hot}"
            self._put(
                "same", ("Read_Percentage", "Address_Distribution", "Percentage_of_Hot_Region"), f"{rand}\n{shares}"
            )
        else:
            self._put("same", ("Read_Percentage", "Address_Distribution"), rand)
            flow.skip("only RANDOM_HOTCOLD reads it, in MQSim too", "Percentage_of_Hot_Region")
        self._put("same", names, f"blockalign={unit}")

    def _working_set(self) -> None:
        flow = self._flow
        share = flow.count("Working_Set_Percentage", 0)
        fate, why = ("same", "") if 1 <= share <= 100 else ("approximated", "MQSim takes 100")
        part = (share if 1 <= share <= 100 else 100) * self._span
        text = f"{part:.1f}".removesuffix(".0") if part >= 0.1 else "0.1"
        self._put(fate, ("Working_Set_Percentage",), f"size={text}%", why)

    def _arrivals(self) -> None:
        flow = self._flow
        if flow.choice("Synthetic_Generator_Type", ("BANDWIDTH", "QUEUE_DEPTH")) == "QUEUE_DEPTH":
            depth = flow.count("Average_No_of_Reqs_in_Queue", 1, 65536)
            names = ("Synthetic_Generator_Type", "Average_No_of_Reqs_in_Queue")
            self._put("same", names, f"iodepth={depth}")
            flow.skip("the depth of the queue decides, in MQSim too", "Bandwidth")
            return
        bandwidth = flow.count("Bandwidth", 1, 2**50)
        rate = bandwidth // _SECTOR // flow.count("Average_Request_Size", 1)
        if not 1 <= rate <= 10**9:
            raise flow.error("Bandwidth", f"{bandwidth} bytes are {rate} requests a second", "from 1 to 1e9 requests")
        exact = 10**9 / (10**9 // rate)
        names = ("Synthetic_Generator_Type", "Bandwidth")
        text = f"rate_iops={exact:.3f}\nrate_process=poisson\nopen_loop"
        self._put("same", names, text)
        flow.skip("the bandwidth decides, in MQSim too", "Average_No_of_Reqs_in_Queue")

    def _end(self, mean: int) -> None:
        flow = self._flow
        stop = flow.count("Stop_Time", 0, 2**62)
        if stop:
            whole = time(stop) if stop % 1000 == 0 else time(max(stop // 1000, 1) * 1000)
            fate, why = ("same", "") if stop % 1000 == 0 else ("approximated", "microseconds")
            self._put(fate, ("Stop_Time",), f"runtime={whole}\ntime_based", why)
            flow.skip("the time of the end decides, in MQSim too", "Total_Requests_To_Generate")
            return
        number = flow.count("Total_Requests_To_Generate", 1, 2**40)
        names = ("Stop_Time", "Total_Requests_To_Generate")
        # A pass over the working set would end the job.
        self._put("same", names, f"number_ios={number}\nio_size={2 * number * max(mean, _SECTOR)}")
