"""Places for nodes of which only the contacts are known.

Nodes that are often in contact should stand close to each other. The layout is that of springs and repulsion
(Fruchterman and Reingold): contacts pull with the share of the run that they last, all nodes push each other away, and
the largest allowed movement shrinks with every step. It starts on a circle and draws nothing at random, so a recording
always looks the same. The distances mean nothing.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

SIDE_M = 1000.0  # of the square that the layout fills
STEPS = 250
PULL_MIN = 0.15  # of a contact that lasts the whole run: how much a very short one pulls


def laid_out(nodes: int, a: Integers, b: Integers, share: Floats) -> Floats:
    """One row `x_m, y_m` per node, from the pairs `a`, `b` that are in contact for `share` of the run."""
    angle = 2 * np.pi * np.arange(nodes) / max(1, nodes)
    places = np.column_stack((np.cos(angle), np.sin(angle)))
    pull = np.zeros((nodes, nodes))
    np.add.at(pull, (a, b), PULL_MIN + (1 - PULL_MIN) * share)
    pull = np.minimum(1.0, pull + pull.T)
    spacing = 1 / np.sqrt(max(1, nodes))
    for step in range(STEPS if len(a) else 0):
        apart = places[:, None, :] - places[None, :, :]
        distance = np.maximum(np.hypot(apart[..., 0], apart[..., 1]), 1e-6)
        np.fill_diagonal(distance, 1.0)
        push = spacing**2 / distance**2 - pull * distance / spacing
        move = np.einsum("ijk,ij->ik", apart, push) - 0.3 * places  # and a little towards the middle
        length = np.maximum(np.hypot(move[:, 0], move[:, 1]), 1e-9)
        places += move / length[:, None] * np.minimum(length, 0.2 * (1 - step / STEPS))[:, None]
    low, high = places.min(axis=0, initial=0.0), places.max(axis=0, initial=0.0)
    filled: Floats = (places - low) / max(1e-9, float((high - low).max())) * SIDE_M
    return filled
