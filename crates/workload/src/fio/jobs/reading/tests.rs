//! Files that a job file names.

use super::*;
use crate::fio::jobs::JobFile;

/// A scheme is a file with a range of offsets and a handle in each line.
#[test]
fn a_scheme_is_read_from_its_file() {
    let scheme = |text: &str| {
        let include = |name: &str, _: &str| match name {
            "map.txt" => Ok("0, 8192, 5\n\n8192, 16384, 1\n".into()),
            "long.txt" => Ok("0,1,0\n".repeat(33)),
            _ => Err(palimpsest_flash::error::Error::input(name, "there is no such file")),
        };
        let surroundings = Surroundings { variable: &|_| None, include: &include };
        JobFile::parse_in(text, "j.fio", &surroundings).map_err(|error| error.to_string())
    };
    let file = scheme("[a]\nrw=write\nplid_select=scheme\ndp_scheme=map.txt\n").unwrap();
    assert_eq!(file.jobs[0].spec.scheme.iter().map(|range| range.placement).collect::<Vec<_>>(), [5, 1]);
    for (text, expected) in [
        ("[a]\nplid_select=scheme\ndp_scheme=none.txt\n", "j.fio:3: dp_scheme none.txt: there is no such file"),
        ("[a]\nplid_select=scheme\ndp_scheme=long.txt\n", "j.fio:3: dp_scheme: expected a file with at most 32 lines"),
        ("[a]\ndp_scheme=map.txt\n", "j.fio:2: dp_scheme: expected plid_select=scheme too"),
        ("[a]\nplids=1\nplid_select=scheme\ndp_scheme=map.txt\n", "j.fio:2: plids: the scheme names the handles"),
    ] {
        let message = scheme(text).unwrap_err();
        assert!(message.starts_with(expected), "{message}");
    }
}
