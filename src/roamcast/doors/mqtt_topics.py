"""MQTT's topics and filters in the language `topics`, and back.

| MQTT | here |
|---|---|
| `+` | `*`, one level |
| `#` | `**`, any number of levels, none included |
| an empty level, as in `/a` | `%` |
| `%`, `*`, white space, what cannot be printed | percent-encoded, as in a URL |

So every MQTT topic has a form here, up to the limits of the language. A name with `+` or `#` that was published
otherwise reaches MQTT clients percent-encoded.
"""

from urllib.parse import quote, unquote

from roamcast.errors import ConfigurationError
from roamcast.interests.topics import Topics

TOPIC_BYTES_MAX = 65_535
EMPTY = "%"


def topic_of(mqtt_topic: str) -> str:
    """The content of an event that an MQTT client publishes."""
    if not mqtt_topic or "+" in mqtt_topic or "#" in mqtt_topic:
        raise ConfigurationError(f"topic: {mqtt_topic[:80]!r} is not a topic to publish; it may not have + or #")
    if mqtt_topic.startswith("$"):
        raise ConfigurationError(f"topic: {mqtt_topic[:80]!r} begins with $, which is the broker's own")
    return str(Topics.of("/".join(map(_encoded, mqtt_topic.split("/")))))


def pattern_of(mqtt_filter: str) -> str:
    """The pattern of topics that an MQTT client subscribes."""
    levels = mqtt_filter.split("/")
    if not mqtt_filter or mqtt_filter.startswith("$"):
        raise ConfigurationError(f"filter: {mqtt_filter[:80]!r} is not one of the network's topics")
    for position, level in enumerate(levels):
        is_last = position == len(levels) - 1
        if ("+" in level and level != "+") or ("#" in level and (level != "#" or not is_last)):
            raise ConfigurationError(
                f"filter: {mqtt_filter[:80]!r} has a wildcard that is not a whole level, or # inside"
            )
    wild = {"+": "*", "#": "**"}
    return str(Topics.of("/".join(wild.get(level) or _encoded(level) for level in levels)))


def mqtt_topic_of(content: str) -> str:
    """The MQTT topic of an event."""
    return "/".join(map(_decoded, content.split("/")))


def _encoded(level: str) -> str:
    if not level:
        return EMPTY
    return "".join(quote(each, safe="") if _needs_encoding(each) else each for each in level)


def _needs_encoding(character: str) -> bool:
    return character in "%*" or character.isspace() or not character.isprintable()


def _decoded(level: str) -> str:
    if level == EMPTY:
        return ""
    try:
        found = unquote(level, errors="strict")
    except UnicodeDecodeError:
        found = level
    if "\0" in found or "/" in found:
        found = level
    return found.replace("+", "%2B").replace("#", "%23")
