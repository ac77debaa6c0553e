"""GeoRendezvous on Cell Hash Routing; read `georendezvous.py` first."""

from roamcast.protocols.georendezvous.georendezvous import GeoRendezvous

__all__ = ["GeoRendezvous"]
