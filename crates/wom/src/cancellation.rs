//! Successive cancellation for a polar code on the binary erasure channel, on bit planes, 64 cells a word.
//!
//! Burshtein and Strugatski ("Polar write once memory codes", 2013) encode by it: find x = uG with given values at the
//! stuck cells and given u at the positions of the message. This module solves the homogeneous problem: message 0, and
//! free u 0 unless forced. The caller adds a codeword with message and random free bits (see `polar`). By linearity the
//! result is the same, and most pieces are trivial: a piece whose known cells are all 0 is skipped.
//!
//! A piece is two halves a and b, with known cells K and their values V (0 where not known). The first half of u gets K
//! = Ka Kb, V = Va + Vb and returns x1; the second gets K = Ka | Kb, V = Vb where Kb, else Va + x1, and returns x2; the
//! piece is (x1 + x2, x2). A piece of message bits only is 0, and every known 1 inside is a conflict; a piece of free
//! bits only is V. With K given, result and conflicts are linear in V; lane repair (`polar_repair`) depends on that.

use super::transform;
use palimpsest_flash::rng::Rng;

/// Positions of message bits as a tree of pieces, and scratch memory.
pub(super) struct Cancellation {
    /// 1 at the positions of u that hold message bits.
    message: Vec<u64>,
    /// Content of each piece of whole words, as a heap: 1 is the whole page, 2i and 2i + 1 are the halves of i.
    contents: Vec<PieceContent>,
    /// Result and conflicts of pieces of four cells, see [`nibbles`].
    nibbles: Box<[u8; 4096]>,
    scratch: Vec<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PieceContent {
    Message,
    Free,
    Mixed,
}

impl Cancellation {
    pub(super) fn new(message: Vec<u64>) -> Self {
        let words = message.len();
        assert!(words.is_power_of_two());
        let mut contents = vec![PieceContent::Mixed; 2 * words];
        for (at, &mask) in message.iter().enumerate() {
            contents[words + at] = match mask {
                0 => PieceContent::Free,
                u64::MAX => PieceContent::Message,
                _ => PieceContent::Mixed,
            };
        }
        for at in (1..words).rev() {
            contents[at] =
                if contents[2 * at] == contents[2 * at + 1] { contents[2 * at] } else { PieceContent::Mixed };
        }
        Cancellation { message, contents, nibbles: nibbles(), scratch: vec![0; 2 * words] }
    }

    /// Writes the codeword that `values` forces into `x` (`values` is 0 where `known` is) and the conflicts, which are
    /// all 0 if and only if the codeword meets the known cells, into `conflicts`. All have as many words as the code.
    pub(super) fn solve(&mut self, known: &[u64], values: &[u64], x: &mut [u64], conflicts: &mut [u64]) {
        conflicts.fill(0);
        let Cancellation { message, contents, nibbles, scratch } = self;
        let walk = Walk { message, contents, nibbles };
        walk.piece(1, 0, (known, values), x, conflicts, scratch);
    }

    /// Puts random bits into the words of `u` that have free positions.
    pub(super) fn fill(&self, u: &mut [u64], rng: &mut Rng) {
        for (u, _) in u.iter_mut().zip(&self.message).filter(|&(_, &message)| message != u64::MAX) {
            *u = rng.next_u64();
        }
    }

    /// Turns u into a codeword. Pieces of free bits only stay unchanged, because their codeword would be random too.
    pub(super) fn encode(&self, u: &mut [u64]) {
        self.encode_piece(1, u);
    }

    fn encode_piece(&self, node: usize, u: &mut [u64]) {
        match self.contents[node] {
            PieceContent::Free => {}
            // A full transform of up to four words is faster than the branches.
            PieceContent::Mixed if u.len() > 4 => {
                let (a, b) = u.split_at_mut(u.len() / 2);
                self.encode_piece(2 * node, a);
                self.encode_piece(2 * node + 1, b);
                a.iter_mut().zip(b).for_each(|(a, b)| *a ^= *b);
            }
            _ => transform::transform(u),
        }
    }

    /// Turns a codeword into u, valid at the positions of message bits.
    pub(super) fn decode(&self, x: &mut [u64]) {
        self.decode_piece(1, x);
    }

    fn decode_piece(&self, node: usize, x: &mut [u64]) {
        match self.contents[node] {
            PieceContent::Free => {}
            PieceContent::Mixed if x.len() > 4 => {
                let (a, b) = x.split_at_mut(x.len() / 2);
                a.iter_mut().zip(&*b).for_each(|(a, b)| *a ^= *b);
                self.decode_piece(2 * node, a);
                self.decode_piece(2 * node + 1, b);
            }
            _ => transform::transform(x),
        }
    }
}

struct Walk<'a> {
    message: &'a [u64],
    contents: &'a [PieceContent],
    nibbles: &'a [u8; 4096],
}

