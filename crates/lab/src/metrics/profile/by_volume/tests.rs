//! Tests of `by_volume`.

use super::*;
use palimpsest_flash::error::Result;
use palimpsest_workload::request::{Command, Extent, RequestKind};

struct Nothing;

impl Source for Nothing {
    fn next_request(&mut self) -> Result<Option<Request>> {
        Ok(None)
    }
    fn place(&self) -> String {
        String::new()
    }
    fn arrivals(&self) -> Arrivals {
        Arrivals::Open
    }
}

#[test]
fn volumes_have_distances_of_their_own() {
    let mut found = LocalityByVolume::new(&Nothing);
    // Volume 3 cycles through 5 pages, volume 7 through 2, in turns: pages of the other volume do not count.
    for at in 0..2000u64 {
        let (stream, page) = if at % 2 == 0 { (3, at / 2 % 5) } else { (7, at / 2 % 2) };
        let kind = RequestKind::Write;
        let extent = Extent { sector: page * PAGE_SECTORS, sectors: 8 };
        found.add(&Request::new(at * 1_000_000, Command::new(kind, extent).of(stream)));
    }
    let flush = Request::new(2_000_000_000, Command::FLUSH.of(9));
    found.add(&flush);
    for (volume, pages) in [(3, 5), (7, 2)] {
        let figures = found.figures(volume).unwrap();
        assert_eq!((figures.footprint_bytes, figures.reuse.page_accesses), (pages * 4096, 1000));
        assert_eq!(figures.reuse.distance_bytes.unwrap().max, (pages - 1) * 4096);
        assert_eq!(figures.working_sets[0].max_bytes, pages * 4096);
    }
    assert!(found.figures(9).is_none());
}
