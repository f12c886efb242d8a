"""Adds the carried encoder's cosine of passage and statement to the pairs that stage 2 trains on.

python cosine.py --encoder ../../assets/minilm --data pairs.jsonl

The detector's verdict joins the cross-encoder with this cosine (join.py); with it in the training loss, the cross-encoder
learns what the cosine does not know, instead of learning the topic a second time.
"""
import argparse
import json
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnxruntime as ort
from tokenizers import Tokenizer

SOURCES = ("labels", "written")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--encoder", required=True)
    ap.add_argument("--data", required=True)
    ap.add_argument("--threads", type=int, default=2)
    a = ap.parse_args()
    tok = Tokenizer.from_file(os.path.join(a.encoder, "tokenizer.json"))
    tok.no_padding()
    tok.enable_truncation(256)
    o = ort.SessionOptions()
    o.intra_op_num_threads = 1
    s = ort.InferenceSession(os.path.join(a.encoder, "model.int8.onnx"), o, providers=["CPUExecutionProvider"])
    rows = [json.loads(l) for l in open(a.data, encoding="utf-8")]
    use = [r for r in rows if r["source"].startswith(SOURCES) and "cos" not in r]
    texts = sorted({r["passage"] for r in use} | {r["statement"] for r in use})

    def vector(text):
        return s.run(None, {"input_ids": np.array([tok.encode(text).ids], dtype=np.int64)})[0][0]
    with ThreadPoolExecutor(a.threads) as ex:
        known = dict(zip(texts, ex.map(vector, texts)))
    for r in use:
        r["cos"] = round(float(known[r["passage"]] @ known[r["statement"]]), 4)
    with open(a.data + ".new", "w", encoding="utf-8") as f:
        for r in rows:
            f.write(json.dumps(r, ensure_ascii=False) + "\n")
    os.replace(a.data + ".new", a.data)
    print(len(use), "pairs,", len(texts), "texts")


if __name__ == "__main__":
    main()
