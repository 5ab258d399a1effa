"""Commands on a call cache: ``python -m models.cache --help``."""

import argparse
import json
import re
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.filesize import decimal
from rich.markup import escape
from rich.table import Table

from models.cache.calls import Call, CallCache, Mode
from models.cache.contents import Filter, count, groups, newest, remove, size_on_disk
from models.cache.parquet import export_calls, import_calls
from models.errors import CacheError

DEFAULT = "outputs/cache/calls.sqlite"
_SECONDS = {"h": 3600, "d": 86_400, "w": 604_800}
console = Console()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except CacheError as error:
        console.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m models.cache", description="Look into a call cache, copy it, or remove calls from it.")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--cache", default=DEFAULT, metavar="WHERE", help=f"path, or postgresql://USER@HOST:PORT/NAME (default: {DEFAULT})")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    inspect = commands.add_parser("inspect", parents=[shared], help="counts, sizes and newest calls; or one call whole, with --key")
    inspect.add_argument("--newest", type=_count, default=5, metavar="N", help="how many of the newest calls to list (default: 5)")
    inspect.add_argument("--key", help="show the call whose key begins so")
    inspect.set_defaults(run=_inspect)

    export = commands.add_parser("export", parents=[shared], help="write calls to a Parquet file")
    export.add_argument("file", type=Path)
    export.add_argument("--model", help="only calls of this model id")
    export.set_defaults(run=_export)

    bring = commands.add_parser("import", parents=[shared], help="check a Parquet file and store its calls; calls that exist stay")
    bring.add_argument("file", type=Path)
    bring.set_defaults(run=_import)

    prune = commands.add_parser("prune", parents=[shared], help="remove calls; conditions add up, and without --yes nothing is removed")
    prune.add_argument("--model", help="calls of this model id")
    prune.add_argument("--older-than", type=_age, metavar="AGE", help="calls stored longer ago than 12h, 30d or 8w")
    prune.add_argument("--key", help="the calls whose key begins so")
    prune.add_argument("--yes", action="store_true", help="really remove them")
    prune.set_defaults(run=_prune)
    return parser


def _open(options: argparse.Namespace, mode: Mode) -> CallCache:
    return CallCache(options.cache, mode=mode)


def _inspect(options: argparse.Namespace) -> None:
    cache = _open(options, "read_only")
    if options.key:
        _show_one(newest(cache, 2, only=Filter(key=options.key)), options.key)
        return
    table = Table(title=f"{escape(cache.name)}: {decimal(size_on_disk(cache))} on disk", title_justify="left")
    for name in ("model", "task", "calls", "text", "in", "image", "out", "seconds", "newest"):
        table.add_column(name, justify="left" if name in ("model", "task") else "right", no_wrap=True, overflow="ellipsis")
    found = groups(cache)
    for group in found:
        numbers = (group.input_tokens, group.image_tokens, group.output_tokens)
        table.add_row(
            escape(group.model_id),
            escape(group.task),
            f"{group.n_calls:,}",
            decimal(group.n_bytes),
            *(f"{number:,}" for number in numbers),
            f"{group.seconds:,.1f}",
            _time(group.newest),
        )
    console.print(table)
    console.print("in, image, out: tokens; those of images are part of in", highlight=False)
    console.print(f"{sum(group.n_calls for group in found):,} calls")
    for call in newest(cache, options.newest, only=Filter()):
        reply = " ".join(call.reply.split())
        line = f"{_time(call.created)}  {call.key[:12]}  {call.task}: {reply}"
        console.print(line, markup=False, highlight=False, no_wrap=True, overflow="ellipsis")


def _show_one(calls: Sequence[Call], key: str) -> None:
    if len(calls) != 1:
        raise CacheError(f"{'no' if not calls else 'more than one'} call has a key that begins with {key}; inspect lists keys")
    call = calls[0]
    console.print(f"{call.key}\n{call.model_id}, {call.phase}/{call.task}, {_time(call.created)}", markup=False, highlight=False)
    tokens = f"{call.input_tokens:,} tokens in ({call.image_tokens:,} image), {call.output_tokens:,} out"
    console.print(f"{tokens}, {call.seconds:.2f} s", markup=False, highlight=False)
    for message in json.loads(call.request)["messages"]:
        console.rule(message["role"], align="left")
        for part in message["parts"]:
            shown = part if isinstance(part, str) else f"<image {part['width']} × {part['height']}, {part['image']}>"
            console.print(shown, markup=False, highlight=False)
    console.rule("reply", align="left")
    console.print(call.reply, markup=False, highlight=False)


def _export(options: argparse.Namespace) -> None:
    n_calls = export_calls(_open(options, "read_only"), options.file, only=Filter(model_id=options.model))
    console.print(f"{n_calls:,} calls written to {options.file}", markup=False, highlight=False, soft_wrap=True)


def _import(options: argparse.Namespace) -> None:
    cache = _open(options, "read_write")
    n_calls, n_stored = import_calls(cache, options.file)
    console.print(f"{n_calls:,} calls read, {n_stored:,} new in {cache.name}", markup=False, highlight=False, soft_wrap=True)


def _prune(options: argparse.Namespace) -> None:
    before = None if options.older_than is None else time.time() - options.older_than
    only = Filter(options.model, options.key, before)
    if not only.conditions:
        raise CacheError("prune needs --model, --older-than or --key; to remove everything, delete the file or drop the database")
    if not options.yes:
        n_calls = count(_open(options, "read_only"), only=only)
        console.print(f"{n_calls:,} call(s) would be removed; add --yes to remove them", highlight=False)
        return
    CallCache(options.cache, mode="read_only").close()  # a cache that does not exist is an error here, and not made
    console.print(f"{remove(_open(options, 'read_write'), only=only):,} call(s) removed", highlight=False)


def _count(value: str) -> int:
    if not re.fullmatch(r"\d{1,6}", value):
        raise argparse.ArgumentTypeError(f"{value!r} is no count; write a whole number from 0")
    return int(value)


def _age(value: str) -> float:
    match = re.fullmatch(r"(\d{1,6})([hdw])", value)
    if match is None:
        raise argparse.ArgumentTypeError(f"{value!r} is no age; write 12h, 30d or 8w")
    return int(match[1]) * _SECONDS[match[2]]


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


if __name__ == "__main__":
    sys.exit(main())
