//! fio's random numbers: the combined Tausworthe generators of L'Ecuyer, of 32 bits (taus88: "Maximally equidistributed
//! combined Tausworthe generators", Mathematics of Computation 65, 1996) and of 64 bits (LFSR258: "Tables of maximally
//! equidistributed combined LFSR generators", ibid. 68, 1999), seeded as fio seeds them.
//!
//! Only requests in fio's own order use them (`passes.rs`).

/// Seeds of a job in fio; [`Seeds`] uses some.
const SEEDS: usize = 22;
/// fio's multiplier between seeds.
const STEP: u64 = 0x9e37_0001;
/// fio's seed of addresses with `randrepeat`, times the number of the job.
const ADDRESS_SEED: u64 = 0xb189_9bed;

/// Shifts and mask of one component: `s' = ((s & mask) << d) ^ (((s << a) ^ s) >> b)`.
struct Component<T> {
    a: u32,
    b: u32,
    mask: T,
    d: u32,
    least: T,
}

const SHORT: [Component<u32>; 3] = [
    Component { a: 13, b: 19, mask: !1, d: 12, least: 1 },
    Component { a: 2, b: 25, mask: !7, d: 4, least: 7 },
    Component { a: 3, b: 11, mask: !15, d: 17, least: 15 },
];
const LONG: [Component<u64>; 5] = [
    Component { a: 1, b: 53, mask: !1, d: 10, least: 1 },
    Component { a: 24, b: 50, mask: !511, d: 5, least: 7 },
    Component { a: 3, b: 23, mask: !4095, d: 29, least: 15 },
    Component { a: 5, b: 24, mask: !131_071, d: 23, least: 33 },
    Component { a: 3, b: 33, mask: !8_388_607, d: 8, least: 49 },
];
/// The first state before the seed enters.
const START: u32 = 53;
const DROPPED: usize = 6;

/// A generator.
#[derive(Debug, Clone)]
pub enum Tausworthe {
    /// Values of 32 bits.
    Short([u32; 3]),
    /// Values of 64 bits.
    Long([u64; 5]),
}

impl Tausworthe {
    /// The generator for `seed`, of 32 bits, or of 64 if `long`.
    pub fn new(seed: u64, long: bool) -> Tausworthe {
        let mut generator = if long {
            let mut last = u64::from(START);
            Tausworthe::Long(LONG.each_ref().map(|part| {
                last = last.wrapping_mul(6_906_969_069) ^ seed;
                last = if last < part.least { last + part.least } else { last };
                last
            }))
        } else {
            let mut last = START;
            Tausworthe::Short(SHORT.each_ref().map(|part| {
                last = last.wrapping_mul(69_069) ^ seed as u32;
                last = if last < part.least { last + part.least } else { last };
                last
            }))
        };
        for _ in 0..DROPPED {
            generator.next();
        }
        generator
    }

    /// The next value, at most [`most`](Self::most).
    #[inline]
    pub fn next(&mut self) -> u64 {
        match self {
            Tausworthe::Short(states) => {
                let mut value = 0;
                for (state, part) in states.iter_mut().zip(&SHORT) {
                    *state = ((*state & part.mask) << part.d) ^ (((*state << part.a) ^ *state) >> part.b);
                    value ^= *state;
                }
                u64::from(value)
            }
            Tausworthe::Long(states) => {
                let mut value = 0;
                for (state, part) in states.iter_mut().zip(&LONG) {
                    *state = ((*state & part.mask) << part.d) ^ (((*state << part.a) ^ *state) >> part.b);
                    value ^= *state;
                }
                value
            }
        }
    }

    /// The largest value.
    #[inline]
    pub fn most(&self) -> u64 {
        match self {
            Tausworthe::Short(_) => u64::from(u32::MAX),
            Tausworthe::Long(_) => u64::MAX,
        }
    }

    /// A value from 0 to `n` - 1. Of the long generator `n` itself comes once in 2^54 draws, by rounding, as in fio.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        let value = self.next();
        self.scaled(value, n)
    }

    /// `value` scaled to 0..`n`. The product equals fio's quotient, because fio divides by a power of two.
    #[inline]
    fn scaled(&self, value: u64, n: u64) -> u64 {
        let per_value = match self {
            Tausworthe::Short(_) => 1.0 / (u32::MAX as f64 + 1.0),
            Tausworthe::Long(_) => 1.0 / u64::MAX as f64,
        };
        (n as f64 * (value as f64 * per_value)) as u64
    }
}

const DEPTH: usize = 8;

/// A generator that draws values ahead, so that the caller can prefetch the memory that they address.
#[derive(Debug, Clone)]
pub struct Ahead {
    generator: Tausworthe,
    values: [u64; DEPTH],
    next: usize,
}

impl Ahead {
    /// The values of `generator`.
    pub fn new(mut generator: Tausworthe) -> Ahead {
        Ahead { values: std::array::from_fn(|_| generator.next()), generator, next: 0 }
    }

    /// The next value from 0 to `n` - 1, as [`Tausworthe::below`] returns, and a value that comes soon if `n` stays the
    /// same.
    #[inline]
    pub fn below(&mut self, n: u64) -> (u64, u64) {
        let later = self.generator.next();
        let value = std::mem::replace(&mut self.values[self.next], later);
        self.next = (self.next + 1) % DEPTH;
        (self.generator.scaled(value, n), self.generator.scaled(later, n))
    }
}

/// The seeds of a job's generators.
#[derive(Debug, Clone, Copy)]
pub struct Seeds {
    /// Sizes of reads, writes and trims.
    pub sizes: [u64; 3],
    /// Kinds.
    pub kinds: u64,
    /// Addresses.
    pub addresses: u64,
    /// Sequential requests of a random pattern.
    pub sequential: u64,
    /// Placement handles.
    pub handles: u64,
}

impl Seeds {
    /// The seeds of job `number` (from 1) for `randseed`; if `repeats` (fio's `randrepeat`), addresses do not depend on
    /// `randseed`.
    pub fn new(randseed: u64, number: u64, repeats: bool) -> Seeds {
        let mut seed = (0..4).fold(randseed, |seed, _| seed.wrapping_mul(STEP));
        let mut all = [0; SEEDS];
        for (at, own) in (0..).zip(&mut all) {
            *own = seed.wrapping_mul(number).wrapping_add(at);
            seed = seed.wrapping_mul(STEP);
        }
        let addresses = if repeats { ADDRESS_SEED.wrapping_mul(number) } else { all[6] };
        Seeds { sizes: [all[0], all[1], all[2]], kinds: all[4], addresses, sequential: all[10], handles: all[21] }
    }
}

#[cfg(test)]
mod tests;
