"""One question from nothing to a coloured answer, as one would write it in Python: the peer of `parallax search`.

    pip install -r tools/performance/requirements.txt
    python tools/performance/whole_job.py --model FOLDER [--corpus corpus.jsonl] < questions.jsonl

FOLDER holds all-MiniLM-L6-v2 as sentence-transformers saves it. Every line of standard input is a question as in
sample_data/questions.jsonl. BM25 by rank-bm25, vectors by sentence-transformers, the two fused by reciprocal ranks; the first k of
each list are judged by the program's own detector through onnxruntime, in padded batches of 32, and measured by MRecall@k. Prints the answer,
and on standard error one JSON object a question: how long it took and what was found.
"""

import argparse
import json
import pathlib
import re
import sys
import time

import numpy as np
import onnxruntime
from rank_bm25 import BM25Okapi
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2]
GREEN, RED, YELLOW, DIM, PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[33m", "\x1b[2m", "\x1b[0m"
BATCH, DEPTH, STATEMENT = 32, 100, 96


def words(text):
    return re.findall(r"\w+", text.lower())


class Detector:
    """The carried cross-encoder, joined with the cosine of the two texts."""

    def __init__(self, encoder):
        folder = ROOT / "assets" / "detector"
        self.card = json.loads((folder / "detector.json").read_text())
        self.session = onnxruntime.InferenceSession(str(folder / "detector.onnx"))
        self.tokenizer = Tokenizer.from_file(str(ROOT / "assets" / "minilm" / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.encoder = encoder

    def judge(self, pairs, cosines):
        """Probabilities that each passage supports its statement; passages are cut where the model's window ends."""
        made = []
        for text, statement in pairs:
            asked = self.tokenizer.encode(statement, add_special_tokens=False).ids[:STATEMENT]
            read = self.tokenizer.encode(text, add_special_tokens=False).ids
            read = read[: self.card["max_tokens"] - len(asked) - 3]
            made.append(([101, *read, 102, *asked, 102], len(read) + 2))
        order = sorted(range(len(made)), key=lambda i: len(made[i][0]))
        logits = np.zeros((len(made), 3), dtype=np.float32)
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            width = max(len(made[i][0]) for i in batch)
            ids, mask, kinds = (np.zeros((len(batch), width), dtype=np.int64) for _ in range(3))
            for row, i in enumerate(batch):
                sequence, first = made[i]
                ids[row, : len(sequence)] = sequence
                mask[row, : len(sequence)] = 1
                kinds[row, first : len(sequence)] = 1
            feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": kinds}
            logits[batch] = self.session.run(None, feeds)[0]
        join = self.card["join"]
        joined = join["support"] * (logits[:, 0] - logits[:, 2]) + join["cosine"] * cosines + join["bias"]
        return 1 / (1 + np.exp(-joined))


class Search:
    def __init__(self, corpus, model):
        with open(corpus, encoding="utf-8") as file:
            self.passages = [json.loads(line) for line in file if line.strip()]
        self.texts = [f"{p.get('title', '')} {p['text']}".strip() for p in self.passages]
        self.terms = BM25Okapi([words(text) for text in self.texts], k1=0.9, b=0.4)
        self.encoder = SentenceTransformer(model, device="cpu")
        self.vectors = self.encoder.encode(self.texts, normalize_embeddings=True, show_progress_bar=False)
        self.detector = Detector(self.encoder)

    def lanes(self, question):
        terms = self.terms.get_scores(words(question))
        vectors = self.vectors @ self.encoder.encode(question, normalize_embeddings=True, show_progress_bar=False)
        lists = {"BM25": np.argsort(-terms)[:DEPTH], "MiniLM": np.argsort(-vectors)[:DEPTH]}
        fused = {}
        for found in lists.values():
            for rank, at in enumerate(found):
                fused[at] = fused.get(at, 0) + 1 / (60 + rank + 1)
        lists["Hybrid"] = sorted(fused, key=fused.get, reverse=True)[:DEPTH]
        return {name: [int(at) for at in found] for name, found in lists.items()}

    def answer(self, question, k):
        """The printed answer, how many pairs were judged, and MRecall@k of every lane."""
        statements = question["perspectives"]
        lanes = self.lanes(question["question"])
        tops = sorted({at for found in lanes.values() for at in found[:k]})
        asked = self.encoder.encode(statements, normalize_embeddings=True, show_progress_bar=False)
        pairs = [(at, side) for at in tops for side in range(len(statements))]
        read = lambda at: f"{self.passages[at]['text']} {self.passages[at].get('title', '')}".rstrip()
        cosines = np.array([self.vectors[at] @ asked[side] for at, side in pairs], dtype=np.float32)
        found = self.detector.judge([(read(at), statements[side]) for at, side in pairs], cosines)
        supports = {pair: p >= self.detector.card["threshold"] for pair, p in zip(pairs, found)}
        out, measured = [question["question"]], {}
        for name, ranked in lanes.items():
            out.append(f"\n{name}")
            met = set()
            for rank, at in enumerate(ranked[:k], 1):
                sides = [side for side in range(len(statements)) if supports[at, side]]
                met.update(sides)
                colour = {(): DIM, (0,): GREEN, (1,): RED}.get(tuple(sides), YELLOW)
                title = self.passages[at].get("title") or self.passages[at]["text"][:60]
                out.append(f"{rank:>3} {colour}● {title}{PLAIN}")
            measured[name] = int(len(met) == min(len(statements), k))
            out.append(f"    MRecall@{k} {measured[name]}")
        return "\n".join(out), len(pairs), measured, {name: ranked[:10] for name, ranked in lanes.items()}


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--model", required=True)
    args.add_argument("--corpus", default=str(ROOT / "sample_data" / "corpus.jsonl"))
    args.add_argument("-k", type=int, default=5)
    args = args.parse_args()
    search = Search(args.corpus, args.model)
    for line in sys.stdin:
        began = time.perf_counter()
        text, pairs, measured, lists = search.answer(json.loads(line), args.k)
        print(text, flush=True)
        told = {"seconds": time.perf_counter() - began, "pairs": pairs, "mrecall": measured, "lists": lists}
        print(json.dumps(told), file=sys.stderr, flush=True)


main()
