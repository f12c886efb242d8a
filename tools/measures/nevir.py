#!/usr/bin/env python3
"""NevIR's pairwise accuracy of the built-in encoder, by the definition of its authors' code and without ours.

    python3 -m venv venv && venv/bin/pip install numpy onnxruntime tokenizers
    venv/bin/python tools/measures/nevir.py tools/measures/nevir-pairs.jsonl
    parallax eval framing --pairs tools/measures/nevir-pairs.jsonl --lanes minilm

The definition is that of src/negations (evaluate.py, dense.py, tfidf.py) in github.com/orionw/NevIR: a query is right if the score of its own
passage is strictly greater than that of the other; a pair counts if both queries are right; the figure is the mean over pairs.
"""
import json
import pathlib
import sys

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

MODEL = pathlib.Path(__file__).resolve().parents[2] / "assets" / "minilm"


def encoder():
    tokenizer = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    session = onnxruntime.InferenceSession(str(MODEL / "model.int8.onnx"))
    (name,) = [one.name for one in session.get_inputs()]

    def encode(text):
        vector = session.run(None, {name: np.array([tokenizer.encode(text).ids], np.int64)})[0][0]
        return vector / np.linalg.norm(vector)

    return encode


def main():
    encode, right = encoder(), []
    for line in open(sys.argv[1], encoding="utf-8"):
        pair = json.loads(line)
        passages = [encode(pair[name]) for name in ("doc1", "doc2")]
        first, second = ([float(encode(pair[name]) @ one) for one in passages] for name in ("q1", "q2"))
        right.append((first[0] > first[1], second[1] > second[0]))
    both = [first and second for first, second in right]
    print("pairwise", np.mean(both), "q1 right", np.mean([one for one, _ in right]), "q2 right", np.mean([one for _, one in right]))


if __name__ == "__main__":
    main()
