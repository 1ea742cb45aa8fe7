//! Values of keys: readers of switches, percentages, rates, sizes and shares, and the texts that they read.
//!
//! Ignored: units, which `quantity.rs` reads, and rules between keys (`rules.rs`).

use super::pattern::Pattern;
use super::quantity::{Amount, amount, count, duration, size};
use super::spec::{FioSpec, Rate, SizeShare};
use crate::request::SECTOR_BYTES;
use crate::trace::MAX_REQUEST_BYTES;
use palimpsest_flash::units::{KIB, Nanos};

/// The outcome of a setter; fails for an unexpected value.
pub type Set = std::result::Result<(), ()>;

/// The value of a name in a table.
pub fn one_of<T: Copy>(text: &str, table: &[(&str, T)]) -> Option<T> {
    table.iter().find(|(name, _)| *name == text).map(|&(_, value)| value)
}

pub fn some_text(text: &str) -> Option<Option<String>> {
    (!text.is_empty()).then(|| Some(text.to_string()))
}

/// A time above 0; a plain number is microseconds.
pub fn some_micros(text: &str) -> Option<Nanos> {
    micros(text).filter(|&time| time > 0)
}

pub fn some_positive(text: &str) -> Option<Option<u64>> {
    positive(text).map(Some)
}

pub fn some_block(text: &str) -> Option<Option<u64>> {
    block(text).map(Some)
}

pub fn some_region(text: &str) -> Option<Option<Amount>> {
    whole_sectors(text).filter(|&size| !is_zero(size)).map(Some)
}

pub fn some_sectors(text: &str) -> Option<u64> {
    sectors(text).filter(|&bytes| bytes > 0)
}

/// Bytes of whole sectors.
pub fn sectors(text: &str) -> Option<u64> {
    size(text).filter(|bytes| bytes.is_multiple_of(SECTOR_BYTES))
}

/// A number of requests from 0 to 65,536.
pub fn batch(text: &str) -> Option<u32> {
    count(text).filter(|&depth| depth <= 65_536).map(|depth| depth as u32)
}

pub fn depth(text: &str) -> Option<u32> {
    batch(text).filter(|&depth| depth > 0)
}

/// Numbers and ranges of placement handles, such as `0,2-4`, in ascending order; fio sorts them, too, and has at most
/// 128.
pub fn handles(text: &str) -> Option<Vec<u16>> {
    let handle = |text: &str| count(text).and_then(|handle| u16::try_from(handle).ok());
    let mut all = Vec::new();
    for text in text.split(',') {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (handle(first)?, handle(last)?);
        if first > last || usize::from(last - first) >= MOST_HANDLES {
            return None;
        }
        all.extend(first..=last);
    }
    all.sort_unstable();
    (all.len() <= MOST_HANDLES).then_some(all)
}

/// Handles of a job, as in fio.
const MOST_HANDLES: usize = 128;

/// The choice of a placement handle (`plid_select`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HandleChoice {
    /// The handles take turns.
    #[default]
    InTurn,
    /// By chance.
    ByChance,
    /// By the offset of the write (`dp_scheme`).
    ByOffset,
}

/// The words of `plid_select`.
pub const HANDLE_CHOICES: &[(&str, HandleChoice)] =
    &[("roundrobin", HandleChoice::InTurn), ("random", HandleChoice::ByChance), ("scheme", HandleChoice::ByOffset)];

/// Offsets in bytes from `first` up to `end`, whose writes name a placement identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacedRange {
    pub first: u64,
    pub end: u64,
    pub placement: u16,
}

/// Ranges of a scheme, as in fio.
const MOST_RANGES: usize = 32;

/// The ranges of a scheme, such as `0,10g,0:10g,20g,1`: a file of fio (`dp_scheme`) has one in each line.
pub fn scheme(text: &str) -> Option<Vec<PlacedRange>> {
    let range = |text: &str| {
        let mut fields = text.split(',');
        let (first, end) = (size(fields.next()?)?, size(fields.next()?)?);
        let placement = count(fields.next()?).and_then(|placement| u16::try_from(placement).ok())?;
        (fields.next().is_none() && first < end).then_some(PlacedRange { first, end, placement })
    };
    let all = text.split(':').map(range).collect::<Option<Vec<_>>>()?;
    (all.len() <= MOST_RANGES).then_some(all)
}

/// The text of a scheme.
pub fn scheme_text(ranges: &[PlacedRange]) -> String {
    let text = |&PlacedRange { first, end, placement }: &PlacedRange| format!("{first},{end},{placement}");
    ranges.iter().map(text).collect::<Vec<_>>().join(":")
}

