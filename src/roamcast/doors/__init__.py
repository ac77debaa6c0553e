"""Doors: how programs that are not written in Python use a node.

A door lets clients in that speak a protocol they already know: MQTT (`mqtt.py`), HTTP with server-sent events and
WebSocket (`http.py`), Prometheus (`metrics.py`). One more sends spans to OpenTelemetry (`tracing.py`). Every door is an
extra of the package, listens on loopback unless told otherwise, and has access rules of its own (`access.py`).

All doors of a node share one `Gate`, which is the node's application. It talks to the public `roamcast.Node` alone. A
client's mistake is answered by one clear error, whatever it sends takes bounded memory, and the node goes on.
"""
