//! Tests of the module `read_ahead`: which reads reach a layer. Ignored: contents and times.

use super::*;
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::Nand;
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::nand::part::samples::slc;

/// Two pages ahead of at most two streams, on 64 logical subpages, four to a page.
struct Bench {
    io: Io,
    streams: Streams,
    /// Subpages that the layer has read, as first and end.
    layer: Vec<(u64, u64)>,
}

const SECTORS: u64 = 8;

impl Bench {
    fn new() -> Self {
        let geometry = Geometry {
            channels: 1,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: 1,
            blocks_per_plane: 4,
            pages_per_block: 8,
            subpages_per_page: 4,
            subpage_bytes: 4096,
        };
        let io = Io::new(Nand::new(geometry, slc(), Payload::None, None), false);
        Bench { io, streams: Streams::new(Settings { pages: 2, streams: 2 }, 64, 4), layer: Vec::new() }
    }

    /// Reads subpages `first` to `end` of a file that ends at `file_end`; returns the reads of the layer.
    fn read_of(&mut self, first: u64, end: u64, file_end: u32) -> Vec<(u64, u64)> {
        let Bench { io, streams, layer } = self;
        let extent = Extent { sector: first * SECTORS, sectors: ((end - first) * SECTORS) as u32 };
        let until = streams.reach(end as u32).min(file_end.max(end as u32));
        let read = |_: &mut Io, extent: Extent| {
            layer.push((extent.sector / SECTORS, extent.end() / SECTORS));
            Ok(())
        };
        streams.read(io, extent, until, &mut { read }).expect("no flash");
        std::mem::take(&mut self.layer)
    }

    fn read(&mut self, first: u64, end: u64) -> Vec<(u64, u64)> {
        self.read_of(first, end, u32::MAX)
    }

    fn figures(&self) -> (u64, u64, u64) {
        let ReadAheadFigures { read, hit, wasted, .. } = self.streams.figures;
        (read, hit, wasted)
    }
}

/// The second read of a stream starts the read-ahead, of the rest of the page and two more; then every read is a hit,
/// and each new page is read once.
#[test]
fn a_stream_is_read_two_pages_ahead() {
    let mut bench = Bench::new();
    assert_eq!(bench.read(0, 1), [(0, 1)]);
    assert_eq!(bench.read(1, 2), [(1, 2), (2, 4), (4, 8), (8, 12)]);
    assert_eq!([bench.read(2, 3), bench.read(3, 4)], [vec![], vec![]]);
    assert_eq!(bench.read(4, 5), [(12, 16)]);
    assert_eq!(bench.figures(), (14, 3, 0));
    // The page before the stream is dropped, whole.
    assert_eq!(bench.streams.pages, 3);
    for first in 5..64 {
        bench.read(first, first + 1);
    }
    assert_eq!(bench.figures(), (62, 62, 0));
    assert_eq!((bench.streams.pages, bench.streams.figures.pages_peak), (0, 3), "at the end of the drive");
}

#[test]
fn random_reads_read_nothing_ahead() {
    let mut bench = Bench::new();
    for first in [8, 0, 30, 4, 50, 12] {
        assert_eq!(bench.read(first, first + 1), [(first, first + 1)]);
    }
    assert_eq!(bench.figures(), (0, 0, 0));
}

/// Two streams are kept; a third replaces the one that is idle for longest, whose pages are wasted.
#[test]
fn the_stream_idle_for_longest_ends() {
    let mut bench = Bench::new();
    for first in [0, 32] {
        bench.read(first, first + 1);
        bench.read(first + 1, first + 4);
    }
    assert_eq!(bench.figures(), (16, 0, 0));
    bench.read(4, 5);
    assert_eq!(bench.read(20, 21), [(20, 21)]);
    assert_eq!(bench.figures(), (20, 1, 8), "the pages of the second stream");
    assert_eq!(bench.read(5, 6), [], "the first goes on");
    assert_eq!(bench.read(36, 37), [(36, 37)], "the second is gone");
}

/// A write drops the changed subpages alone; they are read again, by the layer.
#[test]
fn changed_subpages_are_dropped() {
    let mut bench = Bench::new();
    bench.read(0, 1);
    bench.read(1, 4);
    assert_eq!(bench.streams.pages, 2);
    bench.streams.forget(&mut bench.io, 5, 7);
    assert_eq!(bench.figures(), (8, 0, 2));
    assert_eq!(bench.read(4, 8), [(5, 7), (12, 16)]);
    assert_eq!(bench.figures(), (12, 2, 2));
    bench.streams.forget(&mut bench.io, 0, 64);
    assert_eq!((bench.streams.pages, bench.figures()), (0, (12, 2, 10)));
}

/// Nothing is read beyond the end of the file, and a page there may be read in part.
#[test]
fn a_stream_ends_with_its_file() {
    let mut bench = Bench::new();
    bench.read_of(0, 1, 6);
    assert_eq!(bench.read_of(1, 2, 6), [(1, 2), (2, 4), (4, 6)]);
    assert_eq!((2..6).map(|first| bench.read_of(first, first + 1, 6).len()).sum::<usize>(), 0);
    assert_eq!(bench.figures(), (4, 4, 0));
}
