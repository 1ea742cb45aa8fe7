//! An opened image equals the stored flash, and damage is detected. Ignored: files, which the server tests.

use super::inspect::{Look, inspect};
use super::layout::{Counters, Header, Layout, Life, PAGE, TEXT_MOST, Unusable, life_at};
use super::memory::Memory;
use super::mount::{Fault, find};
use super::record::{BlockMark, PageRecord, Place, Stored, SubpageRecord, newest_record, record_bytes};
use super::*;
use crate::geometry::Geometry;
use crate::nand::data::{Data, Payload};
use crate::nand::errors::{ErrorSettings, Wanted};
use crate::nand::faults::{FaultSettings, Faults};
use crate::nand::part::samples::slc;
use crate::nand::part::{CellKind, Part, ProgramOrder, ReadCommand};
use crate::nand::{Own, PADDING, UNWRITTEN};
use crate::rng::Rng;

const TEXT: &str = "name = \"test\"\n";

fn new_nand(part: &Part, faults: &FaultSettings) -> Nand {
    let geometry = Geometry {
        channels: 2,
        chips_per_channel: 1,
        dies_per_chip: 1,
        planes_per_die: 1,
        blocks_per_plane: 4,
        pages_per_block: part.pages_per_block,
        subpages_per_page: part.subpages_per_page(),
        subpage_bytes: part.subpage_bytes,
    };
    Nand::new(geometry, part.clone(), Payload::Bytes, Some(Faults::new(faults.clone(), 5)))
}

fn host(host_written: u64, host_read: u64) -> Counters {
    Counters { host_written, host_read, reads: 7, powered_s: 8, ..Counters::default() }
}

fn header(nand: &Nand) -> Header {
    Header {
        version: super::layout::VERSION,
        shape: nand.image_shape(),
        logical_subpages: 30,
        seed: 1,
        hash: 2,
        text_bytes: TEXT.len() as u32,
        text_check: crc32fast::hash(TEXT.as_bytes()),
        uuid: [7; 16],
    }
}

fn kept(part: &Part, faults: &FaultSettings) -> (Nand, Memory) {
    let mut nand = new_nand(part, faults);
    let header = header(&nand);
    let memory = Memory::new(Layout::new(header.shape).unwrap().end);
    nand.begin_image(Box::new(memory.clone()), &header, TEXT, false).unwrap();
    (nand, memory)
}

fn found(part: &Part, faults: &FaultSettings, memory: &Memory) -> Nand {
    let mut nand = new_nand(part, faults);
    let header = header(&nand);
    nand.open_image(Box::new(memory.clone()), &header, false).unwrap();
    nand
}

/// All state that a layer can read.
fn seen(nand: &mut Nand) -> Vec<String> {
    let geometry = *nand.geometry();
    let mut all = Vec::new();
    for block in 0..geometry.blocks() {
        all.push(format!(
            "block {block}: {:?}",
            (
                nand.erases(block),
                nand.is_bad(block),
                nand.is_torn(block),
                nand.next_page(block),
                nand.fill(block),
                nand.pass(block)
            )
        ));
    }
    for ppn in 0..geometry.pages() as u32 {
        all.push(format!(
            "page {ppn}: {:?}",
            (nand.programs(ppn), nand.generation(ppn), nand.logical_of(ppn), nand.spare(ppn))
        ));
        for psn in ppn * geometry.subpages_per_page..(ppn + 1) * geometry.subpages_per_page {
            if [UNWRITTEN, TORN].contains(&nand.logical(psn)) {
                continue;
            }
            let data = nand.load(psn);
            let first =
                nand.buffered(data).map(|bytes| bytes.to_vec()).filter(|bytes| bytes.iter().any(|&byte| byte != 0));
            all.push(format!(
                "subpage {psn}: {:?}",
                (nand.sequence(psn), nand.own(psn), data == Data::LOST, first.map(|bytes| crc32fast::hash(&bytes)))
            ));
        }
    }
    nand.buffers().end_request();
    all
}

