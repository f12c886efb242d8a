"""One question from nothing to a coloured answer, as one would write it in Python: the peer of `parallax search`.

    pip install -r tools/performance/requirements.txt
    python tools/performance/whole_job.py --model FOLDER [--corpus corpus.jsonl] < questions.jsonl

FOLDER holds all-MiniLM-L6-v2 as sentence-transformers saves it. Every line of standard input is a question as in
sample_data/questions.jsonl. BM25 by rank-bm25, vectors by sentence-transformers, the two fused by reciprocal ranks; the first k of
each list are judged by the program's own detector through onnxruntime, one row a passage, and measured by MRecall@k. Prints the answer,
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
sys.path.append(str(ROOT / "tools" / "detector"))
import decision
import rows

GREEN, RED, YELLOW, DIM, PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[33m", "\x1b[2m", "\x1b[0m"
DEPTH = 100


def words(text):
    return re.findall(r"\w+", text.lower())


class Detector:
    """The carried cross-encoder and what is made of its logits (tools/detector/decision.py)."""

    def __init__(self):
        folder = ROOT / "assets" / "detector"
        self.card, self.joint = (json.loads((folder / name).read_text()) for name in ("detector.json", "joint.json"))
        self.session = onnxruntime.InferenceSession(str(folder / "detector.onnx"))
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()

    def logits(self, text, statements):
        row = rows.encode(self.tokenizer, text, statements, self.card["max_tokens"])
        return self.session.run(None, {name: np.array([x], dtype=np.int64) for name, x in zip(rows.INPUTS, row)})[0]

    def sides(self, texts, statements, cosines):
        """The statements that each passage supports. Two are decided together, more of them one by one."""
        if len(statements) == 2:
            decided = decision.decide(self.joint, np.array([self.logits(text, statements) for text in texts]), cosines)
            of = {decision.FIRST: {0}, decision.SECOND: {1}, decision.BOTH: {0, 1}}
            return [of.get(int(each), set()) for each in decided]
        z = np.array([[self.logits(text, [statement])[0] for statement in statements] for text in texts])
        w = self.joint["single"]
        logit = w["support"] * (z[..., 0] - z[..., 2]) + w["polarity"] * (z[..., 0] - z[..., 1]) + w["cosine"] * cosines + w["bias"]
        return [set(np.flatnonzero(row).tolist()) for row in decision.sigmoid(logit) >= w["threshold"]]


class Search:
    def __init__(self, corpus, model):
        with open(corpus, encoding="utf-8") as file:
            self.passages = [json.loads(line) for line in file if line.strip()]
        self.texts = [f"{p.get('title', '')} {p['text']}".strip() for p in self.passages]
        self.terms = BM25Okapi([words(text) for text in self.texts], k1=0.9, b=0.4)
        self.encoder = SentenceTransformer(model, device="cpu")
        self.vectors = self.encoder.encode(self.texts, normalize_embeddings=True, show_progress_bar=False)
        self.detector = Detector()

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
        read = lambda at: f"{self.passages[at]['text']} {self.passages[at].get('title', '')}".rstrip()
        supports = dict(zip(tops, self.detector.sides([read(at) for at in tops], statements, self.vectors[tops] @ asked.T)))
        out, measured = [question["question"]], {}
        for name, ranked in lanes.items():
            out.append(f"\n{name}")
            met = set()
            for rank, at in enumerate(ranked[:k], 1):
                met.update(supports[at])
                colour = {(): DIM, (0,): GREEN, (1,): RED}.get(tuple(supports[at]), YELLOW)
                title = self.passages[at].get("title") or self.passages[at]["text"][:60]
                out.append(f"{rank:>3} {colour}● {title}{PLAIN}")
            measured[name] = int(len(met) == min(len(statements), k))
            out.append(f"    MRecall@{k} {measured[name]}")
        return "\n".join(out), len(tops) * len(statements), measured, {name: ranked[:10] for name, ranked in lanes.items()}


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
