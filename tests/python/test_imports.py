"""`palimpsest import`: each element, the written files in runs, incomplete files, and hostile ones."""

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import foreign_files as files
from conftest import Command
from palimpsest.errors import InputError
from palimpsest.imports import femu
from palimpsest.imports.command import import_


def called(*words: str) -> Result:
    return CliRunner().invoke(import_, list(words))


def refusal(*words: str) -> str:
    done = called(*words)
    assert isinstance(done.exception, InputError), done.output
    text = str(done.exception)
    assert "\n" not in text
    assert "expected" in text
    return text


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def mqsim(folder: Path, flows: Any = (files.SYNTHETIC,), **parts: Any) -> tuple[dict[str, Any], str, str]:
    """Drive, job file and output of an import; `parts` are elements that replace those of their section."""
    sections = {"host": files.HOST, "device": files.DEVICE, "flash": files.FLASH}
    made = {name: {**values, **parts.get(name, {})} for name, values in sections.items()}
    config, loads = write(folder, "c.xml", files.config(**made)), write(folder, "w.xml", files.workload(*flows))
    done = called("mqsim", config, loads, "-o", str(folder / "d.toml"), "--force")
    assert done.exception is None, done.exception
    job = folder / "d.fio"
    text = (folder / "d.toml").read_text(encoding="utf-8")
    return tomllib.loads(text), job.read_text(encoding="utf-8") if job.exists() else "", done.output


def key(drive: dict[str, Any], name: str) -> Any:
    table, _, word = name.partition(".")
    return drive[table][word]


@pytest.mark.parametrize(
    ("section", "element", "value", "name", "ours"),
    [
        ("device", "Flash_Channel_Count", 4, "ssd.channels", 4),
        ("flash", "Page_Capacity", 16384, "part.page_size", "16KiB"),
        ("flash", "Page_Capacity", 2048, "part.subpage_size", "2KiB"),
        ("device", "Overprovisioning_Ratio", 0.2, "ssd.over_provisioning", "25%"),
        ("flash", "Page_Read_Latency_MSB", 90000, "part.t_read_high", "90us"),
        ("flash", "Block_Erase_Latency", 3800001, "part.t_erase", "3800001ns"),
        ("flash", "CMD_Suspension_Support", "PROGRAM_ERASE", "sim.suspend", "program-erase"),
        ("device", "Ideal_Mapping_Table", "TRUE", "ftl.name", "page"),
        ("device", "GC_Block_Selection_Policy", "rga", "ftl.victim", "d-choices:5"),
        ("device", "GC_Block_Selection_Policy", "FIFO", "ftl.victim", "fifo"),
        ("device", "Preemptible_GC_Enabled", "true", "sim.scheduler", "host-first"),
        ("device", "Static_Wearleveling_Enabled", "false", "ftl.wear_leveling", "dynamic"),
        ("device", "Channel_Transfer_Rate", 333, "part.bus_rate", "333333333B/s"),
        ("device", "Data_Cache_Capacity", 1 << 30, "buffer.size", "32KiB"),
        ("device", "Data_Cache_Capacity", 16384, "buffer.size", "16KiB"),
        ("device", "Queue_Fetch_Size", 16, "controller.commands", 16),
        ("host", "PCIe_Lane_Count", 2, "host.link_rate", "1641025641B/s"),
    ],
)
def test_elements_of_mqsim(tmp_path: Path, section: str, element: str, value: Any, name: str, ours: Any) -> None:
    drive, _, output = mqsim(tmp_path, **{section: {element: value}})
    assert key(drive, name) == ours
    assert "wrote " in output


def test_the_cached_map_holds_as_many_entries(tmp_path: Path) -> None:
    drive, _, output = mqsim(tmp_path, device={"Ideal_Mapping_Table": "false", "Overprovisioning_Ratio": 0.4})
    # 5,120 pages of 16 sectors: 2 x 12.3 bits and 16, so 6 bytes an entry.
    assert key(drive, "ftl.cmt") == f"{4096 // 6 * 8}B"
    assert "6 bytes each in MQSim" in output


