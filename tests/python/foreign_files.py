"""Small files in the formats of MQSim, FEMU and SimpleSSD, written for the tests of `palimpsest import`."""

from collections.abc import Mapping

Values = Mapping[str, object]

HOST: Values = {"PCIe_Lane_Bandwidth": 1.0, "PCIe_Lane_Count": 4, "SATA_Processing_Delay": 400000}
DEVICE: Values = {
    "Seed": 5, "Enabled_Preconditioning": "false", "Memory_Type": "FLASH", "HostInterface_Type": "NVME",
    "IO_Queue_Depth": 1024, "Queue_Fetch_Size": 512, "Caching_Mechanism": "ADVANCED",
    "Data_Cache_Sharing_Mode": "SHARED", "Data_Cache_Capacity": 1 << 20, "Data_Cache_DRAM_Row_Size": 8192,
    "Data_Cache_DRAM_Data_Rate": 800, "Data_Cache_DRAM_Data_Busrt_Size": 4, "Data_Cache_DRAM_tRCD": 13,
    "Data_Cache_DRAM_tCL": 13, "Data_Cache_DRAM_tRP": 13, "Address_Mapping": "PAGE_LEVEL",
    "Ideal_Mapping_Table": "true", "CMT_Capacity": 4096, "CMT_Sharing_Mode": "SHARED",
    "Plane_Allocation_Scheme": "CWDP", "Transaction_Scheduling_Policy": "OUT_OF_ORDER",
    "Overprovisioning_Ratio": 0.25, "GC_Exec_Threshold": 0.1, "GC_Block_Selection_Policy": "GREEDY",
    "Use_Copyback_for_GC": "false", "Preemptible_GC_Enabled": "false", "GC_Hard_Threshold": 0.005,
    "Dynamic_Wearleveling_Enabled": "true", "Static_Wearleveling_Enabled": "true",
    "Static_Wearleveling_Threshold": 100, "Prefered_suspend_erase_time_for_read": 700000,
    "Preferred_suspend_erase_time_for_write": 700000, "Preferred_suspend_write_time_for_read": 100000,
    "Flash_Channel_Count": 2, "Flash_Channel_Width": 1, "Channel_Transfer_Rate": 500, "Chip_No_Per_Channel": 1,
    "Flash_Comm_Protocol": "NVDDR2",
}  # fmt: skip
FLASH: Values = {
    "Flash_Technology": "MLC", "CMD_Suspension_Support": "ERASE", "Page_Read_Latency_LSB": 60000,
    "Page_Read_Latency_CSB": 60000, "Page_Read_Latency_MSB": 80000, "Page_Program_Latency_LSB": 400000,
    "Page_Program_Latency_CSB": 400000, "Page_Program_Latency_MSB": 900000, "Block_Erase_Latency": 3000000,
    "Block_PE_Cycles_Limit": 5000, "Suspend_Erase_Time": 200000, "Suspend_Program_Time": 100000,
    "Die_No_Per_Chip": 1, "Plane_No_Per_Die": 2, "Block_No_Per_Plane": 40, "Page_No_Per_Block": 32,
    "Page_Capacity": 8192, "Page_Metadat_Capacity": 448,
}  # fmt: skip
PLACES: Values = {
    "Priority_Class": "HIGH", "Device_Level_Data_Caching_Mode": "WRITE_CACHE", "Channel_IDs": "0,1", "Chip_IDs": 0,
    "Die_IDs": 0, "Plane_IDs": "0,1", "Initial_Occupancy_Percentage": 60,
}  # fmt: skip
SYNTHETIC: Values = {
    **PLACES, "Working_Set_Percentage": 50, "Synthetic_Generator_Type": "QUEUE_DEPTH", "Read_Percentage": 100,
    "Address_Distribution": "RANDOM_UNIFORM", "Percentage_of_Hot_Region": 20, "Generated_Aligned_Addresses": "true",
    "Address_Alignment_Unit": 16, "Request_Size_Distribution": "FIXED", "Average_Request_Size": 8,
    "Variance_Request_Size": 0, "Seed": 9, "Average_No_of_Reqs_in_Queue": 4, "Bandwidth": 40960000, "Stop_Time": 0,
    "Total_Requests_To_Generate": 300,
}  # fmt: skip
TRACE: Values = {
    **PLACES, "File_Path": "t.trace", "Percentage_To_Be_Executed": 50, "Relay_Count": 1, "Time_Unit": "NANOSECOND"
}  # fmt: skip
REQUESTS = "".join(f"{at * 50_000} {at % 3} {at * 1_000_003 % 900_000} 8 {at % 2}\n" for at in range(200))
"""A trace with 200 requests, from 0 to 10 ms."""

