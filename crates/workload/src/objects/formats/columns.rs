//! Columns of CSV lines by the names in the first line. Ignored: quotes, because keys and numbers have none.

use crate::trace::fields::{Fault, Parse, quoted};
use palimpsest_flash::rng::mix;

/// The places of the columns `N` in a line.
#[derive(Debug, Clone, Copy)]
pub struct Header<const N: usize>([Option<usize>; N]);

impl<const N: usize> Header<N> {
    /// The columns called `names` in the first line, of which the first `required` must be there.
    pub fn read(line: &[u8], names: [&str; N], required: usize) -> Parse<Self> {
        let place =
            |name: &str| line.split(|&byte| byte == b',').position(|field| field.trim_ascii() == name.as_bytes());
        let places = names.map(place);
        match (0..required).find(|&at| places[at].is_none()) {
            None => Ok(Header(places)),
            Some(at) => Err(Fault::new(format!("expected a heading with {}, found {}", names[at], quoted(line)))),
        }
    }

    /// The columns of a line; absent ones are empty.
    pub fn of<'a>(&self, line: &'a [u8]) -> [&'a [u8]; N] {
        let mut found = [&[][..]; N];
        for (at, field) in line.split(|&byte| byte == b',').enumerate() {
            for (slot, place) in found.iter_mut().zip(&self.0) {
                if *place == Some(at) {
                    *slot = field.trim_ascii();
                }
            }
        }
        found
    }

    /// Whether the line has the column `at`.
    pub fn has(&self, at: usize) -> bool {
        self.0[at].is_some()
    }
}

/// The number of a key that is text.
pub fn hashed(key: &[u8]) -> u64 {
    mix(key
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)))
}