impl Walk<'_> {
    /// Solves piece `node` of the heap, which begins at word `start` of the page.
    fn piece(
        &self,
        node: usize,
        start: usize,
        (known, values): (&[u64], &[u64]),
        x: &mut [u64],
        conflicts: &mut [u64],
        scratch: &mut [u64],
    ) {
        match self.contents[node] {
            PieceContent::Message => {
                x.fill(0);
                conflicts.copy_from_slice(values);
            }
            PieceContent::Free => x.copy_from_slice(values),
            PieceContent::Mixed if x.len() == 1 => {
                (x[0], conflicts[0]) = self.word(known[0], values[0], self.message[start]);
            }
            PieceContent::Mixed => {
                let half = x.len() / 2;
                let (k, rest) = scratch.split_at_mut(half);
                let (v, rest) = rest.split_at_mut(half);
                let ((ka, kb), (va, vb)) = (known.split_at(half), values.split_at(half));
                let (x1, x2) = x.split_at_mut(half);
                let (c1, c2) = conflicts.split_at_mut(half);
                if minus((ka, va), (kb, vb), k, v) == 0 {
                    x1.fill(0);
                } else {
                    self.piece(2 * node, start, (k, v), x1, c1, rest);
                }
                if plus((ka, va), (kb, vb), x1, k, v) == 0 {
                    x2.fill(0);
                } else {
                    self.piece(2 * node + 1, start + half, (k, v), x2, c2, rest);
                    x1.iter_mut().zip(x2).for_each(|(x1, x2)| *x1 ^= *x2);
                }
            }
        }
    }

    /// Result and conflicts of a piece of 64 cells.
    fn word(&self, known: u64, values: u64, message: u64) -> (u64, u64) {
        halves::<32>(known, values, message, |k, v, m| {
            halves::<16>(k, v, m, |k, v, m| {
                halves::<8>(k, v, m, |k, v, m| halves::<4>(k, v, m, |k, v, m| self.nibble(k, v, m)))
            })
        })
    }

    #[inline(always)]
    fn nibble(&self, known: u64, values: u64, message: u64) -> (u64, u64) {
        let found = u64::from(self.nibbles[(message << 8 | known << 4 | values) as usize]);
        (found & 15, found >> 4)
    }
}

/// Known cells and values of the first half of u; returns the union of the values.
fn minus((ka, va): (&[u64], &[u64]), (kb, vb): (&[u64], &[u64]), k: &mut [u64], v: &mut [u64]) -> u64 {
    let half = k.len();
    let (ka, va, kb, vb, v) = (&ka[..half], &va[..half], &kb[..half], &vb[..half], &mut v[..half]);
    let mut any = 0;
    for at in 0..half {
        k[at] = ka[at] & kb[at];
        v[at] = (va[at] ^ vb[at]) & k[at];
        any |= v[at];
    }
    any
}

/// Known cells and values of the second half of u; returns the union of the values.
fn plus((ka, va): (&[u64], &[u64]), (kb, vb): (&[u64], &[u64]), x1: &[u64], k: &mut [u64], v: &mut [u64]) -> u64 {
    let half = k.len();
    let (ka, va, kb, vb, v) = (&ka[..half], &va[..half], &kb[..half], &vb[..half], &mut v[..half]);
    let x1 = &x1[..half];
    let mut any = 0;
    for at in 0..half {
        k[at] = ka[at] | kb[at];
        v[at] = vb[at] | (va[at] ^ x1[at]) & ka[at] & !kb[at];
        any |= v[at];
    }
    any
}

/// A piece of two halves of `HALF` cells, at the low end of the words.
#[inline(always)]
fn halves<const HALF: u32>(
    known: u64,
    values: u64,
    message: u64,
    solve: impl Fn(u64, u64, u64) -> (u64, u64),
) -> (u64, u64) {
    let low = (1 << HALF) - 1;
    if values == 0 {
        return (0, 0);
    }
    let ((ka, kb), (va, vb)) = ((known & low, known >> HALF), (values & low, values >> HALF));
    let (ma, mb) = (message & low, message >> HALF);
    let k = ka & kb;
    let v = (va ^ vb) & k;
    let (x1, c1) = match ma {
        0 => (v, 0),
        _ if ma == low => (0, v),
        _ => solve(k, v, ma),
    };
    let v = vb | (va ^ x1) & ka & !kb;
    let (x2, c2) = match mb {
        0 => (v, 0),
        _ if mb == low => (0, v),
        _ => solve(ka | kb, v, mb),
    };
    (x1 ^ x2 | x2 << HALF, c1 | c2 << HALF)
}

/// Result (low) and conflicts (high half of the byte) of four cells, by message positions, known cells and values.
fn nibbles() -> Box<[u8; 4096]> {
    let bit = |_, v, m| if m == 1 { (0, v) } else { (v, 0) };
    let entry = |index: usize| {
        let (m, k, v) = (index as u64 >> 8, index as u64 >> 4 & 15, index as u64 & 15);
        let (x, conflicts) = halves::<2>(k, v & k, m, |k, v, m| halves::<1>(k, v, m, bit));
        (x | conflicts << 4) as u8
    };
    Box::new(std::array::from_fn(entry))
}

#[cfg(test)]
mod tests;
