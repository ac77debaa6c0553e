"""Publish/subscribe for networks that move."""

from roamcast.form import settle

__version__ = "0.1.0"

FORM = settle()
