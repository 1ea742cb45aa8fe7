"""The documentation as a reader's site: a menu of four kinds, no dead link, short first sentences, near answers.

Not checked: commands and their output, which `test_docs.py` runs, and addresses of other sites.
"""

import re

import pytest

from conftest import ROOT

pytestmark = pytest.mark.contract

DOCS = ROOT / "docs"
GENERATED = {"reference.md", "tour.md", "pacing.md", "standings.md"}
KINDS = ("Tutorials", "How-to", "Reference", "Explanation")
MOST_WORDS_FIRST = 25
MOST_WORDS_TUTORIAL = 600
MOST_WORDS_CELL = 40
MOST_CLICKS = 3

PAGES = {
    path.name: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md")) if path.name not in GENERATED
}

QUESTIONS = {
    "How do I replay a trace that I downloaded?": ("howto-replay.md", "--workload web_3.csv.zst"),
    "Can a drive be larger than the memory of my machine?": ("howto-memory.md", "--payload none"),
    "Why is garbage collection not triggered?": ("howto-steady.md", "fill:90%,random:2x"),
    "Is the difference of two layers more than chance?": ("howto-intervals.md", "--seeds 1..5"),
    "How do I run my own victim policy?": ("policies.md", "ftl.victim=mine.py:CostAgeTimes"),
    "Does my database survive a power cut?": ("crash.md", "palimpsest crash --setup"),
    "How do I mount a simulated drive as a block device?": ("howto-attach.md", "palimpsest attach --ssd"),
    "Which effects of a real drive are missing?": ("not-modelled.md", "Contention for the DRAM"),
    "How near does a preset come to a real drive?": ("validate.md", "palimpsest validate"),
    "How do I get results into pandas?": ("howto-pandas.md", "to_pandas()"),
    "How do I install without a Rust toolchain?": ("install.md", "pip install dist/*.whl"),
    "Why is the 99th percentile so high?": ("howto-why.md", "--operations slowest:20"),
    "How do I change the times of flash?": ("faq.md", "--set part.t_read=45us"),
    "How fast is the simulator?": ("faq.md", "million steady random writes a second"),
    "Does my own layer survive power cuts?": ("howto-test-layer.md", "Further cases cut the power"),
    "Does a drive have an SLC cache?": ("configuration.md", "`ftl.slc_cache` is the share"),
    "How many terabytes may I write (TBW)?": ("wear.md", "dwpd_5_years"),
    "How do I see each flash operation?": ("operations.md", "--operations operations.parquet"),
    "Which version and command made this figure?": ("figures.md", "palimpsest rerun"),
    "What does data placement (FDP) save?": ("placement.md", "palimpsest compare --ssd tlc-32g --ftl page,fdp"),
    "How do I simulate RocksDB?": ("records.md", "--workload fdp-rocksdb"),
    "How do I show garbage collection to a class?": ("live-teachers.md", "scene 1 on the projector"),
}
"""Questions of users, with the page that answers each and words of the answer."""


def prose(text: str) -> str:
    """A page without fenced blocks and comments."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    return re.sub(r"<!--.*?-->", "", text, flags=re.S)


def words(text: str) -> list[str]:
    """Words of prose as a reader sees them: a link is its text, and a span of code one word."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]*`", "code", text)
    return re.findall(r"[A-Za-z0-9][\w'.,-]*", text)


def first_sentence(text: str) -> str:
    """The first sentence of a page, which may end with a colon."""
    blocks = re.split(r"\n\s*\n", prose(text))
    paragraph = next(block for block in blocks if block.strip() and block.lstrip()[0] not in "#!|<-")
    return re.split(r"(?<=[.!?:])\s", " ".join(paragraph.split()))[0]


def slug(heading: str) -> str:
    """The anchor of a heading, as the Markdown library makes it."""
    plain = re.sub(r"[`*]|\[|\]\([^)]*\)", "", heading)
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def anchors(text: str) -> set[str]:
    """The anchors of all headings of a page."""
    return {slug(heading) for heading in re.findall(r"^#+ (.+)$", prose(text), re.M)}


def links(text: str) -> list[tuple[str, str]]:
    """File and anchor of each link that stays in the documentation; the file is empty for the page itself."""
    found = re.findall(r"\]\(([^)\s#]*)(?:#([^)]*))?\)", prose(text))
    return [(file, anchor) for file, anchor in found if "://" not in file]


