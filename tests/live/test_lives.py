"""What a node remembers from one life to the next."""

from pathlib import Path

import pytest

from roamcast.errors import ConfigurationError
from roamcast.live.lives import BLOCK, EPOCH_S, NUMBERS_PER_S, Lives, default_state

BORN_S = EPOCH_S + 1000.0


def numbers(lives: Lives, count: int) -> list[int]:
    return [lives.next_number() for _ in range(count)]


def test_without_a_file_lives_and_numbers_follow_the_clock() -> None:
    first, second = Lives(clock=lambda: BORN_S), Lives(clock=lambda: BORN_S + 60)
    assert (first.life, second.life) == (1000, 1060)
    assert numbers(first, 2) == [1000 * NUMBERS_PER_S + 1, 1000 * NUMBERS_PER_S + 2]
    assert second.next_number() == 1060 * NUMBERS_PER_S + 1


@pytest.mark.parametrize("later_s", [0.0, 0.1, -3600.0, 3600.0, -(10.0**9)])
def test_with_a_file_no_number_comes_twice_whatever_the_clock_does(tmp_path: Path, later_s: float) -> None:
    path = tmp_path / "state" / "net-1.json"
    first = Lives(path, lambda: BORN_S)
    used = numbers(first, 3 * BLOCK + 5)
    second = Lives(path, lambda: BORN_S + later_s)  # the first was killed: nothing was written at its end
    assert second.life > first.life
    assert not set(used) & set(numbers(second, BLOCK))
    third = Lives(path, lambda: BORN_S + 2 * later_s)
    assert third.life > second.life


def test_numbers_start_over_after_the_highest_and_skip_zero() -> None:
    lives = Lives(clock=lambda: EPOCH_S + (2.0**32 - 1) / NUMBERS_PER_S)
    assert numbers(lives, 2) == [1, 2]


def test_a_file_that_nobody_asked_for_may_be_missing() -> None:
    lives = Lives(Path("/proc/roamcast/1.json"), lambda: BORN_S, is_required=False)
    assert lives.life == 1000
    assert lives.trouble.startswith("state: cannot write /proc/roamcast/1.json")
    assert numbers(lives, 2 * BLOCK)[-1] == 1000 * NUMBERS_PER_S + 2 * BLOCK


def test_every_user_has_a_place_for_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/somewhere")
    assert default_state() == Path("/somewhere/roamcast")
    monkeypatch.setenv("XDG_STATE_HOME", "not/absolute")
    monkeypatch.setenv("HOME", "/home/someone")
    assert default_state() == Path("/home/someone/.local/state/roamcast")


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "net-1.json"
    path.write_text('{"life": 3')
    with pytest.raises(ConfigurationError, match=r"net-1\.json is damaged"):
        Lives(path)


def test_a_directory_that_cannot_be_written_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"cannot write /proc/roamcast/1\.json"):
        Lives(Path("/proc/roamcast/1.json"))
