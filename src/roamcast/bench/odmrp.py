"""How fast a broker decides: digests against the summaries of many subscriptions, and exact evaluation after a hit.

The subscriptions and the events are the golf forum's, drawn as the workload draws them. Free text is measured apart:
remarks of three words out of 2,000, which hardly ever repeat, against subscriptions to how they begin or end. Digests
are made before the clock runs, and the time to make one is measured apart. Times are processor time, so that other load
on the machine matters less.
"""

from time import process_time
from typing import NamedTuple

from roamcast.events import Event, event_id
from roamcast.interests import XPaths
from roamcast.protocols.odmrp.encoding import Encoder, term_of_pairs
from roamcast.protocols.odmrp.index import EntryIndex, rows
from roamcast.seeds import Random, derive
from roamcast.world.golf import TYPE, golf_event, golf_interest

REQUIRED_DIGESTS_PER_S = 50_000
REQUIRED_EVALUATION_US = 20.0


class OdmrpFigures(NamedTuple):
    subscriptions: int
    digests_per_s: float
    text_digests_per_s: float  # of events with a free text, against subscriptions to such texts
    hits_per_digest: float  # subscriptions whose summary matches
    false_positive_share: float  # of the hits
    evaluation_us: float  # of one subscription on a document that this node has read before
    first_evaluation_us: float  # the same with reading the document
    digest_us: float  # to make a digest of a document that was read before
    index_us_per_subscription: float  # to add one


def measure(subscriptions: int = 10_000, events: int = 2_000, selectivity: float = 0.01, seed: int = 1) -> OdmrpFigures:
    random = derive(seed, "bench", "odmrp")
    encoder = Encoder()
    interests = [golf_interest(selectivity, random) for _ in range(subscriptions)]
    documents = [golf_event(random) for _ in range(events)]
    entries = [encoder.entries(interest)[0] for interest in interests]

    index = EntryIndex(encoder.family)
    began = process_time()
    for entry in entries:
        index.add(entry)
    index_s = process_time() - began

    published = [Event(event_id(1, number + 1), 0.0, document) for number, document in enumerate(documents)]
    digests = [encoder.digest(event.content) for event in published]
    began = process_time()
    digests = [encoder.digest(event.content) for event in published]
    digest_s = process_time() - began

    ready = [digest for digest in digests if digest is not None]
    began = process_time()
    answers = [index.matches(digest) for digest in ready]
    match_s = process_time() - began

    text_s = _match_texts(subscriptions, events, random)

    hits = [(number, row) for number, answer in enumerate(answers[:100]) for row in rows(answer)]
    began = process_time()
    true = [interests[row].matches(published[number]) for number, row in hits]
    evaluation_s = process_time() - began

    unread = [Event(event.id, 0.0, f"{event.content} ") for event in published]  # the same to XML, new to the memory
    began = process_time()
    for event in unread:
        interests[0].matches(event)
    first_s = process_time() - began
    return OdmrpFigures(
        subscriptions=subscriptions,
        digests_per_s=len(ready) / match_s,
        text_digests_per_s=events / text_s,
        hits_per_digest=sum(answer.bit_count() for answer in answers) / len(answers),
        false_positive_share=1 - sum(true) / max(1, len(true)),
        evaluation_us=1e6 * evaluation_s / max(1, len(hits)),
        first_evaluation_us=1e6 * first_s / events,
        digest_us=1e6 * digest_s / events,
        index_us_per_subscription=1e6 * index_s / subscriptions,
    )


def _match_texts(subscriptions: int, events: int, random: Random) -> float:
    """Processor time to match events with free texts."""
    encoder = Encoder()
    words = ["".join(random.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(6)) for _ in range(2000)]
    index = EntryIndex(encoder.family)
    for number in range(subscriptions):
        word = random.choice(words)
        wish = f"{word}*" if number % 2 else f"*{word}"
        (summarised,) = encoder.summarised(XPaths.of(term_of_pairs(TYPE, {"remark": wish})))
        index.add(*summarised)
    values: dict[str, int | str] = {"@id": "001", "player": "woods", "hole": 3, "holescore": 4}
    remarks = [" ".join(random.choice(words) for _ in range(3)) for _ in range(events)]
    values |= {"totalscore": 9, "currentrank": 1}
    digests = [encoder.digest_of_values(TYPE, {**values, "remark": remark}) for remark in remarks]
    began = process_time()
    for digest in digests:
        index.matches(digest)
    return process_time() - began
