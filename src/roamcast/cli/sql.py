"""`roamcast sql`: questions in SQL to a campaign or a trace."""

import logging
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from roamcast.campaign.commits import is_campaign, trace_files
from roamcast.campaign.location import StoreLocation
from roamcast.campaign.session import LOCAL, parsed_settings
from roamcast.campaign.store import Store
from roamcast.campaign.verify import damages_of_kinds
from roamcast.cli.output import print_json, print_table
from roamcast.errors import ConfigurationError

ROWS_SHOWN = 100


def sql(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="Directory or URI of a campaign or a trace.")],
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Such as: select * from summaries")],
    master: Annotated[str, typer.Option(help="The Spark master.")] = LOCAL,
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A setting of Spark's, such as spark.driver.memory=8g; repeatable."),
    ] = None,
    remote: Annotated[str, typer.Option(help="A Spark Connect server instead, as sc://host:port.")] = "",
    rows: Annotated[int, typer.Option(min=1, help="Rows that are shown at most; --json gives all.")] = ROWS_SHOWN,
    as_json: Annotated[bool, typer.Option("--json", help="Answer with one JSON array of objects.")] = False,
) -> None:
    """Ask a campaign or a trace in SQL.

    Views: runs, points, events, deliveries, frames, measures, summaries, trace. `select * from VIEW limit 5` shows a
    view's columns; docs/sql.md lists them all.
    """
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    from roamcast.analysis.views import CAMPAIGN_ONLY, VIEWS, named_views, register_views
    from roamcast.campaign.reasons import reason

    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # it prints whole stack traces
    wanted = named_views(query)
    if is_campaign(StoreLocation(directory)):
        _refuse_damages(directory, wanted)
    size = sum(file.bytes for file in trace_files(directory).files)
    session = _session(master, remote, size, parsed_settings(conf or []))
    try:
        made = register_views(session, directory, wanted)
        for name in wanted:
            if name not in made and name in CAMPAIGN_ONLY:
                raise ConfigurationError(f"query: {name!r} is a view of campaigns; {directory!r} holds a single trace")
        found: Any = session.sql(query).toArrow()
    except PySparkException as error:
        hint = f" Views: {', '.join(VIEWS)}." if error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND" else ""
        raise ConfigurationError(f"query: {_first_line(error)}{hint}") from None
    except (Py4JJavaError, OSError) as error:
        hint = "; roamcast campaign verify finds damaged files" if is_campaign(StoreLocation(directory)) else ""
        raise ConfigurationError(f"{directory}: cannot be read: {reason(error)}{hint}") from None
    if as_json:
        print_json(found.to_pylist())
        return
    shown = [[_text(value) for value in row.values()] for row in found.slice(0, rows).to_pylist()]
    print_table("", found.column_names, shown)
    if found.num_rows > rows:
        typer.echo(f"{found.num_rows:,} rows; the first {rows:,} are shown")


def _refuse_damages(directory: str, views: Iterable[str]) -> None:
    """Answers without the rows of a lost file, or with altered ones, would be wrong. Runs that are missing are told."""
    from roamcast.analysis.views import KINDS

    asked = list(views)
    kinds = {kind for view in asked for kind in KINDS[view]} if set(asked) <= KINDS.keys() else None
    store = Store(directory)
    damages = damages_of_kinds(store.directory, kinds)
    if damages:
        raise ConfigurationError(
            f"{directory}: {damages[0].path} {damages[0].what}; roamcast campaign verify sets damaged batches aside"
        )
    planned = set(store.plan()["run_id"].to_pylist())
    missing = len(planned - store.outcomes().keys())
    if missing:
        typer.echo(f"roamcast: {missing:,} of {len(planned):,} planned runs are missing from the answer", err=True)


def _session(master: str, remote: str, trace_bytes: int, settings: dict[str, str]) -> Any:
    if not remote:
        from roamcast.campaign.session import start_session

        session = start_session(master, trace_bytes=trace_bytes, settings=settings)
        session.sparkContext.setLogLevel("OFF")  # what fails is told in one line
        return session
    from pyspark.sql import SparkSession

    try:
        return SparkSession.builder.remote(remote).getOrCreate()
    except ImportError as error:
        message = f"--remote: {_first_line(error)}; install roamcast[connect]"
        raise ConfigurationError(message) from None
    except Exception as error:
        raise ConfigurationError(f"--remote: {remote!r} gave no Spark session: {_first_line(error)}") from None


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _text(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
