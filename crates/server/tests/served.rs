//! The program itself: started on a free port, used by a small client over real sockets, ended by signal or by `--once`.

use palimpsest_server::wire;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::Duration;

/// Timeout of an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A drive of a few MiB, which collects soon.
const DRIVE: &[&str] = &[
    "--ssd=mga-8k",
    "--set=ssd.channels=2",
    "--set=ssd.planes_per_die=1",
    "--set=ssd.blocks_per_plane=24",
    "--set=part.pages_per_block=16",
    "--set=ssd.over_provisioning=60%",
    "--set=ftl.gc_start=2 blocks",
    "--set=ftl.gc_stop=3 blocks",
];

struct Server {
    child: Child,
    messages: BufReader<ChildStderr>,
    place: String,
}

impl Server {
    fn start(options: &[&str]) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_palimpsest-server"))
            .args(DRIVE)
            .args(
                ["--json", "--listen=127.0.0.1:0"]
                    .iter()
                    .filter(|_| !options.iter().any(|o| o.starts_with("--listen"))),
            )
            .args(options)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut messages = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        messages.read_line(&mut line).unwrap();
        let place = line.trim().rsplit_once(" at ").unwrap_or_else(|| panic!("no place in {line:?}")).1.to_owned();
        Server { child, messages, place }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.place.strip_prefix("nbd://").unwrap()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    fn client(&self) -> Client<TcpStream> {
        Client::begin(self.connect())
    }

    fn message(&mut self) -> String {
        let mut line = String::new();
        self.messages.read_line(&mut line).unwrap();
        line
    }

    /// Sends SIGTERM, and waits.
    fn terminate(self) -> Output {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.wait()
    }

    fn wait(self) -> Output {
        self.child.wait_with_output().unwrap()
    }
}

fn summary(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

struct Client<S> {
    stream: S,
    bytes: u64,
}

impl<S: Read + Write> Client<S> {
    /// Chooses the export by its old name, which needs the fewest messages.
    fn begin(mut stream: S) -> Self {
        let greeting: [u8; 18] = wire::read_array(&mut stream).unwrap();
        assert_eq!(greeting[..16], *b"NBDMAGICIHAVEOPT");
        stream.write_all(&[&[0, 0, 0, 3][..], b"IHAVEOPT", &[0, 0, 0, 1, 0, 0, 0, 0]].concat()).unwrap();
        let begin: [u8; 10] = wire::read_array(&mut stream).unwrap();
        Client { stream, bytes: u64::from_be_bytes(begin[..8].try_into().unwrap()) }
    }

    fn request(&mut self, command: u16, offset: u64, length: u32, bytes: &[u8]) -> Result<Vec<u8>, u32> {
        let mut message = wire::REQUEST_MAGIC.to_be_bytes().to_vec();
        message.extend((command >> 8).to_be_bytes());
        message.extend((command & 0xff).to_be_bytes());
        message.extend(offset.rotate_left(8).to_be_bytes());
        message.extend(offset.to_be_bytes());
        message.extend(length.to_be_bytes());
        message.extend(bytes);
        self.stream.write_all(&message).unwrap();
        let reply: [u8; 16] = wire::read_array(&mut self.stream).unwrap();
        let mut fields = wire::Fields(&reply);
        assert_eq!(fields.u32(), Some(wire::REPLY_MAGIC));
        let error = fields.u32().unwrap();
        assert_eq!(fields.u64(), Some(offset.rotate_left(8)));
        let length = if command == wire::CMD_READ && error == 0 { length } else { 0 };
        let bytes = wire::read_bytes(&mut self.stream, length).unwrap();
        if error == 0 { Ok(bytes) } else { Err(error) }
    }

    fn read(&mut self, offset: u64, length: u32) -> Vec<u8> {
        self.request(wire::CMD_READ, offset, length, &[]).unwrap()
    }

    fn write(&mut self, offset: u64, bytes: &[u8], flags: u16) {
        self.request(wire::CMD_WRITE | flags << 8, offset, bytes.len() as u32, bytes).unwrap();
    }
}

/// A small generator of random numbers (Marsaglia's xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }

    fn bytes(&mut self, n: u64) -> Vec<u8> {
        (0..n).map(|_| self.below(256) as u8).collect()
    }
}

