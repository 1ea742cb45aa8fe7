//! References of a plan's operations beside the data they move: pages read from memory, reads that located data,
//! earlier operations on a block, and barriers.
//!
//! Ignored: references to operations that have ended.

use super::origins::Waits;
use super::{Barrier, Ledger, Plan, Read, Seen, Source};
use palimpsest_flash::nand::{Nand, SubpageMask, first_subpages};

// States are stored before a ledger is active.
palimpsest_flash::state!(Ledger { contents, forgotten } built {
    origins, made, joins, next, contents_before, reprograms, whole_reads, call, before, unresolved, resolved, marks,
    cells, own_reads, places, pieces, pieces_end, kept, violation, ended_before, barrier, held, active, mutation,
    copying, plantable
});

impl Ledger {
    /// The last read that the layer's own bytes in `psn`, themselves read from memory, derive from.
    fn read_before(&self, psn: u32) -> Option<u64> {
        let mut sources = Vec::new();
        self.resolve(self.cells.origin(psn), &mut sources);
        let reads = sources.into_iter().filter_map(|source| match source {
            Source::Read(order) => Some(order),
            Source::Program(_) | Source::Link(_) => None,
        });
        reads.max()
    }

    /// Marks logical subpages `first` to `end` as no longer needed.
    pub(in super::super) fn forget(&mut self, first: u32, end: u32, operations: u64) {
        for lsn in first..end {
            self.forgotten.insert(lsn, (operations, self.contents));
        }
    }

    /// True if `content` of `lsn` was forgotten.
    pub fn is_forgotten(&self, lsn: u32, content: u64) -> bool {
        self.forgotten.get(&lsn).is_some_and(|&(_, until)| content <= until)
    }

    /// Logical subpages that the next operation destroys.
    pub(in super::super) fn held(&self) -> Vec<(u32, u64)> {
        self.held.clone()
    }

    /// Sets the logical subpages that the next operation destroys.
    pub(in super::super) fn hold(&mut self, held: Vec<(u32, u64)>) {
        self.held = held;
    }

    /// Number of the next operation of the plan.
    pub(in super::super) fn next_order(&self) -> u64 {
        self.next
    }

    /// Records that the subpages `wanted` of the page that begins at `first` were rebuilt from the reads `orders`.
    pub(in super::super) fn rebuilt(&mut self, first: u32, wanted: SubpageMask, orders: &[u64]) {
        let all: Box<[Source]> = orders.iter().map(|&order| Source::Read(order)).collect();
        for psn in (0..64).filter(|index| wanted >> index & 1 == 1).map(|index| first + index) {
            let mark = self.marks.at(psn);
            let unread = std::mem::take(&mut mark.unread);
            let waits = Waits::Many(all.clone());
            let origin =
                if unread == 0 { self.make(waits, self.cells.content(psn)) } else { self.now_waits(unread, waits) };
            self.marks.at(psn).seen = Seen::Rebuilt(origin);
        }
    }

    /// Records that the layer found the place of logical subpage `lsn` in its own bytes in physical subpage `psn`, read
    /// in this call.
    pub(in super::super) fn found(&mut self, lsn: u32, psn: u32) {
        let order = match self.marks.seen(psn) {
            Seen::Read(order) => Some(order),
            Seen::Hit => self.read_before(psn),
            _ => None,
        };
        if let Some(order) = order {
            self.places.insert(lsn, order);
        }
    }

    /// The read that locates any of `logical`, if that read has not ended.
    pub(super) fn place_of(&mut self, logical: &[u32]) -> Option<Source> {
        let ended = self.ended_before;
        self.places.retain(|_, order| *order >= ended);
        logical.iter().filter_map(|lsn| self.places.get(lsn)).max().map(|&order| Source::Read(order))
    }

    /// Records that the subpages `found` of page `ppn`, among the subpages asked for, are read from memory, with the
    /// content of their program.
    pub(in super::super) fn hit(&mut self, nand: &Nand, read: &Read, found: SubpageMask) {
        let Read { ppn, subpages: asked, cause, .. } = *read;
        if !self.active || self.copying {
            return;
        }
        let width = nand.geometry().subpages_per_page;
        if self.reprograms && asked == first_subpages(width) {
            self.whole_reads.insert(ppn, 0);
        }
        for psn in (0..width).filter(|index| found >> index & 1 == 1).map(|index| ppn * width + index) {
            let mark = self.marks.at(psn);
            mark.seen = Seen::Hit;
            let unread = std::mem::take(&mut mark.unread);
            if unread != 0 {
                self.now_waits(unread, Waits::Both(self.cells.origin(psn), 0));
            }
            if nand.own(psn).is_some() {
                let key = (nand.logical(psn), cause);
                match self.read_before(psn) {
                    Some(order) => self.own_reads.insert(key, order),
                    None => self.own_reads.remove(&key),
                };
            }
        }
    }

    /// All operations planned from now on are behind a barrier.
    pub(in super::super) fn begin_barrier(&mut self) {
        self.barrier = self.next;
    }

