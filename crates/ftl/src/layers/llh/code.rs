//! Contents of low pages: first writes plain, second writes in a write-once-memory code that leaves room for half a
//! page.
//!
//! With payload `bytes`, contents are really encoded and decoded, over the cells of the first write. First writes are
//! scrambled, as in drives, so that those cells look random whatever the host wrote. A code with coded first writes
//! (the table) stores less in low pages for reuse; such a page fills the last subpages, which marks the page as coded.
//! With other payloads nothing is encoded, and a coin decides whether an encoding fails (LLH paper, Sec. 5.2), with
//! probability `ftl.wom_failure` or the measured failure rate of the code (`palimpsest_wom::curves`).
//!
//! If `ftl.wom_scramblings` allows several scramblings of a first write, the one that leaves most cells writable is
//! used. The number of the scrambling is in the spare area, behind the bytes of a second write.
//!
//! `code` and `settings` use each other: the code is chosen by settings, and their check asks the code.

use super::Llh;
use super::settings::LlhSettings;
use palimpsest_flash::nand::data::{Data, Payload};
use palimpsest_flash::nand::part::Part;
use palimpsest_flash::nand::{Nand, PADDING};
use palimpsest_flash::rng::Rng;
use palimpsest_ftl_api::plan::{CodedIo, Io};
use palimpsest_wom::{self as wom, Code, Shape, Unfit, curves};

/// The code of second writes.
pub(super) struct Coder {
    /// Subpages that a low page for reuse stores in the first write.
    pub first: u32,
    /// Subpages that a low page stores in the second write.
    pub second: u32,
    /// Bytes of the present write for the spare area.
    pub spare: Vec<u8>,
    failure: f64,
    /// A remark about the code for the result.
    pub remark: Option<String>,
    /// Scramblings of a first write to choose from.
    scramblings: u32,
    rng: Rng,
    /// `None` unless the payload is bytes.
    code: Option<Box<dyn Code>>,
    page: Vec<u8>,
    message: Vec<u8>,
}

palimpsest_flash::state!(Coder { rng } built {
    first, second, spare, failure, remark, scramblings, code, page, message
});

/// A page size that is small but suits every code.
const SMALL: usize = 256;

/// A code that fails more often is rejected.
const USELESS: f64 = 0.9;
/// The result remarks on a code that fails more often.
const POOR: f64 = 0.05;
/// Failure rate of the paper's code (Sec. 4).
const WANTED: f64 = 0.0025;

/// Shape of a second write with the settings' code in a page of `part`. Error correction and the number of the
/// scrambling reduce the spare.
fn shape(part: &Part, settings: &LlhSettings) -> Shape {
    let spare = (f64::from(part.spare_bytes) * settings.wom_spare) as u32;
    let taken = settings.ecc_spare + u32::from(settings.wom_scramblings > 1);
    Shape {
        message_bytes: (part.subpages_per_page() / 2 * part.subpage_bytes) as usize,
        cell_bytes: part.page_bytes as usize,
        spare_bytes: spare.saturating_sub(taken) as usize,
    }
}

/// Probability that a second write cannot be encoded.
fn failure(part: &Part, settings: &LlhSettings) -> f64 {
    let measured = || curves::failure(&settings.wom, shape(part, settings), settings.wom_scramblings);
    settings.wom_failure.or_else(measured).expect("the configuration read the name of a code")
}

/// Rejects a code that cannot have the shape of the pages of `part`, or fails on most of them.
///
/// # Errors
/// The conflict, and a remedy.
pub(super) fn check(part: &Part, settings: &LlhSettings) -> Result<(), String> {
    if settings.ecc_spare > part.spare_bytes {
        let (ecc, spare) = (settings.ecc_spare, part.spare_bytes);
        return Err(format!("error correction takes {ecc} bytes of {spare} bytes of spare; expected at most these"));
    }
    build(part, settings).map_err(|unfit| unfit.to_string())?;
    match failure(part, settings) > USELESS {
        true if settings.wom_failure.is_none() => Err(advice(part, settings)),
        _ => Ok(()),
    }
}

/// The failure rate of the settings' code on pages of `part`, and better choices.
fn advice(part: &Part, settings: &LlhSettings) -> String {
    let (shape, name, best) = (shape(part, settings), &settings.wom, settings.wom_scramblings);
    let needs = |name: &str| curves::spare_for(name, shape, best, WANTED);
    let others = wom::CODES.iter().map(|entry| entry.name).filter(|other| other != name);
    let fitting: Vec<&str> = others.filter(|other| needs(other).is_some_and(|it| it <= shape.spare_bytes)).collect();
    format!(
        "{name} fails over {:.1} % of pages of {} bytes with {} bytes of spare ({:.2} % with {}); expected {}more \
         spare, or ftl.wom_failure as a number",
        100.0 * failure(part, settings),
        shape.cell_bytes,
        shape.spare_bytes,
        100.0 * WANTED,
        needs(name).map_or_else(|| "no spare".into(), |bytes| format!("{bytes} bytes")),
        if fitting.is_empty() { String::new() } else { format!("ftl.wom = {}, ", fitting.join(" or ")) },
    )
}

