"""The subcommands of `latentkt`, one thin module each.

A module `latentkt/commands/NAME.py` serves `latentkt NAME` (a dash becomes an underscore) and defines

- `configure(parser)`: adds its arguments to an `argparse.ArgumentParser`;
- `run(args) -> int`: calls the library and returns the exit code.

It holds no logic of its own: whatever it does can be had by calling one function of the library.
"""
