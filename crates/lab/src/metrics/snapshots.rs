//! States of all blocks over a run: a bounded number of snapshots, evenly spread over the requests.
//!
//! The clock is the number of measured requests, which every fidelity has; each snapshot records the simulated time. A
//! layer plans a request when it is submitted, so a snapshot shows flash with all planned operations, some of which the
//! engine has not run yet. In a large drive, neighbouring blocks of a plane share a cell; if there are more planes than
//! cells, so do neighbouring planes. In a run of unknown length the distance of snapshots doubles as the run proceeds.
//! Ignored: changes between two snapshots.

use super::recorder::{FlashTotals, subtract};
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::Nand;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::Ftl;
use serde::Serialize;

/// Upper bound of snapshots, not reached.
const MOST_SNAPSHOTS: usize = 64;
/// Most cells.
const MOST_CELLS: u32 = 2048;
/// Requests between the first snapshots of a run of unknown length.
const FIRST_INTERVAL: u64 = 256;

/// States of a block, in the order of a cell's counts.
pub const STATES: [&str; 6] = ["free", "open", "partial", "full", "reused", "bad"];

const FREE: usize = 0;
const OPEN: usize = 1;
/// Every page is programmed, some with free subpages, which may be programmed once more.
const PARTIAL: usize = 2;
const FULL: usize = 3;
/// Low pages were programmed again over data.
const REUSED: usize = 4;
const BAD: usize = 5;

/// Blocks of one cell of the picture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Cell {
    /// Blocks in each of [`STATES`].
    blocks: [u32; STATES.len()],
    programmed_subpages: u64,
    valid_subpages: u64,
    erases: u64,
}

#[derive(Debug)]
struct Snapshot {
    requests: u64,
    time: Nanos,
    totals: FlashTotals,
    cells: Vec<Cell>,
}

/// The cell of each block: rows of planes in the order channel, die, plane; columns of blocks in the order of their
/// number.
#[derive(Debug, Clone)]
struct Grid {
    geometry: Geometry,
    planes_per_row: u32,
    blocks_per_cell: u32,
    columns: u32,
    /// The row of each plane.
    rows: Vec<u32>,
}

impl Grid {
    fn new(geometry: &Geometry) -> Self {
        let planes = geometry.planes();
        let planes_per_row = planes.div_ceil(MOST_CELLS);
        let rows = planes.div_ceil(planes_per_row);
        let blocks_per_cell = geometry.blocks_per_plane.div_ceil((MOST_CELLS / rows).min(geometry.blocks_per_plane));
        let mut order: Vec<u32> = (0..planes).collect();
        order.sort_by_key(|&plane| {
            let die = geometry.die_of_plane(plane);
            (geometry.channel_of_die(die), die, plane)
        });
        let mut row_of = vec![0; planes as usize];
        (0..).zip(&order).for_each(|(place, &plane)| row_of[plane as usize] = place / planes_per_row);
        Grid {
            geometry: *geometry,
            planes_per_row,
            blocks_per_cell,
            columns: geometry.blocks_per_plane.div_ceil(blocks_per_cell),
            rows: row_of,
        }
    }

    fn cells(&self) -> usize {
        (self.rows.len() as u32).div_ceil(self.planes_per_row) as usize * self.columns as usize
    }

    fn cell_of(&self, block: u32) -> usize {
        let row = self.rows[self.geometry.plane_of_block(block) as usize];
        (row * self.columns + block % self.geometry.blocks_per_plane / self.blocks_per_cell) as usize
    }
}

/// All blocks at one time, cell by cell; rows are planes.
#[derive(Debug, Serialize)]
pub struct BlockMap {
    /// Cells of a row.
    pub columns: u32,
    /// Names of states.
    pub states: [&'static str; STATES.len()],
    /// The state of most blocks of each cell, by its place in `states`.
    pub state: Vec<u8>,
    /// Share of programmed subpages.
    pub programmed_percent: Vec<u8>,
    /// Share of valid subpages, if the layer reports them.
    pub valid_percent: Option<Vec<u8>>,
}

/// The snapshots of a run.
#[derive(Debug)]
pub struct Snapshots {
    grid: Grid,
    interval: u64,
    next: u64,
    taken: Vec<Snapshot>,
    /// Whether the layer reports valid subpages.
    validity: bool,
    valid: Vec<u32>,
}

impl Snapshots {
    /// An empty series of a drive of `geometry`.
    pub fn new(geometry: &Geometry) -> Self {
        Snapshots {
            grid: Grid::new(geometry),
            interval: FIRST_INTERVAL,
            next: 0,
            taken: Vec::new(),
            validity: true,
            valid: vec![0; geometry.blocks() as usize],
        }
    }

