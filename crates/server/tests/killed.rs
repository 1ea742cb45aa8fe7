//! A server whose drive is in an image is killed (SIGKILL) at any moment: everything acknowledged as durable is there
//! after a restart.
//!
//! The server is this program, restarted for one test. Each block holds a block number and the number of the last
//! write. `KILLS` is the number of kills of each drive, `KILL_SEED` draws other moments.

mod client;

use client::{PATIENCE, Random};
use palimpsest_server::{serve, wire};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const BLOCK: u64 = 4096;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// The restarted program: serves as the variable says, until killed.
#[test]
#[ignore = "a server that another test kills"]
fn serves_until_it_is_killed() {
    let Ok(options) = std::env::var("SERVE_OPTIONS") else { return };
    let options: Vec<&str> = options.split('\n').collect();
    let ((resolved, run), settings) = (client::drive(&options).unwrap(), client::settings(&options));
    let say = |line: &str| println!("{line}");
    let ended = serve(&resolved, &run, &settings, None, &say, &mut |_| ControlFlow::Continue(()));
    panic!("it ended: {:?}", ended.err().map(|error| error.to_string()));
}

struct Server {
    child: Child,
    socket: PathBuf,
}

impl Server {
    fn start(folder: &Path, options: &[String]) -> Server {
        let socket = folder.join("socket");
        let mut all = options.to_vec();
        all.push(format!("--listen=unix:{}", socket.display()));
        all.push(format!("--image={}", folder.join("drive.pal").display()));
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "serves_until_it_is_killed", "--ignored", "--nocapture"])
            .env("SERVE_OPTIONS", all.join("\n"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Server { child, socket }
    }

    /// A connection; `None` if the server ended before.
    fn connect(&mut self) -> Option<UnixStream> {
        let begin = Instant::now();
        loop {
            if let Ok(stream) = UnixStream::connect(&self.socket) {
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                return Some(stream);
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                let mut said = String::new();
                self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
                assert!(status.code().is_none(), "the server ended by itself: {said}");
                return None;
            }
            assert!(begin.elapsed() < PATIENCE, "the server does not listen");
            std::thread::sleep(Duration::from_micros(300));
        }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A write that the client knows.
#[derive(Clone, Copy, Default)]
struct Block {
    last: u64,
    answered: u64,
    durable: u64,
    /// The number of a write of zeroes.
    zeroed: u64,
}

struct Host {
    blocks: Vec<Block>,
    writes: u64,
    random: Random,
}

fn content(block: u64, write: u64) -> Vec<u8> {
    let mut random = Random(block << 32 ^ write | 1 << 60);
    let mut bytes = [block.to_le_bytes(), write.to_le_bytes()].concat();
    while bytes.len() < BLOCK as usize {
        bytes.extend(random.below(u64::MAX).to_le_bytes());
    }
    bytes
}

fn ask(message: &mut Vec<u8>, command: u16, flags: u16, cookie: u64, offset: u64, length: u32) {
    message.extend(wire::REQUEST_MAGIC.to_be_bytes());
    message.extend(flags.to_be_bytes());
    message.extend(command.to_be_bytes());
    message.extend(cookie.to_be_bytes());
    message.extend(offset.to_be_bytes());
    message.extend(length.to_be_bytes());
}

impl Host {
    /// Chooses the export.
    fn begin(stream: &mut UnixStream) -> io::Result<u64> {
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting)?;
        stream.write_all(&[&[0, 0, 0, 3][..], b"IHAVEOPT", &[0, 0, 0, 1, 0, 0, 0, 0]].concat())?;
        let mut begin = [0; 10];
        stream.read_exact(&mut begin)?;
        Ok(u64::from_be_bytes(begin[..8].try_into().unwrap()))
    }

    /// The cookie of the next answer.
    fn answer(stream: &mut UnixStream) -> io::Result<u64> {
        let mut reply = [0; 16];
        stream.read_exact(&mut reply)?;
        assert_eq!(reply[4..8], [0; 4], "a request was refused");
        Ok(u64::from_be_bytes(reply[8..].try_into().unwrap()))
    }

    /// Writes, some with FUA, and flushes, some in flight together, until the server is killed.
    fn write_on(&mut self, stream: &mut UnixStream) -> io::Result<()> {
        loop {
            let (mut message, mut asked) = (Vec::new(), BTreeMap::<u64, (u64, bool)>::new());
            let flushes = self.random.below(4) == 0;
            for _ in 0..=self.random.below(12) {
                let block = self.random.below(self.blocks.len() as u64);
                if asked.values().any(|&(other, ..)| other == block) {
                    continue;
                }
                self.writes += 1;
                let (write, fua, zeroes) = (self.writes, self.random.below(6) == 0, self.random.below(8) == 0);
                self.blocks[block as usize].last = write;
                let flags = if fua { wire::CMD_FLAG_FUA } else { 0 };
                if zeroes {
                    self.blocks[block as usize].zeroed = write;
                    ask(&mut message, wire::CMD_WRITE_ZEROES, flags, write, block * BLOCK, BLOCK as u32);
                } else {
                    ask(&mut message, wire::CMD_WRITE, flags, write, block * BLOCK, BLOCK as u32);
                    message.extend(content(block, write));
                }
                asked.insert(write, (block, fua));
            }
            let before: Vec<u64> = self.blocks.iter().map(|block| block.answered).collect();
            if flushes {
                ask(&mut message, wire::CMD_FLUSH, 0, 0, 0, 0);
            }
            stream.write_all(&message)?;
            for _ in 0..asked.len() + usize::from(flushes) {
                let write = Host::answer(stream)?;
                let Some(&(block, fua)) = asked.get(&write) else {
                    self.blocks
                        .iter_mut()
                        .zip(&before)
                        .for_each(|(block, &write)| block.durable = block.durable.max(write));
                    continue;
                };
                let block = &mut self.blocks[block as usize];
                block.answered = write;
                block.durable = if fua { write } else { block.durable };
            }
        }
    }

    /// Reads everything; the present contents stay.
    fn look(&mut self, stream: &mut UnixStream, of: &str) -> io::Result<()> {
        for number in 0..self.blocks.len() as u64 {
            let mut message = Vec::new();
            ask(&mut message, wire::CMD_READ, 0, number, number * BLOCK, BLOCK as u32);
            stream.write_all(&message)?;
            assert_eq!(Host::answer(stream)?, number);
            let mut bytes = vec![0; BLOCK as usize];
            stream.read_exact(&mut bytes)?;
            let Block { last, durable, zeroed, .. } = self.blocks[number as usize];
            let found = match bytes.iter().all(|&byte| byte == 0) {
                true if zeroed >= durable => zeroed,
                true => 0,
                false => u64::from_le_bytes(bytes[8..16].try_into().unwrap()),
            };
            let is_zero = bytes.iter().all(|&byte| byte == 0);
            assert!(is_zero || bytes == content(number, found), "{of}: block {number} holds what was never written");
            assert!(
                (durable..=last).contains(&found),
                "{of}: block {number} holds write {found} of {last}, and {durable} was durable"
            );
            let block = &mut self.blocks[number as usize];
            (block.durable, block.answered) = (found, found);
        }
        Ok(())
    }
}

fn killed(options: &[&str], kills: u64, seed: u64) {
    let folder = std::env::temp_dir().join(format!(
        "palimpsest-killed-{}-{seed}-{}",
        std::process::id(),
        options.join("").len()
    ));
    std::fs::create_dir_all(&folder).unwrap();
    let options: Vec<String> = options.iter().map(|&option| option.into()).collect();
    let mut host = Host { blocks: Vec::new(), writes: 0, random: Random(seed * 2 + 1) };
    let (mut looked, mut writes) = (0, 0);
    for kill in 0..kills {
        let of = format!("{options:?}, kill {kill} of seed {seed}");
        let mut server = Server::start(&folder, &options);
        let (after, early) = (host.random.below(30_000), host.random.below(5) == 0);
        let mut stream = match early && kill > 0 {
            // Killed while the server opens the image.
            true => {
                std::thread::sleep(Duration::from_micros(after / 4));
                server.kill();
                continue;
            }
            false => server.connect().expect("it runs"),
        };
        let bytes = Host::begin(&mut stream).unwrap();
        host.blocks.resize(((bytes / BLOCK) as usize).min(500), Block::default());
        host.look(&mut stream, &of).unwrap();
        looked += 1;
        let before = host.writes;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_micros(after));
                server.kill();
            });
            host.write_on(&mut stream).unwrap_err();
        });
        writes += host.writes - before;
    }
    println!("{options:?}: {kills} kills, {looked} looks, {writes} writes");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Drives with a page map, a write buffer with collection of subpages, word lines that are written twice, and a clock.
const DRIVES: &[&[&str]] = &[
    &["--ftl=page"],
    &["--ftl=subpage"],
    &["--ftl=mga", "--clock=virtual"],
    &[
        "--ftl=llh",
        "--set=part.cell=mlc",
        "--set=part.order=low-low-high",
        "--set=part.nop=2",
        "--set=part.spare_size=640B",
    ],
    &["--ftl=subpage", "--clock=virtual", "--set=buffer.ack=volatile"],
    &["--ftl=hotcold", "--image-sync"],
];

#[test]
fn what_was_flushed_survives_a_killed_server() {
    for options in &DRIVES[..3] {
        killed(options, number("KILLS", 7), number("KILL_SEED", 1));
    }
}

#[test]
#[ignore = "minutes"]
fn long_flushed_data_survives_thousands_of_kills() {
    for options in DRIVES {
        killed(options, number("KILLS", 1000), number("KILL_SEED", 2));
    }
}
