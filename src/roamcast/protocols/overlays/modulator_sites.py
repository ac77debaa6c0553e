"""Where the modulators are of clients that this broker once served, or whose home it is."""

from typing import NamedTuple


class ModulatorSite(NamedTuple):
    epoch: int  # of the client
    generation: int  # of the relocation that brought its modulator there
    site: int  # the broker where its modulator runs


class ModulatorSites:
    def __init__(self, places_max: int) -> None:
        self.moved: dict[int, ModulatorSite] = {}  # client -> the site that this broker handed it over to
        self.served: dict[int, ModulatorSite] = {}  # client whose home this broker is -> its site, another broker
        self._places_max = places_max

    def site_elsewhere(self, client: int, epoch: int) -> int | None:
        """The broker that serves a client which this broker served before, or whose home it is."""
        for places in (self.served, self.moved):
            place = places.get(client)
            if place is not None and place.epoch == epoch:
                return place.site
        return None

    def note_moved(self, client: int, place: ModulatorSite) -> None:
        self._note(self.moved, client, place)

    def note_served(self, client: int, place: ModulatorSite) -> None:
        self._note(self.served, client, place)

    def forget(self, client: int) -> None:
        """The client's modulator is here."""
        self.moved.pop(client, None)
        self.served.pop(client, None)

    def _note(self, places: dict[int, ModulatorSite], client: int, place: ModulatorSite) -> None:
        places[client] = place
        if len(places) > self._places_max:
            del places[next(iter(places))]
