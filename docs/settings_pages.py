"""Pages that list every setting, made from the settings' own declarations when the site is built."""

from pathlib import Path

from roamcast.documented import Setting, documented
from roamcast.world.radio.models import RADIOS
from roamcast.world.radio.signals import SIGNALS
from roamcast.world.scenario import Causal, Faults, Mobility, Positioning, Scenario, Workload

GROUPS = {
    "scenario": Scenario,
    "scenario.mobility": Mobility,
    "scenario.positioning": Positioning,
    "scenario.workload": Workload,
    "scenario.workload.causal": Causal,
    "scenario.faults": Faults,
}
NESTED = {"mobility", "positioning", "radio", "workload", "faults", "causal", "signal"}


def write_settings_pages(directory: Path) -> None:
    """Writes only what changed, so that a build without changes has nothing to do."""
    page = directory / "settings.md"
    text = settings_page()
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


def settings_page() -> str:
    parts = [
        "# Every setting of a scenario\n",
        "Made from the declarations of the settings. A TOML file names them as here; [Your scenario](scenario.md)"
        " shows how.\n",
    ]
    for name, kind in GROUPS.items():
        parts += [f"## `[{name}]`\n", _summary(kind), _table(documented(kind))]
    for name, kind in RADIOS.items():
        parts += [f"## `[scenario.radio]` with `model = \"{name}\"`\n", _summary(kind), _table(documented(kind))]
    for name, kind in SIGNALS.items():
        parts += [f"## `[scenario.radio.signal]` with `model = \"{name}\"`\n", _summary(kind), _table(documented(kind))]
    return "\n".join(parts)


def _summary(kind: type) -> str:
    return " ".join((kind.__doc__ or "").split("\n\n")[0].split()) + "\n"


def _table(settings: list[Setting]) -> str:
    rows = [setting for setting in settings if setting.name not in NESTED]
    if not rows:
        return "It has no settings.\n"
    lines = ["| setting | default | unit | meaning | allowed |", "|---|---|---|---|---|"]
    for each in rows:
        cells = (f"`{each.name}`", f"`{each.default}`", each.unit, each.meaning, each.allowed or each.type)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
