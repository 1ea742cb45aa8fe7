//! The host link: closed forms of rates and latencies, and the arrival of the pages of a large write.
//!
//! The link carries the blocks of a command and no more, whatever the unit of the map (NVMe base specification 2.0,
//! section 4.1: the data of a command is that of its logical blocks). Data of a write arrives in order, so that a page
//! has its data once its own last byte has crossed.

use crate::bench::{Run, drive};
use crate::timing::of_registry;
use palimpsest_lab::error::Result;
use palimpsest_lab::geometry::{Extent, RequestKind};
use palimpsest_lab::host::layers;
use palimpsest_lab::host::request::{Arrivals, Request, Source};
use palimpsest_lab::metrics::summary::Summary;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::run::precondition::Precondition;
use palimpsest_lab::run::{self, Fidelity, Options, Warmup};
use palimpsest_lab::sim::drive::Command;
use palimpsest_lab::units::Nanos;
use std::ops::ControlFlow;

/// Flash faster than the link, without buffer and plane groups: 8 x 4 dies of one plane.
const WIDE: &str = "ssd.channels=8 ssd.dies_per_chip=4 ssd.planes_per_die=1 ssd.blocks_per_plane=64 ftl.name=page \
     ftl.streams=1 buffer.ack=program sim.suspend=none";

fn mean(summary: &Summary, kind: &str) -> Nanos {
    serde_json::to_value(summary).unwrap()["latency_ns"][kind]["mean"].as_u64().unwrap()
}

/// Every layer: the link carries the bytes of the requests, and a link that limits carries link / bs requests a second.
#[test]
fn the_link_carries_the_bytes_of_the_commands() {
    for entry in layers() {
        let ssd = of_registry(entry, "host.link_rate=5MB/s");
        for bs in [512, 1024, 4096, 12_288, 16_384, 65_536] {
            let mut run = Run::new(&ssd, &format!("rw=randread,bs={bs},size=20%,n=3000,iodepth=8,norandommap"));
            (run.precondition, run.warmup) = ("fill:25%", 200);
            let read = run.result();
            assert_eq!(read.host.bytes_transferred, read.host.bytes_read, "{}, {bs}", entry.name);
            let share = read.throughput.iops.unwrap() * f64::from(bs) / 5e6;
            println!("{}, {bs}: {share:.4} of the link", entry.name);
            assert!((0.99..=1.001).contains(&share), "{}, {bs}: {share}", entry.name);
            let mut run = Run::new(&ssd, &format!("rw=randrw,bs={bs},size=20%,n=200,iodepth=8,norandommap"));
            run.precondition = "fill:25%";
            let mixed = run.result().host;
            assert_eq!(mixed.bytes_transferred, mixed.bytes_read + mixed.bytes_written, "{}, {bs}", entry.name);
            assert_eq!(
                mixed.subpages_transferred,
                mixed.subpages_read + mixed.subpages_written,
                "{}, {bs}",
                entry.name
            );
        }
    }
}

/// Writes that the link limits: link / bs a second.
#[test]
fn a_slow_link_limits_writes() {
    for (bs, n) in [(4096, 3000), (16_384, 1500), (65_536, 600)] {
        let ssd = drive("tlc-32g", &format!("{WIDE} host.link_rate=20MB/s"));
        let result = Run::new(&ssd, &format!("rw=randwrite,bs={bs},n={n},iodepth=64")).result();
        let share = result.throughput.iops.unwrap() * f64::from(bs) / 20e6;
        println!("{bs}: {share:.4} of the link");
        assert!((0.99..=1.001).contains(&share), "{bs}: {share}");
        assert_eq!(result.host.bytes_transferred, result.host.bytes_written);
    }
}

