"""The hunt for failures.

`hunter.py` draws random networks with faults (`draw.py`), judges them (`judge.py`, `checks.py`, `promises.py`,
`accountant.py`), shrinks failures (`shrink.py`) and keeps a ledger (`ledger.py`). `attack.py` sends well-formed
nonsense to every protocol, `datagrams.py` datagrams that must not be accepted.
"""

from roamcast.hunt.attack import Attack, AttackOutcome, attack
from roamcast.hunt.nonsense import Nonsense

__all__ = ["Attack", "AttackOutcome", "Nonsense", "attack"]
