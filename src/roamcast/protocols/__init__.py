"""The protocols, and the contract they are written against (`api`)."""
