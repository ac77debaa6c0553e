"""The guide as a site: `make docs`. It needs no network, neither to build nor to read."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from settings_pages import write_settings_pages

import roamcast

project = "Roamcast"
author = "The Roamcast authors"
version = release = roamcast.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["results/data/**"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_missing"]  # links to source files, which are not part of the site
default_role = "code"
smartquotes = False
html_theme = "furo"
html_title = f"Roamcast {release}"
html_show_sphinx = False
autodoc_typehints = "description"
autodoc_member_order = "bysource"

write_settings_pages(Path(__file__).parent / "guide")