FEMU = "-device femu,devsz_mb=48,femu_mode=1,nchs=2,luns_per_ch=2,pls_per_lun=1,blks_per_pl=64,pgs_per_blk=64"
SCRIPT = """#!/bin/bash
nchs=2 # channels
size=48
OPTIONS="-device femu"
OPTIONS=${OPTIONS}",devsz_mb=${size},femu_mode=1"
OPTIONS=${OPTIONS}",nchs=${nchs},luns_per_ch=2,blks_per_pl=64,pgs_per_blk=64"
echo ${OPTIONS}
qemu-system-x86_64 -m 4G \\
    ${OPTIONS} \\
    -nographic
"""
BLACKBOX = """#!/bin/bash
secsz=512 # sector size in bytes
secs_per_pg=8 # number of sectors in a flash page
pgs_per_blk=256 # number of pages per flash block
blks_per_pl=256 # number of blocks per plane
pls_per_lun=1 # keep it at one, no multiplanes support
luns_per_ch=8 # number of chips per channel
nchs=8 # number of channels
ssd_size=12288 # in megabytes
pg_rd_lat=40000 # page read latency
pg_wr_lat=200000 # page write latency
blk_er_lat=2000000 # block erase latency
ch_xfer_lat=0 # channel transfer time, ignored for now
gc_thres_pcent=75
gc_thres_pcent_high=95
FEMU_OPTIONS="-device femu"
FEMU_OPTIONS=${FEMU_OPTIONS}",devsz_mb=${ssd_size},namespaces=1,femu_mode=1,secsz=${secsz}"
FEMU_OPTIONS=${FEMU_OPTIONS}",secs_per_pg=${secs_per_pg},pgs_per_blk=${pgs_per_blk},blks_per_pl=${blks_per_pl}"
FEMU_OPTIONS=${FEMU_OPTIONS}",pls_per_lun=${pls_per_lun},luns_per_ch=${luns_per_ch},nchs=${nchs}"
FEMU_OPTIONS=${FEMU_OPTIONS}",pg_rd_lat=${pg_rd_lat},pg_wr_lat=${pg_wr_lat},blk_er_lat=${blk_er_lat}"
FEMU_OPTIONS=${FEMU_OPTIONS}",ch_xfer_lat=${ch_xfer_lat},gc_thres_pcent=${gc_thres_pcent}"
FEMU_OPTIONS=${FEMU_OPTIONS}",gc_thres_pcent_high=${gc_thres_pcent_high}"
sudo x86_64-softmmu/qemu-system-x86_64 -smp 4 -m 4G ${FEMU_OPTIONS} -nographic 2>&1 | tee log
"""
"""The drive and the thresholds of FEMU's run-blackbox.sh."""
SIMPLESSD = {
    "cpu": {"ClockSpeed": "400000000"},
    "nvme": {"PCIEGeneration": "2", "PCIELane": "4  # lanes", "WorkInterval": "1000000"},
    "pal": {
        "Channel": "2", "Package": "1", "Die": "1", "Plane": "2", "Block": "40", "Page": "32", "PageSize": "16384",
        "EnableMultiPlaneOperation": "1", "NANDType": "1", "LSBRead": "40000000", "LSBWrite": "500000000",
        "MSBRead": "65000000", "MSBWrite": "1300000000", "Erase": "3500000000", "DMASpeed": "400", "DMAWidth": "8",
        "SuperblockSize": "C", "PageAllocation": "CWDP",
    },
    "ftl": {
        "MappingMode": "0", "OverProvisioningRatio": "0.25", "EraseThreshold": "3000", "FillingMode": "1",
        "FillRatio": "0.5", "InvalidPageRatio": "0.25", "EvictPolicy": "3", "DChoiceParam": "3",
        "GCThreshold": "0.05", "GCMode": "0", "GCReclaimBlocks": "1",
    },
    "icl": {"CacheSize": "1048576", "EnableWriteCache": "1", "EnableReadPrefetch": "1", "ReadPrefetchMode": "0"},
}  # fmt: skip


def _section(name: str, values: Values, inner: str = "") -> str:
    body = "".join(f"<{key}>{value}</{key}>" for key, value in values.items())
    return f"<{name}>{body}{inner}</{name}>"


def config(host: Values = HOST, device: Values = DEVICE, flash: Values = FLASH) -> str:
    """A configuration of MQSim."""
    inner = _section("Flash_Parameter_Set", flash)
    parts = _section("Host_Parameter_Set", host) + _section("Device_Parameter_Set", device, inner)
    return f'<?xml version="1.0" encoding="us-ascii"?><Execution_Parameter_Set>{parts}</Execution_Parameter_Set>'


def workload(*flows: Values) -> str:
    """Workloads of MQSim with one scenario; flows with a `File_Path` are traces."""
    kinds = ("IO_Flow_Parameter_Set_Synthetic", "IO_Flow_Parameter_Set_Trace_Based")
    body = "".join(_section(kinds["File_Path" in flow], flow) for flow in flows)
    return f"<MQSim_IO_Scenarios><IO_Scenario>{body}</IO_Scenario></MQSim_IO_Scenarios>"


def result(flow: Values, layer: Values) -> str:
    """A result of MQSim of one flow."""
    host = f"<Host>{_section('Host.IO_Flow', flow)}</Host>"
    attributes = " ".join(f'{key}="{value}"' for key, value in layer.items())
    return f"<MQSim_Results>{host}<SSDDevice><SSDDevice.FTL {attributes}/></SSDDevice></MQSim_Results>"


def cfg(sections: Mapping[str, Mapping[str, str]] = SIMPLESSD) -> str:
    """A configuration of SimpleSSD."""
    lines = []
    for name, values in sections.items():
        lines += [f"[{name}]", "## a comment", *(f"{key} = {value}" for key, value in values.items()), ""]
    return "\n".join(lines)
