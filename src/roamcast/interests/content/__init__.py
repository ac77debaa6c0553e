"""Content: typed XML events, and interests in a subset of XPath.

Read it in this order: `schema.py` (what an event type is), `documents.py` (events as XML), `syntax.py` (what may be
written), `values.py` and `terms.py` (what it means, simplified), `writing.py` (how it is written back), `xpaths.py`
(the interest language that protocols see), `reasons.py` (why a document matches).
"""

from roamcast.interests.content.documents import DocumentRecord, read, record_of, write
from roamcast.interests.content.reasons import Match, Reason, matches
from roamcast.interests.content.schema import EventSchema, Leaf, event_type, event_types, load_schema, register
from roamcast.interests.content.terms import Constraint, Term
from roamcast.interests.content.xpaths import XPaths

__all__ = [
    "Constraint",
    "DocumentRecord",
    "EventSchema",
    "Leaf",
    "Match",
    "Reason",
    "Term",
    "XPaths",
    "event_type",
    "event_types",
    "load_schema",
    "matches",
    "read",
    "record_of",
    "register",
    "write",
]