    /// Records the barrier that the next operation must follow; false if there is none.
    pub(super) fn bar(&mut self, plan: &Plan) -> bool {
        let barrier = Barrier { gate: plan.barrier, until: self.barrier };
        // Hold-up energy programs protected data.
        let counts = !plan.protected && (!barrier.gate.is_none() || barrier.until > self.ended_before);
        if counts {
            self.call.barriers.push((self.call.noted.len() as u32, barrier));
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::port::Piece;
    use crate::plan::{Cause, Erase, Io, ParityIo, Program};
    use palimpsest_flash::geometry::Geometry;
    use palimpsest_flash::nand::Outcome;
    use palimpsest_flash::nand::data::{Data, Payload};
    use palimpsest_flash::nand::part::samples::slc;
    use palimpsest_flash::nand::stripes::{StripeShape, striped};

    fn program(io: &mut Io, ppn: u32, lsn: u32, data: Data) {
        let outcome = io.program(Program::new(ppn, &[lsn], &[data], Cause::Gc)).expect("no power cut");
        assert_eq!(outcome, Outcome::Done);
    }

    fn loaded(io: &mut Io, ppn: u32) -> Data {
        io.read(Read::new(ppn, 1, Cause::Gc)).expect("no power cut");
        io.load_subpage(ppn)
    }

    /// Regression: a page that was rebuilt, erased and programmed again in one call kept its old content number. A copy
    /// of the page then counted as older than it was.
    #[test]
    fn a_rebuilt_page_that_is_reprogrammed_has_its_new_content() {
        let physical = Geometry {
            channels: 2,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: 1,
            blocks_per_plane: 3,
            pages_per_block: 2,
            subpages_per_page: 1,
            subpage_bytes: 512,
        };
        let shape = StripeShape { data: 1, parity: true, planes: 1 };
        let mut nand = Nand::new(striped(&physical, shape), slc(), Payload::Tag, None);
        nand.set_stripes(physical, shape);
        let mut io = Io::new(nand, false);
        let lost = 0;
        assert_eq!(io.nand().place(lost).0, 3, "its page of data is on the second die");
        program(&mut io, lost, 7, Data::new(1));
        io.nand.fail_dies(&[(2, 1)]);
        program(&mut io, 4, 9, Data::new(2));
        (io.plan.timed, io.plan.reads_memory) = (true, true);
        let mut ledger = Ledger::new(io.nand(), None);
        ledger.restart(0);
        io.ledger = Some(Box::new(ledger));
        io.host.begin_write();
        let new = io.written(Piece { lsn: 8, first: 0, sectors: 1 }, Data::ZERO);
        let moved = loaded(&mut io, lost);
        assert_eq!(io.rain_figures().expect("parity").rebuilt, 1);
        program(&mut io, 2, 7, moved);
        assert_eq!(io.erase(Erase::new(0, Cause::Gc)).expect("no power cut"), Outcome::Done);
        program(&mut io, lost, 8, new);
        let copied = loaded(&mut io, lost);
        program(&mut io, 3, 8, copied);
        let ledger = io.ledger.as_mut().expect("a ledger");
        ledger.close(0, &[], false);
        let call = ledger.call();
        let stored = call.stored.iter().filter(|piece| piece.lsn == 8);
        let contents: Vec<u64> = stored.map(|piece| piece.content).collect();
        assert_eq!(contents, [contents[0]; 2], "a copy is as new as what it was made of");
    }

    /// Regression: a copy of a page in memory counted as a read by the layer. The next program of the layer's own bytes
    /// then seemed to derive from the data of that copy.
    #[test]
    fn a_copy_of_a_page_in_memory_is_no_read_of_the_layer() {
        let geometry = Geometry {
            channels: 1,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: 1,
            blocks_per_plane: 2,
            pages_per_block: 4,
            subpages_per_page: 1,
            subpage_bytes: 512,
        };
        for copying in [false, true] {
            let mut io = Io::new(Nand::new(geometry, slc(), Payload::Bytes, None), false);
            let own = |ppn| Program { own: &[1, 2, 3, 4], ..Program::new(ppn, &[7], &[Data::ZERO], Cause::Metadata) };
            assert_eq!(io.program(own(0)).expect("no power cut"), Outcome::Done);
            (io.plan.timed, io.plan.reads_memory) = (true, true);
            let mut ledger = Ledger::new(io.nand(), None);
            ledger.restart(0);
            io.ledger = Some(Box::new(ledger));
            io.host.begin_write();
            io.read(Read::new(0, 1, Cause::Metadata)).expect("no power cut");
            assert_eq!(io.program(own(1)).expect("no power cut"), Outcome::Done);
            io.ledger.as_mut().expect("a ledger").copying = copying;
            io.read(Read::new(1, 1, Cause::Metadata)).expect("no power cut");
            assert_eq!(io.counters.memory_reads.iter().sum::<u64>(), 1);
            let ledger = io.ledger.as_mut().expect("a ledger");
            ledger.copying = false;
            assert_eq!(ledger.marks.seen(1) == Seen::Hit, !copying);
        }
    }
}
