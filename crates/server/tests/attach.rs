//! An attached drive: requests of the file against an array, without a mount; mounted, for root with FUSE; and its
//! speed beside an attached file in memory. `tests/python/test_attach.py` tests the command.
#![cfg(target_os = "linux")]

mod client;

use client::{Random, drive};
use nix::fcntl::{FallocateFlags, fallocate};
use palimpsest_lab::config;
use palimpsest_lab::run::served::Served;
use palimpsest_server::attach::disk::{self, Answer, Disk};
use palimpsest_server::attach::{Wanted, device, file, session};
use palimpsest_server::clock::Clock;
use palimpsest_server::drive::Drive;
use palimpsest_server::engine::Engine;
use palimpsest_server::handshake::Export;
use palimpsest_server::listen::Service;
use palimpsest_server::request::Request;
use palimpsest_server::timed::Timed;
use palimpsest_server::{Settings, serve};
use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

const HOLE: i32 = file::PUNCH_HOLE | file::KEEP_SIZE;

/// Runs `test` with a service of the drive of `options`.
fn with_service(options: &[&str], test: impl FnOnce(&Service<'_>)) {
    let (resolved, run) = drive(options).unwrap();
    let mut watcher = |_| ControlFlow::Continue(());
    let served = Served::new(&resolved, &run, &mut watcher).unwrap();
    let export = Export { name: "drive".into(), bytes: served.bytes(), preferred_block: 4096 };
    let engine = match options.contains(&"--clock=virtual") {
        true => Engine::Timed(Timed::new(served, Clock::Virtual)),
        false => Engine::Counted(Drive::new(served)),
    };
    let say = |_: &str| {};
    let service = Service::new(export, engine, false, Duration::from_secs(9), &say);
    std::thread::scope(|scope| {
        if let Engine::Timed(timed) = &service.drive {
            let service = &service;
            scope.spawn(move || timed.run(service));
        }
        test(&service);
        service.hang_up([]);
    });
    service.drive.finish().unwrap();
}

/// Waits for the answer to an operation on the file.
fn ask(disk: &mut dyn Disk, since: u64, requests: &[Request], data: &[u8]) -> Result<Vec<u8>, i32> {
    let (sender, answer) = channel();
    disk.serve(
        since,
        requests,
        &mut data.to_vec(),
        Box::new(move |done| sender.send(done.map(<[u8]>::to_vec)).unwrap()),
    );
    answer.recv_timeout(client::PATIENCE).expect("an operation has an answer")
}

/// Random operations on the file of a drive against an array.
fn against_array(options: &[&str], grain: u64) {
    with_service(options, |service| {
        let mut disk = disk::of(service);
        let bytes = disk.size().0;
        let (mut array, mut random) = (vec![0; bytes as usize], Random(11));
        for step in 0..1500 {
            let offset = random.below(bytes / grain) * grain;
            let length = (1 + random.below(40_000 / grain)) * grain;
            let (from, end) = (offset as i64, (offset + length).min(bytes));
            let range = offset as usize..end as usize;
            match random.below(10) {
                0 => drop(ask(&mut *disk, 0, &[Request::Flush], &[]).unwrap()),
                1 | 2 => {
                    let mode = if random.below(2) == 0 { HOLE } else { file::ZERO_RANGE };
                    let holes = file::allocate(bytes, from, range.len() as i64, mode).unwrap();
                    assert_eq!(ask(&mut *disk, 0, &holes, &[]), Ok(vec![]));
                    array[range].fill(0);
                }
                3..6 => {
                    let read = file::read(bytes, from, length as u32).unwrap();
                    let read = ask(&mut *disk, 0, read.as_slice(), &[]).unwrap();
                    assert!(read == array[range.clone()], "{range:?} at step {step}");
                }
                choice => {
                    let data = random.bytes(range.len() as u64);
                    let flags = if choice == 9 { libc::O_DSYNC } else { 0 };
                    let write = file::write(bytes, from, 0..data.len(), flags).unwrap();
                    assert_eq!(ask(&mut *disk, 0, write.as_slice(), &data), Ok(vec![]));
                    array[range].copy_from_slice(&data);
                }
            }
        }
        let many = file::allocate(bytes, 0, bytes as i64, HOLE).unwrap();
        assert_eq!(ask(&mut *disk, 0, &[&many[..], &many].concat(), &[]), Ok(vec![]), "several requests, one answer");
        assert_eq!(ask(&mut *disk, 0, &[], &[]), Ok(vec![]));
        let mut flushes = 0;
        service.drive.look(&mut |served| flushes = served.figures().requests.flush);
        assert!(flushes > 100, "durable writes flush");
    });
}

#[test]
fn operations_on_the_file_against_an_array() {
    against_array(&["--ftl=page"], 1);
    against_array(&["--ftl=subpage", "--clock=virtual"], 512);
}

#[test]
fn an_open_file_is_of_no_use_after_a_power_cut() {
    for more in [&[][..], &["--clock=virtual"]] {
        with_service(&[&["--set=faults.power_cut_at=50"], more].concat(), |service| {
            let mut disk = disk::of(service);
            let mut write = |since, number: u64| {
                let offset = (number % 100 * 65536) as i64;
                let request = file::write(disk.size().0, offset, 0..65536, 0).unwrap();
                (ask(&mut *disk, since, request.as_slice(), &[7; 65536]), disk.power_cuts())
            };
            let cut = (0..1000).find(|&number| write(0, number) == (Err(libc::EIO), 1));
            assert!(cut.is_some(), "the power fails");
            assert_eq!(write(0, 0).0, Err(libc::EIO), "it was opened before");
            assert_eq!(write(1, 0).0, Ok(vec![]), "it was opened again");
            assert_eq!(write(0, 0).0, Err(libc::EIO));
        });
    }
}

/// A file in memory.
struct Memory(Vec<u8>);

impl Disk for Memory {
    fn size(&self) -> (u64, u32) {
        (self.0.len() as u64, 4096)
    }

    fn power_cuts(&self) -> u64 {
        0
    }

    fn serve(&mut self, _since: u64, requests: &[Request], memory: &mut Vec<u8>, answer: Answer) {
        for &request in requests {
            match request {
                Request::Read { offset, length } => {
                    return answer(Ok(&self.0[offset as usize..][..length as usize]));
                }
                Request::Write { offset, length, at, .. } => {
                    let length = length as usize;
                    self.0[offset as usize..][..length].copy_from_slice(&memory[at..at + length]);
                }
                Request::Zero { offset, length, .. } => self.0[offset as usize..][..length as usize].fill(0),
                Request::Copy { .. } | Request::Swap { .. } => unreachable!("a file has no such operations"),
                Request::Trim { .. } | Request::Flush | Request::Directed { .. } | Request::Manage { .. } => {}
            }
        }
        answer(Ok(&[]));
    }
}

/// Prints why nothing can be mounted here.
fn cannot_mount() -> bool {
    let opened = File::options().read(true).write(true).open("/dev/fuse");
    let why = match opened {
        Err(error) => Some(format!("/dev/fuse: {error}")),
        Ok(_) if !nix::unistd::geteuid().is_root() => Some("this is not root".into()),
        Ok(_) => None,
    };
    why.inspect(|why| eprintln!("skipped: {why}")).is_some()
}

/// Runs `test` with a mounted file in memory.
fn with_memory(bytes: usize, test: impl FnOnce(&Path)) {
    let folder = std::env::temp_dir().join(format!("palimpsest-attach-{}-{bytes}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let mut session = session::mount(Box::new(Memory(vec![0; bytes])), &folder).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || session.run().unwrap());
        let tested = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(&folder.join(session::FILE))));
        let unmounted = device::unmount(&folder, true).unwrap();
        tested.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        assert_eq!(unmounted, device::Unmounted::Now);
    });
    fs::remove_dir(&folder).unwrap();
}

