"""Tables as Markdown, on their own or inside a document."""

from pathlib import Path

from roamcast.errors import ConfigurationError
from roamcast.report.tables import Cell, Grid
from roamcast.world.files import write_whole


def markdown_table(grid: Grid) -> str:
    lines = [grid.columns, ["---"] * grid.leading + ["---:"] * (len(grid.columns) - grid.leading)]
    lines += [[_cell(cell) for cell in row] for row in grid.rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(cell: Cell) -> str:
    text = f"**{cell.text}**" if cell.tone == "better" else cell.text
    text += f" and {cell.more_count} more" if cell.more else ""
    return (f"{text} ({cell.note})" if cell.note else text).replace("|", "\\|").replace("\n", " ")


def put_between_marks(path: Path, name: str, text: str) -> None:
    """Replaces what a document has between `<!-- name -->` and `<!-- end of name -->`."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    try:
        before = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from None
    if before.count(begin) != 1 or before.count(end) != 1 or before.index(begin) > before.index(end):
        raise ConfigurationError(f"{path}: must have {begin} and after it {end}, each once")
    head, _, rest = before.partition(begin)
    tail = rest.partition(end)[2]
    write_whole(path, f"{head}{begin}\n{text}\n{end}{tail}")
