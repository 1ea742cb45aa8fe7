//! Fuzz targets of the host side, with small valid inputs as seeds.
//!
//! The fuzzer and the ordinary tests call the same functions, which must not panic, and must run in time linear in the
//! decompressed input.

use std::collections::VecDeque;
use std::io::Cursor;

use super::fio::{FioSource, FioSpec, JobFile};
use super::lsm::{LsmSource, LsmSpec};
use super::objects::{self, ObjectSource, ObjectSpec, open_objects};
use super::request::{Command, Due, Jobs, SECTOR_BYTES, Source};
use super::trace::{FORMATS, TraceOptions, open_trace, open_trace_file};
use palimpsest_flash::units::{GIB, Nanos};

/// A small trace of each format by the format's name. All have the same three requests: 8 sectors written at sector 64,
/// 16 sectors read at 128 after 1 s, 8 sectors written at 8 after 3 s.
pub const SAMPLES: &[(&str, &str)] = &[
    (
        "csv",
        "time_ns,op,offset_bytes,size_bytes\n7,write,32768,4096\n1000000007,R,65536,8192\n3000000007,w,4096,4096\n",
    ),
    (
        "etw",
        "BeginHeader\n DiskRead, TimeStamp, Process Name ( PID), ThreadID, IrpPtr, ByteOffset, IOSize, ElapsedTime, \
         DiskNum, IrpFlags, DiskSvcTime, I/O Pri, VolSnap, FileObject, FileName\nEndHeader\n\
         OS Version: 6.0, Trace Size: 1KB\n \
         DiskWriteInit, 1, System ( 4), 64, 0xfffffa80\n \
         DiskWrite, 7, System ( 4), 64, 0xfffffa80, 0x0000008000, 0x00001000, 283, 0, 0x060043, 283, 3, Original, \
         0xff, \"C:\\$Mft\"\n \
         DiskRead, 1000007, x.exe (39), 11, 0xfffffa80, 0x0000010000, 0x00002000, 283, 1, 0x060043, 9, 3, Original, \
         0xff, \"C:\\a, b\"\n \
         DiskWrite, 3000007, System ( 4), 64, 0xfffffa80, 0x0000001000, 0x00001000, 283, 0, 0x060043, 283, 3, \
         Original, 0xff, \"C:\\$Mft\"\n",
    ),
    (
        "iolog",
        "fio version 3 iolog\n0 /dev/a add\n0 /dev/a open\n5 /dev/a write 32768 4096\n1000005 /dev/a read 65536 8192\n\
         3000005 /dev/b write 4096 4096\n3000006 /dev/a close\n",
    ),
    (
        "iolog-program",
        "fio version 2 iolog\n/dev/a write 32768 4096\n/dev/a wait 1000 0\n/dev/a read 65536 8192\n\
         /dev/b wait 3000 0\n/dev/b write 4096 4096\n",
    ),
    (
        "msr",
        "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n\
         128166385295514663,hm,0,Write,32768,4096,2833\n128166385305514663,hm,0,Read,65536,8192,2617\n\
         128166385325514663,hm,0,Write,4096,4096,2320\n",
    ),
    ("alibaba", "0,W,32768,4096,1577808000000046\n1,R,65536,8192,1577808001000046\n2,W,4096,4096,1577808003000046\n"),
    ("spc", "0,64,4096,w,0.000000\n1,128,8192,r,1.000000\n0,8,3700,w,3.000000\n"),
    ("tencent", "1538323200,64,8,1,1058\n1538323201,128,16,0,1063\n1538323203,8,8,1,1063\n"),
    (
        "blkreplay",
        "Copyright of somebody\n\nstart ; sector; length ; op ;  replay_delay=0 ; replay_duration=0\n\
         0.5 ; 64 ;    8 ; W ; 0.0 ; 0.0\n1.500000000 ; 128 ;   16 ; RA ; 0.0 ; 0.0\n3.5 ; 8 ; 8 ; W ; 0.0 ; 0.0\n",
    ),
    (
        "blkparse",
        "  8,16   8        1     0.000033469 13213  Q   W 64 + 8 [kworker]\n  \
         8,16   8        2     0.000033469 13213  D   W 64 + 8 [kworker]\n  \
         8,16   1        3     1.000033469   723  D   R 128 + 16 [723]\n  \
         8,16   1        4     1.500033469   723  C   R 128 + 16 [0]\n  \
         8,16   8        5     3.000033469 13213  D   WS 8 + 8 [my process]\nCPU0 (8,16):\n Reads Queued: 1, 8KiB\n",
    ),
    (
        "ftrace",
        "# tracer: nop\n           fio-12 [003] d..1. 1.000001: block_rq_issue: 8,16 WS 4096 () 64 + 8 [fio]\n\
         fio-12 [003] ..... 1.500000: sched_switch: prev_comm=fio\n\
         fio-12 [003] d..1. 2.000001: block_rq_issue: 8,16 RA 8192 () 128 + 16 [fio]\n\
         fio-12 [003] d..1. 4.000001: block_rq_issue: 8,16 W 4096 () 8 + 8 none,0,0 [my process]\n",
    ),
    (
        "biosnoop",
        "TIME(s)     COMM           PID     DISK    T SECTOR     BYTES  LAT(ms)\n\
         0.000004    supervise      1950    xvda1   W 64         4096      0.50\n\
         1.000104    rs:main Q:Reg  1950    xvda1   R 128        8192      0.60\n\
         3.000004    supervise      1956    xvda1   W 8          4096      0.50\n",
    ),
    ("bpftrace", "Attaching 1 probe...\n7 8388624 WS 64 8\n1000000007 8388624 RA 128 16\n3000000007 8388624 W 8 8\n"),
    (
        "fiu",
        "467651 2522 kjournald 64 8 W 6 0 98b9cb7e1dd888f9\n\
         1000467651 2522 my own process 128 16 R 6 0 c0ac18a3def2e055\n\
         3000467651 2522 kjournald 8 8 W 6 0 d757c88af198dcb6\n",
    ),
    ("mqsim", "938513000 4 64 8 0\n1938513000 3 128 16 1\n3938513000 4 8 8 0\n"),
    ("dchoices", "26.214000\t0\t64\t1\t0\n1026.214000\t0\t128\t2\t1\n3026.214000\t0\t8\t1\t0\n"),
    ("disksim", "5265.313 0 64 8 0\n6265.313 0 128 16 1\n8265.313 0 8 8 0\n"),
];

