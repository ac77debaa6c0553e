"""How frames travel: `ideal` without contention, `dcf` as 802.11 does it."""
