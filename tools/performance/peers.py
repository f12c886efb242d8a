"""The peers of docs/reports/speed.md: onnxruntime, bm25s and faiss, driven one order at a time by `cargo bench --bench peers`.

    pip install -r tools/performance/requirements.txt
    PARALLAX_PYTHON=python cargo bench --bench peers

Reads one JSON object a line from standard input and answers each with one line. Only the work itself is timed: what is loaded or
built stays until the next order. An order that fails is answered with {"error"}.
"""

import concurrent.futures
import importlib.metadata
import json
import pathlib
import platform
import sys
import time

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "detector"))
import rows


class Models:
    """onnxruntime sessions over the program's own files, by (file, threads within a call)."""

    def __init__(self):
        self.sessions, self.tokenizers = {}, {}

    def session(self, file, threads):
        import onnxruntime as ort

        if (file, threads) not in self.sessions:
            options = ort.SessionOptions()
            options.intra_op_num_threads = threads
            options.inter_op_num_threads = 1
            self.sessions[file, threads] = ort.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        return self.sessions[file, threads]

    def tokenizer(self, file):
        from tokenizers import Tokenizer

        if file not in self.tokenizers:
            tokenizer = Tokenizer.from_file(file)
            tokenizer.no_padding()
            tokenizer.no_truncation()
            self.tokenizers[file] = tokenizer
        return self.tokenizers[file]


MODELS = Models()


def spread(callers, each, items):
    """Does `each` for all items on so many threads, and says how long that took. Sessions and tokenizers let go of the lock."""
    if callers == 1:
        began = time.perf_counter()
        made = [each(item) for item in items]
        return time.perf_counter() - began, made
    with concurrent.futures.ThreadPoolExecutor(callers) as pool:
        list(pool.map(lambda _: time.sleep(0.001), range(callers)))  # The threads are there before the clock runs.
        began = time.perf_counter()
        made = list(pool.map(each, items))
        return time.perf_counter() - began, made


def encode(order):
    session = MODELS.session(order["model"], order["threads"])
    tokenizer = MODELS.tokenizer(order["tokenizer"])

    def one(text):
        ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
        return session.run(None, {"input_ids": ids})[0][0]

    seconds, vectors = spread(order["callers"], one, order["texts"])
    return {"seconds": seconds, "vectors": [vector.tolist() for vector in vectors] if order["give"] else None}


def detect(order):
    """The detector's file over whole passages, each with both statements in one row (tools/detector/rows.py); what follows its logits is arithmetic."""
    session = MODELS.session(order["model"], order["threads"])
    tokenizer = MODELS.tokenizer(order["tokenizer"])

    def one(text):
        row = rows.encode(tokenizer, text, order["statements"], 256)
        feeds = {name: np.array([column], dtype=np.int64) for name, column in zip(rows.INPUTS, row)}
        return session.run(None, feeds)[0].ravel()

    seconds, logits = spread(order["callers"], one, order["texts"])
    return {"seconds": seconds, "logits": [row.tolist() for row in logits] if order["give"] else None}


BM25 = {}


def bm25_index(order):
    """Indexes passages that are given as terms, so that both sides score the same ones."""
    import bm25s

    with open(order["file"], encoding="utf-8") as file:
        passages = [json.loads(line) for line in file]
    index = bm25s.BM25(method="lucene", k1=0.9, b=0.4, backend=order["backend"])
    began = time.perf_counter()
    index.index(passages, show_progress=False)
    BM25[order["backend"]] = index
    return {"seconds": time.perf_counter() - began}


def bm25(order):
    index, k = BM25[order["backend"]], order["k"]
    began = time.perf_counter()
    found = [index.retrieve([terms], k=k, show_progress=False, n_threads=order["threads"]) for terms in order["queries"]]
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "hits": [each.documents[0].tolist() for each in found]}


FLAT = {}


def faiss_index(order):
    import faiss

    rows = np.fromfile(order["file"], dtype="<f4").reshape(-1, order["dimensions"])
    FLAT["index"] = faiss.IndexFlatIP(order["dimensions"])
    FLAT["index"].add(rows)
    return {}


def faiss_search(order):
    import faiss

    faiss.omp_set_num_threads(order["threads"])
    queries = np.array(order["queries"], dtype=np.float32)
    index, k = FLAT["index"], order["k"]
    began = time.perf_counter()
    found = [index.search(queries[i : i + 1], k)[1][0] for i in range(len(queries))]
    return {"seconds": time.perf_counter() - began, "hits": [row.tolist() for row in found]}


def versions(_):
    told = {"python": platform.python_version()}
    for name in ["onnxruntime", "bm25s", "numba", "faiss-cpu", "sentence-transformers", "torch", "rank-bm25"]:
        try:
            told[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            told[name] = None
    return told


ORDERS = {
    "versions": versions,
    "encode": encode,
    "detect": detect,
    "bm25_index": bm25_index,
    "bm25": bm25,
    "faiss_index": faiss_index,
    "faiss": faiss_search,
}


def main():
    for line in sys.stdin:
        order = json.loads(line)
        try:
            answer = ORDERS[order["do"]](order)
        except Exception as error:  # Whatever it is, the bench says so and goes on.
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


main()