/// Random requests against an array, at byte granularity, with reconnects. A trim of the array zeroes whole units (`unit`
/// bytes) only.
fn against_array(ftl: &str, unit: u64, more: &[&str]) -> serde_json::Value {
    let server = Server::start(&[&["--ftl", ftl][..], more].concat());
    let mut client = server.client();
    let mut array = vec![0; client.bytes as usize];
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for step in 0..2500 {
        if step % 500 == 499 {
            client = server.client();
        }
        let grain = if random.below(4) == 0 { 1 } else { 512 };
        let offset = random.below(client.bytes / grain) * grain;
        let length = ((1 + random.below(20_000 / grain)) * grain).min(client.bytes - offset);
        let range = offset as usize..(offset + length) as usize;
        match random.below(20) {
            0 => drop(client.request(wire::CMD_FLUSH, 0, 0, &[]).unwrap()),
            1 => {
                client.request(wire::CMD_TRIM, offset, length as u32, &[]).unwrap();
                let (from, to) = (offset.div_ceil(unit) * unit, (offset + length) / unit * unit);
                array.get_mut(from as usize..to as usize).unwrap_or_default().fill(0);
            }
            2..8 => assert!(client.read(offset, length as u32) == array[range.clone()], "{range:?} at step {step}"),
            choice => {
                let bytes = random.bytes(length);
                client.write(offset, &bytes, u16::from(choice == 8));
                array[range].copy_from_slice(&bytes);
            }
        }
    }
    let whole = client.read(0, client.bytes as u32);
    assert!(whole == array, "the drive differs at the end");
    summary(&server.terminate())
}

#[test]
fn random_requests_against_an_array() {
    let summary = against_array("page", 8192, &["--seed=3"]);
    assert_eq!((&summary["ftl"], &summary["payload"], &summary["seed"]), (&"page".into(), &"bytes".into(), &3.into()));
    assert!(summary["gc"]["runs"].as_u64() > Some(0));
    assert!(summary["requests"]["write"].as_u64() > Some(1000));
    assert!(summary["requests"]["flush"].as_u64() > Some(100), "durable writes flush");
    assert!(summary["latency_ns"].is_null());
    assert!(summary["sim"]["wall_s"].as_f64() > Some(0.0));
    let summary = against_array("subpage", 4096, &["--fidelity=timed"]);
    assert!(summary["latency_ns"]["write"]["mean"].as_u64() > Some(0));
}

#[test]
fn malformed_clients_leave_the_server_to_others() {
    let mut server = Server::start(&[]);
    let mut stranger = server.connect();
    stranger.write_all(b"GET / HTTP/1.1\r\nHost: drive\r\n\r\n").unwrap();
    assert!(server.message().contains("client flags"));
    let mut rest = Vec::new();
    stranger.take(1 << 20).read_to_end(&mut rest).or_else(reset).unwrap();
    assert_eq!(rest.len(), 18, "a greeting, then the end");

    let mut broken = server.client();
    broken.stream.write_all(&[0; 28]).unwrap();
    assert!(server.message().contains("magic number"));

    let mut hasty = server.client();
    hasty.stream.write_all(&wire::REQUEST_MAGIC.to_be_bytes()).unwrap();
    drop(hasty);
    assert!(server.message().contains("in the middle of a message"));

    let mut client = server.client();
    let beyond = client.bytes;
    assert_eq!(client.request(wire::CMD_READ, beyond, 512, &[]), Err(wire::EINVAL));
    assert_eq!(client.request(wire::CMD_WRITE, beyond - 1, 2, b"ab"), Err(wire::ENOSPC));
    assert_eq!(client.read(0, 512), [0; 512]);
    assert_eq!(summary(&server.terminate())["requests"]["read"], 1);
}

/// A connection closed with bytes unread may be reset.
fn reset(error: io::Error) -> io::Result<usize> {
    if error.kind() == io::ErrorKind::ConnectionReset { Ok(0) } else { Err(error) }
}

#[test]
fn clients_at_the_same_time_write_atomically() {
    const LENGTH: usize = 3 * 8192;
    let server = Server::start(&["--once"]);
    let mut watcher = server.client();
    std::thread::scope(|scope| {
        for id in 1..=3 {
            let mut client = server.client();
            scope.spawn(move || (0..100).for_each(|_| client.write(100, &[id; LENGTH], 0)));
        }
        for _ in 0..100 {
            let seen = watcher.read(100, LENGTH as u32);
            assert!(seen.iter().all(|&byte| byte == seen[0]), "a write was seen half done");
        }
    });
    watcher.request(wire::CMD_FLUSH, 0, 0, &[]).unwrap();
    drop(watcher);
    let summary = summary(&server.wait());
    assert_eq!(summary["requests"]["flush"], 1);
}

#[test]
fn a_socket_in_the_file_system() {
    let path = std::env::temp_dir().join(format!("palimpsest-server-test-{}", std::process::id()));
    let server = Server::start(&["--json", "--once", &format!("--listen=unix:{}", path.display())]);
    let mut client = Client::begin(UnixStream::connect(&path).unwrap());
    client.write(0, b"hello", 0);
    assert_eq!(client.read(0, 6), *b"hello\0");
    drop(client);
    assert!(summary(&server.wait())["host"]["bytes_written"].as_u64() > Some(0));
    assert!(!path.exists(), "the socket was left behind");
}

