"""A node on real machines: the UDP host and the wire codec."""
