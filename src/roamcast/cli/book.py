"""`roamcast book`: makes the pages of results from stored summaries."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roamcast.cli.output import print_json
from roamcast.errors import ConfigurationError
from roamcast.papers.book import write_book

if TYPE_CHECKING:
    from roamcast.campaign.store import Store


def book(
    directory: Annotated[
        Path, typer.Argument(help="Directory with the summaries in data/; the pages go there, too.")
    ] = Path("docs/results"),
    arena: Annotated[
        Path | None, typer.Option(help="First store the results of this campaign as those of the arena.")
    ] = None,
    hard: Annotated[Path | None, typer.Option(help="The same for the hard arena.")] = None,
    large: Annotated[Path | None, typer.Option(help="The same for the arena of large networks.")] = None,
    capacity: Annotated[
        Path | None, typer.Option(help="With --arena: also store the answer of roamcast capacity from this directory.")
    ] = None,
    waymark: Annotated[
        Path | None, typer.Option(help="First store the results of this campaign as those of Waymark's goals.")
    ] = None,
    ablation: Annotated[
        Path | None, typer.Option(help="First store the results of this campaign as the ablation of SOMER-plus.")
    ] = None,
    arena_map: Annotated[
        Path | None, typer.Option("--map", help="First store the results of this campaign as the arena's map.")
    ] = None,
    into: Annotated[
        list[Path] | None,
        typer.Option(help="Renew the arena's tables in this Markdown file, between marks; repeatable.", exists=True),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Answer with JSON.")] = False,
) -> None:
    """Make the book of results from stored summaries."""
    if capacity is not None and (arena is None or not (capacity / "capacity.json").exists()):
        raise ConfigurationError(f"--capacity: {str(capacity)!r} needs --arena, and must hold capacity.json")
    given = {"arena": arena, "arena-hard": hard, "arena-large": large, "map": arena_map}
    stores = {name: _store(place) for name, place in given.items() if place is not None}
    if stores:
        from roamcast.campaign.session import LOCAL, spark_session
        from roamcast.papers.arena import keep, keep_map

        for store in stores.values():
            store.manifest()  # refuses what is no campaign before Spark is started
        trace_bytes = sum(store.trace_bytes() for store in stores.values())
        with spark_session(LOCAL, trace_bytes=trace_bytes) as session:
            for name, store in stores.items():
                if name == "map":
                    keep_map(session, store, directory)
                else:
                    keep(session, store, directory, name, capacity if name == "arena" else None)
    if waymark is not None:
        from roamcast.campaign.session import LOCAL, spark_session
        from roamcast.papers import goals

        measured = _store(waymark)
        measured.manifest()
        with spark_session(LOCAL, trace_bytes=measured.trace_bytes()) as session:
            goals.keep(session, measured, directory)
    if ablation is not None:
        from roamcast.campaign.session import LOCAL, start_session
        from roamcast.papers.ablation import keep as keep_ablation

        keep_ablation(partial(start_session, LOCAL), _store(ablation), directory)
    written = [str(path) for path in write_book(directory)]
    for document in into or []:
        from roamcast.papers.arena import renew_tables

        renew_tables(directory, document)
        written.append(str(document))
    if as_json:
        print_json({"written": written})
    else:
        typer.echo(f"{len(written)} files written, the index is {directory / 'README.md'}")


def _store(place: Path) -> "Store":
    from roamcast.campaign.store import Store

    return Store(place)
