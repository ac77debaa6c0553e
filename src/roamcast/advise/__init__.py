"""Advice: which protocol, with which parameters, serves a given network best.

The question is a scenario, demands on measures ("delivery>=0.95") and one measure to make as small as possible among
those that meet them. The answer is found in stages on Spark (`search`): all candidates (`candidates`) run in a few
networks. A candidate that certainly misses a demand, or is certainly worse than another that certainly meets them all,
is dropped, and so are those with the worst means. The others run in more networks, until one is left, until the rest
are equivalent, or until a cap. `capacity` finds the highest rate of publication that a protocol sustains.
`judgement` decides what is certain; it sees measures only, not how they were obtained.
"""