def test_thresholds_that_no_drive_holds_are_lowered(tmp_path: Path) -> None:
    drive, _, output = mqsim(tmp_path, device={"GC_Exec_Threshold": 0.5})
    # Half of 40 blocks are wanted, and a quarter is spare.
    assert key(drive, "ftl.gc_start") == "9 blocks"
    assert "ftl.gc_start = 19 blocks -> ftl.gc_start = 9 blocks" in output


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({}, ["bs=4096", "rw=randread", "norandommap", "blockalign=8192", "size=50%", "iodepth=4", "number_ios=300"]),
        ({"Read_Percentage": 30}, ["rw=randrw", "rwmixread=30"]),
        ({"Read_Percentage": 0, "Address_Distribution": "STREAMING"}, ["rw=write:4096"]),
        ({"Address_Distribution": "RANDOM_HOTCOLD"}, ["random_distribution=zoned:80/20:20/80"]),
        ({"Synthetic_Generator_Type": "BANDWIDTH"}, ["rate_iops=10000.000", "rate_process=poisson", "open_loop"]),
        ({"Stop_Time": 20_000_000}, ["runtime=20ms", "time_based"]),
        ({"Generated_Aligned_Addresses": "false"}, ["blockalign=512"]),
        ({"Request_Size_Distribution": "NORMAL", "Variance_Request_Size": 0.1}, ["bssplit=4096/50:4608/50"]),
    ],
)
def test_flows_of_mqsim_run(tmp_path: Path, palimpsest: Command, changes: Any, lines: list[str]) -> None:
    _, job, output = mqsim(tmp_path, [{**files.SYNTHETIC, **changes}])
    assert not set(lines) - set(job.splitlines()), job
    result = json.loads(ran(palimpsest, output, tmp_path).stdout)
    if "number_ios=300" in job.splitlines():
        assert sum(result["requests"].values()) == 300


