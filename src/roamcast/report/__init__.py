"""Pages and pictures of networks and runs, each a self-contained file."""
