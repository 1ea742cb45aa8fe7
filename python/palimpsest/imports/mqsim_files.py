"""Files of MQSim as trees of elements: a configuration, workloads and results, all XML without attributes that matter.

A document type is refused, because entities could expand without bound. Depth and size are limited. MQSim (commit
7ec40e3) reads element names exactly, takes the last of repeated ones, and accepts `</<Name>`, as in its examples.
"""

from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

from ..errors import InputError
from ..files import LARGEST_TEXT
from .elements import printable
from .record import Imported

_DEEPEST = 32


class _NoType(ET.TreeBuilder):
    """Refuses documents with a type, and deep ones."""

    depth = 0

    def doctype(self, name: str, *_ids: str | None) -> None:
        """Refuses the document."""
        raise InputError(f"the document declares a type ({printable(name)}); expected a file of MQSim, which has none")

    def start(self, tag: str, attrs: dict[str, str]) -> ET.Element:
        """Opens an element."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise InputError(f"elements are nested {self.depth} deep; expected a file of MQSim")
        return super().start(tag, attrs)

    def end(self, tag: str) -> ET.Element:
        """Closes an element."""
        self.depth -= 1
        return super().end(tag)


def tree(path: Path, root: str, what: str) -> ET.Element:
    """The root element of a file. Raises InputError for other files."""
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_TEXT + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; expected {what}") from error
    if len(text) > LARGEST_TEXT:
        raise InputError(f"{path}: larger than {LARGEST_TEXT >> 20} MiB; expected {what}")
    # Expat expands entities before the builder can refuse the type.
    if b"<!DOCTYPE" in text.upper().replace(b"\0", b""):
        raise InputError(f"{path}: the document declares a type (DOCTYPE); expected {what}, which has none")
    parser = ET.XMLParser(target=_NoType())
    try:
        parser.feed(text.replace(b"</<", b"</"))
        found: ET.Element = parser.close()
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except (ET.ParseError, ValueError, LookupError) as error:
        raise InputError(f"{path}: malformed XML: {error}; expected {what}") from error
    if found.tag != root:
        raise InputError(f"{path}: the root element is {printable(found.tag)}; expected {what}, with {root}")
    return found


def child(path: Path, parent: ET.Element, name: str) -> ET.Element:
    """The last element of this name. Raises InputError if there is none."""
    found = parent.findall(name)
    if not found:
        raise InputError(f"{path}: {printable(parent.tag)} has no element {name}; expected one")
    return found[-1]


def values(parent: ET.Element, of: Imported, sections: tuple[str, ...] = ()) -> Mapping[str, str]:
    """The texts of the elements of a section, without subsections; notes repeated ones."""
    found: dict[str, str] = {}
    for each in parent:
        name = printable(each.tag)
        if name in sections:
            continue
        text = (each.text or "").strip()
        if name in found:
            of.lost(f"{name} = {printable(found[name])}", "the element is repeated, and MQSim takes the last one")
        found[name] = text
    return found
