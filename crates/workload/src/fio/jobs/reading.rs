//! Lines of job files: comments, included files, variables, and keys with their places.
//!
//! As in fio `;` and `#` begin a comment anywhere in a line, `include FILE` reads the keys of a file, and `${NAME}`
//! is the value of an environment variable, empty if not set. Ignored: the words `$ncpus`, `$mb_memory` and
//! `$pagesize`, which describe a machine; expressions other than those in parentheses (`quantity.rs`).

use super::super::inert;
use super::super::keys::{self, Key};
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::keys::{few, fitting};
use palimpsest_flash::units::parse::shown;

/// Most keys of a reason in a message.
const MOST_NAMED: usize = 20;
/// Most files that include each other.
const DEPTH: usize = 8;

/// Variables and files around a job file.
pub struct Surroundings<'a> {
    /// The value of an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The text of a file that the file of the second name includes.
    pub include: &'a dyn Fn(&str, &str) -> Result<String>,
}

/// A line without comment, and the file and number.
pub struct Line {
    pub text: String,
    pub at: String,
}

/// A key with a value.
#[derive(Clone)]
pub struct KeyLine {
    pub key: &'static Key,
    pub value: String,
    pub at: String,
    /// A variable in the value that is not set.
    pub unset: Option<String>,
}

/// A key, its line, and a hint.
type Refused = (String, String, String);

/// Keys of a file without a field: those without effect, and those that are refused.
#[derive(Default)]
pub struct Reading {
    accepted: Vec<String>,
    /// Reasons, and the keys with their lines and hints.
    refused: Vec<(&'static str, Vec<Refused>)>,
    first: String,
    /// Jobs whose engine waits for each request.
    pub capped: Vec<String>,
}

impl Surroundings<'_> {
    /// No variables, and no files.
    pub const NONE: Surroundings<'static> = Surroundings {
        variable: &|_| None,
        include: &|name, _| Err(Error::input(name, "there is no such file; expected a file that can be read")),
    };

    /// The lines of the file `text`, called `name`, and of the files that it includes.
    ///
    /// # Errors
    /// [`Error::Input`] if an included file has sections or cannot be read.
    pub fn lines(&self, text: &str, name: &str) -> Result<Vec<Line>> {
        let mut lines = Vec::new();
        self.read(text, name, 0, &mut lines)?;
        Ok(lines)
    }

    fn read(&self, text: &str, name: &str, depth: usize, lines: &mut Vec<Line>) -> Result<()> {
        for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let (text, at) = (line.split([';', '#']).next().unwrap_or("").trim(), format!("{name}:{}", number + 1));
            let included = text.strip_prefix("include").filter(|rest| rest.starts_with([' ', '\t', '=']));
            match included {
                Some(_) if depth == DEPTH => {
                    return Err(Error::input(at, format!("expected at most {DEPTH} files that include each other")));
                }
                Some(file) => {
                    let file = file[1..].trim();
                    let text = (self.include)(file, name).map_err(|error| match error {
                        Error::Input { what, .. } => Error::input(at, format!("include {file}: {what}")),
                        other => other,
                    })?;
                    self.read(&text, file, depth + 1, lines)?;
                }
                None if depth > 0 && text.starts_with('[') => {
                    return Err(Error::input(at, "an included file has keys alone; expected no section"));
                }
                None if text.is_empty() => {}
                None => lines.push(Line { text: text.to_string(), at }),
            }
        }
        Ok(())
    }

    /// The ranges in the file of a scheme (`dp_scheme`) called `file`, which the job file `name` names at `at`: lines
    /// in one, with colons between.
    ///
    /// # Errors
    /// [`Error::Input`] if the file cannot be read.
    pub fn scheme(&self, file: &str, name: &str, at: &str) -> Result<String> {
        let text = (self.include)(file, name).map_err(|error| match error {
            Error::Input { what, .. } => Error::input(at, format!("dp_scheme {file}: {what}")),
            other => other,
        })?;
        let compact = |line: &str| line.chars().filter(|letter| !letter.is_whitespace()).collect::<String>();
        Ok(text.lines().map(compact).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(":"))
    }

    /// `text` with the values of its variables, and the first variable that is not set.
    fn substituted(&self, text: &str) -> (String, Option<String>) {
        let (mut whole, mut rest, mut unset) = (String::new(), text, None);
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, after)) = after.split_once('}') else { break };
            whole.push_str(before);
            match (self.variable)(name) {
                Some(value) => whole.push_str(&value),
                None => _ = unset.get_or_insert_with(|| name.to_string()),
            }
            rest = after;
        }
        (whole + rest, unset)
    }
}

