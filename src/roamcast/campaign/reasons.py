"""Why Spark failed, in one line.

Spark wraps an error in stack traces of its own: the driver's Java, the executor's Java, and, if it came from Python,
the worker's traceback as text. The innermost cause is what a user can act on.
"""

import re

_WORKER_DIED = ("Python worker exited unexpectedly", "Python worker terminated", "ExecutorLostFailure")
_PYTHON_ERROR = re.compile(r"^(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Exit)\b.*$")
_LENGTH_MAX = 500


def worker_died(error: BaseException) -> bool:
    """Whether a worker process or a whole executor was lost, rather than reporting an error."""
    return any(sign in str(error) for sign in _WORKER_DIED)


def reason(error: BaseException) -> str:
    """The innermost cause: the last line of the worker's traceback, else Java's last cause or its exception, else the
    first line."""
    if "[JAVA_GATEWAY_EXITED]" in str(error):
        return "Java did not start; its own message is above"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return (_from_python(lines) or _from_java(lines) or lines[0])[:_LENGTH_MAX]


def _from_python(lines: list[str]) -> str:
    starts = [number for number, line in enumerate(lines) if "Traceback (most recent call last)" in line]
    if not starts:
        return ""
    for line in lines[starts[-1] + 1 :]:
        if line.startswith(("at ", "Caused by:")):
            return ""
        if _PYTHON_ERROR.match(line):
            return line
    return ""


def _from_java(lines: list[str]) -> str:
    causes = [line for line in lines if line.startswith("Caused by:")]
    if causes:
        return causes[-1].removeprefix("Caused by: ")
    return next((line[2:] for line in lines if line.startswith(": ")), "")  # below "An error occurred while calling"
