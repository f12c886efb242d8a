#!/usr/bin/env python3
"""RM3 after Anserini, in exact fractions: checks the weights of the Rust implementation.

Reads {"query_terms": [...], "passages": [{"terms": [...], "score": 9.5}, ...], "df": {term: passages}, "n": passages}
from standard input and prints [[term, weight], ...], heaviest first, equal weights in order of the terms.

    python3 tools/rm3.py < src/expand/rm3/input.json > src/expand/rm3/weights.json
"""

import json
import re
import sys
from collections import Counter
from fractions import Fraction

FEEDBACK_PASSAGES = 10
FEEDBACK_TERMS = 10
ORIGINAL_WEIGHT = Fraction(1, 2)


def ranked(vector):
    return sorted(vector.items(), key=lambda pair: (-pair[1], pair[0]))


def pruned(vector):
    return dict(ranked(vector)[:FEEDBACK_TERMS])


def normalised(vector):
    norm = sum(vector.values())
    return {term: Fraction(weight) / norm for term, weight in vector.items()} if norm else {}


def relevance_model(passages, df, n):
    vectors = []
    for passage in passages[:FEEDBACK_PASSAGES]:
        allowed = [
            term
            for term in passage["terms"]
            if re.fullmatch("[a-z0-9]{2,20}", term) and Fraction(df[term], n) <= Fraction(1, 10)
        ]
        vectors.append((normalised(pruned(Counter(allowed))), Fraction(passage["score"])))
    vocabulary = {term for vector, _ in vectors for term in vector}
    model = {term: sum(vector.get(term, 0) * score for vector, score in vectors) for term in vocabulary}
    return normalised(pruned(model))


def rm3(query_terms, passages, df, n):
    query = normalised(Counter(query_terms))
    model = relevance_model(passages, df, n)
    return {
        term: ORIGINAL_WEIGHT * query.get(term, 0) + (1 - ORIGINAL_WEIGHT) * model.get(term, 0)
        for term in query.keys() | model.keys()
    }


if __name__ == "__main__":
    weights = rm3(**json.load(sys.stdin))
    rows = [f"  [{json.dumps(term)}, {float(weight):.9f}]" for term, weight in ranked(weights)]
    print("[\n" + ",\n".join(rows) + "\n]")
