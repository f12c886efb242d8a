"""Holds the carried int8 encoder against the f32 original.

    python tools/encoder/make_minilm.py --out assets/minilm --keep-f32 f32.onnx
    python tools/encoder/check_quality.py --f32 f32.onnx --data FOLDER

FOLDER holds ArguAna in BEIR's layout (`arguana/corpus.jsonl`, `queries.jsonl`, `qrels/test.tsv`). Prints the mean and
least cosine over every passage and the nDCG@10 of both; exits 1 if the mean is below .99 or nDCG@10 differs by more
than .005. The query's own passage is left out, as in BEIR. Takes some five minutes on two cores.
"""

import argparse
import concurrent.futures
import json
import math
import pathlib
import sys

import numpy as np
import onnxruntime as ort
from tokenizers import Tokenizer

ASSETS = pathlib.Path(__file__).resolve().parents[2] / "assets" / "minilm"


def lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def encode(model, texts, tokenizer):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])

    def one(text):
        ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
        return session.run(None, {"input_ids": ids})[0][0]

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return np.stack(list(pool.map(one, texts)))


def ndcg_at_10(queries, passages, query_ids, ids, gold):
    place = {id: i for i, id in enumerate(ids)}
    total = 0.0
    for query, own in zip(queries, query_ids):
        scores = passages @ query
        if own in place:
            scores[place[own]] = -np.inf
        best = np.argsort(-scores, kind="stable")[:10]
        gains = sum(gold[own].get(ids[i], 0) / math.log2(rank + 2) for rank, i in enumerate(best))
        ideal = sorted(gold[own].values(), reverse=True)[:10]
        total += gains / sum(g / math.log2(rank + 2) for rank, g in enumerate(ideal))
    return total / len(query_ids)


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--f32", type=pathlib.Path, required=True)
    args.add_argument("--data", type=pathlib.Path, required=True)
    args = args.parse_args()
    folder = args.data / "arguana"
    corpus = lines(folder / "corpus.jsonl")
    gold = {}
    with open(folder / "qrels" / "test.tsv", encoding="utf-8") as file:
        next(file)
        for line in file:
            query, passage, grade = line.rstrip("\n").split("\t")
            gold.setdefault(query, {})[passage] = int(grade)
    queries = [query for query in lines(folder / "queries.jsonl") if query["_id"] in gold]
    ids, query_ids = [p["_id"] for p in corpus], [q["_id"] for q in queries]
    texts = [f"{p['title']} {p['text']}" if p.get("title") else p["text"] for p in corpus]

    tokenizer = Tokenizer.from_file(str(ASSETS / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    vectors, figures = {}, {}
    for name, model in [("f32", args.f32), ("int8", ASSETS / "model.int8.onnx")]:
        vectors[name] = encode(model, texts, tokenizer)
        asked = encode(model, [q["text"] for q in queries], tokenizer)
        figures[name] = ndcg_at_10(asked, vectors[name], query_ids, ids, gold)
        print(f"{name}: nDCG@10 {figures[name]:.4f} over {len(queries)} queries", flush=True)
    cosines = (vectors["f32"] * vectors["int8"]).sum(axis=1)
    print(f"cosine over {len(ids)} passages: mean {cosines.mean():.4f}, least {cosines.min():.4f}")
    if cosines.mean() < 0.99 or abs(figures["f32"] - figures["int8"]) > 0.005:
        sys.exit("the int8 model is too far from the original")


if __name__ == "__main__":
    main()
