"""`python -m latentkt` is the same as `latentkt`."""

import sys

from latentkt.cli import main

sys.exit(main())
