//! Golden messages: one for each kind of mistake.

use super::*;
use palimpsest_flash::keys::LONGEST_MESSAGE;

/// The message of `result`, which must be a mistake of the user.
fn message(result: Result<Resolved>) -> String {
    match result {
        Err(error @ Error::Input { .. }) => without_preset_lines(&error.to_string()),
        other => panic!("expected a mistake, got {other:?}"),
    }
}

/// Line numbers in presets as N, so that an edited preset changes no message.
fn without_preset_lines(message: &str) -> String {
    let mut parts = message.split(".toml:");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let in_preset = text.rsplit([' ', '(']).next().is_some_and(|path| path.starts_with("presets/"));
        let rest = if in_preset { part.trim_start_matches(|c: char| c.is_ascii_digit()) } else { part };
        text += if in_preset { ".toml:N" } else { ".toml:" };
        text += rest;
    }
    text
}

#[test]
fn mistakes_in_files_name_file_line_and_what_was_expected() {
    let cases = [
        ("[ssd\n", "my.toml:1: expected TOML: unclosed table, expected `]`"),
        ("[part]\nnop = 1\nnop = 2\n", "my.toml:3: expected TOML: duplicate key"),
        ("\n[part]\nt_raed = \"1us\"\n", "my.toml:3: unknown key part.t_raed; did you mean part.t_read?"),
        ("nop = 4\n", "my.toml:1: unknown key nop; did you mean part.nop?"),
        ("[xyzzy]\nq = 1\n", "my.toml:2: unknown key xyzzy.q; expected one that `palimpsest show` prints"),
        ("ssd = 5\n", "my.toml:1: unknown key ssd; did you mean ssd.part?"),
        (
            "part.t_read = 35\n",
            "my.toml:1: part.t_read: the bare number 35 is not possible here; expected a time such as \"35us\"",
        ),
        (
            "part.page_size = \"16MB\"\n",
            "my.toml:1: part.page_size: \"16MB\": MB is not a unit of bytes; did you mean MiB? expected a number of \
             bytes such as \"16KiB\" (units: B, KiB, MiB, GiB, TiB)",
        ),
        (
            "part.nop = \"4\"\n",
            "my.toml:1: part.nop: the text \"4\" is not possible here; expected a whole number from 1 to 4294967295",
        ),
        ("part.nop = 0\n", "my.toml:1: part.nop: 0 is out of range; expected a whole number from 1 to 4294967295"),
        ("part.t_erase = \"2000000s\"\n", "my.toml:1: part.t_erase: 2000000s is out of range; expected at most 86400s"),
        ("ecc.data_age = \"4000d\"\n", "my.toml:1: ecc.data_age: 4000d is out of range; expected at most 3650d"),
        (
            "ssd.over_provisioning = 28\n",
            "my.toml:1: ssd.over_provisioning: 28.0 may be a ratio or a percentage; \
             expected \"28%\", or a number below 1",
        ),
        ("faults.erase_fail = \"120%\"\n", "my.toml:1: faults.erase_fail: 120% is out of range; expected at most 100%"),
        (
            "faults.erase_fail = -0.1\n",
            "my.toml:1: faults.erase_fail: -0.1 is not a ratio; expected a percentage such as \"28%\", or a number \
             from 0 to 1 such as 0.28",
        ),
        (
            "sim.scheduler = \"readfirst\"\n",
            "my.toml:1: sim.scheduler: \"readfirst\" is not known; expected one of fifo, read-first, host-first; did \
             you mean read-first?",
        ),
        (
            "ftl.victim = \"d-choices:0\"\n",
            "my.toml:1: ftl.victim: \"d-choices:0\": expected d-choices:K with a whole number K from 1",
        ),
        (
            "part.t_dma_words = [\"1us\", 2]\n",
            "my.toml:1: part.t_dma_words: the bare number 2 in the list is not possible; expected a time such as \
             \"35us\"",
        ),
        (
            "base = \"mga-16\"\n",
            "my.toml:1: no SSD preset is called \"mga-16\"; did you mean mga-16k? expected one that \
             `palimpsest list ssds` prints",
        ),
        (
            "ssd.channels = 1\nssd.blocks_per_plane = 64\n",
            "my.toml: part.cell is not set; expected ssd.part to name a part, or every part.* key without a default",
        ),
        (
            "ssd.part = \"a16\"\n",
            "my.toml: ssd.channels is not set (channels); expected a value, or base = \"...\" to name an SSD preset",
        ),
        ("base = \"default\"\nssd.part = \"mine.toml\"\n", "mine.toml: no such file"),
    ];
    for (text, expected) in cases {
        assert_eq!(message(file(text, &[])), expected, "of {text}");
    }
    let read = |path: &str| match path {
        "my.toml" => Ok("base = \"default\"\nssd.part = \"part.toml\"\n".into()),
        _ => Ok("[ftl]\nname = \"page\"\n".into()),
    };
    let expected = "part.toml:2: ftl.name does not belong to a part; expected part.* keys only";
    assert_eq!(message(resolve("my.toml", None, &[], &read)), expected);
}

