"""Pub/Sub ODMRP. Read `odmrp.py` first, then `mesh.py` and `publisher.py`; the summaries begin in `summaries.py`."""

from roamcast.protocols.odmrp.odmrp import Odmrp

__all__ = ["Odmrp"]
