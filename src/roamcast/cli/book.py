"""`roamcast book`: makes the pages of results from stored summaries."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from roamcast.cli.output import print_json
from roamcast.errors import ConfigurationError
from roamcast.papers.book import write_book


def book(
    directory: Annotated[
        Path, typer.Argument(help="Directory with the summaries in data/; the pages go there, too.")
    ] = Path("docs/results"),
    arena: Annotated[
        Path | None, typer.Option(help="First store the results of this campaign as those of the arena.")
    ] = None,
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
    if arena is not None or arena_map is not None:
        from roamcast.campaign.session import LOCAL, spark_session
        from roamcast.campaign.store import Store
        from roamcast.papers.arena import keep, keep_map

        stores = [None if place is None else Store(place) for place in (arena, arena_map)]
        for store in filter(None, stores):
            store.manifest()  # refuses what is no campaign before Spark is started
        trace_bytes = sum(store.trace_bytes() for store in stores if store is not None)
        with spark_session(LOCAL, trace_bytes=trace_bytes) as session:
            if stores[0] is not None:
                keep(session, stores[0], directory, capacity)
            if stores[1] is not None:
                keep_map(session, stores[1], directory)
    if waymark is not None:
        from roamcast.campaign.session import LOCAL, spark_session
        from roamcast.campaign.store import Store
        from roamcast.papers import goals

        measured = Store(waymark)
        measured.manifest()
        with spark_session(LOCAL, trace_bytes=measured.trace_bytes()) as session:
            goals.keep(session, measured, directory)
    if ablation is not None:
        from roamcast.campaign.session import LOCAL, start_session
        from roamcast.campaign.store import Store
        from roamcast.papers.ablation import keep as keep_ablation

        keep_ablation(partial(start_session, LOCAL), Store(ablation), directory)
    written = [str(path) for path in write_book(directory)]
    for document in into or []:
        from roamcast.papers.arena import renew_tables

        renew_tables(directory, document)
        written.append(str(document))
    if as_json:
        print_json({"written": written})
    else:
        typer.echo(f"{len(written)} files written, the index is {directory / 'README.md'}")
