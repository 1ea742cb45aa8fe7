//! Fingerprints of sectors: 32 bits that depend on every bit of a sector, 0 for zeros, stored in place of the bytes.
//! One in 2^32 wrong sectors passes as correct.
//!
//! Each of eight lanes sums over its words of all stripes: the product of a word's halves under the key of the place,
//! as in XXH3 (Collet, 2019). The lane also adds the words of its neighbour. Multiplications fold the lanes, as in
//! wyhash (Wang Yi, 2019). Processors with AVX2 compute four lanes at once.

/// Words of a stripe, one per lane.
const LANES: usize = 8;

/// Stripes of a sector.
const STRIPES: usize = 8;

/// A sector.
type Words = [[u8; 8]; LANES * STRIPES];

/// The key of a lane in a stripe is at the sum of both indices: digits of pi.
const KEYS: [u64; LANES + STRIPES] = [
    0x243f_6a88_85a3_08d3,
    0x1319_8a2e_0370_7344,
    0xa409_3822_299f_31d0,
    0x082e_fa98_ec4e_6c89,
    0x4528_21e6_38d0_1377,
    0xbe54_66cf_34e9_0c6c,
    0xc0ac_29b7_c97c_50dd,
    0x3f84_d5b5_b547_0917,
    0x9216_d5d9_8979_fb1b,
    0xd131_0ba6_98df_b5ac,
    0x2ffd_72db_d01a_dfb7,
    0xb8e1_afed_6a26_7e96,
    0xba7c_9045_f12c_7f99,
    0x24a1_9947_b391_6cf7,
    0x0801_f2e2_858e_fc16,
    0x6369_20d8_7157_4e69,
];

/// The raw value of zeros. Results are combined with this value by exclusive or, so that zeros get 0.
const ZEROS: u32 = merged(&lanes(&[[0; 8]; LANES * STRIPES]));

/// The fingerprint of a sector.
pub fn fingerprint(sector: &[u8]) -> u32 {
    let mut found = None;
    fingerprints(sector, |number| found = Some(number));
    found.expect("a sector")
}

/// Calls `see` with the fingerprint of each sector of `bytes`, in order.
#[inline]
pub fn fingerprints(bytes: &[u8], see: impl FnMut(u32)) {
    let (words, _) = bytes.as_chunks::<8>();
    let (sectors, _) = words.as_chunks();
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        return avx2::all(sectors, see);
    }
    sectors.iter().map(|sector| merged(&lanes(sector)) ^ ZEROS).for_each(see);
}

/// Sums of the lanes.
#[inline]
const fn lanes(sector: &Words) -> [u64; LANES] {
    let (mut lanes, mut at) = ([0u64; LANES], 0);
    while at < LANES * STRIPES {
        let (stripe, lane) = (at / LANES, at % LANES);
        let word = u64::from_le_bytes(sector[at]);
        let keyed = word ^ KEYS[stripe + lane];
        lanes[lane] = lanes[lane].wrapping_add((keyed & 0xffff_ffff) * (keyed >> 32));
        lanes[lane ^ 1] = lanes[lane ^ 1].wrapping_add(word);
        at += 1;
    }
    lanes
}

/// Folds all lanes into one number.
#[inline]
const fn merged(lanes: &[u64; LANES]) -> u32 {
    let (mut all, mut lane) = (KEYS[LANES], 0);
    while lane < LANES {
        all = all.wrapping_add(folded(lanes[lane] ^ KEYS[lane], lanes[lane + 1] ^ KEYS[lane + 1]));
        lane += 2;
    }
    let all = folded(all, KEYS[LANES + 1]);
    all as u32 ^ (all >> 32) as u32
}

/// Exclusive or of both halves of a product.
#[inline]
const fn folded(one: u64, two: u64) -> u64 {
    let product = one as u128 * two as u128;
    product as u64 ^ (product >> 64) as u64
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{KEYS, LANES, STRIPES, Words, ZEROS, merged};
    use std::arch::x86_64::{
        __m256i, _mm256_add_epi64, _mm256_extract_epi64, _mm256_mul_epu32, _mm256_set_epi64x, _mm256_setzero_si256,
        _mm256_shuffle_epi32, _mm256_srli_epi64, _mm256_xor_si256,
    };

    /// Lanes of a register.
    const TOGETHER: usize = 4;

    /// As [`super::fingerprints`]. The processor must have AVX2.
    #[allow(unsafe_code, reason = "only who asked the processor may call what needs its instructions")]
    #[inline]
    pub fn all(sectors: &[Words], see: impl FnMut(u32)) {
        assert!(std::arch::is_x86_feature_detected!("avx2"), "instructions of the processor");
        // SAFETY: the processor has AVX2, the only requirement of the function.
        unsafe { each(sectors, see) };
    }

    #[target_feature(enable = "avx2")]
    fn each(sectors: &[Words], mut see: impl FnMut(u32)) {
        for sector in sectors {
            see(merged(&lanes(sector)) ^ ZEROS);
        }
    }

    /// Four numbers in a register.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn four(of: impl Fn(usize) -> u64) -> __m256i {
        _mm256_set_epi64x(of(3) as i64, of(2) as i64, of(1) as i64, of(0) as i64)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn lanes(sector: &Words) -> [u64; LANES] {
        let zeros = _mm256_setzero_si256();
        let (mut products, mut sums) = ([zeros; LANES / TOGETHER], [zeros; LANES / TOGETHER]);
        let (parts, _) = sector.as_chunks::<TOGETHER>();
        for stripe in 0..STRIPES {
            for half in 0..LANES / TOGETHER {
                let part = &parts[stripe * (LANES / TOGETHER) + half];
                let words = four(|lane| u64::from_le_bytes(part[lane]));
                let keyed = _mm256_xor_si256(words, four(|lane| KEYS[stripe + half * TOGETHER + lane]));
                let product = _mm256_mul_epu32(keyed, _mm256_srli_epi64::<32>(keyed));
                products[half] = _mm256_add_epi64(products[half], product);
                sums[half] = _mm256_add_epi64(sums[half], words);
            }
        }
        let mut all = [0; LANES];
        let (registers, _) = all.as_chunks_mut::<TOGETHER>();
        for (register, (products, sums)) in registers.iter_mut().zip(products.into_iter().zip(sums)) {
            // Each lane adds the sum of its neighbour.
            let both = _mm256_add_epi64(products, _mm256_shuffle_epi32::<0b01_00_11_10>(sums));
            *register = [
                _mm256_extract_epi64::<0>(both) as u64,
                _mm256_extract_epi64::<1>(both) as u64,
                _mm256_extract_epi64::<2>(both) as u64,
                _mm256_extract_epi64::<3>(both) as u64,
            ];
        }
        all
    }
}

#[cfg(test)]
mod tests;