#[test]
fn the_kernel_finds_one_file_of_one_size() {
    if cannot_mount() {
        return;
    }
    with_memory(1 << 20, |path| {
        let folder = path.parent().unwrap();
        assert!(device::is_mounted(folder));
        let names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, [session::FILE]);
        let opened = File::options().read(true).write(true).open(path).unwrap();
        assert_eq!(opened.metadata().unwrap().len(), 1 << 20);
        opened.write_all_at(b"hello", 4094).unwrap();
        opened.sync_all().unwrap();
        let mut read = [0; 9];
        opened.read_exact_at(&mut read, 4092).unwrap();
        assert_eq!(&read, b"\0\0hello\0\0");
        let punch = FallocateFlags::from_bits_retain(HOLE);
        fallocate(&opened, punch, 4095, 2).unwrap();
        opened.read_exact_at(&mut read, 4092).unwrap();
        assert_eq!(&read, b"\0\0h\0\0lo\0\0", "the kernel forgets what it had");
        let errno = |done: io::Result<()>| done.unwrap_err().raw_os_error();
        assert_eq!(errno(opened.set_len(5)), Some(libc::EPERM));
        assert_eq!(errno(opened.write_all_at(b"x", 1 << 20)), Some(libc::ENOSPC));
        assert_eq!(opened.read_at(&mut read, 1 << 20).unwrap(), 0);
        assert_eq!(errno(fs::remove_file(path)), Some(libc::ENOSYS));
        assert_eq!(errno(File::create(folder.join("other")).map(drop)), Some(libc::ENOSYS));
    });
}