/// A die fails once, and stays dead from that operation on.
#[test]
fn a_die_that_failed_is_dead_when_flash_is_found_again() {
    let (mut nand, memory) = kept(&slc(), &FaultSettings::default());
    let mut rng = Rng::new(1, 11);
    nand.fail_dies(&[(40, 1)]);
    while nand.operations() < 39 {
        // An operation that breaks a rule has no effect.
        let _ = change(&mut nand, &mut rng);
    }
    assert!(found(&slc(), &FaultSettings::default(), &memory).failed_dies().is_empty());
    while nand.failed_dies().is_empty() {
        let _ = change(&mut nand, &mut rng);
    }
    drop(nand);
    for _ in 0..2 {
        let mut nand = found(&slc(), &FaultSettings::default(), &memory);
        assert_eq!((nand.failed_dies(), nand.reads_fail()), (&[1][..], true));
        assert!((0..8).all(|block| nand.is_dead(block) == (block >= 4)));
        nand.fail_dies(&[(40, 1)]);
        (0..40).for_each(|_| _ = change(&mut nand, &mut rng));
        assert_eq!(nand.failed_dies(), [1]);
        assert!(inspect(&memory, Look::Everything).unwrap().1.findings.is_empty());
    }
}

/// A random operation that the rules allow.
fn change(nand: &mut Nand, rng: &mut Rng) -> Flash<()> {
    let geometry = *nand.geometry();
    let (width, size) = (geometry.subpages_per_page, geometry.subpage_bytes as usize);
    let block = rng.below(geometry.blocks().into()) as u32;
    if rng.below(12) == 0 {
        if !nand.blocks[block as usize].bad {
            let _ = nand.erase(block)?;
        }
        return Ok(());
    }
    let ppn = block * geometry.pages_per_block + rng.below(geometry.pages_per_block.into()) as u32;
    let written = 1 + rng.below((1 << width) - 1);
    let number = |rng: &mut Rng| if rng.below(5) == 0 { PADDING } else { rng.below(30) as u32 };
    let logical: Vec<u32> = (0..width).map(|_| number(rng)).collect();
    let mut data = Vec::new();
    for _ in 0..width {
        let (zeros, byte) = (rng.below(4) == 0, rng.below(255) as u8 + 1);
        data.push(if zeros { Data::ZERO } else { nand.buffers().keep(&vec![byte; size]) });
    }
    let own: Vec<u8> = if rng.below(6) == 0 { vec![7; size.min(100)] } else { Vec::new() };
    let spare: Vec<u8> = if rng.below(6) == 0 { vec![rng.below(256) as u8; 9] } else { Vec::new() };
    let spare = if nand.own.spare_only_clears(ppn, &spare) { spare } else { Vec::new() };
    let own = Own { page: &own, spare: &spare };
    if nand.part().code.is_some() {
        let generation = rng.below(8) as u32;
        if nand.probe_generation(ppn, generation).is_ok() {
            let _ = nand.program_generation(ppn, generation, &logical, &data, own)?;
        }
    } else if nand.probe_program(ppn, written, false).is_ok() {
        let _ = nand.program_own(ppn, written, &logical, &data, own)?;
    } else if nand.probe_program(ppn, written, true).is_ok() {
        // Cells may always become zeros.
        let _ = nand.reprogram(ppn, written, &logical, &vec![Data::ZERO; width as usize], &[])?;
    }
    nand.buffers().end_request();
    Ok(())
}

fn parts() -> Vec<Part> {
    let wide = Part { page_bytes: 16_384, nop: 3, ..slc() };
    let qlc = Part { cell: CellKind::Qlc, pages_per_block: 16, ..slc() };
    vec![
        Part { order: ProgramOrder::Ascending, ..wide.clone() },
        Part { cell: CellKind::Mlc, order: ProgramOrder::LowLowHigh, pair_corruption: true, nop: 2, ..slc() },
        Part { cell: CellKind::Tlc, pair_corruption: true, pages_per_block: 9, ..slc() },
        qlc.coded(&crate::nand::tests::Pairs).unwrap(),
        wide,
    ]
}

