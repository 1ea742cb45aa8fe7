//! Addresses of random requests: fio's `random_distribution`.
//!
//! `zipf`, `pareto` and `normal` draw a rank and scatter the ranks over the region by a keyed bijection ([`Scatter`]),
//! so that hot blocks are not neighbours; the zones of `zoned` and `hotspot` follow each other from the start of the
//! region. `zipf:THETA:CENTER` scatters nothing (fio's center): the first rank is at the center and the next ranks
//! follow, wrapping at the end of the region; pareto and normal have no center here. Pareto is fio's: rank `(n-1) *
//! u^(log h / log(1-h))`, which gives a share `1-h` of the requests to a share `h` of the blocks. Normal is
//! fio's too (`lib/gauss.c`): the mean of twelve uniform ranks, whose deviation is a twelfth of the ranks, plus a
//! uniform step of the given percent of the ranks around 0, which is halved until the sum is a rank.
//!
//! `hotblocks:COUNT/ACCESS%` is ours: ACCESS % of the requests begin at COUNT equally hot blocks, scattered over the
//! region; the others begin anywhere. A database with a few hot pages does this, and loads few channels.

use std::fmt;

use super::scatter::Scatter;
use super::zipf::Zipf;
use palimpsest_flash::rng::Rng;

/// One zone of a zoned distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone {
    /// Percent of the requests.
    pub access_percent: u32,
    /// Percent of the region.
    pub size_percent: u32,
}

/// The distribution of random requests over the region.
#[derive(Debug, Clone, PartialEq)]
pub enum Distribution {
    /// Uniform.
    Random,
    /// Zipf.
    Zipf {
        /// Exponent.
        theta: f64,
        /// Place of the first rank, as a share of the region, followed by the other ranks; `None` scatters the ranks.
        center: Option<f64>,
    },
    /// Pareto with this `h`, between 0 and 1: `1-h` of the requests go to `h` of the blocks.
    Pareto(f64),
    /// fio's normal with a uniform step of this percent of the region.
    Normal(f64),
    /// Equally hot blocks, scattered over the region.
    HotBlocks {
        /// Number of hot blocks.
        count: u32,
        /// Percent of the requests that begin at a hot block.
        access_percent: f64,
    },
    /// Blocks in this order, again and again.
    Sequence(Vec<u64>),
    /// Uniform within each zone; sizes and accesses both add up to 100.
    Zoned(Vec<Zone>),
}

/// The notations of a distribution.
pub const EXPECTED: &str = "random, zipf:THETA[:CENTER], pareto:H, normal:PERCENT, zoned:ACCESS/SIZE:..., \
                            hotspot:SIZE/ACCESS, hotblocks:N/ACCESS, sequence:BLOCK,...";

impl Distribution {
    /// Reads fio's notation; `hotspot:20/80` (80 % of the requests to the first 20 % of the region) is short for
    /// `zoned:80/20:20/80`.
    pub fn parse(text: &str) -> Option<Distribution> {
        let (name, value) = text.split_once(':').unwrap_or((text, ""));
        if let Some(blocks) = text.strip_prefix("sequence:") {
            let blocks: Option<Vec<u64>> = blocks.split(',').map(|block| block.parse().ok()).collect();
            return blocks.filter(|blocks| blocks.len() <= 4096).map(Distribution::Sequence);
        }
        let within = |low: f64, high: f64| number(value).filter(|&parsed| parsed > low && parsed <= high);
        match name {
            "random" if value.is_empty() => Some(Distribution::Random),
            "zipf" => zipf(value),
            "pareto" => within(0.0, 1.0).filter(|&h| h < 1.0).map(Distribution::Pareto),
            "normal" | "gauss" => within(0.0, 100.0).map(Distribution::Normal),
            "hotblocks" => hot_blocks(value),
            "zoned" => zones(value).map(Distribution::Zoned),
            "hotspot" => hotspot(value).map(Distribution::Zoned),
            _ => None,
        }
    }
}

fn number(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|_| plain)
}

