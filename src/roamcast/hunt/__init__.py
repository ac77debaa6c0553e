"""The hunt for failures: well-formed nonsense for every protocol, and networks that must recover from it."""

from roamcast.hunt.attack import Attack, AttackOutcome, attack
from roamcast.hunt.nonsense import Nonsense

__all__ = ["Attack", "AttackOutcome", "Nonsense", "attack"]