#[test]
fn mistakes_in_options_name_the_option() {
    let cases: [(&[&str], &str); 7] = [
        (&["part.nop"], "--set part.nop: expected key=value, such as part.nop=4"),
        (&["=4"], "--set =4: expected key=value, such as part.nop=4"),
        (&["part.npo=4"], "--set part.npo=4: unknown key part.npo; did you mean part.nop?"),
        (
            &["part.nop=4", "part.nop=2"],
            "--set part.nop=2: part.nop is already set by --set part.nop=4; expected it once",
        ),
        (
            &["part.t_read=35"],
            "--set part.t_read=35: part.t_read: the bare number 35 is not possible here; expected a time such as \
             \"35us\"",
        ),
        (&["name=x"], "--set name=x: unknown key name; did you mean ftl.name?"),
        (
            &["part.nop=0", "part.t_erase=2000000s", "part.order=x"],
            "--set part.nop=0: part.nop: 0 is out of range; expected a whole number from 1 to 4294967295; also --set \
             part.t_erase=2000000s: part.t_erase: 2000000s is out of range; expected at most 86400s; also --set \
             part.order=x: part.order: \"x\" is not known; expected one of strict, ascending, any, low-low-high, \
             low-high-low",
        ),
    ];
    for (overrides, expected) in cases {
        assert_eq!(message(preset("mga-16k", overrides)), expected);
    }
    assert!(
        message(preset("defualt", &[]))
            .starts_with("--ssd defualt: no SSD is called \"defualt\"; did you mean default? ")
    );
    assert!(message(preset("default", &["ssd.part=tlc-16"])).starts_with(
        "--set ssd.part=tlc-16: no part is called \"tlc-16\"; did you mean tlc-16k? \
         expected one that `palimpsest list parts` prints"
    ));
    assert!(message(resolve("default", Some("a b"), &[], &no_file)).starts_with(
        "--ftl a b: ftl.name = a b: there is no such translation layer; \
         expected one that `palimpsest list ftls` prints"
    ));
}

#[test]
fn former_names_of_keys_work_with_one_note() {
    let noted = |resolved: Resolved| {
        let set = resolved.key("part.nop").expect("a key").value.clone();
        let [found] = resolved.unread() else { panic!("{:?}", resolved.unread()) };
        (set, found.gravity, format!("{}: {}; expected {}", found.place, found.what, found.expected))
    };
    let said = |place: &str| {
        let what = format!("{place}: part.partial_programs is called part.nop since version 9.1; expected part.nop");
        (Value::Count(2), Gravity::Note, what)
    };
    let option = "part.partial_programs=2";
    assert_eq!(noted(preset("mga-16k", &[option]).unwrap()), said("--set part.partial_programs=2"));
    assert_eq!(noted(file("base = \"mga-16k\"\n[part]\npartial_programs = 2\n", &[]).unwrap()), said("my.toml:3"));
    assert_eq!(
        message(preset("mga-16k", &["part.nop=2", option])),
        "--set part.partial_programs=2: part.nop is already set by --set part.nop=2; expected it once"
    );
}

