"""What `import roamcast` offers."""

import subprocess
import sys

import pytest

import roamcast


def test_every_public_name_is_there_and_documented() -> None:
    for name in roamcast.__all__:
        public = getattr(roamcast, name)
        assert public.__doc__ or roamcast.FORM == "compiled", name  # compiled classes have no docstrings
    assert set(roamcast.__all__) <= set(dir(roamcast))


def test_a_name_that_is_not_public_is_missing() -> None:
    with pytest.raises(AttributeError, match="smoke"):
        _ = roamcast.smoke  # type: ignore[attr-defined]


def test_a_node_loads_nothing_heavy() -> None:
    heavy = ("pyspark", "pandas", "pyarrow")
    code = f"import roamcast, sys; roamcast.Node; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
