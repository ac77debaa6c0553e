"""What `make bench` measures: how fast, and how true to other simulators."""
