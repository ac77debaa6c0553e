"""Waymark: events carried by few senders."""

from roamcast.protocols.waymark.waymark import Waymark

__all__ = ["Waymark"]
