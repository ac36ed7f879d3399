"""How much it saves that a prompt is run once for both of its answers.

    python experiments/benchmarks/answer_scoring.py [MODEL]

Times `score_answers` against the plain way (one row a prompt and answer, logits of the whole vocabulary at every
position) on the same prompts, one thread, process CPU time, alternating, the smaller of two runs each.
"""

from __future__ import annotations

import sys
import time

import torch

from latentkt.models import encode, encode_answers, open_model, score_answers

N_PROMPTS = 16


def plain(handle, prompts, answers):
    """Rows of prompt + answer, right-padded, in batches of eight."""
    rows = [(p.ids, ids) for p, a in zip(prompts, answers, strict=True) for ids in (a.correct_ids, a.shortcut_ids)]
    found = []
    for start in range(0, len(rows), 8):
        chunk = rows[start : start + 8]
        width = max(len(p) + len(a) for p, a in chunk)
        ids, mask = torch.zeros(len(chunk), width, dtype=torch.long), torch.zeros(len(chunk), width, dtype=torch.long)
        for n, (p, a) in enumerate(chunk):
            ids[n, : len(p) + len(a)], mask[n, : len(p) + len(a)] = torch.tensor([*p, *a]), 1
        with torch.no_grad():
            logp = handle.logits(ids, mask).log_softmax(-1)
        for n, (p, a) in enumerate(chunk):
            found.append(sum(logp[n, len(p) - 1 + k, token].item() for k, token in enumerate(a)))
    return found


def main() -> None:
    """Print both times, their ratio, and the largest difference of the scores."""
    torch.set_num_threads(1)
    handle = open_model(sys.argv[1] if len(sys.argv) > 1 else "smollm2")
    text = "You are asked about two people. " * 12 + "Person {}: who is meant, Marie Curie or Otto Hahn? Answer:"
    prompts = [encode(handle, text.format(n), chat=False) for n in range(N_PROMPTS)]
    answers = [encode_answers(handle, p, " Marie Curie", " Otto Hahn") for p in prompts]
    times: dict[str, list[float]] = {"plain": [], "score_answers": []}
    for _ in range(2):
        begin = time.process_time()
        slow = plain(handle, prompts, answers)
        middle = time.process_time()
        fast = score_answers(handle, prompts, answers)
        times["plain"].append(middle - begin)
        times["score_answers"].append(time.process_time() - middle)
    tokens = sum(map(len, prompts))
    for name, values in times.items():
        print(f"{name:<14} {min(values):6.2f} CPU s  {1000 * min(values) / tokens:5.2f} ms a prompt token")
    print(f"ratio          {min(times['plain']) / min(times['score_answers']):.2f}")
    gaps = [abs(a - b) for a, b in zip(slow[::2], fast.logp_correct, strict=True)]
    print(f"largest difference of log P(y*): {max(gaps):.1e} nat, over {N_PROMPTS} prompts of {len(prompts[0])} tokens")


if __name__ == "__main__":
    main()
