"""The command `palimpsest help`: the pages of the documentation, as an installation has them.

`pages` is a link to `docs` in a checkout, and a folder with the pages in a wheel. Ignored: pictures, and pages that
only a build of the site writes.
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from . import listing
from .commands import command, echo, show
from .errors import did_you_mean

_PAGES = Path(__file__).with_name("pages")
_HEADING = re.compile(r"^# (.+)$", re.MULTILINE)


def pages() -> Mapping[str, Path]:
    """The file of each page by topic, in the order of the names. A topic is a file name of `docs` without ending."""
    return {path.stem: path for path in sorted(_PAGES.glob("*.md"))}


class _Topic(click.ParamType[str]):
    """A page, or a command."""

    name = "topic"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Returns the topic; fails for any other word."""
        commands = _commands(ctx)
        topics = [*pages(), *commands.list_commands(ctx)] if ctx and commands else [*pages()]
        if value not in topics:
            meant = did_you_mean(value, topics)
            self.fail(
                f"no page and no command is called {value!r}{meant}; `palimpsest help` lists the pages", param, ctx
            )
        return value

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """The topics that start with `incomplete`."""
        return [CompletionItem(topic) for topic in pages() if topic.startswith(incomplete)]


def _commands(ctx: click.Context | None) -> click.Group | None:
    group = ctx.find_root().command if ctx else None
    return group if isinstance(group, click.Group) else None


@command("help", short_help="Show a page of the documentation.")
@click.argument("topic", required=False, type=_Topic())
@click.pass_context
def help_(ctx: click.Context, topic: str | None) -> None:
    """Show a page of the documentation, or list the pages.

    TOPIC is a page of the list, or a command, whose options are shown if no page has its name.

    \b
    Examples:
      palimpsest help
      palimpsest help results
      palimpsest help howto-trace | less
    """
    if topic is None:
        titles = [(name, _title(path)) for name, path in pages().items()]
        echo(listing.render({"pages": titles}, listing.width()))
        return
    if page := pages().get(topic):
        _show(page.read_text(encoding="utf-8"))
        return
    group = _commands(ctx)
    named = group.get_command(ctx, topic) if group else None
    assert named, "the type of the argument has checked the topic"
    with click.Context(named, info_name=topic, parent=ctx.find_root()) as own:
        echo(named.get_help(own))


def _title(page: Path) -> str:
    found = _HEADING.search(page.read_text(encoding="utf-8"))
    return found[1] if found else ""


def _show(text: str) -> None:
    """Prints a page: rendered in a terminal, as written in a pipe or a file."""
    if not sys.stdout.isatty():
        echo(text.rstrip())
        return
    from rich.markdown import Markdown

    show(Markdown(text, hyperlinks=False))
