"""Which versions of which libraries a run was made with."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

__all__ = ["library_versions"]

# The libraries on which numbers or the bytes of tables can depend.
NUMERIC = ("numpy", "scipy", "pandas", "pyarrow", "scikit-learn", "torch", "transformers", "tokenizers")


def library_versions(*more: str) -> dict[str, str]:
    """Versions of Python, latentkt and the libraries that results can depend on; absent ones are left out.

    Args:
        more: Further distributions to name, such as `"transformer-lens"`.

    Returns:
        Distribution name to version, in alphabetical order.

    Example:
        >>> "numpy" in library_versions()
        True
    """
    from latentkt import __version__

    found = {"python": platform.python_version(), "latentkt": __version__}
    for name in (*NUMERIC, *more):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return dict(sorted(found.items()))
