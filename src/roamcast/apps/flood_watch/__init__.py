"""Flood Watch: rain from weather stations, brokers on vehicles, rescue teams that see how deep the water is.

After the application of Chen and Schwan's paper on opportunistic overlays, section 4.3. A source publishes rain on a
grid of 100 x 100 cells (`storms`). A team's node subscribes with a modulator: the run-off model with the terrain, cut
to the box that the team looks at. The broker on the nearest vehicle runs it, so what travels to the team is the depths
of its box alone. `terrain` makes a landscape, `team` is the consumer with its page, `vehicle` the broker, `station` the
source, and `demo` all of them on one machine, with vehicles that drive about.

Every part is a program of its own on the public API, `roamcast.Node`.
"""
