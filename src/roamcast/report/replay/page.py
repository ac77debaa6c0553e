"""The page: one HTML document with program, style and recording inside.

It is the same document whether it is served or exported, and it forbids itself every connection by a content security
policy. The modules in `web/` import each other as `replay/name.js`; an import map says that these names stand for
`data:` addresses, so they need neither a server nor a bundler.

What comes from a trace is in the page only as base64 (see `columns`); the program puts it on the screen as text,
never as markup.
"""

import base64
from importlib.resources import files

import msgspec

_WEB = files("roamcast.report.replay") / "web"


def replay_page(packed: str) -> str:
    """The whole document around a packed recording."""
    modules = sorted(entry.name for entry in _WEB.iterdir() if entry.name.endswith(".js"))
    imports = {f"replay/{name}": _address(name) for name in modules}
    parts = {
        "{{style}}": _text("replay.css"),
        "{{imports}}": msgspec.json.encode({"imports": imports}).decode(),
        "{{recording}}": packed,
    }
    page = _text("page.html")
    for place, part in parts.items():
        before, found, after = page.partition(place)
        assert found, place
        page = before + part + after
    return page


def _text(name: str) -> str:
    return (_WEB / name).read_text(encoding="utf-8")


def _address(name: str) -> str:
    source = f"{_text(name)}\n//# sourceURL=replay/{name}\n"
    return "data:text/javascript;base64," + base64.b64encode(source.encode()).decode("ascii")
