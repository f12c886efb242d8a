"""A double of OpenSearch with three shards, to load a large corpus into and to search it: what `corpus push` and `os:` lanes ask of a server.

    python shards.py FOLDER PORT

A shard is an SQLite file (texts by FTS5) and a file of vectors, in FOLDER. A passage belongs to the shard that the CRC of its id names. As in
OpenSearch, every shard ranks its own passages by its own document frequencies and sends its best, which are merged by score (query then
fetch). What is acknowledged is on disk. `GET /_counts` has the number of requests of each kind and their bytes.

What it does not stand in for: nearest vectors are found by comparing all, so agreement says nothing of HNSW's recall; texts are scored by one
BM25 over title and text, SQLite's, with stop words and each query word once; passages can be found before `_refresh`.
"""

import heapq
import json
import os
import re
import sqlite3
import sys
import threading
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

SHARDS = 3


class Shard:
    def __init__(self, folder, number):
        self.db = sqlite3.connect(os.path.join(folder, f"shard-{number}.sqlite"), check_same_thread=False)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("CREATE TABLE IF NOT EXISTS docs (at INTEGER PRIMARY KEY, id TEXT UNIQUE, hash TEXT)")
        self.db.execute("CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5(title, text, tokenize='porter')")
        self.path, self.rows, self.lock = os.path.join(folder, f"shard-{number}.f32"), None, threading.Lock()
        open(self.path, "ab").close()

    def put(self, docs):
        # A transaction: what fails leaves nothing.
        with self.lock, self.db, open(self.path, "r+b") as file:
            for id, doc in docs:
                known = self.db.execute("SELECT at FROM docs WHERE id = ?", (id,)).fetchone()
                at = known[0] if known else self.db.execute("SELECT coalesce(max(at), 0) + 1 FROM docs").fetchone()[0]
                vector = np.array(doc["vector"], np.float32)
                vector /= np.linalg.norm(vector)
                file.seek((at - 1) * vector.nbytes)
                file.write(vector.tobytes())
                if known:
                    self.db.execute("DELETE FROM texts WHERE rowid = ?", (at,))
                self.db.execute("REPLACE INTO docs VALUES (?, ?, ?)", (at, id, doc["hash"]))
                self.db.execute("INSERT INTO texts (rowid, title, text) VALUES (?, ?, ?)", (at, doc["title"], doc["text"]))
            # The rows first: a document that is acknowledged has its vector.
            file.flush()
            os.fsync(file.fileno())
            self.rows = None

    def hash(self, id):
        with self.lock:
            found = self.db.execute("SELECT hash FROM docs WHERE id = ?", (id,)).fetchone()
        return found and found[0]

    def count(self):
        with self.lock:
            return self.counted()

    def counted(self):
        return self.db.execute("SELECT count(*) FROM docs").fetchone()[0]

    def id(self, at):
        return self.db.execute("SELECT id FROM docs WHERE at = ?", (int(at),)).fetchone()[0]

    def by_text(self, text, size):
        words = " OR ".join(f'"{w}"' for w in dict.fromkeys(re.findall(r"\w+", text.lower())))
        if not words:
            return []
        with self.lock:
            rows = self.db.execute("SELECT rowid, -rank FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?", (words, size)).fetchall()
            return [(score, self.id(at)) for at, score in rows]

    def by_vector(self, vector, size):
        with self.lock:
            count, width = self.counted(), len(vector)
            if not count:
                return []
            if self.rows is None:
                self.rows = np.memmap(self.path, np.float32, "r", shape=(count, width))
            cosines = self.rows @ np.array(vector, np.float32) / np.linalg.norm(vector)
            best = np.argpartition(-cosines, min(size, count) - 1)[:size]
            return [((1 + float(cosines[at])) / 2, self.id(at + 1)) for at in best]


class Index:
    def __init__(self, folder):
        self.folder, self.place, self.counts = folder, os.path.join(folder, "mapping.json"), Counter()
        self.shards, self.lock = [Shard(folder, i) for i in range(SHARDS)], threading.Lock()
        self.pool = ThreadPoolExecutor(SHARDS)

    def of(self, id):
        return zlib.crc32(id.encode()) % SHARDS

    def answer(self, verb, path, body):
        parts = path.split("?")[0].strip("/").split("/")
        name, what = parts[0], parts[1] if len(parts) > 1 else ""
        with self.lock:
            self.counts[f"{verb} {what or '/'}"] += 1
            self.counts[f"{verb} {what or '/'} bytes"] += len(body)
        if path == "/":
            return 200, {"version": {"distribution": "opensearch", "number": "double"}}
        if path == "/_counts":
            return 200, dict(self.counts) | {"there": sum(s.count() for s in self.shards)}
        if verb == "PUT":
            with open(self.place + ".new", "w") as file:
                json.dump(json.loads(body)["mappings"], file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(self.place + ".new", self.place)
            return 200, {"acknowledged": True}
        if not os.path.exists(self.place):
            return 404, {"error": {"type": "index_not_found_exception", "reason": f"no such index [{name}]"}, "status": 404}
        if what == "_mapping":
            return 200, {name: {"mappings": json.load(open(self.place))}}
        if what == "_mget":
            hashes = ((id, self.shards[self.of(id)].hash(id)) for id in json.loads(body)["ids"])
            return 200, {"docs": [{"_id": id, "found": bool(h), "_source": {"hash": h}} for id, h in hashes]}
        if what == "_bulk":
            lines = body.split(b"\n")
            parts, items = [[] for _ in self.shards], []
            for action, doc in zip(lines[::2], lines[1::2]):
                id = json.loads(action)["index"]["_id"]
                parts[self.of(id)].append((id, json.loads(doc)))
                items.append({"index": {"_id": id, "status": 201}})
            list(self.pool.map(lambda x: x[1] and x[0].put(x[1]), zip(self.shards, parts)))
            return 200, {"errors": False, "items": items}
        if what == "_refresh":
            return 200, {}
        if what == "_count":
            return 200, {"count": sum(s.count() for s in self.shards)}
        if what == "_search":
            return 200, self.search(json.loads(body))
        return 400, {"error": {"reason": f"{verb} {path} is not among what this double answers"}}

    def search(self, body):
        size, query = body["size"], body["query"]
        if "knn" in query:
            vector = query["knn"]["vector"]["vector"]
            lists = self.pool.map(lambda s: s.by_vector(vector, size), self.shards)
        else:
            text = query["bool"]["should"][0]["match"]["title"]["query"]
            lists = self.pool.map(lambda s: s.by_text(text, size), self.shards)
        best = heapq.nlargest(size, (hit for hits in lists for hit in hits), key=lambda hit: (hit[0], hit[1]))
        return {"timed_out": False, "_shards": {"total": SHARDS, "failed": 0}, "hits": {"hits": [{"_id": i, "_score": s} for s, i in best]}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        length = int(self.headers.get("Content-Length") or 0)
        status, body = self.server.index.answer(self.command, self.path, self.rfile.read(length))
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_POST = do_PUT = do_GET

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler)
    server.index = Index(sys.argv[1])
    print("listening", flush=True)
    server.serve_forever()