#[test]
fn a_drive_that_dies_answers_with_an_error() {
    let mut server = Server::start(&["--set=faults.initial_bad=0%", "--set=faults.erase_fail=100%"]);
    let mut client = server.client();
    let mut random = Random(1);
    let failed = (0..20_000).find_map(|_| {
        let offset = random.below(client.bytes / 8192) * 8192;
        client.request(wire::CMD_WRITE, offset, 8192, &[1; 8192]).err()
    });
    assert_eq!(failed, Some(wire::EIO));
    assert!(server.message().contains("end of its life"));
    assert!(client.request(wire::CMD_READ, 0, 512, &[]).is_ok(), "it can still be read");
    assert_eq!(client.request(wire::CMD_WRITE, 0, 512, &[1; 512]), Err(wire::EIO));
    let output = server.terminate();
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    assert_eq!((output.status.code(), &result["lifetime"]["worn_out"]), (Some(0), &true.into()));
}

/// A client, as soon as there is a place for one.
fn client_in_time(server: &Server) -> Client<TcpStream> {
    for _ in 0..200 {
        let mut stream = server.connect();
        if stream.peek(&mut [0; 1]).is_ok_and(|read| read == 1) {
            return Client::begin(stream);
        }
        let _ = stream.flush();
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the server is locked");
}

#[test]
fn clients_that_say_nothing_more_do_not_lock_others_out() {
    let server = Server::start(&["--timeout=200ms"]);
    let slow: Vec<TcpStream> = (0..64)
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(&[0]).unwrap();
            stream
        })
        .collect();
    let mut client = client_in_time(&server);
    assert_eq!(client.read(0, 512), [0; 512]);
    drop(slow);
    // In the middle of a message, too; and the place of an idle client is for one that needs it.
    client.stream.write_all(&[0x25]).unwrap();
    assert_eq!(client.stream.read(&mut [0; 1]).unwrap(), 0, "the connection is closed");
    let mut idle: Vec<_> = (0..64).map(|_| client_in_time(&server)).collect();
    let mut last = client_in_time(&server);
    assert_eq!(last.read(0, 512), [0; 512]);
    let gone = idle.iter_mut().filter(|client| client.stream.peek(&mut [0; 1]).is_ok_and(|read| read == 0));
    assert_eq!(gone.take(1).count(), 1, "one has left its place");
    summary(&server.terminate());
}

#[test]
fn the_socket_of_a_server_that_was_killed_is_replaced() {
    let path = std::env::temp_dir().join(format!("palimpsest-server-stale-{}", std::process::id()));
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let place = format!("--listen=unix:{}", path.display());
    let server = Server::start(&["--json", &place]);
    let client = Client::begin(UnixStream::connect(&path).unwrap());
    let second = Command::new(env!("CARGO_BIN_EXE_palimpsest-server")).args(DRIVE).arg(&place).output().unwrap();
    assert_eq!(second.status.code(), Some(2), "a server listens there");
    drop(client);
    summary(&server.terminate());
    std::fs::write(&path, "precious").unwrap();
    let file = Command::new(env!("CARGO_BIN_EXE_palimpsest-server")).args(DRIVE).arg(&place).output().unwrap();
    assert_eq!((file.status.code(), std::fs::read(&path).unwrap()), (Some(2), b"precious".to_vec()));
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_power_cut_ends_the_connections() {
    let mut server = Server::start(&["--set=faults.power_cut_at=40", "--once"]);
    let (mut idle, mut client) = (server.client(), server.client());
    let refused = (0..1000).find_map(|block| client.request(wire::CMD_WRITE, block * 8192, 8192, &[1; 8192]).err());
    assert_eq!(refused, Some(wire::EIO));
    assert!(server.message().contains("the power failed, and the drive has recovered; 2 connections end"));
    for stream in [&mut idle.stream, &mut client.stream] {
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0, "the connection is closed");
    }
    let mut again = server.client();
    assert_eq!(again.read(0, 8192), [1; 8192]);
    drop(again);
    let summary = summary(&server.wait());
    assert_eq!((&summary["power"]["cuts"], &summary["power"]["unflushed_writes_lost"]), (&1.into(), &0.into()));
}

#[test]
fn mistakes_of_the_user_are_one_line() {
    for options in [&["--ssd=nothing"][..], &["--ftl=a b"], &["--listen=nowhere"], &["--set=part.nop"], &["--wrong"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_palimpsest-server")).args(options).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), message.lines().count()), (Some(2), 1), "{message}");
        assert!(message.starts_with("error: "), "{message}");
    }
}