/// A small trace of object requests of each text format.
pub const OBJECT_SAMPLES: &[(&str, &str)] = &[
    (
        "cachelib",
        "op_time,key,key_size,op,op_count,size\n60,12,9,SET,1,82\n61,12,9,GET,2,82\n62,7,3,GET,1,0\n\
         63,12,9,DELETE,1,0\n",
    ),
    (
        "mlperf",
        "Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase\n1740553426.194021,Write,131072,Tier-2,a/u0,Prefill\n\
         1740553426.194308,Read,131072,Tier-2,a/u0,Decode\n1740553426.194521,Read,131072,Tier-0,a/u0,Decode\n",
    ),
    ("mooncake", "{\"timestamp\": 0, \"input_length\": 700, \"output_length\": 5, \"hash_ids\": [0, 1]}\n"),
    (
        "qwen-bailian",
        "{\"chat_id\": 1, \"parent_chat_id\": -1, \"timestamp\": 1.5, \"input_length\": 20, \"hash_ids\": [9, 10]}\n",
    ),
];

/// Small valid descriptions of object workloads.
pub const OBJECT_SPECS: &[&str] = &[
    "cache=80%,policy=s3-fifo,region=64KiB,small=4%,rate=20k,n=1e3,warm=0.5x",
    "cache=1MiB,small=0%,logs=1:2,mix=3:1,handles=5:6,region=4KiB,trim=all,policy=lru,iodepth=4,n=100",
    "cache=1MiB,region=4KiB,threshold=100,sizes=10/1:3k/5,puts=10%,deletes=5%,churn=1%,admit=50%,zipf=1.1,\
     footprint=2x,n=100",
    "cache=1MiB,memory=64KiB,memory_policy=fifo,region=4KiB:8KiB,logs=1:2,sizes=3k/1:2k/1+5k/1,n=100",
    "lsm=90%,data=30%,record=4KiB,memtable=64KiB,file=64KiB,base=64KiB,ratio=2,l0=1,wal=8KiB,trim=on,reads=20%,n=100",
];

