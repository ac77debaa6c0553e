"""What `make bench` measures: speed, and fidelity to other simulators."""