/// Seconds of the processor that this process has used, in programs and in the kernel.
fn processor() -> [f64; 2] {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    [11, 12].map(|field| fields[field].parse::<f64>().unwrap() / 100.0)
}

/// Requests a second of fio on `device`, over `seconds`.
fn fio(device: &Path, rw: &str, seconds: u32) -> f64 {
    let options = "--name=a --bs=4k --direct=1 --ioengine=libaio --iodepth=32 --time_based --size=256m";
    let before = processor();
    let output = Command::new("fio")
        .args(options.split(' '))
        .arg(format!("--rw={rw}"))
        .arg(format!("--runtime={seconds}"))
        .arg(format!("--filename={}", device.display()))
        .arg("--output-format=json")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let result: serde_json::Value = serde_json::from_str(&said[said.find('{').unwrap()..]).unwrap();
    let kind = if rw == "randread" { "read" } else { "write" };
    let (iops, count) = (&result["jobs"][0][kind]["iops"], result["jobs"][0][kind]["total_ios"].as_f64().unwrap());
    let [user, kernel] = [0, 1].map(|which| (processor()[which] - before[which]) * 1e6 / count);
    println!(
        "  {rw} on {}: {:.0}/s, {user:.1} us of the server and {kernel:.1} us of the kernel for it a request",
        device.display(),
        iops.as_f64().unwrap()
    );
    iops.as_f64().unwrap()
}

/// Measurements of each.
const TURNS: usize = 9;

/// The drive and a file in memory, in turn: at least 0.9 of the requests, for the median.
#[test]
#[ignore = "a measurement"]
fn measured_against_a_file_in_memory() {
    if cannot_mount() {
        return;
    }
    if Command::new("fio").arg("--version").output().is_err() {
        return eprintln!("skipped: expected fio in PATH");
    }
    let set = ["ssd.blocks_per_plane=64".to_owned()];
    let resolved = config::resolve("mga-8k", Some("page"), &set, &|_| unreachable!()).unwrap();
    let (_, run) = drive(&[]).unwrap();
    let (sender, lines) = channel::<String>();
    let (end, ended) = channel::<()>();
    let attach = Some(Wanted { name: Some(format!("speed-{}", std::process::id())), file_only: false });
    let settings = Settings {
        nvme: None,
        listen: Vec::new(),
        attach,
        clock: Clock::None,
        page: None,
        image: None,
        image_sync: false,
        once: false,
        run: None,
        timeout: Duration::from_secs(9),
    };
    let serving = std::thread::spawn(move || {
        let say = |line: &str| drop(sender.send(line.into()));
        let mut goes_on =
            move |_| if ended.try_recv().is_ok() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        serve(&resolved, &run, &settings, None, &say, &mut goes_on).map(|_| ())
    });
    let line = lines.recv_timeout(client::PATIENCE).unwrap();
    let attached = PathBuf::from(line.split_whitespace().find(|word| word.starts_with("/dev/loop")).expect(&line));
    let mut ratios = Vec::new();
    with_memory(256 << 20, |path| {
        let memory = device::set(path, 256 << 20).unwrap();
        // First writes cost memory that the system has to clear.
        let _ = (fio(&memory, "write", 1), fio(&attached, "randwrite", 6));
        for rw in ["randwrite", "randread"] {
            let mut turns: Vec<(f64, f64)> = (0..TURNS).map(|_| (fio(&memory, rw, 1), fio(&attached, rw, 1))).collect();
            turns.sort_by(|one, other| (one.1 / one.0).total_cmp(&(other.1 / other.0)));
            ratios.push(turns[TURNS / 2].1 / turns[TURNS / 2].0);
        }
        device::unset(&memory).unwrap();
    });
    end.send(()).unwrap();
    serving.join().unwrap().unwrap();
    println!("medians of the ratios: {ratios:.2?}");
    assert!(ratios.iter().all(|&ratio| ratio >= 0.9));
}
