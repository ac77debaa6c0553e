"""What a consumer asked for, and since when."""

from roamcast.events import Event
from roamcast.interests import Interest
from roamcast.interests.matching import matches
from roamcast.protocols.overlays.messages import Want


class Wants:
    def __init__(self, rows: tuple[Want, ...]) -> None:
        self.rows = rows

    def __bool__(self) -> bool:
        return bool(self.rows)

    def matches(self, event: Event, by_time: bool) -> bool:
        """Whether a subscription matches the event and, if `by_time`, was made before it by the clocks of producer and
        consumer. What has just been published needs no clocks."""
        return any(
            (event.time_s >= since_s or not by_time) and matches(interest, event) for interest, since_s, _ in self.rows
        )

    def may_match(self, advertised: Interest | None) -> bool:
        """Whether such a producer has anything to offer; `None` advertises everything."""
        return advertised is None or any(interest.overlaps(advertised) for interest, _, _ in self.rows)
