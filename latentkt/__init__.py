"""latentkt: why a language model follows a shortcut.

Importing the package brings in neither torch, transformers nor pandas; the parts do, when they are used.
"""

__version__ = "0.1.0"