/// A read of one page takes command, sensing, and the longer of the page's transfer and of its own bytes on the link,
/// which starts with the first byte from the die.
#[test]
fn a_read_takes_flash_and_its_own_bytes() {
    for rate in [20u64, 100, 400, 7000] {
        let ssd = drive("tlc-32g", &format!("{WIDE} host.link_rate={rate}MB/s"));
        let part = &ssd.drive.part;
        let bus = part.bus_rate.time_for(part.page_bytes.into());
        for bs in [512, 4096, 16_384] {
            let mut run = Run::new(&ssd, &format!("rw=randread,bs={bs},size=10%,n=50"));
            run.precondition = "fill:20%";
            let link = ssd.drive.host.link_rate.time_for(bs);
            assert_eq!(mean(&run.result(), "read"), part.t_command + part.t_read + bus.max(link), "{rate} MB/s, {bs}");
        }
    }
}

/// Page k of a write of n pages on n dies arrives with its own bytes. Behind a slow link its transfer ends with its
/// last byte, so that the write takes n pages on the link and a program. Behind a fast link the transfer begins with
/// the first byte of the page: n - 1 pages on the link, a page on the bus and a program, where each page has a bus.
#[test]
fn pages_of_a_write_arrive_one_by_one() {
    for (rate, pages, is_slow) in [("20MB/s", 32, true), ("7GB/s", 8, false)] {
        let ssd = drive("tlc-32g", &format!("{WIDE} host.link_rate={rate}"));
        let part = &ssd.drive.part;
        let link = ssd.drive.host.link_rate;
        let page = u64::from(part.page_bytes);
        let bus = part.t_command + part.bus_rate.time_for(page);
        let last = if is_slow { link.time_for(pages * page) } else { link.time_for((pages - 1) * page) + bus };
        let run = Run::new(&ssd, &format!("rw=write,bs={},n=1", pages * page));
        assert_eq!(mean(&run.result(), "write"), last + part.t_program, "{rate}");
    }
}

/// Writes of `bytes` as requests of `piece` every 5 ms, and a read of 4 KiB 5 us after each.
struct ReadsBeside {
    piece: u32,
    bytes: u32,
    number: u64,
    /// Bytes of the present write that have been sent; above `bytes`: the read is next.
    sent: u32,
}

impl Source for ReadsBeside {
    fn next_request(&mut self) -> Result<Option<Request>> {
        if self.number == 500 {
            return Ok(None);
        }
        let at = self.number * 5_000_000;
        if self.sent == self.bytes {
            let extent = Extent { sector: (self.number * 797 % 20_000) * 8, sectors: 8 };
            (self.number, self.sent) = (self.number + 1, 0);
            return Ok(Some(Request::new(at + 5_000, Command::new(RequestKind::Read, extent))));
        }
        let first = 1_000_000 + self.number * u64::from(self.bytes / 512) + u64::from(self.sent / 512);
        self.sent += self.piece;
        let command = Command::new(RequestKind::Write, Extent { sector: first, sectors: self.piece / 512 });
        Ok(Some(Request::new(at, command)))
    }

    fn place(&self) -> String {
        "reads beside writes".into()
    }

    fn arrivals(&self) -> Arrivals {
        Arrivals::Open
    }
}

/// A read beside a write of 1 MiB takes no longer than beside the same data in pieces of 16 KiB, within 1 %: pages that
/// are still on the host link keep no bus idle.
#[test]
fn a_large_write_delays_reads_as_its_pieces_do() {
    let beside = |piece: u32| {
        let ssd = drive("tlc-32g", WIDE);
        let mut source = ReadsBeside { piece, bytes: 1 << 20, number: 0, sent: 0 };
        let options = Options {
            workload: "reads beside writes".into(),
            precondition: Precondition::parse("fill:20%").unwrap(),
            requests: None,
            warmup: Warmup::Requests(0),
            fidelity: Fidelity::Timed,
            payload: Payload::None,
            seed: 1,
            series: false,
            operations: None,
            strict: false,
        };
        let done = run::run(&ssd, &mut source, &options, &mut |_| ControlFlow::Continue(())).unwrap();
        mean(&done.summary, "read")
    };
    let [whole, pieces] = [1 << 20, 16 << 10].map(beside);
    println!("beside a write of 1 MiB {whole} ns, beside its pages {pieces} ns");
    assert!((whole as f64 / pieces as f64 - 1.0).abs() < 0.01);
}
