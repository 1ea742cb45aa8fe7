"""Instructions of a simulated request, ours with and without verification, and MQSim's: independent of other load.

    .venv/bin/python benches/instructions.py              ours
    MQSIM=~/MQSim .venv/bin/python benches/instructions.py    and those of a checkout that `make` has built

callgrind counts two runs that differ in the number of requests; start and preconditioning are the same in both. Ours
run on `BENCH_GIB` GiB (default 2). MQSim has the drive of its ssdconfig.xml, a queue depth of 32, requests of 4 KiB and
no cache of data. Ignored: misses of the processor's caches.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LENGTHS = (20_000, 60_000)
FLOW = """<?xml version="1.0" encoding="us-ascii"?>
<MQSim_IO_Scenarios><IO_Scenario><IO_Flow_Parameter_Set_Synthetic>
<Priority_Class>HIGH</Priority_Class>
<Device_Level_Data_Caching_Mode>TURNED_OFF</Device_Level_Data_Caching_Mode>
<Channel_IDs>0,1,2,3,4,5,6,7</Channel_IDs><Chip_IDs>0,1,2,3</Chip_IDs><Die_IDs>0,1</Die_IDs><Plane_IDs>0,1</Plane_IDs>
<Initial_Occupancy_Percentage>OCCUPIED</Initial_Occupancy_Percentage>
<Working_Set_Percentage>50</Working_Set_Percentage>
<Synthetic_Generator_Type>QUEUE_DEPTH</Synthetic_Generator_Type>
<Read_Percentage>READS</Read_Percentage>
<Address_Distribution>RANDOM_UNIFORM</Address_Distribution>
<Percentage_of_Hot_Region>0</Percentage_of_Hot_Region>
<Generated_Aligned_Addresses>true</Generated_Aligned_Addresses><Address_Alignment_Unit>8</Address_Alignment_Unit>
<Request_Size_Distribution>FIXED</Request_Size_Distribution>
<Average_Request_Size>8</Average_Request_Size><Variance_Request_Size>0</Variance_Request_Size>
<Seed>798</Seed><Average_No_of_Reqs_in_Queue>32</Average_No_of_Reqs_in_Queue><Intensity>32768</Intensity>
<Stop_Time>0</Stop_Time><Total_Requests_To_Generate>REQUESTS</Total_Requests_To_Generate>
</IO_Flow_Parameter_Set_Synthetic></IO_Scenario></MQSim_IO_Scenarios>
"""


@dataclass(frozen=True)
class Case:
    """A case of `speed.rs`, and the flow of MQSim like it: percentage of reads, and of the drive that is occupied."""

    name: str
    reads: int | None = None
    occupied: int = 0


CASES = (
    Case("timed random reads"),
    Case("timed random reads, default drive", 100, 75),
    Case("timed random writes without GC", 0, 0),
    Case("timed steady random writes, default drive"),
    Case("timed steady random writes, OP 28 %"),
)


def _counted(*command: object, cwd: Path = ROOT, **environment: str) -> int:
    """Instructions of a command."""
    words = [str(each) for each in command]
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *words]
    done = subprocess.run(valgrind, cwd=cwd, env=os.environ | environment, capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    # The benchmark prints the error of a refused drive, and ends with status 0.
    if done.returncode or found is None or "\nerror: " in f"\n{done.stderr}":
        raise SystemExit(f"{' '.join(words)} failed:\n{done.stdout[-500:]}{done.stderr[-500:]}")
    return int(found[1])


def _bench() -> Path:
    """The benchmark, built."""
    build = ("cargo", "bench", "--locked", "--no-run", "-p", "palimpsest-lab", "--bench", "speed")
    done = subprocess.run([*build, "--message-format=json"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    found = [json.loads(line).get("executable") for line in done.stdout.splitlines()]
    return Path(next(each for each in reversed(found) if each))


def _ours(bench: Path, case: Case, payload: str) -> float:
    size = os.environ.get("BENCH_GIB", "2")
    short, long = (
        _counted(bench, case.name, BENCH_REQUESTS=str(each), BENCH_PAYLOAD=payload, BENCH_GIB=size) for each in LENGTHS
    )
    return (long - short) / (LENGTHS[1] - LENGTHS[0])


def _mqsim(checkout: Path, case: Case) -> float:
    counts = []
    for requests in LENGTHS:
        text = FLOW.replace("REQUESTS", str(requests)).replace("READS", str(case.reads))
        with tempfile.TemporaryDirectory() as folder:
            flow = Path(folder) / "workload.xml"
            flow.write_text(text.replace("OCCUPIED", str(case.occupied)))
            counts.append(_counted(checkout / "MQSim", "-i", "ssdconfig.xml", "-w", flow, cwd=checkout))
    return (counts[1] - counts[0]) / (LENGTHS[1] - LENGTHS[0])


def main() -> None:
    """Prints a table in Markdown."""
    if shutil.which("valgrind") is None:
        print("instructions of a request: left out, as there is no valgrind on PATH", file=sys.stderr)
        return
    bench = _bench()
    checkout = Path(os.environ["MQSIM"]).expanduser() if "MQSIM" in os.environ else None
    beside = "MQSim | MQSim / ours |" if checkout else ""
    print(f"| instructions of a request | `none` | `tag` | tag / none | {beside}")
    print(f"| --- | --- | --- | --- | {'--- | --- |' if checkout else ''}")
    for case in CASES:
        none, tag = (_ours(bench, case, payload) for payload in ("none", "tag"))
        peer = ""
        if checkout and case.reads is not None:
            theirs = _mqsim(checkout, case)
            peer = f" {theirs:,.0f} | {theirs / none:.1f} |"
        elif checkout:
            peer = " | |"
        print(f"| {case.name} | {none:,.0f} | {tag:,.0f} | {tag / none:.2f} |{peer}", flush=True)


if __name__ == "__main__":
    main()