/// Small valid specifications of generated workloads.
pub const SPECS: &[&str] = &[
    "rw=randwrite,bs=4k,size=1GiB,n=1e6,iodepth=32,random_distribution=zipf:0.95,rwmixread=30,\
     bssplit=4k/50:16k/50,rate_iops=20000",
    "rw=randrw,bs=4k,8k,4k,size=50%,offset=25%,percentage_random=80,fsync=32,rate_iops=1000,rate_process=poisson",
    "rw=write,plid_select=scheme,dp_scheme=0,10m,1:10m,20m,2,n=10",
    "rw=trimwrite,bs=64k,io_size=1GiB,rate_iops=7,open_loop",
    "rw=randrw,rate=10m,,iodepth=4,fsync=2",
    "rw=randrw,bssplit=4k/99.3:64k/0.7,sequential_from=64k,sequential_size=25%,rate_iops=3.15,\
     random_distribution=zipf:0.9:0,percentage_random=100,17.3",
    "rw=randread,random_distribution=hotspot:20/80,ba=8k,randseed=7",
    "rw=randwrite,random_distribution=zoned:50/5:30/15:20/80,loops=2",
    "rw=randtrim,random_distribution=pareto:0.2",
    "rw=randread,random_distribution=normal:10,norandommap",
    "rw=randrw,bssplit=4k/50:16k/50,size=1m,random_generator=tausworthe64,randrepeat=0,loops=3,percentage_random=70",
    "rw=randread,numjobs=3,iodepth=2,n=10",
    "rw=randtrimwrite,bs=8KiB,size=1MiB,random_generator=lfsr,kb_base=1000,n=500",
    "rw=randrw,bssplit=4k/0:64k/100,size=100k,io_size=1m,fsync=2",
    "rw=randread,iodepth=64,latency_target=200us,latency_window=5ms,latency_percentile=99.9,latency_run,n=500",
    "rw=randrw,rate=2m,1m,rate_min=1m,rate_cycle=50,n=20",
    "rw=randwrite,sync=dsync,write_hint=long,plids=0,3,65535",
    "rw=randwrite,fdp=1,plid_select=random,n=9",
    "filegroups=mail/6/16k/lockstep2@4k:index/3/8k/whole,mix=30/read/mail/whole/hot2@50:70/write/index/4k,iodepth=3",
    "rw=write:-8k,bsrange=4k-16k,512-1k,8k-8k,bs_unaligned,size=1m,verify=crc32c,verify_backlog=3,n=20",
    "rw=randwrite:4,rw_sequencer=identical,norandommap,size=64k,verify=md5,end_fsync,n=30,iodepth_batch=0,iodepth=4",
    "rw=randread,random_distribution=sequence:2,0,1,random_sequence_stride,size=48k,io_size=24k,ioengine=psync",
    "zonesize=8k,zonerange=4k,zoneskip=8k,size=1m,filename=a\\:b,startdelay=1ms-2ms,ramp_time=1ms,n=20",
];