fn zipf(text: &str) -> Option<Distribution> {
    let (theta, center) = match text.split_once(':') {
        Some((theta, center)) => (theta, Some(number(center).filter(|&center| center < 1.0)?)),
        None => (text, None),
    };
    let theta = number(theta).filter(|&theta| theta > 0.0 && theta <= 100.0)?;
    Some(Distribution::Zipf { theta, center })
}

fn percent(text: &str) -> Option<u32> {
    let digits = text.strip_suffix('%').unwrap_or(text);
    let value = digits.parse::<u32>().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()));
    value.filter(|&value| value <= 100)
}

fn hot_blocks(text: &str) -> Option<Distribution> {
    let (count, access) = text.split_once('/')?;
    let digits = count.bytes().all(|byte| byte.is_ascii_digit());
    let count = count.parse::<u32>().ok().filter(|&count| digits && count > 0)?;
    let access_percent = number(access.strip_suffix('%').unwrap_or(access)).filter(|&percent| percent <= 100.0)?;
    Some(Distribution::HotBlocks { count, access_percent })
}

fn hotspot(text: &str) -> Option<Vec<Zone>> {
    let (size, access) = text.split_once('/')?;
    let (size_percent, access_percent) = (percent(size)?, percent(access)?);
    let rest = Zone { access_percent: 100 - access_percent, size_percent: 100 - size_percent };
    sound(vec![Zone { access_percent, size_percent }, rest])
}

/// `50/5:30/15:20/`: an empty percentage in the last zone is the remainder.
fn zones(text: &str) -> Option<Vec<Zone>> {
    const MOST_ZONES: usize = 256;
    let mut zones: Vec<Zone> = Vec::new();
    for part in text.split(':') {
        let (access, size) = part.split_once('/')?;
        let (accessed, sized) = zones.iter().fold((0, 0), |(a, s), z| (a + z.access_percent, s + z.size_percent));
        let or_rest = |text: &str, taken: u32| if text.is_empty() { 100u32.checked_sub(taken) } else { percent(text) };
        let zone = Zone { access_percent: or_rest(access, accessed)?, size_percent: or_rest(size, sized)? };
        if zones.len() == MOST_ZONES {
            return None;
        }
        zones.push(zone);
    }
    sound(zones)
}

fn sound(zones: Vec<Zone>) -> Option<Vec<Zone>> {
    let accesses: u32 = zones.iter().map(|zone| zone.access_percent).sum();
    let sizes: u32 = zones.iter().map(|zone| zone.size_percent).sum();
    let placed = zones.iter().all(|zone| zone.size_percent > 0 || zone.access_percent == 0);
    (accesses == 100 && sizes == 100 && placed).then_some(zones)
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::Random => f.write_str("random"),
            Distribution::Zipf { theta, center: None } => write!(f, "zipf:{theta}"),
            Distribution::Zipf { theta, center: Some(center) } => write!(f, "zipf:{theta}:{center}"),
            Distribution::Pareto(h) => write!(f, "pareto:{h}"),
            Distribution::Normal(deviation) => write!(f, "normal:{deviation}"),
            Distribution::HotBlocks { count, access_percent } => write!(f, "hotblocks:{count}/{access_percent}"),
            Distribution::Sequence(blocks) => {
                let blocks: Vec<String> = blocks.iter().map(u64::to_string).collect();
                write!(f, "sequence:{}", blocks.join(","))
            }
            Distribution::Zoned(zones) => {
                let parts: Vec<String> =
                    zones.iter().map(|zone| format!("{}/{}", zone.access_percent, zone.size_percent)).collect();
                write!(f, "zoned:{}", parts.join(":"))
            }
        }
    }
}

/// Draws slots `0..n` from a distribution.
#[derive(Debug, Clone)]
pub enum Sampler {
    /// The caller draws uniformly itself, or in sequence, over the slots that fit the request's size.
    Uniform,
    /// Zipf ranks, scattered.
    Zipf(Zipf, Scatter),
    /// Zipf ranks in order from a slot, wrapping at the end: number of slots, and the first.
    ZipfFrom(Zipf, u64, u64),
    /// Pareto ranks, scattered: the last rank and the exponent.
    Pareto(f64, f64, Scatter),
    /// Normal ranks, scattered: number of ranks, and the width of the step in ranks.
    Normal(u64, u64, Scatter),
    /// Share of draws that are hot, number of hot slots, number of all slots, places of the hot slots.
    HotBlocks(f64, u64, u64, Scatter),
    /// Cumulated access percentage, first slot and number of slots of each zone.
    Zoned(Vec<(u64, u64, u64)>),
}

