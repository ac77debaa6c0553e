"""The interface between mesh and middleware: what the paper calls its key contribution (sections 1 and 5).

The mesh builds routes and forwarding groups. What they are *for* is not its business: the middleware supplies context
that travels in the mesh's packets, and says how to process it. The mesh hands context over as it came and decides by
what it is told:

| packet | context | the mesh asks |
|---|---|---|
| Join Request | what a publisher is about to send | `answer`: does this node join, and what does it attach? |
| Join Table | what a member wants | `read`: what to keep of it with the route |
| Data | the event itself | `admits`: may a member with that context want it? |

At the publisher, answers arrive through `on_members`; wherever data is received, it arrives through `on_data`. A
middleware whose wishes have changed has the mesh answer again (`Mesh.join_again`).

Pub/Sub ODMRP is one middleware (`broker.py`): its context are event digests and summaries of subscriptions in Bloom
filters. Another one needs to change nothing in the mesh; a test has one that knows nothing but areas on a map.
"""

from abc import abstractmethod
from typing import Any

from mypy_extensions import mypyc_attr

from roamcast.protocols.components import Component
from roamcast.protocols.odmrp.messages import Data, MemberEntry


@mypyc_attr(allow_interpreted_subclasses=True)
class Middleware(Component):
    @abstractmethod
    def answer(self, context: bytes, known_version: int | None) -> MemberEntry | None:
        """Whether this node joins the group that a request with this context asks for, and what it says about itself.
        The publisher knows that version of this node's own context already, so it can be left out."""

    @abstractmethod
    def read(self, context: bytes) -> Any:
        """What to keep of a member's context with the route to it; `PeerError` if it makes no sense."""

    @abstractmethod
    def admits(self, kept: Any, data: Data) -> bool:
        """Whether a member, of whose context `kept` was kept, may want an event."""

    @abstractmethod
    def on_members(self, members: tuple[MemberEntry, ...], lifetime_s: float | None) -> None:
        """Answers to this node's own requests arrived, over routes with this expected lifetime."""

    @abstractmethod
    def on_data(self, data: Data) -> None:
        """An event arrived here for the first time."""