impl Reading {
    /// The key in a line; `None`, and a note of the key, for one without a field.
    pub fn entry(&mut self, text: &str, at: String, surroundings: &Surroundings<'_>) -> Option<KeyLine> {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let (name, (value, unset)) = (name.trim(), surroundings.substituted(value.trim()));
        if let Some(why) = inert::refused(name, &value) {
            let shown = if name == "ioengine" || name == "zonemode" { format!("{name}={value}") } else { name.into() };
            self.refuse(why, &shown, String::new(), at);
            return None;
        }
        if let Some(key) = keys::acting(name) {
            return Some(KeyLine { key, value, at, unset });
        }
        match inert::accepted(name) || inert::is_off(name) {
            true if self.accepted.iter().any(|other| other == name) => {}
            true => self.accepted.push(name.to_string()),
            false => {
                let hint = keys::nearest(name).map_or(String::new(), |key| format!("did you mean {key}?"));
                self.refuse("unknown key", name, hint, at);
            }
        }
        None
    }

    fn refuse(&mut self, why: &'static str, key: &str, hint: String, at: String) {
        let line = at.rsplit(':').next().unwrap_or("").to_string();
        if self.first.is_empty() {
            self.first = at;
        }
        let reason = self.refused.iter().position(|(other, _)| *other == why).unwrap_or_else(|| {
            self.refused.push((why, Vec::new()));
            self.refused.len() - 1
        });
        let (keys, key) = (&mut self.refused[reason].1, shown(key));
        if !keys.iter().any(|(other, ..)| *other == key) {
            keys.push((key, line, hint));
        }
    }

    /// Refuses all keys that no drive can play, and unknown ones, at once.
    ///
    /// # Errors
    /// [`Error::Input`] with the keys, their lines and the reasons.
    pub fn check(&self) -> Result<()> {
        if self.refused.is_empty() {
            return Ok(());
        }
        // A long message leaves out the lines, else of each reason all but a few keys, then reasons.
        let all: usize = self.refused.iter().map(|(_, keys)| keys.len()).sum();
        let named = |(key, line, hint): &Refused, with_line: bool| match (with_line, hint.as_str()) {
            (true, "") => format!("{key} (line {line})"),
            (true, hint) => format!("{key} (line {line}; {hint})"),
            (false, "") => key.clone(),
            (false, hint) => format!("{key} ({hint})"),
        };
        let text = |(with_lines, reasons, most): (bool, usize, usize)| {
            let one = |(why, keys): &(&str, Vec<Refused>)| {
                let keys: Vec<String> = keys.iter().map(|key| named(key, with_lines)).collect();
                format!("{why}: {}", few(&keys, most, "and"))
            };
            let texts: Vec<String> = self.refused[..reasons].iter().map(one).collect();
            let named: usize = self.refused[..reasons].iter().map(|(_, keys)| keys.len()).sum();
            let more = if all > named { format!("; and {} more keys", all - named) } else { String::new() };
            format!("{}: {}{more}; {}", self.first, texts.join("; "), inert::EXPECTED)
        };
        let reasons = self.refused.len();
        let forms = [(true, reasons, all), (false, reasons, all)].into_iter();
        let forms = forms.chain((1..all.min(MOST_NAMED)).rev().map(|most| (true, reasons, most)));
        let what = fitting(forms.chain((1..reasons).rev().map(|reasons| (true, reasons, 1))).map(text));
        Err(Error::input(&self.first, &what[self.first.len() + 2..]))
    }

    /// The notes on keys without effect, and on depths that an engine caps.
    pub fn notes(self) -> Vec<String> {
        let Reading { accepted, capped, .. } = self;
        let text = |most| format!("no effect in a simulation: {}", few(&accepted, most, "and"));
        let accepted = (!accepted.is_empty()).then(|| fitting((1..=accepted.len()).rev().map(text)));
        let of_depth = |jobs: String| format!("iodepth is 1 for {jobs}, because the ioengine waits for each request");
        accepted.into_iter().chain((!capped.is_empty()).then(|| of_depth(few(&capped, 3, "and")))).collect()
    }
}

#[cfg(test)]
mod tests;
