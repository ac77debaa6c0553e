"""The emulator: a scenario of the simulator, run by real `roamcast node` processes on a network that moves.

Read `emulation.py` first; `machines.py` makes the machines, `air.py` is what is between them, `record.py` the trace.
"""
