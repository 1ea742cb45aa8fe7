//! Remedies of refusals: random drives, of which each "expected KEY = VALUE" and "at most VALUE" is taken.

use super::*;
use crate::layers::layers;
use palimpsest_flash::rng::Rng;
use palimpsest_ftl_api::keys::ValueType;
use std::collections::HashSet;

/// A value of `key`, often an extreme one.
fn value(rng: &mut Rng, key: &Known) -> Option<String> {
    let mut one = |texts: &[String]| Some(texts[rng.below(texts.len() as u64) as usize].clone());
    let of = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    match key.value_type {
        ValueType::Count { min, max } => {
            one(&[min, min + 1, 2, 3, 4, 7, 16, 100, 1536, max].map(|n| n.clamp(min, max).to_string()))
        }
        ValueType::Bytes { min, max } => {
            one(&[0, 512, 4096, 16_384, 65_536, 1 << 20].map(|n: u64| format!("{}B", n.clamp(min, max))))
        }
        ValueType::Capacity { .. } => one(&of(&["100MiB", "8GiB", "64GiB", "2TB", "30.72TB"])),
        ValueType::Time => one(&of(&["0ns", "70us", "30ms", "5s"])),
        ValueType::Age => one(&of(&["0ns", "90d"])),
        ValueType::Ratio { .. } | ValueType::ShareOrNotation(_) | ValueType::ShareOr(_) => {
            one(&of(&["0%", "1%", "7%", "20%", "50%", "100%"]))
        }
        ValueType::Blocks => one(&of(&["0%", "20%", "1 block", "5 blocks", "60 blocks"])),
        ValueType::Flag => one(&of(&["true", "false"])),
        ValueType::PartName => one(&part_presets().iter().map(|part| part.name.to_owned()).collect::<Vec<_>>()),
        _ if key.name == "ftl.name" => None,
        ValueType::Choice(_) | ValueType::Names(_) | ValueType::Notation(_) => {
            let words = key.value_type.words();
            if words.is_empty() { None } else { one(&of(&words)) }
        }
        _ => None,
    }
}

/// The alternatives of the remedy in `message`, each with all of its settings; `blamed` is the key of a bare value.
fn remedies(message: &str, blamed: &str) -> Vec<Vec<String>> {
    let Some((_, expected)) = message.rsplit_once("expected ") else { return Vec::new() };
    let value = |text: &str| {
        let text = text.trim_start();
        let (quoted, text) = text.strip_prefix('"').map_or((false, text), |rest| (true, rest));
        let ends: &[char] = if quoted { &['"'] } else { &[',', ';', ' ', ')', ':'] };
        text.split(ends).next().unwrap_or_default().to_owned()
    };
    let mut all = Vec::new();
    for alternative in expected.split(" or ") {
        let mut settings = Vec::new();
        let mut rest = alternative;
        while let Some((before, after)) = rest.split_once(" = ") {
            let key = before.rsplit([' ', '(']).next().unwrap_or_default();
            if schema::position(key).is_some() {
                settings.push(format!("{key}={}", value(after)));
            }
            rest = after;
        }
        let bare = alternative.strip_prefix("at most \"").or_else(|| alternative.strip_prefix('"'));
        if let (true, Some(bare)) = (settings.is_empty(), bare) {
            settings.push(format!("{blamed}={}", bare.split('"').next().unwrap_or_default()));
        }
        if !settings.is_empty() {
            all.push(settings);
        }
    }
    all
}

/// The refusal of a drive: the text without numbers, to tell refusals apart, and the whole text.
fn refusal(ssd: &str, ftl: &str, settings: &[String]) -> Option<(String, String)> {
    match resolve(ssd, Some(ftl), settings, &no_file) {
        Err(Error::Input { place, what, .. }) => {
            let problem = what.split(": ").skip(1).collect::<Vec<_>>().join(": ");
            let problem = if problem.is_empty() { &what } else { &problem };
            let kind = problem.split("; expected").next().unwrap().chars().filter(|c| !c.is_ascii_digit()).collect();
            Some((kind, format!("{place}: {what}")))
        }
        Err(other) => panic!("{other}"),
        Ok(resolved) => {
            let set = |key: &str| settings.iter().any(|setting| setting.split('=').next() == Some(key));
            let mut unread = resolved.unread().iter().filter(|one| one.gravity == Gravity::Mistake && set(one.key));
            unread
                .next()
                .map(|one| (one.what.clone(), format!("{}: {}; expected {}", one.place, one.what, one.expected)))
        }
    }
}

