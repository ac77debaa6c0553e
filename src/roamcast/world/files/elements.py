"""XML files, element by element, with the line of each.

Expat reads them, because it counts lines also beyond 65,535. A document type definition is refused, so no entity can
blow up or reach for other files.
"""

from pathlib import Path
from typing import Any, NoReturn
from xml.parsers import expat

from roamcast.errors import ConfigurationError
from roamcast.world.files.lines import Line, read_bytes


class ElementReader:
    """Calls `begin` and `end` of its subclass for every element. Namespaces are ignored."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.comments: list[str] = []
        self._text: list[str] = []
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.buffer_text = True

    def read(self) -> None:
        parser: Any = self._parser
        parser.StartElementHandler = self._begin
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text.append
        parser.CommentHandler = self.comments.append
        parser.StartDoctypeDeclHandler = self._refuse_doctype
        try:
            parser.Parse(read_bytes(self.path), True)
        except expat.ExpatError as error:
            what = expat.ErrorString(error.code)
            raise ConfigurationError(f"{self.path}:{error.lineno}: is not XML: {what}") from None

    def begin(self, tag: str, attributes: dict[str, str]) -> None:
        """An element began."""

    def end(self, tag: str, text: str) -> None:
        """An element ended; `text` is what stood between its last tag and this end."""

    def line(self, shown: str) -> Line:
        """The current line, for a refusal that quotes `shown`."""
        return Line(self.path, self._parser.CurrentLineNumber, shown)

    def _begin(self, tag: str, attributes: dict[str, str]) -> None:
        self._text.clear()
        self.begin(tag.rpartition(" ")[2], attributes)

    def _end(self, tag: str) -> None:
        text = "".join(self._text).strip()
        self._text.clear()
        self.end(tag.rpartition(" ")[2], text)

    def _refuse_doctype(self, *_: object) -> NoReturn:
        raise self.line("<!DOCTYPE").refuse("no document type definition")
