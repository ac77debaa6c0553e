"""The book of results: one page per paper, made from stored summaries alone.

    docs/results/data/<figure>.json      what `roamcast reproduce … --store docs/results/data` kept
    docs/results/<paper>.md              every figure beside the paper's claims, with verdicts
    docs/results/figures/<figure>.svg
    docs/results/arena.md                all systems side by side (`arena`); arena-hard.md and arena-large.md
    docs/results/waymark.md              Waymark's goals, place by place (`goals`)
    docs/results/ablation.md             SOMER-plus without each of its additions (`ablation`)
    docs/results/data/older.json         what of the sources had changed since each result, when the book was made
    docs/results/README.md               what of each paper holds

Nothing is simulated here, so the book can be made again anywhere, and a page never says more than its summaries do.
"""

import json
from pathlib import Path

import jinja2
import msgspec
import vl_convert

from roamcast.errors import ConfigurationError
from roamcast.papers.ablation import PAGE as ABLATION
from roamcast.papers.ablation import ablation_page
from roamcast.papers.ablation import is_kept as ablation_is_kept
from roamcast.papers.arena import kept_arenas, write_arena
from roamcast.papers.catalogue import FIGURES
from roamcast.papers.estimate import Verdict
from roamcast.papers.figure import EMULATED
from roamcast.papers.goals import is_kept as goals_kept
from roamcast.papers.goals import write_goals
from roamcast.papers.listing import CLAIMS, older_parts
from roamcast.papers.page import chart, interval
from roamcast.papers.sources import SIMULATOR, UNKNOWN
from roamcast.papers.summary import Summary, kept_results

DATA = "data"
FIGURE_IMAGES = "figures"
OLDER = "older.json"
SPEED = "speed.md"  # made by `roamcast bench peers` and `forms`


SOMER_VERDICT = (
    "The main claim holds at the thesis' sizes and durations: by mean delivery time SOMER is 44 to 64 % timelier than "
    "a single tree that is refreshed as rarely, and more so in larger networks, if not twice as timely (somer-6.5). "
    "But typical events are as fast in both. The difference is in the tail, and partly it is that SOMER loses what the "
    "other delivers late. Counting losses, it is 5 to 6 points ahead within 250 ms (somer-deadline). Merging and new "
    "roots do what they are for (somer-6.2). The price is higher than reported: the advertisements of roots cost 60 to "
    "70 % more publish/subscribe messages (somer-6.7), and fewer deliveries survive failures (somer-6.6). Causality "
    "awareness slows causal graphs down, because it makes trees deep (somer-6.3a)."
)


class Paper(msgspec.Struct, frozen=True):
    """What a page says about its paper before the figures come."""

    name: str
    title: str
    reference: str
    text: str
    verdict: str  # what of it holds, for readers with two minutes; figures in brackets


PAPERS = (
    Paper(
        "somer",
        "SOMER",
        "G. Pei, *On a Self-Organizing MANET Event Routing Architecture with Causal Dependency Awareness*, "
        "master's thesis, Virginia Tech, and its journal version.",
        "Several publish/subscribe trees whose roots form an overlay, against three protocols with a single tree. "
        "PS-MAODV, SP-COMBO and DSAPST are reconstructions: their papers leave much open, and each module says what is "
        "the paper's and what is ours.",
        SOMER_VERDICT,
    ),
    Paper(
        "odmrp",
        "Pub/Sub ODMRP",
        "E. Yoneki and J. Bacon, *Dynamic Group Communication in Mobile Peer-to-Peer Environments*, SAC 2005.",
        "Content-based subscriptions summarised in Bloom filters, and an on-demand mesh that carries them.",
        "It holds where its authors had their example in mind. If some subscribers want every event and the others "
        "none, grouping subscriptions by K-means saves frames and bytes. If each subscriber has tastes of its own, "
        "nearly every event belongs to every group, and grouping saves 1.3 % of the frames at most (odmrp-10). Bloom "
        "filters never lose an event, and larger ones let fewer strangers through (odmrp-bloom).",
    ),
    Paper(
        "georendezvous",
        "GeoRendezvous",
        "N. Carvalho, F. Araújo and L. Rodrigues, *Reducing Latency in Rendezvous-Based Publish-Subscribe Systems for "
        "Wireless Ad Hoc Networks*.",
        "Several rendezvous points per topic on a geographic hash table, of which a subscriber takes the nearest.",
        "It holds. Eight rendezvous points make paths hardly longer than direct ones (geo-3a). How much longer depends "
        "on the number of points, and between 80 and 600 nodes not on the size of the network; up to 3000 that stays "
        "open (geo-3b). Trying the nearest two of eight is enough (geo-3c). The theorem's bound holds with room to "
        "spare (geo-theorem). A tree through eight points is shorter than one through a single point, with eight "
        "subscribers by an eighth (geo-3d).",
    ),
    Paper(
        "overlays",
        "Opportunistic Overlays",
        "Y. Chen and K. Schwan, *Opportunistic Overlays: Efficient Content Delivery in Mobile Ad Hoc Networks*.",
        "A broker network that follows the physical one, with functions that follow their client.",
        "It holds, with exceptions. Path lengths agree with the paper's, static and adapting, over update periods, "
        "discovery periods and speeds (overlay-7 to overlay-12). Load balancing lowers the load of the busiest broker, "
        "at the price of longer paths (overlay-14), but peaks occur even at low load (overlay-13). Moving a modulator "
        "next to its producer cuts latency as claimed (overlay-17). Control traffic is a third lower than reported "
        "(overlay-9), and the largest gain in latency is much below the reported factor of six (overlay-16).",
    ),
)


