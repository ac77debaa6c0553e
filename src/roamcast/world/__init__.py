"""The wireless world: mobility, contacts, radio, faults, workload, and the simulator that hosts protocols in it."""
