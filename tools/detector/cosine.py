"""The carried encoder's cosine of passage and statement; as a command, added to the pairs that stage 2 trains on.

python cosine.py --encoder ../../assets/minilm --data pairs.jsonl

The detector's verdict joins the cross-encoder with this cosine (fit.py); with it in the training loss, the cross-encoder
learns what the cosine does not know, instead of learning the topic a second time.
"""
import argparse
import json
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import common
import export
import model as M

SOURCES = ("labels", "written")


def of(encoder, rows, threads=2):
    """The cosines of the pairs, by the int8 encoder in the folder `encoder`, as the program works them out."""
    tok = M.tokenizer(encoder)
    tok.enable_truncation(256)
    s = export.session(os.path.join(encoder, "model.int8.onnx"))
    texts = sorted({r[k] for r in rows for k in ("passage", "statement")})

    def vector(text):
        return s.run(None, {"input_ids": np.array([tok.encode(text).ids], dtype=np.int64)})[0][0]
    with ThreadPoolExecutor(threads) as ex:
        known = dict(zip(texts, ex.map(vector, texts)))
    return np.array([float(known[r["passage"]] @ known[r["statement"]]) for r in rows])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--encoder", required=True)
    ap.add_argument("--data", required=True)
    ap.add_argument("--threads", type=int, default=2)
    a = ap.parse_args()
    rows = common.read(a.data)
    use = [r for r in rows if r["source"].startswith(SOURCES) and "cos" not in r]
    for r, cos in zip(use, of(a.encoder, use, a.threads)):
        r["cos"] = round(float(cos), 4)
    with open(a.data + ".new", "w", encoding="utf-8") as f:
        for r in rows:
            f.write(json.dumps(r, ensure_ascii=False) + "\n")
    os.replace(a.data + ".new", a.data)
    print(len(use), "pairs")


if __name__ == "__main__":
    main()