def ran(palimpsest: Command, output: str, folder: Path) -> Any:
    words = shlex.split(output.strip().splitlines()[-1])
    assert words[:2] == ["palimpsest", "run"]
    done = palimpsest(*words[1:], "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    return done


def test_reads_of_a_flow_take_the_time_of_the_flash(tmp_path: Path, palimpsest: Command) -> None:
    flow = {**files.SYNTHETIC, "Average_No_of_Reqs_in_Queue": 1}
    _, _, output = mqsim(tmp_path, [flow], flash={"Page_Read_Latency_MSB": 60000})
    result = json.loads(ran(palimpsest, output, tmp_path).stdout)
    # 60 us of sensing, and 4 KiB over the flash bus at 500 MB/s; the link of the host is faster.
    assert result["latency_ns"]["read"]["mean"] == 60_000 + 8_192


def test_flows_become_tenants(tmp_path: Path, palimpsest: Command) -> None:
    other = {**files.SYNTHETIC, "Priority_Class": "LOW", "Average_No_of_Reqs_in_Queue": 2}
    drive, job, output = mqsim(tmp_path, [files.SYNTHETIC, other])
    assert key(drive, "ssd.namespaces") == "50%:50%"
    assert key(drive, "host.classes") == "high:low"
    assert job.count("[flow-") == 2
    result = json.loads(ran(palimpsest, output, tmp_path).stdout)
    assert [each["requests"]["read"] for each in result["jobs"]] == [300, 300]


def test_flows_with_dies_of_their_own(tmp_path: Path, palimpsest: Command) -> None:
    flows = [{**files.SYNTHETIC, "Channel_IDs": at} for at in (0, 1)]
    drive, _, output = mqsim(tmp_path, flows)
    assert key(drive, "ftl.allocation") == "namespace"
    ran(palimpsest, output, tmp_path)
    drive, job, output = mqsim(tmp_path, flows[:1])
    assert "namespaces" not in drive["ssd"]
    assert "size=25%" in job.splitlines()
    assert "the flow has its 50% of the space" in output


@pytest.mark.parametrize("unit", ["NANOSECOND", "MICROSECOND", "PICOSECOND"])
def test_traces_of_mqsim(tmp_path: Path, palimpsest: Command, unit: str) -> None:
    write(tmp_path, "t.trace", files.REQUESTS)
    _, job, output = mqsim(tmp_path, [{**files.TRACE, "Time_Unit": unit}])
    assert job == ""
    result = json.loads(ran(palimpsest, output, tmp_path).stdout)
    assert result["requests"] | {"flush": 0, "trim": 0} == {"read": 50, "write": 50, "trim": 0, "flush": 0}
    last = 99 * 50_000 * {"NANOSECOND": 1, "MICROSECOND": 1000, "PICOSECOND": 0.001}[unit]
    assert result["simulated_ns"] >= last
    assert unit == "PICOSECOND" or result["simulated_ns"] < 2 * last + 10**8


def test_a_repeated_trace(tmp_path: Path, palimpsest: Command) -> None:
    write(tmp_path, "t.trace", files.REQUESTS)
    _, _, output = mqsim(tmp_path, [{**files.TRACE, "Relay_Count": 2}])
    assert sum(json.loads(ran(palimpsest, output, tmp_path).stdout)["requests"].values()) == 400


def test_writes_without_a_cache_wait_for_programs(tmp_path: Path, palimpsest: Command) -> None:
    flow = {**files.SYNTHETIC, "Device_Level_Data_Caching_Mode": "TURNED_OFF", "Read_Percentage": 0}
    drive, _, output = mqsim(tmp_path, [flow])
    assert key(drive, "buffer.ack") == "program"
    assert "t_write" not in drive["buffer"]
    assert "Data_Cache_DRAM_tCL = 13: no write is buffered" in output
    assert json.loads(ran(palimpsest, output, tmp_path).stdout)["latency_ns"]["write"]["p50"] > 400_000


def test_preconditioning(tmp_path: Path) -> None:
    on = {"Enabled_Preconditioning": "true"}
    writes = {**files.SYNTHETIC, "Read_Percentage": 0}
    assert "--precondition fill:60%,random:1x" in mqsim(tmp_path, [writes], device=on)[2]
    assert "--precondition fill:60% " in mqsim(tmp_path, device=on)[2]
    assert "--precondition none" in mqsim(tmp_path, [writes])[2]
    # MQSim answers reads of pages that nothing has written from flash.
    assert "--precondition fill:50%" in mqsim(tmp_path)[2]


def test_closing_tags_of_the_examples_of_mqsim_are_read(tmp_path: Path) -> None:
    right = mqsim(tmp_path)
    text = (tmp_path / "w.xml").read_text(encoding="utf-8")
    write(tmp_path, "w.xml", text.replace("</Read_Percentage", "</<Read_Percentage"))
    done = called("mqsim", str(tmp_path / "c.xml"), str(tmp_path / "w.xml"), "-o", str(tmp_path / "x.toml"))
    assert done.exception is None, done.exception
    assert (tmp_path / "x.fio").read_text(encoding="utf-8") == right[1]


def test_the_fate_of_elements_is_printed(tmp_path: Path) -> None:
    flow = {**files.SYNTHETIC, "Intensity": 7}
    device = {name: value for name, value in files.DEVICE.items() if name != "CMT_Capacity"}
    config = write(
        tmp_path,
        "c.xml",
        files.config(device={**device, "Chanel_Count": 3}).replace("<Seed>5", "<Seed>4</Seed><Seed>5"),
    )
    loads = write(tmp_path, "w.xml", files.workload(flow, flow))
    output = called("mqsim", config, loads, "-o", str(tmp_path / "d.toml")).output
    assert "  CMT_Capacity = 2097152\n" in output
    assert "  Chanel_Count = 3: MQSim does not read this element" in output
    assert "  Seed = 4: the element is repeated, and MQSim takes the last one" in output
    assert key(tomllib.loads((tmp_path / "d.toml").read_text(encoding="utf-8")), "ssd.channels") == 2
    assert "--seed 5" in output.splitlines()[-1]
    assert "  flow-0, flow-1: Intensity = 7: MQSim does not read" in output
    assert "Page_Read_Latency_CSB = 60000: MLC has no such pages" in output
    counted = output.splitlines()[0]
    assert counted.startswith("MQSim: ")
    assert counted.endswith("1 absent")


def test_a_result_is_compared(tmp_path: Path, palimpsest: Command) -> None:
    mqsim(tmp_path)
    flow = {"Request_Count": 300, "IOPS": "inf", "IOPS_Read": 50000, "IOPS_Write": 0, "End_to_End_Request_Delay": 80}
    layer = {"Issued_Flash_Read_CMD": 300, "Issued_Flash_Erase_CMD": 0, "Average_Page_Movement_For_GC": "-nan"}
    write(tmp_path, "r.xml", files.result(flow, layer))
    words = ("import", "mqsim", "c.xml", "w.xml", "-o", "d.toml", "--force", "--result")
    done = palimpsest(*words, "r.xml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    table = done.stdout.partition("beside MQSim (r.xml)")[2]
    rows = re.findall(r"^([a-zA-Z ]+?) +([-\d].*)$", table, re.M)
    cells = {label: figures.split() for label, figures in rows}
    assert cells["IOPS"][0] == "-"
    assert "MQSim divides by whole seconds" in " ".join(table.split())
    assert cells["requests"] == ["300", "300", "0", "%"]
    assert cells["mean response time"][:2] == ["80.0", "us"]
    assert cells["mean response time"][-1] == "%"
    assert cells["erase commands"] == ["0", "0", "0", "%"]
    write(tmp_path, "r.xml", files.result({"IOPS": "fast"}, {}))
    assert "r.xml: IOPS: found 'fast'; expected a number" in palimpsest(*words, "r.xml", cwd=tmp_path).stderr
    write(tmp_path, "w.xml", files.workload(files.SYNTHETIC, files.SYNTHETIC))
    assert "the result has 1 flows, and the scenario 2" in palimpsest(*words, "r.xml", cwd=tmp_path).stderr
    assert "with MQSim_Results" in palimpsest(*words, "c.xml", cwd=tmp_path).stderr


def test_a_drive_of_femu(tmp_path: Path, palimpsest: Command) -> None:
    drives = []
    for given_text in (files.FEMU, write(tmp_path, "run.sh", files.SCRIPT), files.FEMU.removeprefix("-device ")):
        done = called("femu", given_text, "-o", str(tmp_path / "f.toml"), "--force")
        assert done.exception is None, done.exception
        drives.append(tomllib.loads((tmp_path / "f.toml").read_text(encoding="utf-8")))
        assert "namespaces" not in done.output
    assert drives[0] == drives[1] == drives[2]
    # 64 MiB of flash.
    assert key(drives[0], "ssd.over_provisioning") == "33.333333333%"
    load = ("--workload", "rw=randread,bs=4k,size=40m,n=200", "--precondition", "fill:90%", "--json")
    ran_here = palimpsest("run", "--ssd", "f.toml", *load, cwd=tmp_path)
    assert json.loads(ran_here.stdout)["latency_ns"]["read"]["mean"] == 40_000


def test_the_script_of_femu(tmp_path: Path, palimpsest: Command) -> None:
    """Lines are collected one at a time, and more of them while the host is idle."""
    done = called("femu", write(tmp_path, "run-blackbox.sh", files.BLACKBOX), "-o", str(tmp_path / "femu.toml"))
    assert done.exception is None, done.exception
    assert "--precondition fill:90%,random:1x" in done.output
    drive = tomllib.loads((tmp_path / "femu.toml").read_text(encoding="utf-8"))
    thresholds = {"ftl.gc_start": "12 blocks", "ftl.gc_stop": "12 blocks", "ftl.gc_idle_stop": "63 blocks"}
    assert {name: key(drive, name) for name in thresholds} == thresholds
    load = ("--workload", "rw=randwrite,bs=4k,iodepth=16,n=200k", "--precondition", "fill:90%,random:1x", "--json")
    for stop in ((), ("--set", "ftl.gc_stop=63blocks")):
        result = json.loads(palimpsest("run", "--ssd", "femu.toml", *load, *stop, cwd=tmp_path).stdout)
        assert result["latency_ns"]["write"]["max"] < 120e6
        assert result["sim"]["peak_rss_bytes"] < 700 << 20
        assert bool(stop) or result["throughput"]["iops"] > 60_000


def silent(words: str) -> list[str]:
    """Properties of a command line that the output does not name."""
    noted = " ".join(note.theirs for note in femu.convert(words)[0].notes)
    return [name for name in re.findall(r",([\w.]+)=", words) if f"{name} = " not in noted]


@pytest.mark.parametrize(
    ("given", "keys"),
    [
        ("mapping=dftl,gc_policy=d-choice", {"ftl.name": "dftl", "ftl.cmt": "4MiB", "ftl.victim": "d-choices:4"}),
        ("mapping=hybrid,gc_policy=fifo", {"ftl.name": "bast", "ftl.log_blocks": 4}),
        ("mapping=fast,op_pcent=40", {"ftl.name": "fast", "ssd.over_provisioning": "40%"}),
        ("nand_cell_type=2,pg_rd_lat=1", {"part.t_read_high": "64us", "part.t_program_high": "2300us"}),
        ("nand_cell_type=3", {"part.cell": "tlc", "part.t_read_types": ["56500ns", "77500ns", "106us"]}),
        ("nand_cell_type=9,pg_rd_lat=41000", {"part.cell": "slc", "part.t_read": "41us"}),
        ("pcie_bandwidth_mbps=800,pcie_prop_delay_ns=3000", {"host.link_rate": "800MB/s", "host.t_link": "1500ns"}),
        ("op_pcent=0,pcie_bandwidth_mbps=0,gc_policy=random", {"ftl.victim": "d-choices:1"}),
        ("pgtype_lat=1,trim_lat_ns=9,mapping=dtfl,mapping_cache_mb=0,fdm_size=0", {"ftl.name": "page"}),
        ("fw_cpu_ns=20000,gc_policy=best", {"controller.iops": 50_000, "ftl.victim": "greedy"}),
    ],
)
def test_properties_of_femu(tmp_path: Path, palimpsest: Command, given: str, keys: dict[str, Any]) -> None:
    done = called("femu", f"{files.FEMU},{given}", "-o", str(tmp_path / "f.toml"))
    assert done.exception is None, done.exception
    drive = tomllib.loads((tmp_path / "f.toml").read_text(encoding="utf-8"))
    assert {name: key(drive, name) for name in keys} == keys
    assert silent(f"{files.FEMU},{given}") == []
    load = ("--workload", "rw=randwrite,bs=4k,size=30m,n=300", "--json")
    assert palimpsest("run", "--ssd", "f.toml", *load, cwd=tmp_path).returncode == 0


def test_reclaim_units_of_femu(tmp_path: Path, palimpsest: Command) -> None:
    subsystem = "-device femu-subsys,id=s,nqn=n,fdp=on,fdp.nruh=3"
    words = f"qemu-system-x86_64 {subsystem} {files.FEMU},subsys=s,gc_strategy=1"
    done = called("femu", words, "-o", str(tmp_path / "f.toml"))
    assert done.exception is None, done.exception
    drive = tomllib.loads((tmp_path / "f.toml").read_text(encoding="utf-8"))
    wanted = {
        "ftl.name": "fdp", "fdp.handles": 3, "fdp.groups": 1, "fdp.isolation": "persistent",
        "ftl.victim": "cost-benefit",
    }  # fmt: skip
    assert {name: key(drive, name) for name in wanted} == wanted
    assert silent(words) == []
    load = ("--workload", "rw=randwrite,bs=4k,size=30m,n=300,plids=2", "--json")
    assert json.loads(palimpsest("run", "--ssd", "f.toml", *load, cwd=tmp_path).stdout)["ftl"] == "fdp"
    for other, why in (
        (words.replace("fdp=on", "fdp=off"), "the subsystem has no FDP"),
        (words.replace("id=s", "id=t"), "there is no `-device femu-subsys,id=s`"),
    ):
        done = called("femu", other, "-o", str(tmp_path / "f.toml"), "--force")
        assert why in done.output
        assert key(tomllib.loads((tmp_path / "f.toml").read_text(encoding="utf-8")), "ftl.name") == "page"
    assert "fdp.nruh: found '0'; expected" in refusal("femu", words.replace("nruh=3", "nruh=0"))


def test_a_drive_of_simplessd(tmp_path: Path, palimpsest: Command) -> None:
    done = called("simplessd", write(tmp_path, "s.cfg", files.cfg()), "-o", str(tmp_path / "s.toml"))
    assert done.exception is None, done.exception
    drive = tomllib.loads((tmp_path / "s.toml").read_text(encoding="utf-8"))
    found = {name: key(drive, name) for name in ("part.t_read_high", "ftl.victim", "part.bus_rate", "buffer.size")}
    assert found == {
        "part.t_read_high": "65us", "ftl.victim": "d-choices:3", "part.bus_rate": "400000000B/s", "buffer.size": "1MiB",
    }  # fmt: skip
    assert "--precondition fill:50%,random:0.5x" in done.output
    assert "[cpu] with ClockSpeed" in done.output
    words = shlex.split(done.output.strip().splitlines()[-1])[1:]
    load = ("--workload", "rw=randrw,bs=16k,size=10m,n=200", "--json")
    assert palimpsest(*words, *load, cwd=tmp_path).returncode == 0


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_subset_is_taken_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    """Incomplete files give a drive that resolves, or one line that names the file; never a traceback."""
    write(tmp_path, "t.trace", files.REQUESTS)

    def some(values: Any) -> Any:
        left_out = data.draw(st.sets(st.sampled_from(sorted(values)), max_size=3))
        return {name: value for name, value in values.items() if name not in left_out}

    config = write(tmp_path, "c.xml", files.config(some(files.HOST), some(files.DEVICE), some(files.FLASH)))
    flow = some(data.draw(st.sampled_from([files.SYNTHETIC, files.TRACE])))
    loads = write(tmp_path, "w.xml", files.workload(flow))
    sections = {name: some(values) for name, values in files.SIMPLESSD.items()}
    properties = files.FEMU.split(",")
    kept = [each for each in properties[1:] if data.draw(st.integers(0, 5))]
    script = write(tmp_path, "f.sh", ",".join([properties[0], *kept]))
    out = ("-o", str(tmp_path / "d.toml"), "--force")
    for words in (
        ("mqsim", config, loads),
        ("simplessd", write(tmp_path, "s.cfg", files.cfg(sections))),
        ("femu", script),
    ):
        done = called(*words, *out)
        if done.exception is not None:
            assert isinstance(done.exception, InputError), done.exception
            assert str(tmp_path) in str(done.exception)
            assert "expected" in str(done.exception)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["Flash_Parameter_Set", "MQSim", "IO_Flow", "[pal]"]), st.binary(max_size=200), st.integers(0))
