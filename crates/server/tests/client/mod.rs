//! A served drive, and a small client over real sockets, for tests.

#![allow(dead_code, reason = "each test program uses a part")]

pub mod host;

use palimpsest_lab::config::{self, Resolved};
use palimpsest_lab::error::{Error, Result};
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::run::image::resolve_to_keep;
use palimpsest_lab::run::precondition::Precondition;
use palimpsest_lab::run::{Fidelity, Options, Warmup};
use palimpsest_server::clock::Clock;
use palimpsest_server::{Ended, Settings, nvme, page, serve, wire};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Timeout of an answer.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Fills an array.
pub fn read_array<const N: usize>(stream: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A drive of a few MiB, which collects soon.
pub const DRIVE: &[&str] = &[
    "--ssd=mga-8k",
    "--set=ssd.channels=2",
    "--set=ssd.planes_per_die=1",
    "--set=ssd.blocks_per_plane=24",
    "--set=part.pages_per_block=16",
    "--set=ssd.over_provisioning=60%",
    "--set=ftl.gc_start=2 blocks",
    "--set=ftl.gc_stop=3 blocks",
];

pub struct Server {
    pub served: JoinHandle<Result<Ended>>,
    pub stopped: Arc<AtomicBool>,
    pub messages: Receiver<String>,
    pub place: String,
}

/// The drive of `palimpsest serve` with these options: `--ssd`, `--ftl`, `--set`, `--seed` and `--clock` only.
pub fn drive(options: &[&str]) -> Result<(Resolved, Options)> {
    let valued = DRIVE.iter().chain(options).filter_map(|option| option.strip_prefix("--")?.split_once('='));
    let of = |wanted: &str| valued.clone().filter(|(name, _)| *name == wanted).map(|(_, value)| value).next_back();
    let set: Vec<String> = valued.clone().filter(|(name, _)| *name == "set").map(|(_, value)| value.into()).collect();
    let no_file = |path: &str| Err(Error::input(path, "no file"));
    let resolved = match of("image") {
        None => config::resolve(of("ssd").unwrap(), of("ftl"), &set, &no_file)?,
        Some(_) => resolve_to_keep(of("ssd").unwrap(), of("ftl"), &set, &no_file)?.0,
    };
    let options = Options {
        workload: "nbd".into(),
        precondition: Precondition::None,
        requests: None,
        warmup: Warmup::Requests(0),
        fidelity: if of("clock").is_some() { Fidelity::Timed } else { Fidelity::Count },
        payload: Payload::Bytes,
        seed: of("seed").map_or(1, |seed| seed.parse().unwrap()),
        series: false,
        operations: None,
        strict: false,
    };
    Ok((resolved, options))
}

pub fn settings(options: &[&str]) -> Settings {
    let of = |wanted: &str| options.iter().filter_map(|option| option.strip_prefix(wanted)).collect::<Vec<_>>();
    let mut listen: Vec<String> = of("--listen=").into_iter().map(String::from).collect();
    if listen.is_empty() {
        listen.push("127.0.0.1:0".into());
    }
    let timeout = of("--timeout=").last().map_or(30_000, |text| text.trim_end_matches("ms").parse().unwrap());
    let run = of("--run=").last().map(|&run| run.into());
    let clock = of("--clock=").last().map_or(Clock::None, |text| Clock::parse(text).unwrap());
    let html = String::from("<!doctype html>");
    let page = of("--page=").last().map(|&place| page::Wanted { place: place.into(), html });
    let once = options.contains(&"--once");
    let timeout = Duration::from_millis(timeout);
    let image = of("--image=").last().map(PathBuf::from);
    let image_sync = options.contains(&"--image-sync");
    let nvme = options.contains(&"--nvme").then(|| nvme::Wanted {
        nqn: None,
        hosts: Vec::new(),
        block_bytes: 4096,
        namespaces: Vec::new(),
        others: Vec::new(),
        advertised: None,
    });
    Settings { listen, nvme, attach: None, clock, page, image, image_sync, once, run, timeout }
}

impl Server {
    pub fn start(options: &[&str]) -> Server {
        Server::start_with_page(options).0
    }

    /// The server, and the address of the page.
    pub fn start_with_page(options: &[&str]) -> (Server, String) {
        let ((resolved, run), settings) = (drive(options).unwrap(), settings(options));
        let stopped = Arc::new(AtomicBool::new(false));
        let (sender, messages) = channel();
        let ask = Arc::clone(&stopped);
        let served = std::thread::spawn(move || {
            let mut goes_on = |_| match ask.load(Ordering::SeqCst) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            };
            let say = |line: &str| drop(sender.send(line.into()));
            serve(&resolved, &run, &settings, None, &say, &mut goes_on)
        });
        let mut line: String = messages.recv_timeout(PATIENCE).unwrap();
        let mut page = String::new();
        if let Some(address) = line.strip_prefix("figures at http://") {
            page = address.into();
            line = messages.recv_timeout(PATIENCE).unwrap();
        }
        let place = line.rsplit_once(" at ").unwrap_or_else(|| panic!("no place in {line:?}")).1.to_owned();
        (Server { served, stopped, messages, place }, page)
    }

    pub fn connect(&self) -> TcpStream {
        let place = self.place.split_whitespace().next().unwrap();
        let stream = TcpStream::connect(place.strip_prefix("nbd://").unwrap()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    pub fn client(&self) -> Client<TcpStream> {
        Client::begin(self.connect())
    }

    pub fn message(&mut self) -> String {
        self.messages.recv_timeout(PATIENCE).unwrap()
    }

    /// Ends the service, and waits.
    pub fn terminate(self) -> Result<Ended> {
        self.stopped.store(true, Ordering::SeqCst);
        self.wait()
    }

    pub fn wait(self) -> Result<Ended> {
        self.served.join().unwrap()
    }
}

pub fn summary(ended: Result<Ended>) -> serde_json::Value {
    serde_json::to_value(ended.map_err(|error| error.to_string()).unwrap().outcome.summary).unwrap()
}

pub struct Client<S> {
    pub stream: S,
    pub bytes: u64,
}

impl<S: Read + Write> Client<S> {
    /// Chooses the export by the old option, which needs the fewest messages.
    pub fn begin(mut stream: S) -> Self {
        let greeting: [u8; 18] = read_array(&mut stream).unwrap();
        assert_eq!(greeting[..16], *b"NBDMAGICIHAVEOPT");
        stream.write_all(&[&[0, 0, 0, 3][..], b"IHAVEOPT", &[0, 0, 0, 1, 0, 0, 0, 0]].concat()).unwrap();
        let begin: [u8; 10] = read_array(&mut stream).unwrap();
        Client { stream, bytes: u64::from_be_bytes(begin[..8].try_into().unwrap()) }
    }

    pub fn request(
        &mut self,
        command: u16,
        offset: u64,
        length: u32,
        bytes: &[u8],
    ) -> std::result::Result<Vec<u8>, u32> {
        let mut message = wire::REQUEST_MAGIC.to_be_bytes().to_vec();
        message.extend((command >> 8).to_be_bytes());
        message.extend((command & 0xff).to_be_bytes());
        message.extend(offset.rotate_left(8).to_be_bytes());
        message.extend(offset.to_be_bytes());
        message.extend(length.to_be_bytes());
        message.extend(bytes);
        self.stream.write_all(&message).unwrap();
        let reply: [u8; 16] = read_array(&mut self.stream).unwrap();
        let mut fields = wire::Fields(&reply);
        assert_eq!(fields.u32(), Some(wire::REPLY_MAGIC));
        let error = fields.u32().unwrap();
        assert_eq!(fields.u64(), Some(offset.rotate_left(8)));
        let length = if command == wire::CMD_READ && error == 0 { length } else { 0 };
        let bytes = wire::read_bytes(&mut self.stream, length).unwrap();
        if error == 0 { Ok(bytes) } else { Err(error) }
    }

    /// Keeps `depth` reads and writes of 4 KiB in flight, until all are answered.
    pub fn keep_in_flight(&mut self, commands: &[(u16, u64)], depth: usize) {
        let (mut next, mut in_flight) = (commands.iter(), 0);
        loop {
            let mut message = Vec::new();
            while in_flight < depth {
                let Some(&(command, offset)) = next.next() else { break };
                message.extend(wire::REQUEST_MAGIC.to_be_bytes());
                message.extend([0, 0]);
                message.extend(command.to_be_bytes());
                message.extend(u64::from(command).to_be_bytes());
                message.extend(offset.to_be_bytes());
                message.extend(4096u32.to_be_bytes());
                message.resize(message.len() + if command == wire::CMD_WRITE { 4096 } else { 0 }, 7);
                in_flight += 1;
            }
            self.stream.write_all(&message).unwrap();
            if in_flight == 0 {
                return;
            }
            let reply: [u8; 16] = read_array(&mut self.stream).unwrap();
            assert_eq!(reply[4..8], [0; 4]);
            let is_read = reply[15] == wire::CMD_READ as u8;
            wire::read_bytes(&mut self.stream, if is_read { 4096 } else { 0 }).unwrap();
            in_flight -= 1;
        }
    }

    pub fn read(&mut self, offset: u64, length: u32) -> Vec<u8> {
        self.request(wire::CMD_READ, offset, length, &[]).unwrap()
    }

    pub fn write(&mut self, offset: u64, bytes: &[u8], flags: u16) {
        self.request(wire::CMD_WRITE | flags << 8, offset, bytes.len() as u32, bytes).unwrap();
    }
}

/// A small generator of random numbers (Marsaglia's xorshift64).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }

    pub fn bytes(&mut self, n: u64) -> Vec<u8> {
        (0..n).map(|_| self.below(256) as u8).collect()
    }
}