/// Small valid job files.
pub const JOB_FILES: &[&str] = &[
    "[a]\nflow=1\nn=5\nexitall\n[b]\nflow=2\nn=9\nnumjobs=2\nsize=64k\n[c]\nwait_for=a\nrw=write:4k\nverify=md5\n",
    "[global]\nramp_time=1ms\nstartdelay=0-3ms\n[a]\nfilename=x:y\nsize=(4*16k)\niodepth=8\niodepth_low=2\nthread\n",
    "# comment\n[global]\nioengine=libaio\ndirect=1\nbs=4k\nsize=1m\n\n[reader]\nrw=randread\niodepth=8\n",
    "; comment\n[a]\nrate_iops=1000\nnumber_ios=30\nrw=read\n[b]\nrate_iops=2k\nn=40\nrw=write\nbssplit=4k/50:8k/50\n",
    "[a]\nnumjobs=2\niodepth=2\nrw=read\nn=20\n[b]\nstonewall\niodepth=4\nrw=trimwrite\nn=10\n",
    "[global]\nkb_base=1000\n[a]\nrw=randwrite\nbs=4KiB\nsize=1m\nnumjobs=2\nloops=2\nnumber_ios=1k\nrandseed=3\n",
    "[a]\nruntime=10ms\ntime_based\nrw=randread\n[b]\nstartdelay=1ms\nrate_iops=1k\nn=9\n[c]\niodepth=3\nsize=64k\n",
    "[a]\nrw=randread\nlatency_target=500\nlatency_window=1ms\niodepth=8\n[b]\nrate_iops_min=900\nrate_cycle=1\n",
    "[a]\nrw=randrw\nrate_iops=1k,500\niodepth=4\nnumber_ios=40\n[b]\nrate=1m\nopen_loop\nrw=write\nn=9\n",
];

/// Parses `bytes` as a job file, and draws some requests of a valid one.
pub fn fuzz_job_file(bytes: &[u8]) {
    const DRAWS: usize = 64;
    let Ok(file) = JobFile::parse(&String::from_utf8_lossy(bytes), "fuzz") else { return };
    let Ok(mut source) = file.source(GIB, 1) else { return };
    let mut latest = 0;
    for _ in 0..DRAWS {
        let Ok(Some(request)) = source.next_request() else { break };
        assert!((request.extent.end()) * SECTOR_BYTES <= GIB, "{request:?}");
        assert!(request.arrival >= latest, "arrivals go back");
        latest = request.arrival;
    }
    let _ = (source.place(), source.sections(), source.notes());
    let Ok(mut source) = file.source(GIB, 1) else { return };
    if let Some(jobs) = source.jobs() {
        play(jobs, DRAWS);
    }
}

/// Runs at most `most` requests of jobs on a drive that takes 100 us for each.
fn play(jobs: &mut dyn Jobs, most: usize) {
    let (mut now, mut seen) = (0, 0);
    let mut outstanding: VecDeque<(Nanos, Command)> = VecDeque::new();
    while seen < most {
        let next = match jobs.due(now) {
            Err(_) | Ok(Due::Nothing) => return,
            Ok(Due::Request(request)) => {
                assert!(request.arrival <= now, "a request comes before it is due");
                outstanding.push_back((now.saturating_add(100_000), request.command));
                seen += 1;
                continue;
            }
            Ok(Due::At(time)) => Some(time),
            Ok(Due::Completion) => None,
        };
        match outstanding.front() {
            Some(&(end, command)) if next.is_none_or(|time| end <= time) => {
                outstanding.pop_front();
                now = end;
                jobs.completed(&command, 100_000);
                while jobs.take_restarted().is_some() {}
            }
            _ => now = next.expect("jobs wait for a completion, and nothing is outstanding"),
        }
    }
}

/// Reads `bytes` as a trace: recognised, and as each format, with and without bad lines.
pub fn fuzz_trace(bytes: &[u8]) {
    let names = FORMATS.iter().map(|format| Some(format.name.to_string()));
    for format in std::iter::once(None).chain(names) {
        for skip_bad in [false, true] {
            let options =
                TraceOptions { format: format.clone(), skip_bad, file_names: skip_bad, ..TraceOptions::default() };
            drain_trace(bytes, &options);
        }
    }
}

