//! Tests of keys without a field: each has one meaning.

use super::*;
use crate::fio::JobFile;
use crate::fio::keys::{KEYS, acting};
use crate::request::Source;
use palimpsest_flash::keys::LONGEST_MESSAGE;

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

/// Refusals of a wrong value, of keys alone and of keys in a specification.
#[test]
fn messages_of_keys_have_at_most_200_characters() {
    let acting = KEYS.iter().flat_map(|key| key.aliases.iter().chain([&key.name]));
    let given = |name: &&str| crate::fio::FioSpec::parse(&format!("rw=read,{name}=no/number:9"));
    let wrong: Vec<String> = acting.filter_map(|name| given(name).err()).map(|error| error.to_string()).collect();
    let inert = [ACCEPTED, REFUSED].into_iter().flatten().flat_map(|(_, names)| names.split(' '));
    let inert = inert.map(|name| given(&name.split('=').next().unwrap()).unwrap_err().to_string());
    let long: Vec<String> = wrong.into_iter().chain(inert).filter(|text| text.len() > LONGEST_MESSAGE).collect();
    assert_eq!(long, [""; 0]);
}

/// Every refused key in one file, and every key without effect.
#[test]
fn messages_of_files_have_at_most_200_characters() {
    let all = |table: &[(&str, &str)]| {
        let lines = table.iter().flat_map(|(_, names)| names.split(' ')).map(|name| name.split('=').next().unwrap());
        lines.map(|name| format!("{name}=2\n")).collect::<String>()
    };
    let message = JobFile::parse(&format!("[a]\n{}", all(REFUSED)), "j.fio").unwrap_err().to_string();
    assert!(message.len() <= LONGEST_MESSAGE && message.contains(" more keys; expected a key of"), "{message}");
    for (why, names) in REFUSED {
        let message = JobFile::parse(&format!("[a]\n{}", all(&[(why, names)])), "j.fio").unwrap_err().to_string();
        assert!(message.len() <= LONGEST_MESSAGE, "{message}");
    }
    let file = JobFile::parse(&format!("[a]\n{}n=1\n", all(ACCEPTED)), "j.fio").unwrap();
    let notes = file.source(1 << 30, 1).unwrap().notes();
    assert!(notes[0].len() <= LONGEST_MESSAGE && notes[0].ends_with(" more"), "{notes:?}");
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