#[test]
fn flash_that_is_found_again_is_that_which_was_kept() {
    let faults = FaultSettings { program_fail: 0.01, erase_fail: 0.02, initial_bad: 0.1, ..FaultSettings::default() };
    for (index, part) in (0..).zip(parts()) {
        let (mut nand, memory) = kept(&part, &faults);
        let mut rng = Rng::new(index, 1);
        for round in 0..12 {
            (0..40).for_each(|_| change(&mut nand, &mut rng).unwrap());
            // The opened image also lacks the contents of memory.
            let before = seen(&mut nand);
            let mut again = found(&part, &faults, &memory);
            assert_eq!(seen(&mut again), before, "part {index}, round {round}");
            assert_eq!(again.sum_of_erases(), 0);
            let reached =
                |nand: &Nand| nand.blocks.iter().map(|block| (block.reached, block.low_first)).collect::<Vec<_>>();
            assert_eq!(reached(&again), reached(&nand), "part {index}, round {round}");
            nand = again;
        }
        nand.close_image().unwrap();
        let (_, figures) = inspect(&memory, Look::Everything).unwrap();
        assert_eq!((figures.found, &figures.findings), (0, &Vec::new()));
        assert!(figures.pages > 0 && figures.erases > 0 && figures.life.unwrap().ended_well);
        assert_eq!(figures.life.unwrap().services, 13);
    }
}

/// Rewrites an image in an earlier format: version 1 stores lives without a time, version 2 marks without failed dies,
/// version 3 no trims, and version 4 lives without counters, and no UUID.
fn as_version(memory: &Memory, version: u32) {
    for place_of in 0..2 {
        let mut place = vec![0; if version == 1 { 64 } else { 72 }];
        memory.read(life_at(place_of), &mut place).unwrap();
        if place[4..].iter().any(|&byte| byte != 0) {
            let sum = crc32fast::hash(&place[4..]);
            place[..4].copy_from_slice(&sum.to_le_bytes());
            place.resize(PAGE as usize / 8, 0);
            memory.write(life_at(place_of), &place).unwrap();
        }
    }
    let mut page = vec![0; PAGE as usize];
    memory.read(0, &mut page).unwrap();
    let (header, layout) = Header::read(&page, memory.length().unwrap()).unwrap();
    let range = layout.marks(0..header.shape.blocks);
    let mut marks = vec![0; (range.end - range.start) as usize];
    memory.read(range.start, &mut marks).unwrap();
    for place in marks.chunks_exact(super::record::MARK_BYTES as usize) {
        assert!(place[17] < 8, "flags that earlier versions have");
    }
    memory.write(0, &Header { version, uuid: [0; 16], ..header }.bytes()).unwrap();
    if version < 4 {
        memory.resize(layout.trims_at);
    }
}

#[test]
fn an_image_of_an_earlier_version_becomes_one_of_this() {
    for (version, clock) in [(1, 0), (2, 77), (3, 77), (4, 77)] {
        let (mut nand, memory) = kept(&slc(), &FaultSettings::default());
        let mut rng = Rng::new(1, 5);
        (0..60).for_each(|_| change(&mut nand, &mut rng).unwrap());
        nand.note_counters(host(10, 20));
        nand.note_clock(77);
        nand.close_image().unwrap();
        let expected = seen(&mut nand);
        as_version(&memory, version);
        let (old, figures) = inspect(&memory, Look::Everything).unwrap();
        assert_eq!((old.header.version, figures.found), (version, 0));
        let life = figures.life.unwrap();
        assert_eq!((life.counters.host_written, life.clock, life.ended_well), (10, clock, true));
        assert_eq!((life.counters.reads, life.counters.powered_s), (0, 0), "not in that version");
        let mut opened = new_nand(&slc(), &FaultSettings::default());
        opened.open_image(Box::new(memory.clone()), &old.header, false).unwrap();
        assert_eq!((seen(&mut opened), opened.failed_dies()), (expected, &[][..]));
        let (now, figures) = inspect(&memory, Look::Everything).unwrap();
        assert_eq!((now.header.version, figures.found), (super::layout::VERSION, 0));
        assert_eq!(figures.life.map(|life| (life.clock, life.services)), Some((clock, 2)));
        // The image now stores later additions to the format.
        opened.fail_dies(&[(opened.operations() + 1, 1)]);
        let _ = opened.read(0, 1, ReadCommand::PAGE);
        drop(opened);
        assert_eq!(found(&slc(), &FaultSettings::default(), &memory).failed_dies(), [1]);
    }
}

