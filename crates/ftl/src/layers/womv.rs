//! `womv`: blocks of QLC flash are written several times between two erases, with a voltage-based code, WOM-v (Jaffer,
//! Mahdaviani and Schroeder, "Improving the reliability of next generation SSDs using WOM-v codes", FAST 2022).
//!
//! The layer is [`super::subpage`], the fine-grained map, on a part under the code: a page is a word line that stores k
//! of the four pages ([`palimpsest_flash::nand::part::Part::coded`]). The log writes in passes (`log/passes.rs`). A
//! block that collection emptied is written again from the first word line on, as the next generation, and erased after
//! the last one. Recovery reads the generations from flash. The next pass over a block that trims touched begins at
//! once, because restored trimmed data could take the room of collection. Source: the paper's abstract; docs/wom-v.md
//! lists the unknowns. Blocks of the fast cache hold single bits without the code, so a page there is k word lines.
//! Ignored: the paper's encoding optimization, reads of word lines before a program, time of
//! encoding and decoding.

use super::subpage;
use crate::log::settings::{CACHE, keys_of, keys_of_log};
use palimpsest_flash::nand::cells::CellCode;
use palimpsest_flash::nand::part::{CellKind, Part, ReadMode};
use palimpsest_flash::rng::Rng;
use palimpsest_flash::units::parse::format_bytes;
use palimpsest_ftl_api::keys;
use palimpsest_ftl_api::plan::select::ReadPolicy;
use palimpsest_ftl_api::settings::Settings;
use palimpsest_ftl_api::{Entry, Model, Programs, Proposal, Unfit, refuse_if};
use palimpsest_wom::levels::{LevelCode, WOM_V};

pub const ENTRY: Entry = Entry {
    name: "womv",
    about: "fine-grained map on QLC with a voltage code: blocks are written several times between two erases",
    keys: || [keys_of_log(), keys_of(&[CACHE, KEYS])].concat(),
    part: |settings, part| coded(settings, &part).unwrap_or(part),
    programs: Programs::OverData,
    takes_parity: false,
    check,
    model: Model {
        needs: &["part.cell=qlc", "part.order=strict", "part.nop=1", "part.t_dma_words=[]"],
        varies,
        ..Model::ANY
    },
    ..subpage::ENTRY
};

keys! {
    struct WomvSettings;

    group KEYS {
        /// bits that a cell stores / bits of a cell: written 15, 5 or 2 times between two erases
        code: &'static LevelCode = "ftl.womv_code", Choice(&CODES)
            => |word: String| &WOM_V[CODES.iter().position(|&code| code == word).expect("the word is a choice")], "3/4";
    }
}

const CODES: [&str; 3] = ["1/4", "2/4", "3/4"];

/// The most subpages of a page that can be simulated.
const MOST_SUBPAGES: u32 = 32;
/// Upper limit of array times in nanoseconds, because operations store 32 bits.
const LONGEST: u64 = u32::MAX as u64;

/// Checks that the part supports the code, and that the buffer holds a word line.
fn check(proposal: &Proposal<'_>) -> Result<(), Unfit> {
    if proposal.part.code.is_none() {
        return coded(proposal.settings, proposal.part).map(|_| ());
    }
    let page = u64::from(proposal.part.page_bytes);
    refuse_if!(proposal.settings.get::<u64>("buffer.size") < page => "buffer.size", "ftl.womv_code"
        => ["buffer.size" = &format_bytes(page)];
        "a word line stores {}, and the write buffer must hold one", format_bytes(page));
    Ok(())
}

/// `part` under the code of `settings`.
fn coded(settings: &Settings, part: &Part) -> Result<Part, Unfit> {
    let code = WomvSettings::new(settings).code;
    let pages = code.cell_bits();
    refuse_if!(part.cell != CellKind::Qlc => "ftl.name", "part.cell" => ["ssd.part" = "qlc-16k"], ["part.cell" = "qlc"];
        "WOM-v codes raise the levels of four-bit cells");
    refuse_if!(!(part.pages_per_block * part.pages_per_program).is_multiple_of(pages)
        => "part.pages_per_block", "part.cell";
        "{pages} pages share a word line; expected a multiple of {pages}");
    if ReadPolicy::new(settings).mode == ReadMode::Spread || !part.t_dma_words.is_empty() {
        let what = "womv senses whole word lines and moves their levels at part.bus_rate";
        let unfit = Unfit::new(&["ftl.name", "ftl.read", "part.t_dma_words"], what);
        let read = ("ftl.read", "page");
        let words = ("part.t_dma_words", "[]");
        return Err(unfit.or(&[read]).or(&[words]).or(&[read, words]));
    }
    let coded = part.coded(code).expect("whole word lines of cells that the code is for");
    let subpages = coded.subpages_per_page();
    refuse_if!(subpages > MOST_SUBPAGES => "ftl.womv_code", "part.page_size", "part.subpage_size";
        "{subpages} subpages a word line; at most {MOST_SUBPAGES} can be simulated");
    for (key, time, times) in [
        ("part.t_read", coded.t_read + coded.t_read_retry, pages),
        ("part.t_program", coded.t_program, pages),
        ("part.t_read_slc", coded.t_read_slc + coded.t_read_retry, code.data_bits()),
        ("part.t_program_slc", coded.t_program_slc, code.data_bits()),
    ] {
        refuse_if!(time > LONGEST => key, "ftl.name";
            "a word line takes {times} times that; at most 4 s can be simulated");
    }
    Ok(coded)
}

/// Blocks with as many word lines as the suite draws pages, each about the size of such a page, and every code.
fn varies(rng: &mut Rng, drawn: &[String]) -> Vec<String> {
    let mut varied = vec![
        format!("ftl.womv_code={}", CODES[rng.below(3) as usize]),
        format!("ftl.read={}", ["page", "dma"][rng.below(2) as usize]),
        "part.word_size=512B".into(),
    ];
    let size = |key: &str| {
        let value = drawn.iter().find_map(|setting| setting.strip_prefix(key)?.strip_prefix('='))?;
        value.trim_end_matches('B').parse::<u64>().ok()
    };
    varied.extend(size("part.pages_per_block").map(|pages| format!("part.pages_per_block={}", 4 * pages)));
    let (page, subpage) = (size("part.page_size").unwrap_or(0), size("part.subpage_size").unwrap_or(4096));
    if page >= 4 * subpage {
        varied.push(format!("part.page_size={}B", page / 4));
    } else {
        varied.extend(size("buffer.size").map(|bytes| format!("buffer.size={}B", 4 * bytes)));
    }
    varied
}