    /// Sets the expected number of requests; 0: unknown.
    pub fn expect(&mut self, requests: u64) {
        if requests > 0 {
            self.interval = requests.div_ceil(MOST_SNAPSHOTS as u64 - 3);
        }
    }

    /// The number of requests after which [`Self::take`] is due.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Takes a snapshot of every block after `requests` requests.
    pub fn take(&mut self, requests: u64, time: Nanos, totals: FlashTotals, nand: &Nand, ftl: &dyn Ftl) {
        let cells = self.count_states(nand, ftl);
        self.keep(Snapshot { requests, time, totals, cells });
    }

    /// Stores a snapshot, replacing one after the same number of requests; if there are too many, drops every second
    /// one.
    fn keep(&mut self, snapshot: Snapshot) {
        let requests = snapshot.requests;
        if self.taken.last().is_some_and(|last| last.requests == requests) {
            self.taken.pop();
        }
        self.taken.push(snapshot);
        if self.taken.len() == MOST_SNAPSHOTS - 1 {
            let mut index = 0;
            self.taken.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.interval *= 2;
        }
        self.next = requests + self.interval;
    }

    fn count_states(&mut self, nand: &Nand, ftl: &dyn Ftl) -> Vec<Cell> {
        self.valid.fill(0);
        self.validity = ftl.count_valid(&mut self.valid);
        let mut cells = vec![Cell::default(); self.grid.cells()];
        for (block, &valid) in (0..).zip(&self.valid) {
            let cell = &mut cells[self.grid.cell_of(block)];
            let fill = nand.fill(block);
            let geometry = &self.grid.geometry;
            let state = match () {
                () if nand.is_bad(block) => BAD,
                () if fill.pages == 0 => FREE,
                () if fill.reused => REUSED,
                () if fill.pages < geometry.pages_per_block => OPEN,
                () if fill.subpages < geometry.subpages_per_block() => PARTIAL,
                () => FULL,
            };
            cell.blocks[state] += 1;
            cell.programmed_subpages += u64::from(fill.subpages);
            cell.valid_subpages += u64::from(valid);
            cell.erases += u64::from(nand.erases(block));
        }
        cells
    }

    /// The present state of all blocks.
    pub fn map(&mut self, nand: &Nand, ftl: &dyn Ftl) -> BlockMap {
        let cells = self.count_states(nand, ftl);
        let of_cell = u64::from(self.grid.geometry.subpages_per_block());
        let percent =
            |part: u64, cell: &Cell| (part * 100 / (of_cell * cell.blocks.map(u64::from).iter().sum::<u64>())) as u8;
        let most = |cell: &Cell| (0..STATES.len() as u8).max_by_key(|&state| cell.blocks[usize::from(state)]);
        BlockMap {
            columns: self.grid.columns,
            states: STATES,
            state: cells.iter().filter_map(most).collect(),
            programmed_percent: cells.iter().map(|cell| percent(cell.programmed_subpages, cell)).collect(),
            valid_percent: self.validity.then(|| cells.iter().map(|cell| percent(cell.valid_subpages, cell)).collect()),
        }
    }