/// A time; a plain number is microseconds.
pub fn micros(text: &str) -> Option<Nanos> {
    if text.ends_with(|last: char| last.is_ascii_digit()) { count(text)?.checked_mul(1000) } else { duration(text) }
}

pub fn requests_a_second(text: &str) -> Option<[Option<Rate>; 3]> {
    let rate = |text: &str| thousandths(text).filter(|rate| (1..=1_000_000_000_000).contains(rate));
    three(text, None, |text| rate(text).map(|rate| Some(Rate::Requests(rate))))
}

pub fn bytes_a_second(text: &str) -> Option<[Option<Rate>; 3]> {
    let rate = |text: &str| size(text).filter(|rate| (1..=1 << 50).contains(rate));
    three(text, None, |text| rate(text).map(|rate| Some(Rate::Bytes(rate))))
}

pub fn put<T>(field: &mut T, value: Option<T>) -> Set {
    *field = value.ok_or(())?;
    Ok(())
}

pub fn switch(text: &str) -> Option<bool> {
    matches!(text, "" | "0" | "1").then_some(text != "0")
}

pub fn positive(text: &str) -> Option<u64> {
    count(text).filter(|&value| value > 0)
}

/// Tenths of a percent: `18.8` is 188. fio allows whole percentages only; published statistics have a decimal.
pub fn permille(text: &str) -> Option<u32> {
    let value = text.strip_suffix('%').unwrap_or(text);
    let (whole, tenths) = match value.split_once('.') {
        Some((whole, tenths)) if tenths.len() == 1 => (whole, count(tenths)?),
        Some(_) => return None,
        None => (value, 0),
    };
    let value = count(whole).filter(|&whole| whole <= 100)? * 10 + tenths;
    (value <= 1000).then_some(value as u32)
}

/// Thousandths: `3.15` is 3150, `20k` is 20,000,000. fio allows whole rates only; rates of traces are small.
pub fn thousandths(text: &str) -> Option<u64> {
    match text.split_once('.') {
        Some((whole, decimals)) if matches!(decimals.len(), 1..=3) && decimals.bytes().all(|b| b.is_ascii_digit()) => {
            let scale = 10u64.pow(3 - decimals.len() as u32);
            count(whole)?.checked_mul(1000)?.checked_add(count(decimals)? * scale)
        }
        _ => count(text)?.checked_mul(1000),
    }
}

/// Sets `zonemode`.
pub fn set_zone_mode(spec: &mut FioSpec, text: &str) -> Set {
    let modes = [("none", (false, false)), ("strided", (true, false)), ("zbd", (false, true))];
    (spec.zones.strided, spec.zoned.on) = one_of(text, &modes).ok_or(())?;
    Ok(())
}

/// A fraction from 0 to 1, in thousandths.
pub fn fraction(text: &str) -> Option<u32> {
    thousandths(text).filter(|&value| value <= 1000).map(|value| value as u32)
}

/// A number of zones.
pub fn zones(text: &str) -> Option<u32> {
    count(text).and_then(|value| u32::try_from(value).ok())
}