def test_damaged_files_are_refused(tmp_path: Path, word: str, noise: bytes, at: int) -> None:
    assert word
    good = {
        "c.xml": files.config(),
        "w.xml": files.workload(files.SYNTHETIC),
        "s.cfg": files.cfg(),
        "f.sh": files.SCRIPT,
    }
    for name, text in good.items():
        content = text.encode()
        cut = at % len(content)
        (tmp_path / name).write_bytes(content[:cut] + noise + content[cut + len(noise) :])
    out = ("-o", str(tmp_path / "d.toml"), "--force")
    config, loads = str(tmp_path / "c.xml"), str(tmp_path / "w.xml")
    for words in (("mqsim", config, loads), ("simplessd", str(tmp_path / "s.cfg")), ("femu", str(tmp_path / "f.sh"))):
        done = called(*words, *out)
        assert done.exception is None or isinstance(done.exception, InputError), done.exception


BOMB = '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;">]><Execution_Parameter_Set>&c;'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BOMB, "declares a type (DOCTYPE)"),
        ("", "malformed XML"),
        ("<a>", "malformed XML"),
        ("<a/>", "the root element is a; expected a configuration of MQSim"),
        ("<Execution_Parameter_Set/>", "has no element Device_Parameter_Set"),
        ("<a>" * 50 + "</a>" * 50, "nested 33 deep"),
        (files.config(flash={**files.FLASH, "Flash_Technology": "QLC"}), "'QLC' is not known"),
        (files.config(flash={**files.FLASH, "Page_Capacity": -8192}), "Page_Capacity: found '-8192'; expected a whole"),
        (files.config(flash={**files.FLASH, "Page_Capacity": "8k"}), "Flash_Parameter_Set: Page_Capacity: found '8k'"),
        (files.config(device={**files.DEVICE, "Address_Mapping": "HYBRID"}), "expected PAGE_LEVEL"),
        (files.config(device={**files.DEVICE, "Overprovisioning_Ratio": "nan"}), "found 'nan'; expected a number"),
        (files.config(flash={**files.FLASH, "Block_No_Per_Plane": 4}), "this drive cannot be simulated: "),
    ],
)
def test_wrong_configurations_are_refused(tmp_path: Path, text: str, expected: str) -> None:
    loads = write(tmp_path, "w.xml", files.workload(files.SYNTHETIC))
    found = refusal("mqsim", write(tmp_path, "c.xml", text), loads, "-o", str(tmp_path / "d.toml"))
    assert found.startswith(str(tmp_path / "c.xml"))
    assert expected in found
    assert not (tmp_path / "d.toml").exists()


