"""Delivery that applications can count on: one layer above every protocol. `layer.py` has its theory of operation."""
