"""Advice: which protocol, with which parameters, serves a given network best.

The question is a scenario, demands on measures ("delivery>=0.95") and one measure to make as small as possible among
those that meet them. The answer is found in stages on Spark (`search`): all candidates (`candidates`) meet a few
networks; what certainly misses a demand, or is certainly worse than another that certainly meets them all, is dropped;
the others meet twice as many; until one is left, until what is left makes no difference, or until a cap. `judgement`
decides what is certain; it knows measures and nothing of where they come from.
"""
