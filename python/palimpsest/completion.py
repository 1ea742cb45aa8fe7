"""Shell completion: the scripts of `palimpsest completion`, and the answers to their requests.

zsh and fish use click's scripts. bash splits words at `=` and `:`, which occur in values (`--set ftl.victim=fifo`,
`fill:90%`), so its script passes the whole line, and the answer starts after the last separator.
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
from .commands import command, echo
from .parameters import Choice

VARIABLE = "_PALIMPSEST_COMPLETE"
"""The environment variable that holds a script's request."""

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
_OPEN = "open"
"""Type of an incomplete value: no space follows."""

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
        """Returns the words before the cursor, and the incomplete one."""
        line = os.environ.get("COMP_LINE", "")
        words = split_arg_string(line)
        incomplete = words.pop() if words and not line[-1:].isspace() else ""
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem) -> str:
        """Returns `KIND,VALUE`; the value starts after the last separator of bash."""
        _, incomplete = self.get_completion_args()
        breaks = [incomplete.rfind(letter) for letter in "=:" if letter in os.environ.get("BREAKS", "=:")]
        return f"{item.type},{item.value[max(breaks, default=-1) + 1 :]}"

    @staticmethod
    def _check_version() -> None:
        """Does nothing, because `palimpsest completion` states the required version."""


class _Plain(ShellComplete):
    def format_completion(self, item: CompletionItem) -> str:
        """As click's, which has no incomplete values."""
        plain = CompletionItem(item.value, "plain", item.help) if item.type == _OPEN else item
        return super().format_completion(plain)


class _Zsh(_Plain, ZshComplete): ...


class _Fish(_Plain, FishComplete): ...


_CLASSES: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}
SHELLS = tuple(_CLASSES)


def script(shell: str, program: click.Command) -> str:
    """Returns the script that a shell reads at startup."""
    return _CLASSES[shell](program, {}, "palimpsest", VARIABLE).source()


def answer(program: click.Command, question: str) -> int:
    """Prints the answer to a request, such as `bash_complete`; returns the exit status."""
    shell, _, what = question.partition("_")
    if shell not in _CLASSES or what != "complete":
        return 1
    echo(_CLASSES[shell](program, {}, "palimpsest", VARIABLE).complete())
    return 0


def _starting(incomplete: str, names: Iterable[tuple[str, str]], prefix: str = "") -> list[CompletionItem]:
    found = [(name, about) for name, about in names if name.startswith(incomplete)]
    return [CompletionItem(prefix + name, help=about) for name, about in found]


def files_and(kind: str) -> Complete:
    """Completes names of a registry, and files."""

    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, "file"), *_starting(incomplete, _core.list_registry(kind))]

    return complete


def formats(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes formats of traces."""
    return _starting(incomplete, _core.list_registry("traces"))


def object_formats(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes formats of traces of objects."""
    return _starting(incomplete, _core.list_registry("objects"))


def policies(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes eviction policies."""
    return _starting(incomplete, _core.list_registry("policies"))


def layers(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes translation layers; after a comma, those not yet named."""
    before, comma, last = incomplete.rpartition(",")
    named = before.split(",")
    left = [entry for entry in _core.list_registry("ftls") if entry[0] not in named]
    return _starting(last, left, before + comma)


def preconditions(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes states of a drive, with usual numbers."""
    usual = ("none", "fill:90%", "fill:100%", "fill:90%,random:1x", "fill:90%,random:2x", "steady", "layout")
    return _starting(incomplete, [(each, "") for each in usual])


def settings(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes configuration keys; after `=`, the words that a key takes."""
    key, equals, value = incomplete.partition("=")
    keys = {name: (words, about) for name, words, about in _core.configuration_keys()}
    if equals:
        words, _ = keys.get(key, ([], ""))
        return _starting(value, [(word, "") for word in words], f"{key}=")
    return [CompletionItem(f"{name}=", _OPEN, about) for name, (_, about) in keys.items() if name.startswith(key)]


@command("completion", short_help="Print the script that completes commands in a shell.")
@click.argument("shell", type=Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script that completes commands, options, names and configuration keys in a shell.

    \b
    Examples:
      palimpsest completion bash >> ~/.bashrc
      palimpsest completion zsh >> ~/.zshrc
      palimpsest completion fish > ~/.config/fish/completions/palimpsest.fish
    """
    echo(script(shell, click.get_current_context().find_root().command))
