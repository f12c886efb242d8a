"""The peers of the million-passage figures: faiss-cpu (flat, IVF, HNSW) and bm25s, on the files that the bench makes.

    pip install faiss-cpu bm25s PyStemmer numba
    python tools/million/peers.py FOLDER PART…

FOLDER holds corpus.jsonl, vectors.npy, queries.npy and questions.txt. PART is one of flat, ivf, hnsw, bm25s. What is built is kept
in FOLDER, with the time that it took. Prints one JSON object a line: {"part", "name", "value"}; times are milliseconds.
"""

import json
import os
import resource
import sys
import time

import numpy as np

THREADS = 2
ROUNDS = 3
K = 100


def tell(part, name, value):
    print(json.dumps({"part": part, "name": name, "value": value}), flush=True)


def timed(part, search, queries, what=""):
    """Median of each query's best time (which other programs disturb least), median and 99th percentile of all."""
    rounds = []
    for _ in range(ROUNDS + 1):
        times = []
        for query in queries:
            began = time.perf_counter()
            search(query)
            times.append(time.perf_counter() - began)
        rounds.append(times)
    rounds = np.array(rounds[1:]) * 1e3
    tell(part, f"{what}best", float(np.median(rounds.min(axis=0))))
    tell(part, f"{what}p50", float(np.median(rounds)))
    tell(part, f"{what}p99", float(np.percentile(rounds, 99)))


def kept(folder, name, build):
    """Builds an index, or reads it with the times that building it took (of the clock, and of all cores)."""
    import faiss

    place = os.path.join(folder, name)
    if not os.path.exists(place):
        clock, cores = time.perf_counter(), time.process_time()
        index = build()
        spent = [time.perf_counter() - clock, time.process_time() - cores]
        faiss.write_index(index, place)
        with open(place + ".json", "w") as file:
            json.dump(spent, file)
    index = faiss.read_index(place)
    with open(place + ".json") as file:
        return index, *json.load(file)


def recall(index, queries, exact, k):
    found = index.search(queries, k)[1]
    return float(np.mean([len(set(a) & set(b[:k])) / k for a, b in zip(found, exact)]))


def dense(folder, part):
    import faiss

    faiss.omp_set_num_threads(THREADS)
    rows = np.load(os.path.join(folder, "vectors.npy"), mmap_mode="r")
    width = rows.shape[1]

    def flat():
        index = faiss.IndexFlatIP(width)
        for start in range(0, len(rows), 65536):
            index.add(np.ascontiguousarray(rows[start : start + 65536]))
        return index

    def ivf():
        index = faiss.index_factory(width, "IVF1024,Flat", faiss.METRIC_INNER_PRODUCT)
        index.cp.niter = 10
        index.train(np.ascontiguousarray(rows[:: max(1, len(rows) // 64_000)]))
        for start in range(0, len(rows), 65536):
            index.add(np.ascontiguousarray(rows[start : start + 65536]))
        return index

    def hnsw():
        index = faiss.IndexHNSWFlat(width, 16, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = 80
        for start in range(0, len(rows), 65536):
            index.add(np.ascontiguousarray(rows[start : start + 65536]))
            print(f"hnsw: {index.ntotal} of {len(rows)}", file=sys.stderr)
        return index

    if part == "flat":
        index = flat()
    else:
        index, clock, cores = kept(folder, f"{part}.faiss", {"ivf": ivf, "hnsw": hnsw}[part])
        tell(part, "build_s", clock)
        tell(part, "build_core_s", cores)
    place = os.path.join(folder, "queries.npy")
    if not os.path.exists(place):
        return
    queries = np.load(place)
    each = [queries[i : i + 1] for i in range(len(queries))]
    exact_at = os.path.join(folder, "exact.npy")
    if part == "flat":
        timed(part, lambda query: index.search(query, K), each)
        np.save(exact_at, index.search(queries, K)[1])
        return
    exact = np.load(exact_at)
    for effort in [1, 4, 16, 64] if part == "ivf" else [16, 64, 128, 256]:
        if part == "ivf":
            index.nprobe = effort
        else:
            index.hnsw.efSearch = effort
        for k in [10, 100]:
            tell(part, f"{effort} recall@{k}", recall(index, queries, exact, k))
        timed(part, lambda query: index.search(query, 10), each, f"{effort} ")


def bm25(folder):
    import bm25s
    import Stemmer

    with open(os.path.join(folder, "corpus.jsonl")) as file:
        lines = (json.loads(line) for line in file)
        texts = [f"{line['title']} {line['text']}" if line["title"] else line["text"] for line in lines]
    stemmer = Stemmer.Stemmer("porter")
    clock, cores = time.perf_counter(), time.process_time()
    tokens = bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)
    index = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    index.index(tokens, show_progress=False)
    tell("bm25s", "build_per_s", len(texts) / (time.perf_counter() - clock))
    tell("bm25s", "build_per_core_s", len(texts) / (time.process_time() - cores))
    with open(os.path.join(folder, "questions.txt")) as file:
        questions = file.read().splitlines()

    def search(question):
        asked = bm25s.tokenize([question], stopwords="en", stemmer=stemmer, show_progress=False)
        index.retrieve(asked, k=K, show_progress=False, n_threads=THREADS)

    timed("bm25s", search, questions)
    index.backend = "numba"
    index.activate_numba_scorer()
    timed("bm25s", search, questions, "numba ")


def main():
    folder, *parts = sys.argv[1:]
    for part in parts:
        if part == "bm25s":
            bm25(folder)
        else:
            dense(folder, part)
        tell(part, "peak_mb", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6)


main()
