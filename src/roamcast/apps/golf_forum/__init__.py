"""The Golf Forum: what happens on a golf course, told by the gallery and by officials, without any infrastructure.

After the prototype "PGM Golf Forum" of Yoneki and Bacon, "Dynamic Group Communication in Mobile Peer-to-Peer
Environments" (2005), sections 1 and 4. Every visitor has a device with a node and a page: it registers subscriptions
(figure 7), publishes (figure 8) and gets notifications (figure 9). Events are XML documents with the paper's schema
and travel over Pub/Sub ODMRP. At the end of the day the same network shares taxis, with an event type of its own.

Read it in this order: `forms.py` (what users enter, as XPath and as documents), `participant.py` (one device),
`pages.py` (its page), `course.py` and `tournament.py` (the course and the play of a demonstration), `story.py` (what
the course map shows), `demo.py` and `simulated.py` (everything on one machine: live, and in the simulator).
"""