def menu() -> dict[str, list[str]]:
    """Pages of each section of the menu; the page before all sections has the empty name."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    sections: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if section := re.match(r"  - ([^:]+):$", line):
            name = section[1]
        if file := re.search(r": ([\w-]+\.md)$", line):
            sections.setdefault(name, []).append(file[1])
    return sections


def clicks() -> dict[str, int]:
    """The number of links from the first page to each page."""
    found, turn = {"index.md": 0}, ["index.md"]
    while turn:
        page = turn.pop(0)
        for file, _ in links(PAGES.get(page, "")):
            if file not in found:
                found[file] = found[page] + 1
                turn.append(file)
    return found


def test_the_menu_has_every_page_in_one_of_four_kinds() -> None:
    sections = menu()
    assert sections.pop("") == ["index.md"]
    assert tuple(sections) == KINDS
    listed = [file for files in sections.values() for file in files]
    assert sorted(listed) == sorted((PAGES.keys() | GENERATED) - {"index.md"})


MADE = ("images/wom-codes.svg", "live/index.html")
"""Files that `make docs` adds."""


@pytest.mark.parametrize("page", PAGES)
def test_no_link_is_dead(page: str) -> None:
    dead = []
    for file, anchor in links(PAGES[page]):
        name = file or page
        exists = (DOCS / name).exists() or name.startswith("images/gallery-") or name in MADE
        if not exists or (anchor and name in PAGES and anchor not in anchors(PAGES[name])):
            dead.append(f"{file}#{anchor}")
    assert not dead


@pytest.mark.parametrize("page", [*PAGES, "README.md"])
def test_the_first_sentence_is_short(page: str) -> None:
    sentence = first_sentence(PAGES.get(page) or (ROOT / page).read_text(encoding="utf-8"))
    assert len(words(sentence)) <= MOST_WORDS_FIRST, sentence


TUTORIALS = [page for page in PAGES if page.startswith("tutorial-")]


@pytest.mark.parametrize("page", TUTORIALS)
def test_a_tutorial_is_short_and_says_how_to_continue(page: str) -> None:
    assert len(TUTORIALS) >= 7
    text = PAGES[page]
    assert len(text.split()) <= MOST_WORDS_TUTORIAL
    last = text.rpartition("\n## ")[2]
    assert last.startswith("Next\n")
    assert len(links(last)) >= 2


@pytest.mark.parametrize("page", ["fit.md", "configuration.md", "workloads.md", "systems.md", "results.md"])
def test_cells_are_short(page: str) -> None:
    rows = [line for line in PAGES[page].splitlines() if line.startswith("|")]
    assert len(rows) > 8
    cells = [cell for row in rows for cell in row.strip("|").split(" | ")]
    assert not [cell for cell in cells if len(words(cell)) > MOST_WORDS_CELL]


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_reader_finds_the_answer(question: str) -> None:
    page, answer = QUESTIONS[question]
    assert clicks()[page] <= MOST_CLICKS
    assert answer in " ".join(PAGES[page].split())


def test_every_page_is_near() -> None:
    far = {page: clicks().get(page) for page in PAGES if clicks().get(page, MOST_CLICKS + 1) > MOST_CLICKS}
    assert not far


def test_the_faq_answers_at_least_twenty_questions() -> None:
    answers = [part for part in PAGES["faq.md"].split("\n\n") if part.startswith("**")]
    assert len(answers) >= 20
    for answer in answers:
        question, _, rest = answer.removeprefix("**").partition("**")
        assert "?" in question
        assert "`" in rest or any(file in PAGES for file, _ in links(rest)), question


def test_limits_of_the_model_are_those_of_the_sources() -> None:
    named = set(re.findall(r"`(crates/[\w/.-]+\.rs)`", PAGES["not-modelled.md"]))
    assert len(named) > 30
    for name in named:
        head = "".join(
            line for line in (ROOT / name).read_text(encoding="utf-8").splitlines() if line.startswith("//!")
        )
        assert "gnored" in head, name


def test_the_text_of_the_package_has_no_links() -> None:
    """An index of packages shows the text alone, so a relative link or picture would be dead."""
    for file in ("pyproject.toml", "Cargo.toml"):
        assert '\nreadme = "PACKAGE.md"\n' in (ROOT / file).read_text(encoding="utf-8"), file
    assert links((ROOT / "PACKAGE.md").read_text(encoding="utf-8")) == []
    assert links((ROOT / "README.md").read_text(encoding="utf-8"))[0][0].endswith(".png")


def test_faults_are_found() -> None:
    assert anchors("# A `b`\n\n## Fast cache, *full*\n") == {"a-b", "fast-cache-full"}
    assert links("[a](b.md#c) ![d](e.svg) [f](https://g.example) [h](#i)") == [("b.md", "c"), ("e.svg", ""), ("", "i")]
    assert first_sentence("# Title\n\n![x](y)\n\nOne `two three` four. Five.\n") == "One `two three` four."
    assert len(words("One `two three` [four](five.md) six.")) == 4