#[test]
fn ages_and_reads_go_on() {
    let settings = ErrorSettings { strength: 40, disturb: 1000, ..Default::default() };
    let (mut nand, memory) = kept(&slc(), &FaultSettings::default());
    nand.set_read_errors(settings.clone(), 1);
    for page in 0..3 {
        nand.note_program(page, 1, 1000 + u64::from(page));
        let data = nand.buffers().keep(&[3; 4096]);
        let _ = nand.program(page, 1, &[page], &[data]).unwrap();
        nand.buffers().end_request();
    }
    let found = |memory: &Memory| {
        let mut again = new_nand(&slc(), &FaultSettings::default());
        again.set_read_errors(settings.clone(), 1);
        let header = header(&again);
        again.open_image(Box::new(memory.copy()), &header, false).unwrap();
        again
    };
    for reads in 1..=3000 {
        let _ = nand.attempt_read(0, 0, Wanted { subpages: 1, words: 1 }, 5000, false);
        if reads % 500 == 0 {
            let kept = found(&memory).reads(0);
            assert!((reads - 64 - reads / 16..=reads).contains(&kept), "{kept} of {reads} reads are kept");
        }
    }
    nand.note_clock(5000);
    nand.close_image().unwrap();
    let again = found(&memory);
    assert_eq!((0..3).map(|page| again.programmed_at(page)).collect::<Vec<_>>(), [1000, 1001, 1002]);
    assert_eq!((again.reads(0), again.reads(1), again.kept_clock()), (3000, 0, 5000));
    let mut again = again;
    let _ = again.erase(0).unwrap();
    assert_eq!(found(&memory).reads(0), 3000, "another image");
    again.close_image().unwrap();
}

#[test]
fn a_program_that_is_cut_off_has_not_begun_or_is_torn() {
    for (index, part) in (0..).zip(parts()) {
        let (mut nand, memory) = kept(&part, &FaultSettings::default());
        let mut rng = Rng::new(index, 2);
        for _ in 0..150 {
            (0..8).for_each(|_| change(&mut nand, &mut rng).unwrap());
            let before = seen(&mut nand);
            let (copy, writes) = (memory.copy(), memory.writes());
            let mut draw = rng.clone();
            change(&mut nand, &mut rng).unwrap();
            let writes = memory.writes() - writes;
            let after = seen(&mut nand);
            if writes == 0 {
                continue;
            }
            // The same operation on a copy of the image whose writes end.
            let mut cut = found(&part, &FaultSettings::default(), &copy);
            copy.end_after(Some(rng.below(writes)));
            assert!(matches!(change(&mut cut, &mut draw), Err(Halt::Image(_))), "part {index}: the writes have ended");
            copy.end_after(None);
            let now = seen(&mut found(&part, &FaultSettings::default(), &copy));
            if now == before || now == after {
                continue;
            }
            // Only cells of the overwritten page may be lost, and they must be torn.
            let differs: Vec<_> = now.iter().filter(|line| !before.contains(line)).collect();
            let is_torn = |line: &&String| line.starts_with("block") || line.contains(&TORN.to_string());
            assert!(differs.iter().all(is_torn), "part {index}: {differs:?}");
        }
    }
}

