//! Write-once-memory codes: a message is written over cells that hold an earlier one, and no cell goes from 0 to 1.
//!
//! Flash clears cells (1 to 0) and only an erase sets them. After one program about half the cells of a page are still
//! 1; a code stores a second message in these cells, and a decoder reads that message from the content alone, without
//! the first message. One code is one file and one line of [`CODES`]; `docs/wom-codes.md` compares them.
//!
//! Cells are packed, bit i of a page in byte i / 8 at weight 2^(i mod 8), 1 for a cell that may still be cleared. A
//! page consists of data cells, then spare cells; codes that use spare need an erased spare. Failure rates are for
//! cells that look random, as after [`scramble`]. Ignored: bit errors of the cells and their correction.

mod cancellation;
pub mod curves;
mod fountain;
pub mod levels;
mod polar;
mod polar_repair;
mod positions;
mod table;
mod transform;

use palimpsest_flash::error::Error;
use palimpsest_flash::rng::Rng;
use std::fmt;
use std::ops::Range;

/// Sizes of message and page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of the message of a second write.
    pub message_bytes: usize,
    /// Bytes of data cells.
    pub cell_bytes: usize,
    /// Bytes of spare cells that the code may use; they must be erased until the second write.
    pub spare_bytes: usize,
}

impl Shape {
    /// Bytes of all cells: the length of pages of [`Code::encode`] and [`Code::decode`].
    pub fn page_bytes(&self) -> usize {
        self.cell_bytes + self.spare_bytes
    }
}

/// Why a code cannot have a [`Shape`], in one line with the expected values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit(pub String);

impl Unfit {
    /// The user's mistake at `place`.
    pub fn at(self, place: &str) -> Error {
        Error::input(place, self.0)
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The code cannot write the message over these cells, which are unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failed;

/// The work of an encoding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Effort {
    /// Encodings tried, the successful one included.
    pub attempts: u32,
    /// Equations of the dense linear systems solved; 0 where there was none.
    pub equations: u32,
}

/// A code for one [`Shape`], with tables and scratch memory. Equal arguments must give equal results, regardless of
/// earlier calls. Slices must have the lengths of the shape.
pub trait Code: Send {
    /// The shape of the code.
    fn shape(&self) -> Shape;

    /// Bytes that a first write stores.
    fn first_bytes(&self) -> usize {
        self.shape().cell_bytes
    }

    /// Writes `message` ([`Self::first_bytes`]) into the erased data cells of `page`; spare cells stay erased.
    fn write_first(&mut self, page: &mut [u8], message: &[u8]) {
        page[..message.len()].copy_from_slice(message);
    }

    /// Reads the message of [`Self::write_first`].
    fn read_first(&mut self, page: &[u8], message: &mut [u8]) {
        message.copy_from_slice(&page[..message.len()]);
    }

    /// Writes `message` over `page`, data cells then spare cells, and only clears cells. `seed` drives free choices of
    /// the encoder, which the decoder does not need.
    ///
    /// # Errors
    /// The message does not fit these cells; `page` is untouched.
    fn encode(&mut self, page: &mut [u8], message: &[u8], seed: u64) -> Result<Effort, Failed>;

    /// Reads the message of [`Self::encode`]. Any content decodes to some message.
    fn decode(&mut self, page: &[u8], message: &mut [u8]);
}

/// One line of the registry of codes.
pub struct CodeEntry {
    /// Name in the configuration.
    pub name: &'static str,
    /// A line for `palimpsest list`.
    pub about: &'static str,
    /// Builds the code for a shape.
    pub build: fn(Shape) -> Result<Box<dyn Code>, Unfit>,
    /// The fewest bytes of spare with which a message (bytes) over data cells (bytes), half of them stuck at random,
    /// fails with at most the given probability.
    pub spare_needed: fn(usize, usize, f64) -> Result<usize, Unfit>,
    /// Failure rates, as `benches/wom_curves.rs` prints them; none for a code that never fails.
    pub curves: &'static [curves::Curve],
}

/// Every code.
pub const CODES: &[CodeEntry] = &[table::ENTRY, polar::ENTRY, polar_repair::ENTRY, fountain::ENTRY];

/// The entry called `name`.
pub fn find(name: &str) -> Option<&'static CodeEntry> {
    CODES.iter().find(|entry| entry.name == name)
}

/// Counts of [`measure`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measured {
    /// Encodings that failed.
    pub failed: u64,
    /// Sums over the successful ones.
    pub attempts: u64,
    /// As [`Self::attempts`].
    pub equations: u64,
}

/// The smallest number up to `most` that is `enough`, as is every larger one; `most` if none is.
fn least(most: usize, enough: impl Fn(usize) -> bool) -> usize {
    let (mut few, mut most) = (0, most);
    while few < most {
        let middle = few.midpoint(most);
        if enough(middle) { most = middle } else { few = middle + 1 }
    }
    most
}

/// Encodes random messages over random first writes with a share `dirty` of zero bits, and checks that each reads back.
/// Each first write is the best of `scramblings` by writable cells. Trial i depends on `seed` and i alone.
pub fn measure(code: &mut dyn Code, trials: Range<u64>, seed: u64, dirty: f64, scramblings: u32) -> Measured {
    let shape = code.shape();
    let (mut first, mut other) = (vec![0; code.first_bytes()], Vec::new());
    let (mut message, mut back) = (vec![0; shape.message_bytes], vec![0; shape.message_bytes]);
    let mut page = vec![0; shape.page_bytes()];
    let mut measured = Measured::default();
    for trial in trials {
        let mut rng = Rng::new(seed, trial);
        if dirty == 0.5 {
            first.fill(0);
            scramble(&mut first, rng.next_u64());
        } else {
            first.fill_with(|| (0..8).fold(0, |byte, bit| byte | u8::from(!rng.chance(dirty)) << bit));
        }
        for _ in 1..scramblings {
            other.clone_from(&first);
            scramble(&mut other, rng.next_u64());
            if writable(&other) > writable(&first) {
                std::mem::swap(&mut first, &mut other);
            }
        }
        message.fill(0);
        scramble(&mut message, rng.next_u64());
        page.fill(0xff);
        code.write_first(&mut page, &first);
        match code.encode(&mut page, &message, rng.next_u64()) {
            Err(Failed) => measured.failed += 1,
            Ok(effort) => {
                measured.attempts += u64::from(effort.attempts);
                measured.equations += u64::from(effort.equations);
                code.decode(&page, &mut back);
                assert_eq!(back, message, "a code lost its message");
            }
        }
    }
    measured
}

/// The word with at most eight `bytes` as the lowest bytes.
fn word_of(bytes: &[u8]) -> u64 {
    if let Ok(all) = bytes.try_into() {
        return u64::from_le_bytes(all);
    }
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

/// Cells of `bytes` that may still be cleared.
pub fn writable(bytes: &[u8]) -> u64 {
    bytes.iter().map(|byte| u64::from(byte.count_ones())).sum()
}

/// Adds the pseudo-random sequence of `key` to `bytes`; a second call removes the sequence. Drives scramble pages so
/// that cells look random.
pub fn scramble(bytes: &mut [u8], key: u64) {
    let mut rng = Rng::new(key, 0x5c2a);
    let (words, rest) = bytes.as_chunks_mut();
    for word in words {
        *word = (u64::from_le_bytes(*word) ^ rng.next_u64()).to_le_bytes();
    }
    if !rest.is_empty() {
        rest.iter_mut().zip(rng.next_u64().to_le_bytes()).for_each(|(byte, random)| *byte ^= random);
    }
}
