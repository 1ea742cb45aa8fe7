//! Tests of `snapshots`.

use super::*;

fn geometry(channels: u32, dies_per_chip: u32, planes_per_die: u32, blocks_per_plane: u32) -> Geometry {
    Geometry {
        channels,
        chips_per_channel: 1,
        dies_per_chip,
        planes_per_die,
        blocks_per_plane,
        pages_per_block: 8,
        subpages_per_page: 4,
        subpage_bytes: 4096,
    }
}

#[test]
fn every_block_has_one_cell_in_the_order_of_its_address() {
    for geometry in [geometry(2, 2, 2, 8), geometry(8, 4, 4, 1000), geometry(64, 8, 8, 3), geometry(1, 1, 1, 1)] {
        let grid = Grid::new(&geometry);
        assert!(grid.cells() <= MOST_CELLS as usize, "{geometry:?}: {}", grid.cells());
        let mut seen = vec![0; grid.cells()];
        (0..geometry.blocks()).for_each(|block| seen[grid.cell_of(block)] += 1);
        let most = grid.planes_per_row * grid.blocks_per_cell;
        assert!(seen.iter().all(|&blocks| 0 < blocks && blocks <= most), "{geometry:?}");
    }
    let grid = Grid::new(&geometry(2, 2, 2, 8));
    // Planes are numbered over channels first; rows are channel 0 (dies 0 and 2), then channel 1 (dies 1 and 3).
    assert_eq!(grid.rows, [0, 4, 2, 6, 1, 5, 3, 7]);
    assert_eq!((grid.cell_of(0), grid.cell_of(7), grid.cell_of(8)), (0, 7, 32));
}

fn drive(snapshots: &mut Snapshots, requests: u64) -> Vec<u64> {
    let at = |requests| Snapshot { requests, time: 0, totals: FlashTotals::default(), cells: Vec::new() };
    for done in 0..=requests {
        if done == 0 || done == requests || done == snapshots.next() {
            snapshots.keep(at(done));
        }
    }
    snapshots.taken.iter().map(|snapshot| snapshot.requests).collect()
}

#[test]
fn snapshots_are_few_and_even_whatever_is_expected() {
    for (expected, requests) in [(1000, 1000), (61, 61), (7, 7), (0, 100), (0, 1_000_000), (100, 90_000), (9000, 40)] {
        let mut snapshots = Snapshots::new(&geometry(1, 1, 1, 1));
        snapshots.expect(expected);
        let taken = drive(&mut snapshots, requests);
        assert!(taken.len() < MOST_SNAPSHOTS, "{expected}: {taken:?}");
        assert!(taken.len() >= 20 || requests < 100 * FIRST_INTERVAL, "{expected}: {taken:?}");
        assert_eq!((taken[0], *taken.last().unwrap()), (0, requests));
        let gaps: Vec<u64> = taken.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let (last, regular) = gaps.split_last().unwrap();
        assert!(regular.iter().all(|&gap| gap == snapshots.interval), "{expected}: {taken:?}");
        assert!(*last <= snapshots.interval, "{expected}: {taken:?}");
    }
}