/// Constructs the code that `settings` name, for low pages of `part`.
///
/// # Errors
/// The code does not support that shape.
fn build(part: &Part, settings: &LlhSettings) -> Result<Box<dyn Code>, Unfit> {
    let entry = wom::find(&settings.wom).expect("the configuration read the name of a code");
    (entry.build)(shape(part, settings))
}

/// Bytes of a first write with the settings' code in a low page of `part`. Scaled up from a small page, because tables
/// of large pages take long to build.
fn first_bytes(part: &Part, settings: &LlhSettings) -> usize {
    let small = Shape { message_bytes: SMALL / 2, cell_bytes: SMALL, spare_bytes: SMALL / 2 };
    let code = wom::find(&settings.wom).and_then(|entry| (entry.build)(small).ok());
    let code = code.map_or_else(|| build(part, settings), Ok).expect("the configuration was checked");
    part.page_bytes as usize / code.shape().cell_bytes * code.first_bytes()
}

impl Coder {
    /// A coder for the pages of `nand`.
    pub fn new(nand: &Nand, settings: &LlhSettings, seed: u64) -> Self {
        let (part, subpages) = (nand.part(), nand.geometry().subpages_per_page);
        let bytes = nand.payload() == Payload::Bytes;
        let code = bytes.then(|| build(part, settings).expect("the configuration was checked"));
        let first_bytes = match &code {
            Some(code) => code.first_bytes(),
            None => first_bytes(part, settings),
        };
        let (shape, failure) = (shape(part, settings), failure(part, settings));
        let poor = failure > POOR && settings.wom_failure.is_none();
        Coder {
            remark: poor.then(|| advice(part, settings)),
            first: (first_bytes as u32 / part.subpage_bytes).min(subpages),
            second: subpages / 2,
            spare: Vec::new(),
            failure,
            scramblings: settings.wom_scramblings,
            rng: Rng::new(seed, 0x303),
            page: vec![0; shape.page_bytes()],
            message: vec![0; first_bytes.max(shape.message_bytes)],
            code,
        }
    }
}

impl Coder {
    /// Bytes of the spare area that a second write takes.
    fn code_spare(&self) -> usize {
        self.code.as_ref().map_or(0, |code| code.shape().spare_bytes)
    }

    /// The number of the scrambling of page `ppn`'s first write, if stored.
    fn number_of(&self, io: &Io, ppn: u32) -> Option<u8> {
        if self.scramblings == 1 { None } else { io.nand().spare(ppn)?.get(self.code_spare()).copied() }
    }
}

impl Llh {
    /// True if page `ppn` must be read whole and decoded.
    #[inline]
    pub(super) fn is_coded(&self, io: &Io, ppn: u32) -> bool {
        io.nand().programs(ppn) > 1 || self.first_is_coded(io, ppn)
    }

    /// True if the first write of page `ppn` is coded: plain pages fill the first subpages, coded ones the last.
    #[inline]
    fn first_is_coded(&self, io: &Io, ppn: u32) -> bool {
        self.coder.first < self.subpages && io.nand().logical_before_trims(ppn * self.subpages) == PADDING
    }

    /// Content of physical subpage `psn`.
    #[inline]
    pub(super) fn content(&mut self, io: &mut Io, psn: u32) -> Data {
        if io.nand().payload() != Payload::Bytes { io.load_subpage(psn) } else { self.decoded(io, psn) }
    }

    /// Content of physical subpage `psn` in bytes.
    fn decoded(&mut self, io: &mut Io, psn: u32) -> Data {
        let (ppn, index) = self.per_page.split(psn);
        let (size, twice) = (io.geometry().subpage_bytes as usize, io.nand().programs(ppn) > 1);
        let coded = self.is_coded(io, ppn);
        if !coded {
            let cells = io.load_subpage(psn);
            let mut bytes = copy(io, cells, size);
            wom::scramble(&mut bytes, key(psn, self.coder.number_of(io, ppn).unwrap_or(0)));
            return io.keep_derived(&bytes, &[cells]);
        }
        let mut cells = vec![io.load_subpage(psn)];
        cells.extend((ppn * self.subpages..(ppn + 1) * self.subpages).map(|psn| io.load_subpage(psn)));
        self.load_page(io, ppn, &cells[1..]);
        let coder = &mut self.coder;
        let code = coder.code.as_mut().expect("bytes are encoded");
        let index = if twice {
            let length = code.shape().message_bytes;
            code.decode(&coder.page, &mut coder.message[..length]);
            index
        } else {
            let length = code.first_bytes();
            code.read_first(&coder.page, &mut coder.message[..length]);
            index - (self.subpages - coder.first)
        };
        io.keep_derived(&coder.message[index as usize * size..][..size], &cells)
    }