/// Thousandths as [`thousandths`] reads them.
pub fn thousandths_text(value: u64) -> String {
    let text = format!("{}.{:03}", value / 1000, value % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Tenths of a percent as [`permille`] reads them.
pub fn tenths_text(permille: u32) -> String {
    match permille % 10 {
        0 => (permille / 10).to_string(),
        tenths => format!("{}.{tenths}", permille / 10),
    }
}

pub fn block(text: &str) -> Option<u64> {
    size(text).filter(|&bytes| bytes > 0 && bytes <= MAX_REQUEST_BYTES && bytes.is_multiple_of(SECTOR_BYTES))
}

pub fn whole_sectors(text: &str) -> Option<Amount> {
    amount(text).filter(|amount| !matches!(amount, Amount::Bytes(bytes) if !bytes.is_multiple_of(SECTOR_BYTES)))
}

pub fn is_zero(amount: Amount) -> bool {
    matches!(amount, Amount::Bytes(0) | Amount::Millionths(0))
}

/// Up to three values with commas: an empty value is `default`, missing values repeat the last.
pub fn three<T: Clone>(text: &str, default: T, read: impl Fn(&str) -> Option<T>) -> Option<[T; 3]> {
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 || text.is_empty() {
        return None;
    }
    let values: Option<Vec<T>> =
        parts.iter().map(|part| if part.is_empty() { Some(default.clone()) } else { read(part) }).collect();
    let values = values?;
    Some(std::array::from_fn(|at| values[at.min(values.len() - 1)].clone()))
}

/// One to three sizes.
pub fn sizes(text: &str) -> Option<[Vec<SizeShare>; 3]> {
    three(text, 4 * KIB, block).map(|sizes| sizes.map(|bytes| vec![SizeShare { bytes, permille: 1000 }]))
}

pub fn set_splits(spec: &mut FioSpec, text: &str) -> Set {
    let default = vec![SizeShare { bytes: 4 * KIB, permille: 1000 }];
    spec.uniform = [false; 3];
    put(&mut spec.block_sizes, three(text, default, |text| split(text, block)))
}

/// `4k-16k`: the sizes at both ends; the sizes between them come with the steps (`rules.rs`).
pub fn set_ranges(spec: &mut FioSpec, text: &str) -> Set {
    let range = |text: &str| {
        let (least, most) = text.split_once('-')?;
        let (least, most) = (block(least.trim())?, block(most.trim())?);
        let ends = [least, most].map(|bytes| SizeShare { bytes, permille: 500 });
        (least < most).then(|| ends.to_vec()).or((least == most).then(|| vec![SizeShare { permille: 1000, ..ends[0] }]))
    };
    let default = vec![SizeShare { bytes: 4 * KIB, permille: 1000 }];
    put(&mut spec.block_sizes, three(text, default, range))?;
    spec.uniform = spec.block_sizes.each_ref().map(|sizes| sizes.len() > 1);
    Ok(())
}

pub fn set_file_sizes(spec: &mut FioSpec, text: &str) -> Set {
    let bytes = |text: &str| size(text).filter(|&bytes| bytes > 0 && bytes.is_multiple_of(SECTOR_BYTES));
    match amount(text) {
        Some(part @ Amount::Millionths(_)) if !is_zero(part) => put(&mut spec.size, Some(Some(part))),
        _ => put(&mut spec.file_sizes, split(text, bytes).map(Some)),
    }
}

/// `randread:8` and `read:-8k`: the pattern, and requests for each address or bytes to add.
pub fn set_pattern(spec: &mut FioSpec, text: &str) -> Set {
    let (name, change) = text.split_once(':').unwrap_or((text, ""));
    put(&mut spec.pattern, Pattern::named(name))?;
    (spec.run, spec.skip) = (1, 0);
    if text.contains(':') {
        let (sign, size) = change.strip_prefix('-').map_or((1, change), |size| (-1, size));
        let value = sectors(size).filter(|&bytes| bytes <= 1 << 50);
        match spec.pattern.random {
            true => put(&mut spec.run, count(change).filter(|&run| run > 0 && run <= u64::from(u32::MAX)))?,
            false => put(&mut spec.skip, value.map(|bytes| sign * bytes as i64))?,
        }
    }
    Ok(())
}

/// `5s` or `1s-5s`.
pub fn set_delay(spec: &mut FioSpec, text: &str) -> Set {
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    let (least, most) = (duration(least.trim()).ok_or(())?, duration(most.trim()).ok_or(())?);
    spec.start_delay = least;
    put(&mut spec.delay_spread, most.checked_sub(least))
}

/// `a:b`, with `\:` for a colon in a name.
pub fn paths(text: &str) -> Option<Vec<String>> {
    let mut paths = vec![String::new()];
    let mut escaped = false;
    for letter in text.chars() {
        match letter {
            '\\' if !escaped => escaped = true,
            ':' if !escaped => paths.push(String::new()),
            _ => {
                paths.last_mut().expect("there is one").push(letter);
                escaped = false;
            }
        }
    }
    (paths.len() <= 1024).then_some(paths)
}

/// `4k/50:16k/50`; sizes without a percentage share the rest in whole percentages, the last one with the remainder.
pub fn split(text: &str, bytes: impl Fn(&str) -> Option<u64>) -> Option<Vec<SizeShare>> {
    const MOST_SIZES: usize = 64;
    let mut shares: Vec<(u64, Option<u32>)> = Vec::new();
    for part in text.split(':') {
        let (size, share) = part.split_once('/').unwrap_or((part, ""));
        let share = if share.is_empty() { None } else { Some(permille(share)?) };
        shares.push((bytes(size)?, share));
    }
    let given: u32 = shares.iter().filter_map(|(_, share)| *share).sum();
    let left = 1000u32.checked_sub(given)?;
    let open = shares.iter().filter(|(_, share)| share.is_none()).count() as u32;
    if shares.len() > MOST_SIZES || (open == 0 && left > 0) {
        return None;
    }
    let mut unfilled = open;
    let fill = |(bytes, share): (u64, Option<u32>)| {
        let permille = share.unwrap_or_else(|| {
            unfilled -= 1;
            let each = left / open / 10 * 10;
            if unfilled == 0 { left - each * (open - 1) } else { each }
        });
        SizeShare { bytes, permille }
    };
    Some(shares.into_iter().map(fill).collect())
}