impl Sampler {
    /// Slots `0..n` (`n` > 0); `key` selects the hot ones.
    pub fn new(distribution: &Distribution, n: u64, key: u64) -> Self {
        let scatter = || Scatter::new(n, key);
        match distribution {
            Distribution::Random | Distribution::Sequence(_) => Sampler::Uniform,
            Distribution::Zipf { theta, center: None } => Sampler::Zipf(Zipf::new(n, *theta), scatter()),
            Distribution::Zipf { theta, center: Some(center) } => {
                Sampler::ZipfFrom(Zipf::new(n, *theta), n, (n as f64 * center) as u64)
            }
            Distribution::Pareto(h) => Sampler::Pareto((n - 1) as f64, libm::log(*h) / libm::log1p(-*h), scatter()),
            Distribution::Normal(percent) => {
                let width = libm::ceil(n as f64 * percent / 100.0) as u64;
                Sampler::Normal(n, width.min(n / 2), scatter())
            }
            Distribution::HotBlocks { count, access_percent } => {
                Sampler::HotBlocks(access_percent / 100.0, u64::from(*count).min(n), n, scatter())
            }
            Distribution::Zoned(zones) => Sampler::Zoned(zone_slots(zones, n)),
        }
    }

    /// A slot below the `n` of [`new`](Self::new); `slots` for a uniform draw.
    #[inline]
    pub fn draw(&self, slots: u64, rng: &mut Rng) -> u64 {
        match self {
            Sampler::Uniform => rng.below(slots),
            Sampler::Zipf(zipf, scatter) => scatter.place(zipf.draw(rng)),
            Sampler::ZipfFrom(zipf, n, first) => (first + zipf.draw(rng)) % n,
            Sampler::Pareto(last, exponent, scatter) => scatter.place((last * libm::pow(rng.unit(), *exponent)) as u64),
            Sampler::Normal(ranks, width, scatter) => scatter.place(normal_rank(*ranks, *width, rng)),
            Sampler::HotBlocks(share, count, n, scatter) => {
                if rng.unit() < *share {
                    scatter.place(rng.below(*count))
                } else {
                    rng.below(*n)
                }
            }
            Sampler::Zoned(zones) => {
                let draw = rng.below(100);
                let (_, first, count) = zones.iter().find(|(upto, ..)| draw < *upto).expect("accesses add up to 100");
                first + rng.below(*count)
            }
        }
    }
}

fn zone_slots(zones: &[Zone], n: u64) -> Vec<(u64, u64, u64)> {
    let (mut accessed, mut sized) = (0, 0);
    let slots = zones.iter().map(|zone| {
        let first = (u128::from(n) * sized / 100) as u64;
        sized += u128::from(zone.size_percent);
        accessed += u64::from(zone.access_percent);
        let end = (u128::from(n) * sized / 100) as u64;
        let first = first.min(n - 1);
        (accessed, first, end.saturating_sub(first).max(1))
    });
    slots.collect()
}

/// A rank of fio's normal distribution.
fn normal_rank(ranks: u64, width: u64, rng: &mut Rng) -> u64 {
    const DRAWS: u64 = 12;
    let sum: u64 = (0..DRAWS).map(|_| rng.below(ranks + 1)).sum();
    let mean = sum.div_ceil(DRAWS);
    let half = (width / 2) as i64;
    let mut step = if width == 0 { 0 } else { (width as f64 * rng.unit()) as i64 - half };
    while step != 0 && mean.checked_add_signed(step).is_none_or(|rank| rank >= ranks) {
        step /= 2;
    }
    mean.saturating_add_signed(step) % ranks
}

#[cfg(test)]
mod tests;
