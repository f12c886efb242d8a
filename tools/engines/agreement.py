"""Compares the first ten of two TREC runs, ties aside. Called by end_to_end.sh."""

import sys
from collections import defaultdict

K, TIE = 10, 1e-4


def read(path):
    lists = defaultdict(list)
    for line in open(path, encoding="utf-8"):
        question, _, passage, rank, score, _ = line.split()
        lists[question].append((int(rank), passage, float(score)))
    return {question: [(p, s) for _, p, s in sorted(hits)][:K] for question, hits in lists.items()}


here, there = map(read, sys.argv[1:])
whole, ordered, shares = 0, 0, []
for question, own in here.items():
    other = there.get(question, [])
    ids, others = [p for p, _ in own], [p for p, _ in other]
    ordered += ids == others
    # What scores as the last one does may stand in either list.
    last = own[-1][1]
    sure = {p for p, s in own if s > last + TIE}
    whole += sure <= set(others) and all(abs(s - last) <= TIE for p, s in other if p not in ids)
    shares.append(len(set(ids) & set(others)) / K)
print(f"questions {len(here)}; the same ten, ties aside: {whole}; in the same order: {ordered}")
print(f"shared of ten: mean {sum(shares) / len(shares):.3f}, least {min(shares):.1f}")
sys.exit(whole < len(here))
