"""A smaller model to start a student from: some of the teacher's layers, and only the words that English web text uses.

python student.py --teacher best.pt --base MPNET --data pairs.jsonl [--layers 1,3,5,7,9,11] [--least 3] --out FOLDER

FOLDER then is a base like MPNET (config.json, model.safetensors, tokenizer.json) for train.py, distil.py and export.py, and
FOLDER/start.pt holds the same with the teacher's head, for `--init`. A word piece stays if the texts of --data use it at
least --least times, or if it is a single character or a special token, so every text can still be read.
"""
import argparse
import collections
import json
import os
import random

import torch
from safetensors.torch import save_file

import common
import model as M


def kept_words(base, data, least):
    """Numbers of the word pieces that stay, in their old order."""
    tok = M.tokenizer(base)
    texts = list({r[k] for r in common.read(data) for k in ("passage", "statement")})
    count = collections.Counter()
    for i in range(0, len(texts), 4096):
        for e in tok.encode_batch(texts[i:i + 4096], add_special_tokens=False):
            count.update(e.ids)
    special = {t["id"] for t in json.loads(tok.to_str())["added_tokens"]}
    plain = lambda w: len(w.removeprefix("##")) == 1
    return [i for w, i in sorted(tok.get_vocab().items(), key=lambda x: x[1]) if i in special or plain(w) or count[i] >= least]


def tokenizer(base, keep):
    """tokenizer.json with the kept pieces only, numbered anew."""
    t = json.load(open(os.path.join(base, "tokenizer.json"), encoding="utf-8"))
    new = {old: i for i, old in enumerate(keep)}
    t["model"]["vocab"] = {w: new[i] for w, i in t["model"]["vocab"].items() if i in new}
    for x in t["added_tokens"]:
        x["id"] = new[x["id"]]
    post = t.get("post_processor") or {}
    for x in post.get("special_tokens", {}).values():
        x["ids"] = [new[i] for i in x["ids"]]
    for k in ("sep", "cls"):
        if k in post:
            post[k] = [post[k][0], new[post[k][1]]]
    if t.get("padding"):
        t["padding"]["pad_id"] = new[t["padding"]["pad_id"]]
    return t


@torch.no_grad()
def wide(m, tok, data, most=8, texts=24, seed=7):
    """Of every product the columns that are more than twice as large as the sixteenth, on some passages of the labels."""
    rows = [r for r in common.labels_rows(data, "train") if len(r["passage"]) < 600]
    top = {}

    def look(name):
        def see(_, x):
            top[name] = torch.maximum(top.get(name, torch.zeros(())), x[0].flatten(0, -2).abs().amax(0))
        return see
    seen = [x.register_forward_pre_hook(look(n)) for n, x in M.products(m).items() if n != "head"]
    for r in random.Random(seed).sample(rows, min(texts, len(rows))):
        m(*M.collate([M.encode(tok, r["passage"], r["statement"], 160)]))
    for x in seen:
        x.remove()
    out = {}
    for n, x in top.items():
        v, i = x.topk(16)
        out[n] = sorted(k for k, y in zip(i[:most].tolist(), v) if y > 2 * v[15])
    # these three read the same
    return {n: x for n, x in out.items() if x and n.split(".")[-1] not in "qkv"}


def main():
    ap = argparse.ArgumentParser()
    for name in ("--base", "--data", "--out"):
        ap.add_argument(name, required=True)
    ap.add_argument("--teacher", help="without it, the base's own layers: to lay a state of a student over them")
    ap.add_argument("--layers", default="1,3,5,7,9,11", help="the teacher's layers, from 0")
    ap.add_argument("--least", type=int, default=3)
    a = ap.parse_args()
    os.makedirs(a.out, exist_ok=True)
    layers, keep = [int(x) for x in a.layers.split(",")], kept_words(a.base, a.data, a.least)
    cfg = json.load(open(os.path.join(a.base, "config.json")))
    w = (M.load(a.teacher, a.base) if a.teacher else M.from_base(a.base)).state_dict()
    small = {}
    for k, v in w.items():
        if k.startswith("layers."):
            n = int(k.split(".")[1])
            if n in layers:
                small[f"layers.{layers.index(n)}." + k.split(".", 2)[2]] = v
        else:
            small[k] = v[keep] if k == "word.weight" else v
    # the head reads the last layer as the teacher's last one leaves it
    for x in ("weight", "bias"):
        small[f"layers.{len(layers) - 1}.ln2.{x}"] = w[f"layers.{cfg['num_hidden_layers'] - 1}.ln2.{x}"]
    t = tokenizer(a.base, keep)
    cfg |= {"num_hidden_layers": len(layers), "vocab_size": len(keep), "pad_token_id": keep.index(cfg["pad_token_id"])}
    names = M.names_of(cfg)
    own = {names[k.rsplit(".", 1)[0]] + "." + k.rsplit(".", 1)[1]: v.contiguous().clone() for k, v in small.items() if k.rsplit(".", 1)[0] in names}
    json.dump(cfg, open(os.path.join(a.out, "config.json"), "w"), indent=1)
    json.dump(t, open(os.path.join(a.out, "tokenizer.json"), "w", encoding="utf-8"), ensure_ascii=False)
    save_file(own, os.path.join(a.out, "model.safetensors"))
    torch.save({"model": small}, os.path.join(a.out, "start.pt"))
    if a.teacher:
        cfg["wide"] = wide(M.load(os.path.join(a.out, "start.pt"), a.out).eval(), M.tokenizer(a.out), a.data)
        json.dump(cfg, open(os.path.join(a.out, "config.json"), "w"), indent=1)
        print("wide", cfg["wide"])
    n = sum(v.numel() for v in small.values())
    print(f"{len(layers)} layers, {len(keep)} of {w['word.weight'].shape[0]} word pieces, {n / 1e6:.1f} M weights")


if __name__ == "__main__":
    main()