def write_book(directory: Path, *, compare: bool = True, pictures: bool = True) -> list[Path]:
    """Makes every page again; returns the files written.

    `compare`: checks again which results are older than the sources; otherwise the pages keep the last answer.
    `pictures`: draws all figures again; otherwise the present ones stay.
    """
    data = directory / DATA
    stored = {summary.figure: with_findings(summary) for summary in kept_results(data)}
    if not stored:
        raise ConfigurationError(f"book: {str(data)!r} holds no summaries; make some with roamcast reproduce --store")
    written = [_draw(summary, directory) for summary in stored.values()] if pictures else []
    if compare:
        parts = {name: older_parts(summary) for name, summary in stored.items()}
        written.append(_write(data / OLDER, json.dumps(parts, indent=1)))
    older: dict[str, list[str]] = json.loads((data / OLDER).read_text(encoding="utf-8"))
    pages: list[tuple[Paper, list[Summary]]] = []
    for paper in PAPERS:
        figures = [name for name, figure in FIGURES.items() if figure.paper == paper.name]
        summaries = [stored[name] for name in figures if name in stored]
        if summaries:
            missing = [name for name in figures if name not in stored]
            text = (
                _templates()
                .get_template("paper.md")
                .render(paper=paper, summaries=summaries, missing=missing, older=older)
            )
            written.append(_write(directory / f"{paper.name}.md", text))
            pages.append((paper, summaries))
    arenas = kept_arenas(directory)
    for name in arenas:
        written += write_arena(directory, name, pictures=pictures)
    goals = goals_kept(directory)
    if goals:
        written.append(write_goals(directory))
    changed = [name for name, parts in older.items() if parts]
    ablation = ablation_is_kept(directory)
    if ablation:
        written.append(_write(directory / ABLATION, ablation_page(directory)))
    speed = (directory / SPEED).is_file()
    rows = [row for paper, summaries in pages for row in _rows(paper, summaries)]
    text = (
        _templates()
        .get_template("index.md")
        .render(pages=pages, rows=rows, arenas=arenas, ablation=ablation, speed=speed, changed=changed, goals=goals)
    )
    written.append(_write(directory / "README.md", text))
    return written


def _rows(paper: Paper, summaries: list[Summary]) -> list[tuple[str, str, list[Summary]]]:
    """What the opening table counts: title, anchor, figures. What was emulated repeats claims and counts apart."""
    emulated = [summary for summary in summaries if summary.figure.endswith(EMULATED)]
    simulated = [summary for summary in summaries if summary not in emulated]
    found = [(paper.title, simulated), (f"{paper.title}, emulated", emulated)]
    return [(title, _anchor(paper.title), figures) for title, figures in found if figures]


def with_findings(summary: Summary) -> Summary:
    """The summary with what is known about its claims today: findings are often made after the runs."""
    figure = FIGURES.get(summary.figure)
    known = {} if figure is None else {claim.statement: claim.finding for claim in figure.claims}
    claims = [
        msgspec.structs.replace(claim, finding=known.get(claim.statement) or claim.finding) for claim in summary.claims
    ]
    return msgspec.structs.replace(summary, claims=tuple(claims))


def _draw(summary: Summary, directory: Path) -> Path:
    spec = chart(summary) | {"background": "white"}
    return _write(directory / FIGURE_IMAGES / f"{summary.figure}.svg", vl_convert.vegalite_to_svg(json.dumps(spec)))


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.rstrip() + "\n", encoding="utf-8")
    return path


def _counted(summaries: list[Summary], verdict: Verdict) -> int:
    return sum(summary.count(verdict) for summary in summaries)


def _heading(summary: Summary) -> str:
    left_out = {"paper": "", "sparse": ", at fewer points than the paper", "quick": ", not at the paper's scale"}
    return summary.figure + left_out[summary.scale]


def _anchor(heading: str) -> str:
    """As Markdown readers name the heading's anchor."""
    kept = [character for character in heading.lower() if character.isalnum() or character in " -"]
    return "".join(kept).replace(" ", "-")


def _changes(parts: list[str]) -> str:
    """What changed since a result was made, in words."""
    if parts == [UNKNOWN]:
        return "the sources"
    told = [f"the {part}" if part in (SIMULATOR, CLAIMS) else f"`{part}`" for part in parts if part != UNKNOWN]
    told = ["the sources", *told] if UNKNOWN in parts else told
    return told[0] if len(told) == 1 else f"{', '.join(told[:-1])} and {told[-1]}"


def _templates() -> jinja2.Environment:
    loader = jinja2.FileSystemLoader(Path(__file__).parent / "templates")
    environment = jinja2.Environment(loader=loader, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    environment.filters |= {
        "interval": interval,
        "heading": _heading,
        "anchor": _anchor,
        "counted": _counted,
        "changes": _changes,
    }
    return environment
