//! A server whose drive is in an image, by NBD or NVMe/TCP, is killed (SIGKILL) at any moment: everything acknowledged
//! as durable is there after a restart.
//!
//! The server is this program, restarted for one test. Each block holds a block number and the number of the last
//! write. `KILLS` is the number of kills of each drive, `KILL_SEED` draws other moments.

mod client;

use client::host::capsule;
use client::{PATIENCE, Random, read_array};
use palimpsest_server::{serve, wire};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
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
    /// The socket of an NBD server.
    socket: PathBuf,
    is_nvme: bool,
    /// Open until the end, because the server ends if it cannot print a line.
    output: Option<BufReader<ChildStdout>>,
}

impl Server {
    fn start(folder: &Path, options: &[String]) -> Server {
        let (socket, is_nvme) = (folder.join("socket"), options.iter().any(|option| option == "--nvme"));
        let mut all = options.to_vec();
        if !is_nvme {
            all.push(format!("--listen=unix:{}", socket.display()));
        }
        all.push(format!("--image={}", folder.join("drive.pal").display()));
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "serves_until_it_is_killed", "--ignored", "--nocapture"])
            .env("SERVE_OPTIONS", all.join("\n"))
            .stdout(if is_nvme { Stdio::piped() } else { Stdio::null() })
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Server { child, socket, is_nvme, output: None }
    }

    fn connect(&mut self) -> Box<dyn Link> {
        if self.is_nvme {
            let output = self.output.insert(BufReader::new(self.child.stdout.take().unwrap()));
            let uri =
                output.lines().map_while(Result::ok).find_map(|line| Some(line.rsplit_once(" at ")?.1.to_owned()));
            let host = client::host::Host::connect(&uri.unwrap_or_else(|| panic!("it ended: {}", self.said())));
            host.queue.set_read_timeout(Some(PATIENCE)).unwrap();
            return Box::new(host);
        }
        let begin = Instant::now();
        loop {
            if let Ok(stream) = UnixStream::connect(&self.socket) {
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                return Box::new(Nbd::begin(stream).unwrap());
            }
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "the server ended by itself: {}", self.said());
            assert!(begin.elapsed() < PATIENCE, "the server does not listen");
            std::thread::sleep(Duration::from_micros(300));
        }
    }

    /// Errors of a server that has ended.
    fn said(&mut self) -> String {
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        said
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

enum Action {
    Read,
    /// The data; none for zeroes.
    Write(Option<Vec<u8>>),
    Flush,
}

/// A connection by one of the protocols. Requests have numbers, which answers repeat.
trait Link: Send {
    fn blocks(&mut self) -> u64;
    /// Appends a request of one block.
    fn ask(&self, message: &mut Vec<u8>, number: u16, action: Action, block: u64, fua: bool);
    fn send(&mut self, message: &[u8]) -> io::Result<()>;
    /// The number of the next write or flush that has succeeded.
    fn answer(&mut self) -> io::Result<u16>;
    /// The block of the only read in flight.
    fn data(&mut self) -> io::Result<Vec<u8>>;
}

struct Nbd {
    stream: UnixStream,
    bytes: u64,
}

impl Nbd {
    /// Chooses the export.
    fn begin(mut stream: UnixStream) -> io::Result<Nbd> {
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting)?;
        stream.write_all(&[&[0, 0, 0, 3][..], b"IHAVEOPT", &[0, 0, 0, 1, 0, 0, 0, 0]].concat())?;
        let begin = read_array::<10>(&mut stream)?;
        Ok(Nbd { stream, bytes: u64::from_be_bytes(begin[..8].try_into().unwrap()) })
    }
}

impl Link for Nbd {
    fn blocks(&mut self) -> u64 {
        self.bytes / BLOCK
    }

    fn ask(&self, message: &mut Vec<u8>, number: u16, action: Action, block: u64, fua: bool) {
        let (command, length) = match action {
            Action::Read => (wire::CMD_READ, BLOCK),
            Action::Write(Some(_)) => (wire::CMD_WRITE, BLOCK),
            Action::Write(None) => (wire::CMD_WRITE_ZEROES, BLOCK),
            Action::Flush => (wire::CMD_FLUSH, 0),
        };
        message.extend(wire::REQUEST_MAGIC.to_be_bytes());
        message.extend(if fua { wire::CMD_FLAG_FUA } else { 0 }.to_be_bytes());
        message.extend(command.to_be_bytes());
        message.extend(u64::from(number).to_be_bytes());
        message.extend((block * length).to_be_bytes());
        message.extend((length as u32).to_be_bytes());
        if let Action::Write(Some(data)) = action {
            message.extend(data);
        }
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.stream.write_all(message)
    }