#[test]
fn every_changed_bit_of_a_record_is_noticed() {
    let subpage = SubpageRecord { logical: 7, stored: Stored::Bytes, check: 9, own: 3, own_check: 4, sequence: 11 };
    let record = PageRecord {
        operation: 12,
        programs: 1,
        generation: 0,
        pass: 0,
        single: true,
        low_first: false,
        reused: true,
        corrupted: false,
        spare: 2,
        spare_check: 5,
        copy: Some([1, 2, 3]),
        programmed_at: 1 << 40,
        subpages: vec![subpage, SubpageRecord { stored: Stored::Zeros, check: 0, ..subpage }],
    };
    let mut place = Vec::new();
    record.write(3, 200, &mut place);
    place.resize(record_bytes(2) as usize, 0);
    assert_eq!(PageRecord::read(&place, 2), Place::Whole(record.clone(), 3, 200));
    let mark = BlockMark { erases: 3, bad: true, torn: false, kept: true, dead: true, reads: 77 };
    let mut marked = mark.bytes(4, 5).to_vec();
    assert_eq!(BlockMark::read(&marked), Place::Whole(mark, 4, 5));
    for bit in 0..place.len() * 8 {
        place[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(PageRecord::read(&place, 2), Place::Damaged, "bit {bit}");
        place[bit / 8] ^= 1 << (bit % 8);
    }
    for bit in 0..marked.len() * 8 {
        marked[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(BlockMark::read(&marked), Place::Damaged, "bit {bit}");
        marked[bit / 8] ^= 1 << (bit % 8);
    }
    // The newer of two, also across a wrap of the version; none of another erase.
    let mut places = place.clone();
    let mut next = Vec::new();
    PageRecord { operation: 13, ..record.clone() }.write(3, 201, &mut next);
    next.resize(record_bytes(2) as usize, 0);
    places.extend(&next);
    let (found, last) = newest_record(&places, 2, 3).unwrap();
    assert_eq!(
        (found.map(|found| (found.what, found.version)), last),
        (Some((PageRecord { operation: 13, ..record }, 201)), 201)
    );
    assert_eq!(newest_record(&places, 2, 4), Ok((None, 201)));
    places[4] ^= 1;
    assert_eq!(newest_record(&places, 2, 3), Err(super::record::Damaged));
}

#[test]
fn headers_that_lie_are_refused() {
    let (nand, memory) = kept(&slc(), &FaultSettings::default());
    let (header, length) = (header(&nand), memory.length().unwrap());
    let read = |bytes: &[u8], length: u64| Header::read(bytes, length).map(|(header, _)| header);
    let bytes = header.bytes();
    assert_eq!(read(&bytes, length), Ok(header.clone()));
    assert_eq!(read(&bytes, length - 1), Err(Unusable::Short(length - 1, length)));
    assert_eq!(read(&bytes[..100], 100), Err(Unusable::Short(100, PAGE)));
    assert_eq!(read(b"qcow", 4), Err(Unusable::Foreign));
    let mut later = bytes.clone();
    later[16] = 9;
    assert_eq!(read(&later, length), Err(Unusable::Version(9)));
    let huge = Header { shape: Shape { blocks: u32::MAX, ..header.shape }, ..header.clone() };
    assert_eq!(read(&huge.bytes(), length), Err(Unusable::Header));
    let text = Header { text_bytes: TEXT_MOST as u32 + 1, ..header.clone() };
    assert_eq!(read(&text.bytes(), length), Err(Unusable::Header));
    let many = Header { logical_subpages: u64::MAX, ..header.clone() };
    assert_eq!(read(&many.bytes(), length), Err(Unusable::Header));
    memory.change(super::layout::TEXT_AT, |byte| byte ^ 1);
    assert!(matches!(find(&memory), Err(Fault::Unusable(Unusable::Text))));
}

#[test]
fn figures_of_its_life_are_those_of_the_last_flush() {
    let (mut nand, memory) = kept(&slc(), &FaultSettings::default());
    nand.note_counters(host(10, 20));
    nand.flush_image().unwrap();
    nand.note_counters(host(1000, 0));
    let life = |memory: &Memory| inspect(memory, Look::Records).unwrap().1.life.unwrap();
    assert_eq!((life(&memory).counters, life(&memory).services), (host(10, 20), 1));
    nand.commit_counters().unwrap();
    assert_eq!(life(&memory).counters, host(1000, 0));
    (0..2).for_each(|version| memory.change(life_at(version) + 9, |byte| byte ^ 64));
    let (_, figures) = inspect(&memory, Look::Records).unwrap();
    assert!(figures.life.is_none() && figures.found > 0);
    assert_eq!(Life::read(&[0; Life::PLACES]), []);
}

#[test]
fn a_part_that_is_missing_or_old_is_noticed() {
    let (mut nand, memory) = kept(&slc(), &FaultSettings::default());
    let mut rng = Rng::new(1, 4);
    (0..60).for_each(|_| change(&mut nand, &mut rng).unwrap());
    let old = memory.copy();
    (0..60).for_each(|_| change(&mut nand, &mut rng).unwrap());
    // Before a flush, the last record may also belong to a program that was cut off.
    nand.flush_image().unwrap();
    let cells = Layout::new(nand.image_shape()).unwrap().own(0);
    let (header, expected) = (header(&nand), seen(&mut nand));
    let (mut pieces, mut noticed) = (0, 0);
    for piece in
        memory.pieces().into_iter().filter(|&piece| piece >= super::layout::TEXT_AT + TEXT_MOST && piece < cells)
    {
        let mut before = vec![0; PAGE as usize];
        old.read(piece, &mut before).unwrap();
        for bytes in [before, vec![0; PAGE as usize]] {
            let copy = memory.copy();
            let mut now = vec![0; PAGE as usize];
            copy.read(piece, &mut now).unwrap();
            copy.write(piece, &bytes).unwrap();
            let found = inspect(&copy, Look::Everything).unwrap().1.found;
            let mut opened = new_nand(&slc(), &FaultSettings::default());
            match opened.open_image(Box::new(copy), &header, false) {
                Err(_) => assert!(found > 0 && bytes != now, "piece {piece}"),
                // Records of erased pages are void.
                Ok(_) => assert_eq!((found, seen(&mut opened)), (0, expected.clone()), "piece {piece}"),
            }
            noticed += found;
            pieces += 1;
        }
    }
    assert!(pieces > 4 && noticed > pieces / 2);
}

#[test]
fn erased_blocks_give_their_space_back() {
    let (mut nand, memory) = kept(&slc(), &FaultSettings::default());
    let fill = |nand: &mut Nand, block: u32| {
        for page in 0..8 {
            let data = nand.buffers().keep(&[3; 4096]);
            let _ = nand.program(block * 8 + page, 1, &[page], &[data]).unwrap();
            nand.buffers().end_request();
        }
    };
    (0..4).for_each(|block| fill(&mut nand, block));
    for block in 0..3 {
        let _ = nand.erase(block).unwrap();
    }
    let taken = memory.taken();
    fill(&mut nand, 0);
    // After a kill of the server, the space is freed at the next normal end, or by a compaction.
    let copy = memory.copy();
    nand.close_image().unwrap();
    assert_eq!(taken - memory.taken(), 2 * 8 * 4096, "block 0 was written again");
    inspect(&copy, Look::Compact).unwrap();
    assert_eq!(copy.taken(), memory.taken());
    assert_eq!(seen(&mut found(&slc(), &FaultSettings::default(), &copy)), seen(&mut nand));
}

#[test]
fn bytes_with_a_wrong_checksum_are_lost_and_never_false() {
    let (mut nand, memory) = kept(&slc(), &FaultSettings::default());
    let data = nand.buffers().keep(&[3; 4096]);
    let _ = nand.program(0, 1, &[1], &[data]).unwrap();
    nand.buffers().end_request();
    let at = Layout::new(nand.image_shape()).unwrap().cells(0);
    memory.change(at + 77, |byte| byte ^ 4);
    assert_eq!(nand.load(0), Data::LOST);
    let (_, figures) = inspect(&memory, Look::Everything).unwrap();
    assert_eq!(figures.findings, ["block 0, page 0, subpage 0: its bytes do not match their checksum"]);
    assert_eq!(inspect(&memory, Look::Records).unwrap().1.found, 0);
}