/// Reads `bytes` as an archive, of one trace and of several.
pub fn fuzz_archive(bytes: &[u8]) {
    for member in [None, Some("x.csv".to_string())] {
        drain_file(bytes, &TraceOptions { member, ..TraceOptions::default() });
    }
}

/// Reads `bytes` as a file that needs random access.
pub fn fuzz_parquet(bytes: &[u8]) {
    for skip_bad in [false, true] {
        drain_file(bytes, &TraceOptions { skip_bad, file_names: skip_bad, ..TraceOptions::default() });
    }
}

fn drain_file(bytes: &[u8], options: &TraceOptions) {
    let Ok(mut source) = open_trace_file(Box::new(Cursor::new(bytes.to_vec())), "fuzz", options) else { return };
    while let Ok(Some(_)) = source.next_request() {}
}

fn drain_trace(bytes: &[u8], options: &TraceOptions) {
    let Ok(mut source) = open_trace(Box::new(Cursor::new(bytes.to_vec())), "fuzz", options) else { return };
    let mut latest = 0;
    while let Ok(Some(request)) = source.next_request() {
        assert!(request.arrival >= latest, "arrivals go back");
        assert!(request.extent.end() <= (1 << 63) / SECTOR_BYTES, "address beyond 2^63 bytes");
        latest = request.arrival;
    }
    let _ = source.place();
}

/// Reads `bytes` as a trace of objects, in each format, and as the description of an object workload or of a store of
/// records.
pub fn fuzz_objects(bytes: &[u8]) {
    const DRIVE: u64 = 64 << 20;
    const DRAWS: usize = 64;
    for format in std::iter::once(None).chain(objects::FORMATS.iter().map(|format| Some(format.name))) {
        for skip_bad in [false, true] {
            let input = Box::new(Cursor::new(bytes.to_vec()));
            let Ok(mut source) = open_objects(input, "fuzz", format, 1000, skip_bad) else { continue };
            let mut latest = 0;
            while let Ok(Some(request)) = source.next_object() {
                assert!(request.arrival >= latest, "arrivals go back");
                latest = request.arrival;
            }
        }
    }
    let text = String::from_utf8_lossy(bytes);
    let objects = ObjectSpec::parse(&text).and_then(|spec| ObjectSource::new(spec, None, DRIVE, 1));
    let records = LsmSpec::parse(&text).and_then(|spec| LsmSource::new(spec, DRIVE, 1));
    let objects = objects.into_iter().map(|source| Box::new(source) as Box<dyn Source>);
    for mut source in objects.chain(records.into_iter().map(|source| Box::new(source) as Box<dyn Source>)) {
        for _ in 0..DRAWS {
            let Ok(Some(request)) = source.next_request() else { break };
            assert!(request.extent.end() * SECTOR_BYTES <= DRIVE, "{request:?}");
        }
    }
}

/// Parses `bytes` as a workload specification, and draws some requests of a valid one.
pub fn fuzz_spec(bytes: &[u8]) {
    const DRAWS: usize = 64;
    let text = String::from_utf8_lossy(bytes);
    let _ = JobFile::of_line(&text).map(|jobs| jobs.map(|jobs| jobs.source(GIB, 1)));
    let Ok(spec) = FioSpec::parse(&text) else { return };
    let canonical = spec.to_string();
    assert_eq!(FioSpec::parse(&canonical).as_ref(), Ok(&spec), "{canonical} does not read as {text}");
    let Ok(mut source) = FioSource::new(&spec, GIB, 1) else { return };
    for _ in 0..DRAWS {
        let Ok(Some(request)) = source.next_request() else { break };
        assert!((request.extent.end()) * SECTOR_BYTES <= GIB, "{canonical}: {request:?}");
    }
}
