"""What a detector says of passages with two opposite statements, kept in a file that fit.py and evaluate.py read.

python score.py --onnx detector.onnx --tokenizer FOLDER --encoder ../../assets/minilm --data pairs.jsonl --split dev --out dev.npz
python score.py --checkpoint best.pt --base MPNET --encoder ../../assets/minilm --data pairs.jsonl --split check --window 2 --out check.npz

--window 0 reads passages whole. --apart reads each statement by itself, as single pairs are read. --with negated puts the negations in the place
of both statements, for the negation test. `--out` then holds, in
the order of the passages: `z` (window, statement, class), `start` (the first window of each passage), `cos` (passage, statement).
"""
import argparse
import json
import time

import numpy as np

import common
import cosine
import export
import model as M
import prepare
import windows


def passages(rows):
    """Two rows each: one passage and two opposite statements."""
    by = {}
    for r in rows:
        by.setdefault((r["group"], r["passage"]), []).append(r)
    return [tuple(g) for g in by.values() if len(g) == 2 and g[0].get("two") is not None]


def chosen(data, split, sources=("labels", "written", "contrast", "web")):
    return passages([r for r in common.read(data) if r["split"] == split and (
        r["source"] in sources or r["source"].split("-")[0] in sources and r["source"] != "written-other")])


def units(groups, size, stride):
    """(passage window, statement) rows, two a window, and the first window of every passage."""
    rows, start, n = [], [], 0
    for g in groups:
        start.append(n)
        for w in windows.windows(g[0]["passage"], size, stride):
            rows += [{"passage": w, "statement": r["statement"], "label": r["label"], "weight": 1.0, "group": n} for r in g]
            n += 1
    return rows, np.array(start)


def logits(a, rows):
    if a.onnx:
        return export.predict_onnx(a.onnx, M.tokenizer(a.tokenizer), rows, a.max_tokens, a.threads, a.apart)
    import torch
    import packed
    torch.set_num_threads(a.threads)
    data = packed.Packed(rows, M.tokenizer(a.base), a.max_tokens)
    return packed.score(M.load(a.checkpoint, a.base), data, range(len(rows)), apart=a.apart)


def main():
    ap = argparse.ArgumentParser()
    for name in ("--onnx", "--tokenizer", "--checkpoint", "--base"):
        ap.add_argument(name)
    for name in ("--encoder", "--data", "--split", "--out"):
        ap.add_argument(name, required=True)
    ap.add_argument("--window", type=int, default=0)
    ap.add_argument("--stride", type=int, default=1)
    ap.add_argument("--max-tokens", type=int, default=256)
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--apart", action="store_true")
    ap.add_argument("--sources", default="labels,written,contrast,web")
    ap.add_argument("--every", type=int, default=1, help="only every so many passages")
    ap.add_argument("--with", dest="extra", choices=["negated", "empty", "other"],
                    help="the statements' negations, no passage, or the passage of another question in place of their own")
    a = ap.parse_args()
    groups = chosen(a.data, a.split, a.sources.split(","))[::a.every]
    if a.extra == "empty":
        groups = [tuple(dict(r, passage="") for r in g) for g in groups]
    elif a.extra == "other":
        n = len(groups)
        groups = [tuple(dict(r, passage=groups[(i + n // 2) % n][0]["passage"]) for r in g) for i, g in enumerate(groups)
                  if g[0]["topic"] != groups[(i + n // 2) % n][0]["topic"]]
    elif a.extra:
        groups = [tuple(dict(r, statement=n) for r, n in zip(g, map(prepare.negate, [x["statement"] for x in g])))
                  for g in groups if all(prepare.negate(r["statement"]) for r in g)]
    rows, start = units(groups, a.window, a.stride)
    t = time.time()
    z = logits(a, rows)
    rate = len(rows) / (time.time() - t)
    cos = cosine.of(a.encoder, [r for g in groups for r in g], a.threads)
    keep = ("row", "two", "topic", "source", "kind", "text_type", "words", "conf", "ds", "sample_topic", "group", "passage")
    side = {(True, False): "A", (False, True): "B", (True, True): "AB", (False, False): "-"}
    meta = [{k: g[0][k] for k in keep if k in g[0]} | {"statements": [r["statement"] for r in g],
             "two": side[tuple(r["label"] == "supports" for r in g)]} for g in groups]
    with open(a.out, "wb") as f:
        np.savez_compressed(f, z=z.reshape(-1, 2, 3).astype(np.float32), start=start, cos=cos.reshape(-1, 2).astype(np.float32),
                            meta=json.dumps(meta, ensure_ascii=False), rate=rate, window=a.window, stride=a.stride)
    print(f"{a.split}: {len(groups)} passages, {len(start)} of them, {len(rows)} pairs, {rate:.1f} pairs/s with {a.threads} thread(s)")


if __name__ == "__main__":
    main()
