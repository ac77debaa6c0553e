"""Hand-made links for tiny networks."""

Link = tuple[int, int]


def line(nodes: int) -> list[Link]:
    """0 - 1 - 2 - ..."""
    return [(node, node + 1) for node in range(nodes - 1)]


def ring(nodes: int) -> list[Link]:
    """A line whose ends meet."""
    return [*line(nodes), (0, nodes - 1)]


def grid(columns: int, rows: int) -> list[Link]:
    """Node `row * columns + column`, linked to its neighbours in four directions."""
    nodes = range(columns * rows)
    across = [(node, node + 1) for node in nodes if (node + 1) % columns]
    return sorted(across + [(node, node + columns) for node in nodes if node + columns < columns * rows])