    fn answer(&mut self) -> io::Result<u16> {
        let reply: [u8; 16] = read_array(&mut self.stream)?;
        assert_eq!(reply[4..8], [0; 4], "a request was refused");
        Ok(u64::from_be_bytes(reply[8..].try_into().unwrap()) as u16)
    }

    fn data(&mut self) -> io::Result<Vec<u8>> {
        self.answer()?;
        wire::read_bytes(&mut self.stream, BLOCK as u32)
    }
}

impl Link for client::host::Host {
    fn blocks(&mut self) -> u64 {
        let identify = capsule(6, 9, &[0, 0, 0], BLOCK as u32, &[]);
        self.admin.write_all(&identify).unwrap();
        let answer: [u8; 24 + BLOCK as usize + 24] = read_array(&mut self.admin).unwrap();
        u64::from_le_bytes(answer[24..32].try_into().unwrap())
    }

    fn ask(&self, message: &mut Vec<u8>, number: u16, action: Action, block: u64, fua: bool) {
        let (opcode, length, data) = match action {
            Action::Flush => (0, 0, Vec::new()),
            Action::Write(Some(data)) => (1, BLOCK, data),
            Action::Read => (2, BLOCK, Vec::new()),
            Action::Write(None) => (8, 0, Vec::new()),
        };
        message.extend(capsule(opcode, number, &[block as u32, 0, u32::from(fua) << 30], length as u32, &data));
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.queue.write_all(message)
    }

    fn answer(&mut self) -> io::Result<u16> {
        let response: [u8; 24] = read_array(&mut self.queue)?;
        assert_eq!((response[0], response[22] >> 1, response[23]), (5, 0, 0), "a command failed");
        Ok(u16::from_le_bytes([response[20], response[21]]))
    }

    fn data(&mut self) -> io::Result<Vec<u8>> {
        read_array::<24>(&mut self.queue)?;
        let data = wire::read_bytes(&mut self.queue, BLOCK as u32)?;
        self.answer()?;
        Ok(data)
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

impl Host {
    /// Writes, some with FUA, and flushes, some in flight together, until the server is killed.
    fn write_on(&mut self, link: &mut dyn Link) -> io::Result<()> {
        loop {
            // The flush has number 0.
            let (mut message, mut asked) = (Vec::new(), Vec::<(u64, u64, bool)>::new());
            let flushes = self.random.below(4) == 0;
            for _ in 0..=self.random.below(12) {
                let block = self.random.below(self.blocks.len() as u64);
                if asked.iter().any(|&(other, ..)| other == block) {
                    continue;
                }
                self.writes += 1;
                let (write, fua, zeroes) = (self.writes, self.random.below(6) == 0, self.random.below(8) == 0);
                self.blocks[block as usize].last = write;
                if zeroes {
                    self.blocks[block as usize].zeroed = write;
                }
                asked.push((block, write, fua));
                let action = Action::Write((!zeroes).then(|| content(block, write)));
                link.ask(&mut message, asked.len() as u16, action, block, fua);
            }
            let before: Vec<u64> = self.blocks.iter().map(|block| block.answered).collect();
            if flushes {
                link.ask(&mut message, 0, Action::Flush, 0, false);
            }
            link.send(&message)?;
            for _ in 0..asked.len() + usize::from(flushes) {
                let Some(index) = usize::from(link.answer()?).checked_sub(1) else {
                    self.blocks
                        .iter_mut()
                        .zip(&before)
                        .for_each(|(block, &write)| block.durable = block.durable.max(write));
                    continue;
                };
                let (block, write, fua) = asked[index];
                let block = &mut self.blocks[block as usize];
                block.answered = write;
                block.durable = if fua { write } else { block.durable };
            }
        }
    }

    /// Reads everything; the present contents stay.
    fn look(&mut self, link: &mut dyn Link, of: &str) -> io::Result<()> {
        for number in 0..self.blocks.len() as u64 {
            let mut message = Vec::new();
            link.ask(&mut message, 1, Action::Read, number, false);
            link.send(&message)?;
            let bytes = link.data()?;
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
        let mut link = match early && kill > 0 {
            // Killed while the server opens the image.
            true => {
                std::thread::sleep(Duration::from_micros(after / 4));
                server.kill();
                continue;
            }
            false => server.connect(),
        };
        host.blocks.resize((link.blocks() as usize).min(500), Block::default());
        host.look(link.as_mut(), &of).unwrap();
        looked += 1;
        let before = host.writes;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_micros(after));
                server.kill();
            });
            host.write_on(link.as_mut()).unwrap_err();
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
    &["--ftl=page", "--nvme"],
    &["--ftl=mga", "--nvme", "--clock=virtual"],
    &["--ftl=subpage", "--nvme", "--clock=virtual", "--set=buffer.ack=volatile"],
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
    for options in &DRIVES[..6] {
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
