"""One seed, many independent generators, the same everywhere."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

import roamcast
from roamcast.seeds import derive, derive_int


def test_the_derivation_never_changes() -> None:
    """Known values: changing them changes the meaning of every published seed."""
    assert derive_int(1, "workload", 7) == 15356957779743245298
    assert derive(1, "mobility").random() == 0.20004775101382932


def test_names_and_seeds_separate_generators() -> None:
    names: list[tuple[str | int, ...]] = [(), ("a",), ("b",), ("a", "b"), ("ab",), ("a", 1), ("a", 11), ("a", 1, 1)]
    seeds = [derive_int(seed, *name) for seed in (1, 2, 11) for name in names]
    assert len(set(seeds)) == len(seeds)


@given(st.integers(), st.integers(0, 1000))
@settings(deadline=None, derandomize=True, max_examples=50)
def test_a_derived_seed_has_64_bits(seed: int, name: int) -> None:
    assert 0 <= derive_int(seed, "node", name) < 2**64


def test_neighbouring_names_give_unrelated_numbers() -> None:
    draws = [derive(1, "node", node).random() for node in range(2000)]
    mean = sum(draws) / len(draws)
    products = [(one - mean) * (other - mean) for one, other in itertools.pairwise(draws)]
    assert abs(mean - 0.5) < 0.02
    assert abs(sum(products) / len(products)) < 0.01


def test_drawing_from_one_generator_leaves_the_others_alone() -> None:
    one, other = derive(5, "one"), derive(5, "other")
    first = derive(5, "other").random()
    for _ in range(10):
        one.random()
    assert other.random() == first


def test_the_hash_seed_of_python_plays_no_part() -> None:
    source = str(Path(roamcast.__file__).parents[1])
    program = "from roamcast.seeds import derive; print(derive(9, 'radio', 3).random())"
    answers = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": source},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1")
    }
    assert answers == {f"{derive(9, 'radio', 3).random()}\n"}
