"""The ablation of SOMER-plus: what each addition gains and costs, as one page of the book.

    docs/results/data/ablation.json      what `roamcast book --ablation DIR` keeps of the campaign
    docs/results/ablation.md             the page

Each contender lacks one addition, so the difference of the whole protocol to it, seed by seed, is what that addition
does. Differences are certain if they stay so after Holm's correction for all contenders of a place.
"""

from pathlib import Path
from typing import Any

import jinja2
import msgspec
import pandas as pd

from roamcast.analysis.analyse import measured_runs
from roamcast.analysis.intervals import difference, holm
from roamcast.analysis.stored import Spark
from roamcast.campaign.plan import column_names
from roamcast.campaign.store import Store
from roamcast.errors import ConfigurationError
from roamcast.trace.measures import MEASURES

FILE = "ablation.json"
PAGE = "ablation.md"
COMMAND = "roamcast campaign run campaigns/somer-ablation.toml --out results/ablation"
CERTAIN = 0.05


class Effect(msgspec.Struct, frozen=True):
    """By how much the whole protocol exceeds one without an addition, in one measure."""

    mean: float
    low: float  # 95 % confidence interval, by seed
    high: float
    certain: bool  # also after correction for all contenders of the place


class Without(msgspec.Struct, frozen=True):
    """A contender that lacks something, and what the whole protocol does beyond it."""

    label: str
    effects: dict[str, Effect]  # by measure

    @property
    def shows(self) -> bool:
        return any(effect.certain for effect in self.effects.values())


class AblationPlace(msgspec.Struct, frozen=True):
    settings: dict[str, str]
    whole: dict[str, float]  # the whole protocol's mean, by measure
    contenders: tuple[Without, ...]


class Ablation(msgspec.Struct, frozen=True):
    title: str
    description: str
    baseline: str
    seeds: int
    runs: int
    places: tuple[AblationPlace, ...]


def keep(spark: Spark, store: Store, directory: Path) -> None:
    """Keeps what the page needs of a campaign whose baseline has everything."""
    campaign = store.manifest().campaign
    runs = measured_runs(spark, store)
    settings = list(column_names(campaign).values())
    places = []
    for _, here in runs.groupby("place", sort=True):
        whole = here[here["protocol"] == campaign.baseline].set_index("seed")
        others = [label for label in here["protocol"].unique() if label != campaign.baseline]
        effects: dict[str, dict[str, Effect]] = {label: {} for label in others}
        for measure in campaign.measures:
            mine = _by_seed(whole[measure])
            theirs = {label: here[here["protocol"] == label].set_index("seed")[measure] for label in others}
            found = [difference(mine, _by_seed(theirs[label])) for label in others]
            for label, gap, p in zip(others, found, holm([gap.p for gap in found]), strict=True):
                effects[label][measure] = Effect(gap.mean, gap.low, gap.high, p <= CERTAIN)
        places.append(
            AblationPlace(
                {name: str(whole[name].iloc[0]) for name in settings},
                {measure: float(whole[measure].astype(float).mean()) for measure in campaign.measures},
                tuple(Without(label, effects[label]) for label in others),
            )
        )
    kept = Ablation(
        title=campaign.title,
        description=" ".join(campaign.description.split()),
        baseline=campaign.baseline,
        seeds=int(runs["seed"].nunique()),
        runs=len(runs),
        places=tuple(places),
    )
    path = directory / "data" / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(kept), indent=1) + b"\n")


def _by_seed(values: "pd.Series[Any]") -> dict[int, float]:
    return {int(str(seed)): float(value) for seed, value in values.items()}


def is_kept(directory: Path) -> bool:
    return (directory / "data" / FILE).is_file()


def ablation_page(directory: Path) -> str:
    """The page, from what is kept."""
    path = directory / "data" / FILE
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=Ablation)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise ConfigurationError(f"ablation: {str(path)!r} is not what roamcast book keeps: {error}") from None
    labels = [each.label for each in kept.places[0].contenders]
    shown = {label: [place for place in kept.places for each in place.contenders if each.label == label and each.shows]
             for label in labels}  # fmt: skip
    loader = jinja2.FileSystemLoader(Path(__file__).parent / "templates")
    environment = jinja2.Environment(loader=loader, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    environment.filters |= {"effect": _effect, "place": _place}
    return environment.get_template("ablation.md").render(
        kept=kept,
        command=COMMAND,
        measures={name: MEASURES[name].title for name in kept.places[0].whole},
        silent=[label for label, places in shown.items() if not places],
    )


def _effect(effect: Effect) -> str:
    told = f"{_signed(effect.mean)} [{_signed(effect.low)}, {_signed(effect.high)}]"
    return f"**{told}**" if effect.certain else told


def _signed(value: float) -> str:
    text = f"{value:+.1f}" if abs(value) >= 10 else f"{value:+.3f}" if abs(value) < 1 else f"{value:+.2f}"
    return text.replace("-", "−")


def _place(place: AblationPlace) -> str:
    settings: dict[str, Any] = place.settings
    motion = "at rest" if settings.get("model") == "static" else "in motion"
    return f"{settings.get('nodes', '?')} nodes, {motion}"