fn with(settings: &[String], more: &[String]) -> Vec<String> {
    let key = |setting: &str| setting.split('=').next().unwrap().to_owned();
    let mut all: Vec<String> =
        settings.iter().filter(|one| !more.iter().any(|other| key(other) == key(one))).cloned().collect();
    all.extend(more.iter().cloned());
    all
}

/// What is wrong with the remedies of the drives from `seeds`, and the number of remedies.
fn wrong(seeds: std::ops::Range<u64>) -> (Vec<String>, usize) {
    let presets: Vec<&str> = ssd_presets().iter().map(|info| info.name).collect();
    let names: Vec<&str> = layers().map(|entry| entry.name).collect();
    let mut found = Vec::new();
    let mut taken = 0;
    for seed in seeds {
        let rng = &mut Rng::new(seed, 0x4e3);
        let ssd = presets[rng.below(presets.len() as u64) as usize];
        let ftl = names[rng.below(names.len() as u64) as usize];
        let mut settings = Vec::new();
        for _ in 0..1 + rng.below(3) {
            let key = &keys()[rng.below(keys().len() as u64) as usize];
            if let Some(value) = value(rng, key) {
                settings = with(&settings, &[format!("{}={value}", key.name)]);
            }
        }
        let Some((kind, message)) = refusal(ssd, ftl, &settings) else { continue };
        let drive = format!("--ssd {ssd} --ftl {ftl} {}", settings.join(" "));
        for remedy in remedies(&message, &blamed(&message)) {
            taken += 1;
            let mut state = with(&settings, &remedy);
            let mut seen = HashSet::new();
            let Some((next, text)) = refusal(ssd, ftl, &state) else { continue };
            if next == kind {
                found.push(format!("{drive}\n  {message}\n  {remedy:?} -> {text}"));
                continue;
            }
            let mut message = text;
            for _ in 0..6 {
                let mut key: Vec<String> = state.clone();
                key.sort();
                if !seen.insert(key) {
                    found.push(format!("{drive}\n  endless: {message}"));
                    break;
                }
                let Some(remedy) = remedies(&message, &blamed(&message)).into_iter().next() else { break };
                state = with(&state, &remedy);
                match refusal(ssd, ftl, &state) {
                    Some((_, text)) => message = text,
                    None => break,
                }
            }
        }
    }
    (found, taken)
}

/// The key in the place of `message`, or the first key in the message.
fn blamed(message: &str) -> String {
    let set = message.strip_prefix("--set ").and_then(|rest| rest.split('=').next());
    let first = || message.split(" = ").next().and_then(|before| before.rsplit(' ').next()).unwrap_or_default();
    set.unwrap_or_else(first).to_owned()
}

fn check(seeds: std::ops::Range<u64>, least: usize) {
    let (found, taken) = wrong(seeds);
    println!("{taken} remedies, {} wrong", found.len());
    assert!(taken > least, "{taken}");
    assert!(found.is_empty(), "{} wrong:\n{}", found.len(), found.join("\n"));
}

#[test]
fn remedies_of_refusals_work() {
    check(0..500, 40);
}

#[test]
#[ignore = "a minute"]
fn long_remedies_of_refusals_work() {
    check(500..4500, 400);
}

/// A capacity in a message, and the least that any preset takes.
#[test]
fn a_capacity_works_or_the_message_names_one_that_does() {
    let mut refused = 0;
    for info in ssd_presets() {
        for capacity in ["1MiB", "256MiB", "1GiB", "8GiB", "100GB", "1TB"] {
            let Err(error) = preset(info.name, &[&format!("ssd.capacity={capacity}")]) else { continue };
            let message = error.to_string();
            let (_, named) = message.split_once("expected ssd.capacity = ").unwrap_or_else(|| {
                panic!("{} {capacity}: {message}", info.name);
            });
            let named = named.split(' ').next().unwrap();
            let (number, unit) = named.split_at(named.find(char::is_alphabetic).unwrap());
            for more in [1.0, 1.5, 2.0] {
                let capacity = format!("ssd.capacity={}{unit}", (number.parse::<f64>().unwrap() * more).ceil());
                preset(info.name, &[&capacity]).map(drop).unwrap_or_else(|error| panic!("{}: {error}", info.name));
            }
            refused += 1;
        }
    }
    assert!(refused > 20, "{refused}");
}