@pytest.mark.parametrize(
    ("flows", "expected"),
    [
        ([], "there is no flow"),
        ([{}], "flow 0: Channel_IDs: the element is missing; expected different numbers from 0 to 1"),
        ([{**files.SYNTHETIC, "Channel_IDs": "0,2"}], "Channel_IDs: found '0,2'"),
        ([{**files.SYNTHETIC, "Read_Percentage": 101}], "expected a whole number from 0 to 100"),
        ([{**files.SYNTHETIC, "Total_Requests_To_Generate": 0}], "Total_Requests_To_Generate: found '0'"),
        ([{**files.SYNTHETIC, "Address_Distribution": "RANDOM"}], "'RANDOM' is not known"),
        ([files.TRACE], "there is no file 't.trace'"),
        ([files.TRACE, files.SYNTHETIC], "2 flows, 1 of them of traces"),
    ],
)
def test_wrong_flows_are_refused(tmp_path: Path, flows: Any, expected: str) -> None:
    loads = write(tmp_path, "w.xml", files.workload(*flows))
    found = refusal("mqsim", write(tmp_path, "c.xml", files.config()), loads, "-o", str(tmp_path / "d.toml"))
    assert found.startswith(f"{loads}: IO_Scenario 1: ")
    assert expected in found


def test_other_mistakes_are_refused(tmp_path: Path) -> None:
    config, loads = write(tmp_path, "c.xml", files.config()), write(tmp_path, "w.xml", files.workload(files.SYNTHETIC))
    out = str(tmp_path / "d.toml")
    assert "the file has 1" in refusal("mqsim", config, loads, "--scenario", "2", "-o", out)
    assert "ends in .toml" in refusal("mqsim", config, loads, "-o", str(tmp_path / "d.fio"))
    assert "there is no folder" in refusal("mqsim", config, loads, "-o", str(tmp_path / "no" / "d.toml"))
    assert called("mqsim", config, loads, "-o", out).exception is None
    assert "d.toml is already there" in refusal("mqsim", config, loads, "-o", out)
    assert "No such file" in refusal("simplessd", str(tmp_path / "no.cfg"))
    assert "no section [pal]" in refusal("simplessd", write(tmp_path, "s.cfg", "[ftl]\n"), "-o", out)
    assert "s.cfg:1: found 'hello'" in refusal("simplessd", write(tmp_path, "s.cfg", "hello\n"), "-o", out)
    assert "no `-device femu" in refusal("femu", "qemu-system-x86_64 -m 4G", "-o", out)
    assert "found 3, a zoned drive; expected 1" in refusal("femu", "femu,femu_mode=3,nchs=1", "-o", out)
    assert "leave no spare space; expected less than 64" in refusal("femu", files.FEMU.replace("=48", "=64"), "-o", out)
    assert "expected NAME=VALUE" in refusal("femu", "femu,nchs", "-o", out)
