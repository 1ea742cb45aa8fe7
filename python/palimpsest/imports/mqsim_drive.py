"""The drive of an MQSim configuration (`ssdconfig.xml`) in keys of ours.

The elements and defaults are those of MQSim's commit 7ec40e3. Ignored: timing of commands on the flash bus (MQSim: some
hundred nanoseconds, fixed), reads that hit the write cache, and sharing of caches between flows.
"""

import math
from dataclasses import dataclass
from pathlib import Path

from .elements import Elements
from .mqsim_files import child, tree, values
from .record import Imported, percent, size, time

_UNREAD = "MQSim does not read this element"
_SECTOR, _UNIT = 512, 4096
_PACKET, _OVERHEAD = 128, 28
"""Bytes of a packet on MQSim's PCIe link, and of the headers around it."""
_ERASES = 10
"""Erases of a plane in progress that MQSim keeps blocks for, whatever the threshold."""

HOST = {
    "PCIe_Lane_Bandwidth": "0.4", "PCIe_Lane_Count": "4", "SATA_Processing_Delay": "400000",
    "Enable_ResponseTime_Logging": "false", "ResponseTime_Logging_Period_Length": "400000",
}  # fmt: skip
DEVICE = {
    "Seed": "123", "Enabled_Preconditioning": "true", "Memory_Type": "FLASH", "HostInterface_Type": "NVME",
    "IO_Queue_Depth": "1024", "Queue_Fetch_Size": "512", "Caching_Mechanism": "ADVANCED",
    "Data_Cache_Sharing_Mode": "SHARED", "Data_Cache_Capacity": "536870912", "Data_Cache_DRAM_Row_Size": "8192",
    "Data_Cache_DRAM_Data_Rate": "800", "Data_Cache_DRAM_Data_Busrt_Size": "4", "Data_Cache_DRAM_tRCD": "13",
    "Data_Cache_DRAM_tCL": "13", "Data_Cache_DRAM_tRP": "13", "Address_Mapping": "PAGE_LEVEL",
    "Ideal_Mapping_Table": "false", "CMT_Capacity": "2097152", "CMT_Sharing_Mode": "SHARED",
    "Plane_Allocation_Scheme": "CWDP", "Transaction_Scheduling_Policy": "OUT_OF_ORDER", "Overprovisioning_Ratio":
    "0.07", "GC_Exec_Threshold": "0.05", "GC_Block_Selection_Policy": "RGA", "Use_Copyback_for_GC": "false",
    "Preemptible_GC_Enabled": "true", "GC_Hard_Threshold": "0.005", "Dynamic_Wearleveling_Enabled": "true",
    "Static_Wearleveling_Enabled": "true", "Static_Wearleveling_Threshold": "100",
    "Prefered_suspend_erase_time_for_read": "700000", "Preferred_suspend_erase_time_for_write": "700000",
    "Preferred_suspend_write_time_for_read": "100000", "Flash_Channel_Count": "8", "Flash_Channel_Width": "1",
    "Channel_Transfer_Rate": "300", "Chip_No_Per_Channel": "4", "Flash_Comm_Protocol": "NVDDR2",
}  # fmt: skip
FLASH = {
    "Flash_Technology": "MLC", "CMD_Suspension_Support": "ERASE", "Page_Read_Latency_LSB": "75000",
    "Page_Read_Latency_CSB": "75000", "Page_Read_Latency_MSB": "75000", "Page_Program_Latency_LSB": "750000",
    "Page_Program_Latency_CSB": "750000", "Page_Program_Latency_MSB": "750000", "Block_Erase_Latency": "3800000",
    "Block_PE_Cycles_Limit": "10000", "Suspend_Erase_Time": "700000", "Suspend_Program_Time": "100000",
    "Die_No_Per_Chip": "2", "Plane_No_Per_Die": "2", "Block_No_Per_Plane": "2048", "Page_No_Per_Block": "256",
    "Page_Capacity": "8192", "Page_Metadat_Capacity": "1872",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Device:
    """The parts of a configuration that flows depend on: resources (channels, chips, dies, planes), link and cache."""

    resources: tuple[int, int, int, int]
    is_sata: bool
    preconditions: bool
    depth: int
    fetched: int
    caching: Elements


def drive(path: Path, of: Imported) -> Device:
    """Maps a configuration. Raises InputError if this is not a configuration of MQSim, or for a wrong value."""
    root = tree(path, "Execution_Parameter_Set", "a configuration of MQSim such as ssdconfig.xml")
    device_tree = child(path, root, "Device_Parameter_Set")
    found = root.find("Host_Parameter_Set")
    host = Elements(f"{path}: Host_Parameter_Set", {} if found is None else values(found, of), of, HOST)
    device = Elements(f"{path}: Device_Parameter_Set", values(device_tree, of, ("Flash_Parameter_Set",)), of, DEVICE)
    inner = device_tree.find("Flash_Parameter_Set")
    flash = Elements(f"{path}: Flash_Parameter_Set", {} if inner is None else values(inner, of), of, FLASH)
    resources = _geometry(device, flash, of)
    _cells(flash, of)
    _bus(device, of)
    is_sata = _host(host, device, of)
    _map(device, flash, of)
    _collection(device, flash, of)
    _scheduling(device, flash, of)
    _cache(device, flash, resources, of)
    of.about("same", device.shown("Seed"), "--seed", "the generators differ, so no draw is the same")
    of.options["seed"] = str(device.count("Seed", 0, 2**31 - 1))
    preconditions = device.flag("Enabled_Preconditioning")
    depth, fetched = device.count("IO_Queue_Depth", 1, 65535), device.count("Queue_Fetch_Size", 1, 65535)
    for section, known in ((host, HOST), (device, DEVICE), (flash, FLASH)):
        section.rest(_UNREAD, known)
    return Device(resources, is_sata, preconditions, depth, fetched, device)


def _geometry(device: Elements, flash: Elements, of: Imported) -> tuple[int, int, int, int]:
    places = (
        (device, "Flash_Channel_Count", "ssd.channels", 1 << 12),
        (device, "Chip_No_Per_Channel", "ssd.chips_per_channel", 1 << 12),
        (flash, "Die_No_Per_Chip", "ssd.dies_per_chip", 64),
        (flash, "Plane_No_Per_Die", "ssd.planes_per_die", 64),
    )
    made = []
    for section, name, key, most in places:
        made.append(section.count(name, 1, most))
        of.same(section.shown(name), (key, made[-1]))
    of.same(flash.shown("Block_No_Per_Plane"), ("ssd.blocks_per_plane", flash.count("Block_No_Per_Plane", 1, 2**32)))
    of.same(flash.shown("Page_No_Per_Block"), ("part.pages_per_block", flash.count("Page_No_Per_Block", 1, 65536)))
    page = flash.count("Page_Capacity", _SECTOR, 1 << 20)
    if page % _SECTOR:
        raise flash.error("Page_Capacity", f"found {page}", "a multiple of 512 bytes")
    unit = _UNIT if page % _UNIT == 0 else page
    word = max(_SECTOR, page // 64) if page % 64 == 0 else page
    of.same(
        flash.shown("Page_Capacity"), ("part.page_size", size(page)), ("part.subpage_size", size(unit)),
        ("part.word_size", size(word if unit % word == 0 else unit)),
    )  # fmt: skip
    of.same(
        flash.shown("Page_Metadat_Capacity"),
        ("part.spare_size", size(flash.count("Page_Metadat_Capacity", 0, 1 << 20))),
    )
    ratio = device.real("Overprovisioning_Ratio", 0.0001, 0.9)
    of.same(device.shown("Overprovisioning_Ratio"), ("ssd.over_provisioning", percent(ratio / (1 - ratio))))
    device.choice("Memory_Type", ("FLASH",))
    of.about("same", device.shown("Memory_Type"), "")
    return made[0], made[1], made[2], made[3]


def _cells(flash: Elements, of: Imported) -> None:
    cell = flash.choice("Flash_Technology", ("SLC", "MLC", "TLC"))
    of.same(flash.shown("Flash_Technology"), ("part.cell", cell.lower()))
    pages = {"SLC": ("LSB",), "MLC": ("LSB", "MSB"), "TLC": ("LSB", "CSB", "MSB")}[cell]
    for verb, key in (("Read", "part.t_read"), ("Program", "part.t_program")):
        names = [f"Page_{verb}_Latency_{page}" for page in pages]
        times = [flash.count(name, 0, 10**12) for name in names]
        shown = flash.shown(*names)
        if cell == "MLC":
            of.same(shown, (key, time(times[0])), (f"{key}_high", time(times[1])))
        elif cell == "SLC" or len(set(times)) == 1:
            of.same(shown, (key, time(times[0])))
        elif verb == "Read":
            of.same(shown, (key, time(sum(times) // 3)), ("part.t_read_types", [time(each) for each in times]))
        else:
            of.near(shown, "programs of TLC pages take one time, the mean", (key, time(sum(times) // 3)))
        unused = [f"Page_{verb}_Latency_{page}" for page in ("CSB", "MSB") if page not in pages]
        flash.skip(f"{cell} has no such pages, in MQSim too", *unused)
    of.same(flash.shown("Block_Erase_Latency"), ("part.t_erase", time(flash.count("Block_Erase_Latency", 0, 10**12))))
    cycles = flash.count("Block_PE_Cycles_Limit", 1, 2**31)
    of.same(flash.shown("Block_PE_Cycles_Limit"), ("part.endurance", cycles))


def _bus(device: Elements, of: Imported) -> None:
    device.choice("Flash_Comm_Protocol", ("NVDDR2",))
    width = device.count("Flash_Channel_Width", 1, 64)
    rate = device.count("Channel_Transfer_Rate", 1, 10**6)
    shown = device.shown("Channel_Transfer_Rate", "Flash_Channel_Width", "Flash_Comm_Protocol")
    step = 1000 // rate
    if step and 1000 % rate == 0:
        of.same(shown, ("part.bus_rate", f"{rate * width}MB/s"))
    elif step:
        real = width * 10**9 // step
        why = f"MQSim rounds the time of a transfer down to {step} ns"
        of.near(shown, why, ("part.bus_rate", f"{real}B/s"))
    else:
        of.near(shown, "MQSim rounds a transfer above 1000 MT/s to no time", ("part.bus_rate", "unlimited"))
    of.keys["part.t_command"] = ("0ns", "commands of some hundred nanoseconds are left out")
    of.keys["part.order"] = ("strict", "pages of a block in order")
    of.keys["part.nop"] = (1, "a page is programmed once")


def _host(host: Elements, device: Elements, of: Imported) -> bool:
    rate, lanes = host.real("PCIe_Lane_Bandwidth", 0.001, 1000), host.count("PCIe_Lane_Count", 1, 64)
    real = round(rate * lanes * 10**9 * _PACKET / (_PACKET + _OVERHEAD))
    why = f"{_OVERHEAD} bytes of headers with each {_PACKET}, which MQSim transfers one by one"
    of.near(host.shown("PCIe_Lane_Bandwidth", "PCIe_Lane_Count"), why, ("host.link_rate", f"{real}B/s"))
    is_sata = device.choice("HostInterface_Type", ("NVME", "SATA")) == "SATA"
    shown = device.shown("HostInterface_Type")
    if is_sata:
        of.near(shown, "one queue of commands, without the frames of SATA")
        delay = host.count("SATA_Processing_Delay", 0, 10**12)
        why = "each way, for each request beside others; MQSim delays one request at a time"
        of.near(host.shown("SATA_Processing_Delay"), why, ("host.t_link", time(delay)))
    else:
        of.about("same", shown, "")
        host.skip("only SATA drives have it, in MQSim too", "SATA_Processing_Delay")
    why = "a log of response times, which --out writes as a table"
    host.skip(why, "Enable_ResponseTime_Logging", "ResponseTime_Logging_Period_Length")
    return is_sata


def _map(device: Elements, flash: Elements, of: Imported) -> None:
    if device.choice("Address_Mapping", ("PAGE_LEVEL", "HYBRID")) == "HYBRID":
        raise device.error("Address_Mapping", "HYBRID, whose functions are empty in MQSim", "PAGE_LEVEL")
    ideal = device.flag("Ideal_Mapping_Table")
    of.same(device.shown("Address_Mapping", "Ideal_Mapping_Table"), ("ftl.name", "page" if ideal else "dftl"))
    capacity = device.count("CMT_Capacity", 0, 2**40)
    sharing = device.choice("CMT_Sharing_Mode", ("SHARED", "EQUAL_PARTITIONING"))
    if ideal:
        of.lost(device.shown("CMT_Capacity", "CMT_Sharing_Mode"), "an ideal map is all in DRAM, in MQSim too")
    else:
        pages = flash.count("Block_No_Per_Plane", 1, 2**32) * flash.count("Page_No_Per_Block", 1, 65536)
        for section, name in ((flash, "Plane_No_Per_Die"), (flash, "Die_No_Per_Chip")):
            pages *= section.count(name, 1)
        pages *= device.count("Chip_No_Per_Channel", 1) * device.count("Flash_Channel_Count", 1)
        entry = math.ceil((2 * math.log2(pages) + flash.count("Page_Capacity", _SECTOR) // _SECTOR) / 8)
        entries = max(capacity // entry, 1)
        why = f"as many entries: {entry} bytes each in MQSim, 8 here"
        of.near(device.shown("CMT_Capacity"), why, ("ftl.cmt", size(8 * entries)))
        if sharing == "SHARED":
            of.about("same", device.shown("CMT_Sharing_Mode"), "")
        else:
            of.lost(device.shown("CMT_Sharing_Mode"), "flows share the cached map")
    words = [f"{a}{b}{c}{d}" for a in "CWDP" for b in "CWDP" for c in "CWDP" for d in "CWDP"]
    order = device.choice("Plane_Allocation_Scheme", [word for word in words if len(set(word)) == 4])
    shown, key = device.shown("Plane_Allocation_Scheme"), ("ftl.allocation", "static")
    if order in ("CWDP", "CDWP"):
        of.same(shown, key)
    else:
        of.near(shown, "the address names the plane, channels first (CWDP)", key)
    of.keys["ftl.read"] = ("dma", "reads transfer the requested sectors only")
    of.keys["ftl.streams"] = (2, "moved data has blocks of its own")


def _collection(device: Elements, flash: Elements, of: Imported) -> None:
    blocks = flash.count("Block_No_Per_Plane", 1, 2**32)
    wanted = max(int(device.real("GC_Exec_Threshold", 0, 1) * blocks), _ERASES)
    why = f"MQSim collects below {wanted} free blocks of a plane, at least {_ERASES}"
    start = max(wanted - 1, 1)
    of.near(
        device.shown("GC_Exec_Threshold"), why, ("ftl.gc_start", f"{start} blocks"), ("ftl.gc_stop", f"{start} blocks")
    )
    names = ("GREEDY", "RGA", "RANDOM", "RANDOM_P", "RANDOM_PP", "FIFO")
    policy, key = device.choice("GC_Block_Selection_Policy", names), "ftl.victim"
    shown = device.shown("GC_Block_Selection_Policy")
    if policy in ("GREEDY", "FIFO"):
        of.same(shown, (key, policy.lower()))
    elif policy == "RGA":
        of.same(shown, (key, f"d-choices:{max(int(math.log2(blocks)), 1)}"))
    elif policy == "RANDOM_P":
        of.same(shown, (key, "d-choices:1"))
    else:
        limit = "blocks with free pages too" if policy == "RANDOM" else "only blocks with enough invalid pages"
        of.near(shown, f"one closed block at random; in MQSim {limit}", (key, "d-choices:1"))
    of.keys["ftl.gc_pace"] = ("block", "a victim is moved at once")
    if device.flag("Use_Copyback_for_GC"):
        of.lost(device.shown("Use_Copyback_for_GC"), "moved data crosses the bus")
    else:
        of.about("same", device.shown("Use_Copyback_for_GC"), "")
    static, dynamic = device.flag("Static_Wearleveling_Enabled"), device.flag("Dynamic_Wearleveling_Enabled")
    key, kind = "ftl.wear_leveling", "static" if static else "dynamic" if dynamic else "none"
    why = "MQSim reads the element and levels wear whatever it says"
    of.near(device.shown("Static_Wearleveling_Enabled", "Dynamic_Wearleveling_Enabled"), why, (key, kind))
    threshold = device.count("Static_Wearleveling_Threshold", 0, 2**31)
    if static:
        shown = device.shown("Static_Wearleveling_Threshold")
        of.near(shown, "MQSim reads the element and takes 100", ("ftl.wear_threshold", max(threshold, 1)))
    else:
        of.lost(device.shown("Static_Wearleveling_Threshold"), "static wear levelling is off")


def _scheduling(device: Elements, flash: Elements, of: Imported) -> None:
    policies = ("OUT_OF_ORDER", "PRIORITY_OUT_OF_ORDER", "FLIN")
    policy, shown = (
        device.choice("Transaction_Scheduling_Policy", policies),
        device.shown("Transaction_Scheduling_Policy"),
    )
    if policy == "FLIN":
        raise device.error("Transaction_Scheduling_Policy", "FLIN, which MQSim does not implement", policies[0])
    yields = device.flag("Preemptible_GC_Enabled")
    order = "host-first" if yields else "read-first"
    of.near(shown, "reads, then writes, then erases of a chip", ("sim.scheduler", order))
    hard = device.real("GC_Hard_Threshold", 0, 1)
    if yields:
        of.near(
            device.shown("Preemptible_GC_Enabled"), "the host's operations of a die go first", ("sim.scheduler", order)
        )
        of.lost(
            device.shown("GC_Hard_Threshold"), f"collection waits for the host, even below {percent(hard)} free blocks"
        )
    else:
        of.about("same", device.shown("Preemptible_GC_Enabled"), "")
        of.lost(device.shown("GC_Hard_Threshold"), "MQSim reads it for preemptible collection only")
    kinds = {"NONE": "none", "ERASE": "erase", "PROGRAM": "program-erase", "PROGRAM_ERASE": "program-erase"}
    kind, shown = flash.choice("CMD_Suspension_Support", tuple(kinds)), flash.shown("CMD_Suspension_Support")
    if kind == "PROGRAM":
        of.near(shown, "reads suspend erases too", ("sim.suspend", kinds[kind]))
    else:
        of.same(shown, ("sim.suspend", kinds[kind]))
    erase, program = flash.count("Suspend_Erase_Time", 0, 10**12), flash.count("Suspend_Program_Time", 0, 10**12)
    if kind == "NONE":
        why = "no operation is suspended, in MQSim too"
        of.lost(flash.shown("Suspend_Erase_Time", "Suspend_Program_Time"), why)
    else:
        of.same(flash.shown("Suspend_Erase_Time"), ("part.t_suspend_erase", time(erase)))
        if kinds[kind] == "erase":
            of.lost(flash.shown("Suspend_Program_Time"), "no program is suspended, in MQSim too")
        of.keys["part.t_suspend"] = (time(program), flash.shown("Suspend_Program_Time"))
        of.keys["part.t_resume"] = ("0ns", "MQSim resumes in no time")
    for name in (
        "Prefered_suspend_erase_time_for_read", "Preferred_suspend_erase_time_for_write",
        "Preferred_suspend_write_time_for_read",
    ):  # fmt: skip
        device.skip("a waiting read suspends at any time; writes suspend nothing", name)
    of.keys["sim.multi_plane"] = ("waiting", "operations at one page address of the planes of a die run together")
    of.keys["sim.cache_register"] = (False, "a die is busy until its data has left")


def _cache(device: Elements, flash: Elements, resources: tuple[int, ...], of: Imported) -> None:
    device.choice("Caching_Mechanism", ("SIMPLE", "ADVANCED"))
    of.near(
        device.shown("Caching_Mechanism"), "a write buffer; written data is programmed at once, not when room is needed"
    )
    capacity = device.count("Data_Cache_Capacity", 0, 2**40)
    page = flash.count("Page_Capacity", _SECTOR)
    waiting = math.prod(resources) * page
    why = "at most a page of each plane waits for its program, whatever the capacity"
    held = max(min(capacity, waiting), page)
    of.near(device.shown("Data_Cache_Capacity"), why, ("buffer.size", size(held)))
    if device.choice("Data_Cache_Sharing_Mode", ("SHARED", "EQUAL_PARTITIONING")) == "SHARED":
        of.about("same", device.shown("Data_Cache_Sharing_Mode"), "")
    else:
        of.lost(device.shown("Data_Cache_Sharing_Mode"), "flows share the write buffer")
    rate = device.count("Data_Cache_DRAM_Data_Rate", 1, 10**7)
    burst = device.count("Data_Cache_DRAM_Data_Busrt_Size", 1, 1 << 16)
    opened = sum(device.count(name, 0, 10**6) for name in ("Data_Cache_DRAM_tRCD", "Data_Cache_DRAM_tCL"))
    moved = round(_UNIT / burst / 2 * 1000 / rate)
    names = (
        "Data_Cache_DRAM_Data_Rate",
        "Data_Cache_DRAM_Data_Busrt_Size",
        "Data_Cache_DRAM_tRCD",
        "Data_Cache_DRAM_tCL",
    )
    why = "the time of 4 KiB in DRAM"
    of.near(device.shown(*names), why, ("buffer.t_write", time(opened + moved)), ("buffer.t_write_next", time(moved)))
    device.skip("the buffer has one time, without rows", "Data_Cache_DRAM_Row_Size", "Data_Cache_DRAM_tRP")
