"""The three kinds of mistake, kept apart because three different people must act on them."""


class RoamcastError(Exception):
    """Base of every error that Roamcast raises on purpose."""


class ConfigurationError(RoamcastError):
    """A refused setting or input file: the user corrects it. One line that names field, value and what is allowed."""


class PeerError(RoamcastError):
    """A peer sent something that makes no sense: the host drops it, counts it and goes on."""


class CallerError(RoamcastError):
    """The code that called us broke the contract: a programmer corrects it."""
