//! Values near a refused one, which a remedy may name: words, or numbers in steps that grow with the distance.
//! Ignored: possibility, which the check of the drive decides.

use super::ResolvedKey;
use palimpsest_flash::units::parse::{
    format_age, format_bytes, format_capacity, format_energy, format_ratio, format_time,
};
use palimpsest_ftl_api::keys::blocks::BlockCount;
use palimpsest_ftl_api::keys::{Value, ValueType};

/// Values tried beside a number, one by one.
const STEPS: u64 = 16;
/// Usual ratios, in hundredths.
const RATIOS: [u32; 20] = [0, 1, 2, 3, 5, 7, 10, 15, 20, 25, 28, 30, 40, 50, 60, 75, 100, 150, 200, 300];

/// Texts of other values of `key`, nearest first; words and lists begin with the value `before` the user's.
pub(super) fn candidates(key: &ResolvedKey, before: Option<&Value>) -> Vec<String> {
    let own = key.value.to_text();
    let (least, most) = match key.key.value_type {
        ValueType::Count { min, max } | ValueType::Bytes { min, max } => (min, max),
        ValueType::Capacity { max } => (0, max),
        _ => (0, u64::MAX),
    };
    let whole = |number: u64, format: &dyn Fn(u64) -> String| {
        let near = numbers(number, before.and_then(whole_of));
        near.into_iter().filter(|near| (least..=most).contains(near)).map(format).collect()
    };
    let mut texts: Vec<String> = match &key.value {
        Value::Count(number) => whole(*number, &|number| number.to_string()),
        Value::Bytes(bytes) => whole(*bytes, &format_bytes),
        Value::Capacity(bytes) => whole(*bytes, &format_capacity),
        Value::Time(time) => whole(*time, &format_time),
        Value::Age(age) => whole(*age, &format_age),
        Value::Energy(energy) => whole(*energy, &format_energy),
        Value::Blocks(BlockCount::Blocks(blocks)) => whole((*blocks).into(), &blocks_text),
        Value::Ratio(ratio) => ratios(*ratio),
        Value::Blocks(BlockCount::Share(share)) => ratios(*share).into_iter().chain([blocks_text(1)]).collect(),
        Value::Flag(flag) => vec![(!flag).to_string()],
        Value::Times(_) | Value::Energies(_) | Value::Ratios(_) => vec!["[]".into()],
        Value::Text(_) => key.key.value_type.words().into_iter().map(String::from).collect(),
        Value::Rate(_) | Value::Factor(_) => Vec::new(),
    };
    let is_number = matches!(key.value, Value::Count(_) | Value::Bytes(_) | Value::Capacity(_) | Value::Blocks(_));
    if let Some(before) = before.map(Value::to_text) {
        // The value of the preset is as good as a near one, unless the kind has an order.
        texts.insert(if is_number { texts.len() } else { 0 }, before);
    }
    texts.retain(|text| *text != own);
    texts
}

fn blocks_text(blocks: u64) -> String {
    format!("{blocks} block{}", if blocks == 1 { "" } else { "s" })
}

fn whole_of(value: &Value) -> Option<u64> {
    match value {
        Value::Count(number) | Value::Bytes(number) | Value::Capacity(number) => Some(*number),
        Value::Time(number) | Value::Age(number) | Value::Energy(number) => Some(*number),
        Value::Blocks(BlockCount::Blocks(blocks)) => Some((*blocks).into()),
        _ => None,
    }
}

/// Numbers by their ratio to `number`: neighbours, halves and doubles, multiples of powers of two, and `before`.
fn numbers(number: u64, before: Option<u64>) -> Vec<u64> {
    let mut near: Vec<u64> = (1..=STEPS).flat_map(|step| [number.saturating_sub(step), number + step]).collect();
    for power in 0..48 {
        near.extend([number >> power, number.saturating_mul(1 << power), 1 << power]);
        let whole = number >> power << power;
        near.extend([whole, whole + (1 << power)]);
        near.extend(before.map(|before| before.saturating_mul(1 << power)));
        near.extend(before.map(|before| before >> power));
    }
    near.extend([0, 3]);
    let distance = |near: u64| ((near as f64 + 1.0) / (number as f64 + 1.0)).ln().abs();
    near.sort_by(|a, b| distance(*a).total_cmp(&distance(*b)).then(a.cmp(b)));
    near.dedup();
    near
}

fn ratios(ratio: f64) -> Vec<String> {
    let mut near: Vec<f64> = RATIOS.iter().map(|&hundredths| f64::from(hundredths) / 100.0).collect();
    near.sort_by(|a, b| (a - ratio).abs().total_cmp(&(b - ratio).abs()));
    near.into_iter().map(format_ratio).collect()
}
