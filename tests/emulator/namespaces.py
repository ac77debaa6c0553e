"""Whether this system allows network namespaces, for tests that need them."""

import os
import shutil
import subprocess

import pytest


def why_impossible() -> str | None:
    missing = [name for name in ("ip", "nsenter", "unshare") if shutil.which(name) is None]
    if missing:
        return f"no {missing[0]}"
    user = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
    command = ["unshare", *user, "--net", "ip", "link", "add", "end1", "type", "veth", "peer", "name", "end2"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"no network namespaces: {made.stderr.strip()}" if made.returncode else None


_REASON = why_impossible()
needs_namespaces = pytest.mark.skipif(_REASON is not None, reason=str(_REASON))