/// A drive, overrides, and the refusal.
const IMPOSSIBLE: &[(&str, &[&str], &str)] = &[
    (
        "mga-16k",
        &["part.subpage_size=3KiB"],
        "--set part.subpage_size=3KiB: part.page_size = 16KiB (presets/parts/k9-slc-16k.toml:N), part.subpage_size = \
         3KiB: a page must be a whole number of subpages; expected part.subpage_size = 4KiB",
    ),
    (
        "mga-16k",
        &["part.subpage_size=1000B"],
        "--set part.subpage_size=1000B: part.subpage_size = 1000B: a subpage must be a whole number of sectors of \
         512 bytes; expected part.subpage_size = 1KiB",
    ),
    (
        "mga-16k",
        &["part.page_size=64KiB", "part.subpage_size=512B"],
        "--set part.page_size=64KiB: part.subpage_size = 512B: that is 128 subpages a page; at most 32 are possible, \
         so subpages of 2KiB; expected part.page_size = 16KiB or part.subpage_size = 2KiB",
    ),
    (
        "llh-16g",
        &["part.pages_per_block=127"],
        "--set part.pages_per_block=127: part.cell = mlc: pages of mlc come in pairs, so a block needs an even \
         number; expected part.pages_per_block = 128",
    ),
    (
        "mga-16k",
        &["part.order=low-low-high"],
        "--set part.order=low-low-high: part.order = low-low-high, part.cell = slc \
         (presets/parts/k9-slc-16k.toml:N): that order needs low and high pages; expected part.cell = mlc or \
         part.order = ascending",
    ),
    (
        "llh-16g",
        &["ssd.blocks_per_plane=16777216"],
        "--set ssd.blocks_per_plane=16777216: ssd.channels = 4 and 4 more: that makes 68719476736 subpages; at most \
         4294705152 can be simulated; expected ssd.blocks_per_plane = 524288",
    ),
    (
        "default",
        &["ssd.capacity=30.72TB"],
        "--set ssd.capacity=30.72TB: ssd.over_provisioning = 28% and 1 more: that makes 9600036864 subpages; at most \
         4294705152 can be simulated; expected part.subpage_size = 16KiB or ssd.capacity = 8TiB",
    ),
    (
        "d5-p5336-30.72t",
        &["ssd.capacity=122.88TB"],
        "--set ssd.capacity=122.88TB: ssd.over_provisioning = 14% and 1 more: that makes 8550088704 subpages; at \
         most 4294705152 can be simulated; expected part.subpage_size = 32KiB or ssd.capacity = 61.44TB",
    ),
    (
        "default",
        &["ssd.capacity=122.88TB"],
        "--set ssd.capacity=122.88TB: that makes 38400012288 subpages; at most 4294705152 can be simulated; expected \
         part.subpage_size = 64KiB and part.page_size = 64KiB or ssd.capacity = 8TiB",
    ),
    (
        "tlc-32g",
        &["ssd.over_provisioning=0.5%"],
        "--set ssd.over_provisioning=0.5%: ssd.blocks_per_plane = 266 and 1 more: a full drive has 1 spare block in a \
         plane and needs 3; expected ssd.over_provisioning = \"1.15%\" or ssd.blocks_per_plane = 604",
    ),
    (
        "tlc-32g",
        &["ftl.slc_fixed=20%"],
        "--set ftl.slc_fixed=20%: a full drive has 17 spare blocks in a plane and needs 56, 53 of them for \
         ftl.slc_fixed; expected ftl.slc_fixed = \"14 blocks\" or ssd.over_provisioning = \"26.67%\"",
    ),
    (
        "tlc-32g",
        &["ftl.slc_fixed=2%", "part.cell=slc"],
        "--set ftl.slc_fixed=2%: ftl.slc_fixed = 2%, part.cell = slc (--set): blocks of mlc, tlc and qlc can hold \
         one bit a cell instead; expected part.cell = mlc or part.cell = tlc or part.cell = qlc",
    ),
    (
        "tlc-32g",
        &["ftl.slc_full=fold"],
        "--set ftl.slc_full=fold: ftl.slc_full = fold, ftl.slc_fixed = 0% (default): a block of the fixed share is \
         folded; expected ftl.slc_fixed = \"2 blocks\"",
    ),
    (
        "tlc-32g",
        &["ssd.capacity=64GiB", "ssd.blocks_per_plane=266"],
        "--set ssd.capacity=64GiB: ssd.capacity = 64GiB makes ssd.blocks_per_plane = 532, which is given as 266; \
         expected ssd.blocks_per_plane = 532 or ssd.capacity = 32GiB (one of the two)",
    ),
    (
        "tlc-32g",
        &["ssd.capacity=9000TiB"],
        "--set ssd.capacity=9000TiB: ssd.capacity = 9000TiB: that is more than 16777216 blocks in each of 32 planes; \
         expected ssd.capacity = 9000GiB (less, or more dies)",
    ),
    (
        "tlc-32g",
        &["ftl.superblock_dies=3"],
        "--set ftl.superblock_dies=3: ssd.channels = 8, ssd.chips_per_channel = 1, ssd.dies_per_chip = 1: the drive \
         has 8 dies; expected ftl.superblock_dies = 4 (a number that divides it, or 0)",
    ),
    (
        "tlc-32g",
        &["part.cell=qlc", "part.t_read_high=90us"],
        "--set part.t_read_high=90us: part.cell = qlc: only pages of mlc come in low and high pairs; expected \
         part.t_read_high = 50us or part.cell = mlc (part.t_read_types for the pages of a word line)",
    ),
    (
        "tlc-32g",
        &["part.t_read_types=[\"40us\", \"50us\"]"],
        "--set part.t_read_types=[\"40us\", \"50us\"]: part.cell = tlc: 2 times; expected part.t_read_types = [] \
         (three for tlc, four for qlc, none for others)",
    ),
    (
        "tlc-32g",
        &["ftl.name=sector-log", "ftl.log_fraction=10%"],
        "--set ftl.log_fraction=10%: a full drive has 17 spare blocks in a plane and needs 30, 27 of them for \
         sector-log; expected ftl.log_fraction = \"5.26%\" or ssd.over_provisioning = \"12.72%\"",
    ),
    (
        "tlc-32g",
        &["ftl.name=bast", "ftl.log_blocks=20"],
        "--set ftl.log_blocks=20: a full drive has 17 spare blocks in a plane and needs 23, 20 of them for bast; \
         expected ftl.log_blocks = 14 or ssd.over_provisioning = \"9.47%\" or ssd.blocks_per_plane = 353",
    ),
    (
        "tlc-32g",
        &["ftl.name=fast", "ftl.log_blocks=1"],
        "--set ftl.log_blocks=1: ftl.log_blocks = 1: one log block takes sequential writes alone; expected \
         ftl.log_blocks = 2 (2 at least)",
    ),
    (
        "mga-16k",
        &["ftl.name=sector-log", "ssd.blocks_per_plane=8", "ssd.over_provisioning=30%"],
        "--set ssd.over_provisioning=30%: ssd.blocks_per_plane = 8 and 2 more: a full drive has 1 spare block in a \
         plane and needs 3, 1 of them for sector-log; expected ssd.over_provisioning = \"200%\"",
    ),
    (
        "mga-16k",
        &["ssd.over_provisioning=28%"],
        "--set ssd.over_provisioning=28%: collection would never stop: a plane of a full drive has 112 spare blocks, \
         and 204 must be free; expected ftl.gc_stop = \"111 blocks\" or ssd.over_provisioning = \"100%\"",
    ),
    (
        "mga-16k",
        &["ftl.gc_stop=10%"],
        "--set ftl.gc_stop=10%: ftl.gc_start = 20%: collection would stop at 51 free blocks and start at 102; \
         expected ftl.gc_stop = \"102 blocks\" (gc_stop no less than gc_start)",
    ),
    (
        "mga-16k",
        &["ftl.gc_start=0.1%"],
        "--set ftl.gc_start=0.1%: ftl.gc_start = 0.1%, ssd.blocks_per_plane = 512 (presets/ssds/mga-16k.toml:N): \
         that is no block; collection needs one to clean into; expected ftl.gc_start = \"1 block\"",
    ),
    (
        "mga-16k",
        &["ftl.read=spread"],
        "--set ftl.read=spread: ssd.part = k9-slc-16k: the part has no spread command: part.t_read_words gives its \
         times (part vnand-16k has them); expected ftl.read = page",
    ),
    (
        "spread-16g",
        &["part.t_read_words=[\"1us\", \"2us\"]"],
        "--set part.t_read_words=[\"1us\", \"2us\"]: 2 times for 8 words a page; expected part.t_read_words = \
         [\"35us\", \"45us\", \"55us\", \"65us\", \"75us\", \"85us\", \"95us\", \"99us\"] (one for each number of \
         words)",
    ),
    (
        "spread-16g",
        &["ftl.name=spftl", "ftl.read=page"],
        "--set ftl.read=page: ftl.read = page, ftl.name = spftl (--set): spftl always reads by \"spread\"; expected \
         ftl.name = subpage or ftl.read = spread",
    ),
    (
        "mga-16k",
        &["ftl.name=spftl"],
        "--set ftl.name=spftl: ssd.part = k9-slc-16k: the part has no spread command: part.t_read_words gives its \
         times (part vnand-16k has them); expected ftl.name = mga",
    ),
    (
        "spread-16g",
        &["part.bus_rate=400MB/s"],
        "--set part.bus_rate=400MB/s: the table gives the time of every transfer of whole words, whatever the rate; \
         expected part.t_dma_words = [] (no table for the rate to decide, or a new one)",
    ),
    (
        "spread-16g",
        &["part.word_size=128B"],
        "--set part.word_size=128B: part.page_size = 16KiB: that is 128 code words a page; at most 64 are possible, \
         so words of 256B; expected part.word_size = 2KiB",
    ),
    (
        "mga-16k",
        &["part.e_read_words=[\"1uJ\", \"1uJ\", \"1uJ\", \"1uJ\", \"1uJ\", \"1uJ\", \"1uJ\", \"1uJ\"]"],
        "--set part.e_read_words=[\"1uJ\", \"1uJ\", \"1uJ\", \"1uJ\", \"1uJ\", \"1uJ\",...: part.t_read_words = []: \
         the part has no spread command; expected no part.e_read_words (its times in part.t_read_words too)",
    ),
    (
        "tlc-32g",
        &["ftl.classifier=placement"],
        "--set ftl.classifier=placement: ftl.streams = 2: the classes of writes need streams of their own; expected \
         ftl.streams = 3 or ftl.classifier = none",
    ),
    (
        "tlc-32g",
        &["ftl.name=fs-subpage", "ssd.over_provisioning=60%", "ftl.streams=3", "ftl.classifier=recency"],
        "--set ftl.classifier=recency: such a classifier judges by the addresses of the host, and a file system \
         writes where space is free; expected ftl.classifier = none or ftl.name = subpage",
    ),
    (
        "tlc-32g",
        &["ftl.streams=200"],
        "--set ftl.streams=200: a full drive has 17 spare blocks in a plane and needs 201; expected ftl.streams = 16 \
         or ssd.over_provisioning = \"309.24%\" or ssd.blocks_per_plane = 3074",
    ),
    (
        "tlc-32g",
        &["ftl.moved=class"],
        "--set ftl.moved=class: ftl.moved = class, ftl.streams = 2 (presets/ssds/tlc-32g.toml:N): moved data keeps \
         its class where the classes of the host have streams; expected ftl.streams = 3",
    ),
    (
        "codesign-8ch",
        &["ftl.name=codesign", "fs.discard=page"],
        "--set fs.discard=page: fs.discard = page, ftl.name = codesign (--set): a block map unmaps whole blocks \
         only; expected no fs.discard",
    ),
    (
        "womv-16g",
        &["ssd.part=tlc-16k"],
        "presets/ssds/womv-16g.toml:N: ftl.name = womv, part.cell = tlc (presets/parts/tlc-16k.toml:N): WOM-v codes \
         raise the levels of four-bit cells; expected ssd.part = qlc-16k or part.cell = qlc",
    ),
    (
        "womv-16g",
        &["part.pages_per_block=190"],
        "--set part.pages_per_block=190: part.pages_per_block = 190, part.cell = qlc (presets/parts/qlc-16k.toml:N): \
         4 pages share a word line; expected part.pages_per_block = 192 (a multiple of 4)",
    ),
    (
        "womv-16g",
        &["part.subpage_size=1KiB"],
        "--set part.subpage_size=1KiB: ftl.womv_code = 3/4, part.page_size = 16KiB: 48 subpages a word line; at most \
         32 can be simulated; expected part.subpage_size = 2KiB",
    ),
    (
        "womv-16g",
        &["buffer.size=32KiB"],
        "--set buffer.size=32KiB: buffer.size = 32KiB, ftl.womv_code = 3/4 (presets/ssds/womv-16g.toml:N): a word \
         line stores 48KiB, and the write buffer must hold one; expected buffer.size = 48KiB",
    ),
    (
        "womv-16g",
        &["part.t_program=1.5s"],
        "--set part.t_program=1.5s: part.t_program = 1.5s, ftl.name = womv (presets/ssds/womv-16g.toml:N): a word \
         line takes 4 times that; at most 4 s can be simulated; expected part.t_program = 2.15ms",
    ),
    (
        "mga-16k",
        &["ftl.patrol=1s"],
        "--set ftl.patrol=1s: ftl.patrol = 1s, ecc.strength = 0 (default): a patrol looks for read errors; expected \
         ecc.strength = 40 or ftl.patrol = 0ns",
    ),
    (
        "mga-16k",
        &["buffer.size=8KiB"],
        "--set buffer.size=8KiB: buffer.size = 8KiB, part.page_size = 16KiB (presets/parts/k9-slc-16k.toml:N): the \
         write buffer must hold at least one page; expected no buffer.size",
    ),
];

#[test]
fn impossible_drives_are_refused_with_what_would_do() {
    let mut others = Vec::new();
    for (ssd, overrides, expected) in IMPOSSIBLE {
        let found = message(preset(ssd, overrides));
        assert!(found.len() <= LONGEST_MESSAGE, "{} characters: {found}", found.len());
        others.extend((found != *expected).then_some(found));
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
    let cured = ["ssd.over_provisioning=1.15%", "ssd.blocks_per_plane=604"];
    preset("tlc-32g", &[cured[0], "ftl.gc_start=1 block", "ftl.gc_stop=1 block"]).unwrap();
    preset("tlc-32g", &["ssd.over_provisioning=0.5%", cured[1], "ftl.gc_start=1 block", "ftl.gc_stop=1 block"])
        .unwrap();
    preset("mga-16k", &["ssd.over_provisioning=28%", "ftl.gc_stop=111 blocks"]).unwrap();
    preset("mga-16k", &["ssd.over_provisioning=28%", "ftl.gc_stop=21.67%"]).unwrap();
}
