"""Shell completion: the scripts of `palimpsest completion`, and the completions that they request.

zsh and fish are click's own. bash splits words at `=` and `:`, which occur in values (`--set ftl.victim=fifo`,
`fill:90%`): its script passes the whole line, and receives what follows the last of them.
"""

import os
from collections.abc import Callable, Iterable

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    split_arg_string,
)

from . import _core

VARIABLE = "_PALIMPSEST_COMPLETE"
"""The environment variable that holds a script's request."""

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
_OPEN = "open"
"""Type of an incomplete value: no space follows it."""

_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' reply kind
    COMPREPLY=()
    for reply in $(env COMP_LINE="${COMP_LINE:0:COMP_POINT}" BREAKS="$COMP_WORDBREAKS" \\
        %(complete_var)s=bash_complete "$1" 2>/dev/null); do
        kind="${reply%%%%,*}"
        case "$kind" in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            open) COMPREPLY+=("${reply#*,}"); compopt -o nospace ;;
            *) COMPREPLY+=("${reply#*,}") ;;
        esac
    done
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class _Bash(BashComplete):
    """bash from version 4.4 on."""

    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one at the cursor, and what there is of that."""
        line = os.environ.get("COMP_LINE", "")
        words = split_arg_string(line)
        incomplete = words.pop() if words and not line[-1:].isspace() else ""
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem) -> str:
        """`KIND,VALUE`, the value without what bash takes for words before it."""
        _, incomplete = self.get_completion_args()
        breaks = [incomplete.rfind(letter) for letter in "=:" if letter in os.environ.get("BREAKS", "=:")]
        return f"{item.type},{item.value[max(breaks, default=-1) + 1 :]}"

    @staticmethod
    def _check_version() -> None:
        """Nothing to check: `palimpsest completion` states the version that it needs."""


class _Zsh(ZshComplete):
    def format_completion(self, item: CompletionItem) -> str:
        """As click's, which has no incomplete values."""
        return super().format_completion(_plain(item))


class _Fish(FishComplete):
    def format_completion(self, item: CompletionItem) -> str:
        """As click's, which has no incomplete values."""
        return super().format_completion(_plain(item))


def _plain(item: CompletionItem) -> CompletionItem:
    return CompletionItem(item.value, "plain", item.help) if item.type == _OPEN else item


_CLASSES: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}
SHELLS = tuple(_CLASSES)


def script(shell: str, command: click.Command) -> str:
    """The script that the shell reads at its start."""
    return _CLASSES[shell](command, {}, "palimpsest", VARIABLE).source()


def answer(command: click.Command, question: str) -> int:
    """Prints the response to a request, such as `bash_complete`; gives the exit status."""
    shell, _, what = question.partition("_")
    if shell not in _CLASSES or what != "complete":
        return 1
    click.echo(_CLASSES[shell](command, {}, "palimpsest", VARIABLE).complete())
    return 0


def _starting(incomplete: str, names: Iterable[tuple[str, str]], prefix: str = "") -> list[CompletionItem]:
    found = [(name, about) for name, about in names if name.startswith(incomplete)]
    return [CompletionItem(prefix + name, help=about) for name, about in found]


def files_and(kind: str) -> Complete:
    """Names of a registry, and files."""

    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, "file"), *_starting(incomplete, _core.list_registry(kind))]

    return complete


def formats(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Formats of traces."""
    return _starting(incomplete, _core.list_registry("traces"))


def layers(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Translation layers; after a comma, those that are not there yet."""
    before, comma, last = incomplete.rpartition(",")
    named = before.split(",")
    left = [entry for entry in _core.list_registry("ftls") if entry[0] not in named]
    return _starting(last, left, before + comma)


def preconditions(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """States of a drive, with usual numbers."""
    usual = ("none", "fill:90%", "fill:100%", "fill:90%,random:1x", "fill:90%,random:2x", "steady", "layout")
    return _starting(incomplete, [(each, "") for each in usual])


def settings(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Configuration keys; after `=`, the words that a key may be."""
    key, equals, value = incomplete.partition("=")
    keys = {name: (words, about) for name, words, about in _core.configuration_keys()}
    if equals:
        words, _ = keys.get(key, ([], ""))
        return _starting(value, [(word, "") for word in words], f"{key}=")
    return [CompletionItem(f"{name}=", _OPEN, about) for name, (_, about) in keys.items() if name.startswith(key)]