    /// Loads the cells of page `ppn` into the coder's memory, followed by the cells of the spare area.
    fn load_page(&mut self, io: &Io, ppn: u32, cells: &[Data]) {
        let size = io.geometry().subpage_bytes as usize;
        for (&cells, place) in cells.iter().zip(self.coder.page.chunks_exact_mut(size)) {
            place.copy_from_slice(&copy(io, cells, size));
        }
        let spare = &mut self.coder.page[self.subpages as usize * size..];
        spare.fill(0xff);
        if let Some(stored) = io.nand().spare(ppn) {
            let length = stored.len().min(spare.len());
            spare[..length].copy_from_slice(&stored[..length]);
        }
    }

    /// Prepares the image for a first write into page `ppn`; `kept`: a low page for reuse; `coded`: with a coded first
    /// write.
    pub(super) fn prepare(&mut self, io: &mut Io, ppn: u32, kept: bool, coded: bool) {
        self.coder.spare.clear();
        if io.nand().payload() != Payload::Bytes {
            return;
        }
        if !coded {
            return self.scramble_image(io, ppn, kept);
        }
        let first = self.coder.first as usize;
        let length = self.coder.code.as_ref().expect("bytes are encoded").first_bytes();
        self.fill_message(io, self.subpages as usize - first, first, length);
        let coder = &mut self.coder;
        coder.page.fill(0xff);
        let code = coder.code.as_mut().expect("bytes are encoded");
        code.write_first(&mut coder.page, &coder.message[..length]);
        self.image_from_page(io);
        self.coder.spare.clear();
    }

    /// Scrambles the image for page `ppn`. For a page to be reused, chooses the scrambling that leaves most cells at 1.
    fn scramble_image(&mut self, io: &mut Io, ppn: u32, kept: bool) {
        let size = io.geometry().subpage_bytes as usize;
        let plain: Vec<Vec<u8>> = self.image.iter().map(|&data| copy(io, data, size)).collect();
        let scrambled = |number: u8| -> Vec<Vec<u8>> {
            let with_key = |(psn, bytes): (u32, &Vec<u8>)| {
                let mut bytes = bytes.clone();
                wom::scramble(&mut bytes, key(psn, number));
                bytes
            };
            (ppn * self.subpages..).zip(&plain).map(with_key).collect()
        };
        let writable = |cells: &[Vec<u8>]| cells.iter().map(|bytes| wom::writable(bytes)).sum::<u64>();
        let mut best = (0, scrambled(0));
        if kept && self.coder.scramblings > 1 {
            for number in 1..self.coder.scramblings as u8 {
                let other = scrambled(number);
                if writable(&other) > writable(&best.1) {
                    best = (number, other);
                }
            }
            self.coder.spare.resize(self.coder.code_spare(), 0xff);
            self.coder.spare.push(best.0);
        }
        for (data, bytes) in self.image.iter_mut().zip(&best.1) {
            *data = io.keep_derived(bytes, &[*data]);
        }
    }

    /// Encodes the image over the cells of page `ppn`. False if that fails.
    pub(super) fn encode(&mut self, io: &mut Io, ppn: u32) -> bool {
        if io.nand().payload() != Payload::Bytes {
            return !self.coder.rng.chance(self.coder.failure);
        }
        let cells: Vec<Data> = (ppn * self.subpages..(ppn + 1) * self.subpages).map(|psn| io.load_cells(psn)).collect();
        self.load_page(io, ppn, &cells);
        let length = self.coder.code.as_ref().expect("bytes are encoded").shape().message_bytes;
        self.fill_message(io, 0, self.coder.second as usize, length);
        let coder = &mut self.coder;
        let (code, seed) = (coder.code.as_mut().expect("bytes are encoded"), coder.rng.next_u64());
        if code.encode(&mut coder.page, &coder.message[..length], seed).is_err() {
            return false;
        }
        self.image_from_page(io);
        // The number of the scrambling must stay.
        self.coder.spare.extend(self.coder.number_of(io, ppn));
        true
    }

    /// Copies `count` subpages of the image, from `first` on, into the message of `length` bytes.
    fn fill_message(&mut self, io: &mut Io, first: usize, count: usize, length: usize) {
        let size = io.geometry().subpage_bytes as usize;
        self.coder.message[..length].fill(0);
        for index in 0..count {
            let bytes = copy(io, self.image[first + index], size);
            self.coder.message[index * size..][..size].copy_from_slice(&bytes);
        }
    }

    fn image_from_page(&mut self, io: &mut Io) {
        let size = io.geometry().subpage_bytes as usize;
        // Every cell depends on the whole message.
        let message = self.image.clone();
        let mut from = vec![Data::ZERO; 1];
        from.extend(&message);
        for (index, cells) in self.coder.page.chunks_exact(size).take(message.len()).enumerate() {
            from[0] = message[index];
            self.image[index] = io.keep_derived(cells, &from);
        }
        let cells = self.subpages as usize * size;
        self.coder.spare.clear();
        self.coder.spare.extend_from_slice(&self.coder.page[cells..]);
    }
}

/// The key of scrambling `number` of physical subpage `psn`.
fn key(psn: u32, number: u8) -> u64 {
    u64::from(psn) | u64::from(number) << 32
}

fn copy(io: &Io, data: Data, size: usize) -> Vec<u8> {
    io.bytes_of(data).map_or_else(|| vec![0; size], <[u8]>::to_vec)
}
