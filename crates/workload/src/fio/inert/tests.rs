//! Tests of keys without a field: each has one meaning.

use super::*;
use crate::fio::keys::{KEYS, acting};

#[test]
fn each_key_has_one_meaning() {
    let names = |table: &'static [(&str, &'static str)]| table.iter().flat_map(|(_, names)| names.split(' '));
    let plain = |name: &'static str| name.split('=').next().unwrap();
    let mut all: Vec<&str> = names(ACCEPTED).chain(names(REFUSED)).map(plain).collect();
    all.extend(KEYS.iter().flat_map(|key| key.aliases.iter().chain([&key.name])));
    all.sort_unstable();
    let twice: Vec<&[&str]> = all.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert_eq!(twice, [[""; 0]; 0]);
    assert!(all.iter().all(|name| !name.is_empty()));
    assert!(acting("ioengine").is_some() && accepted("direct") && !accepted("verify"));
}

#[test]
fn a_switch_that_is_off_is_no_reason() {
    assert_eq!(refused("pre_read", "1"), Some("needs a file system instead of a drive"));
    assert_eq!((refused("pre_read", "0"), is_off("pre_read")), (None, true));
    assert_eq!((refused("sg_write_mode", "write"), refused("zonemode", "none")), (None, None));
    assert!(refused("sg_write_mode", "verify_bytchk_01").is_some() && refused("ignore_zone_limits", "1").is_some());
    assert_eq!(
        (refused("size", "5g"), refused("size", "3z")),
        (None, Some("counts zones, whose size is zonesize; expected bytes"))
    );
    assert_eq!((refused("ioengine", "libaio"), waits("libaio"), waits("psync")), (None, Some(false), Some(true)));
    assert_eq!((refused("ioengine", "http"), waits("http")), (Some("needs a server instead of a drive"), None));
}

/// Names of keys in lines of at most 120 columns.
fn wrapped(first: String, names: impl Iterator<Item = String>) -> String {
    let (mut text, mut line) = (String::new(), first);
    for name in names {
        if line.len() + name.len() + 1 > 119 {
            text += &format!("{}\n", line.trim_end());
            line = "  ".into();
        }
        line += &format!("{name} ");
    }
    let last = line.trim_end().trim_end_matches(',').to_string();
    format!("{text}{last}\n")
}

/// The section of the documentation, from the tables of the code.
fn section() -> String {
    let quoted = |names: &'static str| names.split(' ').map(|name| format!("`{name}`,"));
    let lists = |table: &'static [(&str, &str)]| {
        let list = |(why, names): &(&str, &'static str)| wrapped(format!("- {why}: "), quoted(names));
        table.iter().map(list).collect::<String>()
    };
    let mut text = "These keys act:\n\n| key | expected |\n| --- | --- |\n".to_string();
    for key in KEYS {
        let names: Vec<String> = [&key.name].into_iter().chain(key.aliases).map(|name| format!("`{name}`")).collect();
        text += &format!("| {} | {} |\n", names.join(", "), key.expected.replace('|', "\\|"));
    }
    text += "\nThese keys have no effect in a simulation. Job files may have them, and a note names them:\n\n";
    text += &lists(ACCEPTED);
    text += "\nThese keys are refused, except for the value after an equals sign and for 0; one message names all:\n\n";
    text += &lists(REFUSED);
    let engines = |refused: bool| {
        let of = move |&(why, names): &(&str, &'static str)| (why.is_empty() != refused).then(|| quoted(names));
        ENGINES.iter().filter_map(of).flatten()
    };
    text += "\nEngines:\n\n";
    text += &wrapped("- of drives: ".into(), engines(false));
    text + &wrapped("- refused: ".into(), engines(true))
}

#[test]
fn the_documentation_has_every_key() {
    let page = include_str!("../../../../../docs/workloads.md");
    let (_, found) = page.split_once("### Every key of fio\n\n").expect("a section");
    let found = found.split("\n## ").next().unwrap();
    assert!(found.trim_end() == section().trim_end(), "the section must be:\n{}", section());
}