    /// The series, snapshot by snapshot.
    pub fn series(&self) -> BlockSeries {
        let geometry = &self.grid.geometry;
        let before = self.taken.first().map_or(FlashTotals::default(), |first| first.totals);
        let totals: Vec<FlashTotals> = self.taken.iter().map(|snapshot| subtract(snapshot.totals, before)).collect();
        let column = |value: fn(&FlashTotals) -> u64| totals.iter().map(value).collect::<Vec<u64>>();
        let (mut first_block, mut blocks) = (vec![u32::MAX; self.grid.cells()], vec![0; self.grid.cells()]);
        for block in 0..geometry.blocks() {
            let cell = self.grid.cell_of(block);
            first_block[cell] = block.min(first_block[cell]);
            blocks[cell] += 1;
        }
        let share =
            |part: u64, cell: usize| part as f64 / (f64::from(geometry.subpages_per_block()) * f64::from(blocks[cell]));
        let rounded = |share: f64| (share * 1e4).round() / 1e4;
        let cells = || self.taken.iter().flat_map(|snapshot| snapshot.cells.iter().enumerate());
        BlockSeries {
            columns: self.grid.columns,
            channel: first_block.iter().map(|&block| geometry.channel_of_die(die_of(geometry, block))).collect(),
            die: first_block.iter().map(|&block| die_of(geometry, block)).collect(),
            plane: first_block.iter().map(|&block| geometry.plane_of_block(block)).collect(),
            requests: self.taken.iter().map(|snapshot| snapshot.requests).collect(),
            time_ns: self.taken.iter().map(|snapshot| snapshot.time).collect(),
            reads: column(|totals| totals.reads),
            programs: column(|totals| totals.programs),
            gc_programs: column(|totals| totals.gc_programs),
            flash_erases: column(|totals| totals.erases),
            data_bytes: column(|totals| totals.data_bytes),
            host_bytes: column(|totals| totals.host_bytes),
            states: STATES.to_vec(),
            counts: (0..STATES.len()).map(|state| cells().map(|(_, cell)| cell.blocks[state]).collect()).collect(),
            programmed: cells().map(|(index, cell)| rounded(share(cell.programmed_subpages, index))).collect(),
            valid: self
                .validity
                .then(|| cells().map(|(index, cell)| rounded(share(cell.valid_subpages, index))).collect()),
            erases: cells().map(|(index, cell)| cell.erases as f64 / f64::from(blocks[index])).collect(),
            first_block,
            blocks,
        }
    }
}

fn die_of(geometry: &Geometry, block: u32) -> u32 {
    geometry.die_of_plane(geometry.plane_of_block(block))
}

/// States of blocks over a run. Lists are by cell, by snapshot, or by cell of each snapshot, the cells of the first
/// first.
#[derive(Debug, Clone, Serialize)]
pub struct BlockSeries {
    /// Cells of a row of planes.
    pub columns: u32,
    /// By cell: channel, or the first of several; likewise the next two.
    pub channel: Vec<u32>,
    /// By cell: die.
    pub die: Vec<u32>,
    /// By cell: plane.
    pub plane: Vec<u32>,
    /// By cell: first block.
    pub first_block: Vec<u32>,
    /// By cell: number of blocks.
    pub blocks: Vec<u32>,
    /// By snapshot: measured requests submitted before.
    pub requests: Vec<u64>,
    /// By snapshot: simulated time since the measurement began.
    pub time_ns: Vec<Nanos>,
    /// By snapshot: page reads since the measurement began; likewise the next five.
    pub reads: Vec<u64>,
    /// By snapshot: page programs.
    pub programs: Vec<u64>,
    /// By snapshot: page programs of cleaning and merging.
    pub gc_programs: Vec<u64>,
    /// By snapshot: erases.
    pub flash_erases: Vec<u64>,
    /// By snapshot: bytes of data programmed.
    pub data_bytes: Vec<u64>,
    /// By snapshot: bytes that the host wrote.
    pub host_bytes: Vec<u64>,
    /// Names of the states.
    pub states: Vec<&'static str>,
    /// By state, and cell of each snapshot: blocks in that state.
    pub counts: Vec<Vec<u32>>,
    /// By cell of each snapshot: share of programmed subpages.
    pub programmed: Vec<f64>,
    /// By cell of each snapshot: share of valid subpages; null if the layer does not report them.
    pub valid: Option<Vec<f64>>,
    /// By cell of each snapshot: mean erases of blocks since the drive was new.
    pub erases: Vec<f64>,
}

#[cfg(test)]
mod tests;
