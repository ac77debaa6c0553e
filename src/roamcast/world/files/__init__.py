"""Positions, movements and contacts as files.

| module | reads |
|---|---|
| `ns2` | ns-2 movements, as `setdest`, BonnMotion's `NSFile` and SUMO's `traceExporter` write them |
| `bonnmotion` | BonnMotion's own `.movements`, in two or three dimensions |
| `one` | The ONE's external movements, location snapshots and connectivity events |
| `fcd` | SUMO's floating car data |
| `gpx` | GPS tracks |
| `table` | CSV with a header |
| `plain` | positions and contacts, one per line |

`formats` tells the formats of movements apart. Every file may be gzipped. A line that makes no sense is refused with
the file's name, the line's number and what was expected there. `writing` writes what the others read; `geojson` writes
movements for maps.
"""

from roamcast.world.files.formats import FORMATS, Format, read_movements
from roamcast.world.files.geojson import geojson_text
from roamcast.world.files.plain import read_contacts, read_positions
from roamcast.world.files.recording import MovementRecording
from roamcast.world.files.writing import contacts_text, movements_text, positions_text, table_text, write_whole

__all__ = [
    "FORMATS",
    "Format",
    "MovementRecording",
    "contacts_text",
    "geojson_text",
    "movements_text",
    "positions_text",
    "read_contacts",
    "read_movements",
    "read_positions",
    "table_text",
    "write_whole",
]
