"""A narrower model to start a student from: all layers of the teacher, without the attention heads and inner units that matter least,
and only the words that English web text uses.

python prune.py --teacher STATE --base MPNET --data pairs.jsonl --out FOLDER [--weights 56.5] [--least 22] [--from 4]

FOLDER then is a base like MPNET (config.json, model.safetensors, tokenizer.json) for solve.py, train.py and export.py; start.pt holds the
same with the teacher's head. How much a head or a unit matters: how far the logits would move without it, to second order, which is the mean
over texts of the squared derivative of the logits by a factor on its output (the Fisher information that Kwon et al. 2022 prune by).
Those that matter least for their size go until the layers have --weights million weights. A word piece stays if the texts of --data use
it at least --least times, or if it is a single character or a special token, so every text can still be read.
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


def wide(m, tok, data, most=8):
    """Of every product the columns that are more than twice as large as the sixteenth, on some passages of the labels."""
    top = M.largest_read(m, tok, common.labels_rows(data, "train"))
    del top["head"]
    out = {}
    for n, x in top.items():
        v, i = x.topk(16)
        out[n] = sorted(k for k, y in zip(i[:most].tolist(), v) if y > 2 * v[15])
    # these three read the same
    return {n: x for n, x in out.items() if x and n.split(".")[-1] not in "qkv"}


def teacher_of(path, base, tok):
    """The teacher, with the words of the student's tokenizer only."""
    m, own = M.load(path, base), M.tokenizer(base)
    kept = [own.token_to_id(w) for w, _ in sorted(tok.get_vocab().items(), key=lambda x: x[1])]
    m.word = torch.nn.Embedding.from_pretrained(m.word.weight.detach()[kept])
    return m.requires_grad_(False)


def texts(data, tok, n, seed, longest=128):
    """Pairs that train, the same number from every kind of source."""
    rng, by = random.Random(seed), {}
    for r in common.read(data):
        if r["split"] == "train" and len(r["passage"]) < 420 and r["source"].startswith(("labels", "written", "contrast", "lingnli", "perspectrum", "argq")):
            by.setdefault(r["source"].split("-")[0], []).append(r)
    rows = [r for x in by.values() for r in rng.sample(x, min(len(x), -(-n // len(by))))]
    rng.shuffle(rows)
    return [M.encode(tok, r["passage"], [r["statement"]], longest) for r in rows]


def batches(rows, size=24):
    rows = sorted(rows, key=lambda r: len(r[0]))
    return [M.collate(rows[i:i + size]) for i in range(0, len(rows), size)]


def matters(m, parts, seed):
    """Per layer: how much each head and each inner unit matters."""
    torch.manual_seed(seed)
    m.requires_grad_(False)
    heads = [torch.zeros(len(x.heads)) for x in m.layers]
    units = [torch.zeros(x.up.out_features) for x in m.layers]
    for ids, at, part in parts:
        seen, hooks = {}, []

        def keep(name):
            def hook(_, x):
                y = x[0].detach().requires_grad_(True) if not x[0].requires_grad else x[0]
                y.retain_grad()
                seen[name] = y
                return (y,)
            return hook
        for i, layer in enumerate(m.layers):
            hooks += [layer.o.register_forward_pre_hook(keep(("o", i))), layer.down.register_forward_pre_hook(keep(("down", i)))]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = m(ids, at, part)
        # the expectation over v of (v · derivative)² is the sum of the squares over the logits
        (z.float() * torch.randn_like(z.float())).sum().backward()
        for h in hooks:
            h.remove()
        for (kind, i), y in seen.items():
            moved = (y.detach().float() * y.grad.float()).sum(1)
            if kind == "down":
                units[i] += moved.square().sum(0)
            else:
                heads[i] += moved.view(len(ids), len(heads[i]), -1).sum(-1).square().sum(0)
    return heads, units


def kept(m, heads, units, weights, first):
    """The heads and units that stay: the most important for their size, until the layers have so many weights."""
    d = m.cfg["hidden_size"]
    size = {"head": 4 * d * m.layers[0].size, "unit": 2 * d}
    parts = [(float(x) / size[kind], kind, i, n) for kind, of in (("head", heads), ("unit", units))
             for i, values in enumerate(of) if i >= first for n, x in enumerate(values)]
    stay = [(set(range(len(h))), set(range(len(u)))) for h, u in zip(heads, units)]
    left = sum(len(h) * size["head"] + len(u) * size["unit"] for h, u in zip(heads, units))
    for _, kind, i, n in sorted(parts):
        if left <= weights:
            break
        group = stay[i][kind == "unit"]
        if kind == "head" and len(group) == 1:
            continue
        group.remove(n)
        left -= size[kind]
    # whole groups of 32 units: kernels like them
    for (_, u), values in zip(stay, units):
        lost = sorted(set(range(len(values))) - u, key=lambda n: -float(values[n]))
        u.update(lost[:-len(u) % 32])
    return [(sorted(h), sorted(u)) for h, u in stay]


def pruned(w, stay, size):
    """The weights of what stays."""
    out = {k: v for k, v in w.items() if not k.startswith("layers.")}
    for k, v in w.items():
        if k.startswith("layers."):
            _, i, part, what = k.split(".")
            h, u = stay[int(i)]
            rows = torch.tensor([n * size + x for n in h for x in range(size)])
            if part in ("q", "k", "v"):
                v = v[rows]
            elif part == "o" and what == "weight":
                v = v[:, rows]
            elif part == "up":
                v = v[torch.tensor(u)]
            elif part == "down" and what == "weight":
                v = v[:, torch.tensor(u)]
            out[k] = v
    return out


def main():
    ap = argparse.ArgumentParser()
    for name in ("--teacher", "--base", "--data", "--out"):
        ap.add_argument(name, required=True)
    ap.add_argument("--weights", type=float, default=56.5, help="million weights of the layers")
    ap.add_argument("--least", type=int, default=22)
    ap.add_argument("--from", dest="first", type=int, default=4, help="the lowest layer that is pruned")
    ap.add_argument("--texts", type=int, default=600)
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--seed", type=int, default=7)
    a = ap.parse_args()
    torch.set_num_threads(a.threads)
    os.makedirs(a.out, exist_ok=True)
    cfg = json.load(open(os.path.join(a.base, "config.json")))
    words = kept_words(a.base, a.data, a.least)
    t = tokenizer(a.base, words)
    json.dump(t, open(os.path.join(a.out, "tokenizer.json"), "w", encoding="utf-8"), ensure_ascii=False)
    tok = M.tokenizer(a.out)
    m = teacher_of(a.teacher, a.base, tok).eval()
    found = os.path.join(a.out, f"matters-{a.texts}.pt")
    if not os.path.exists(found):
        torch.save(matters(m, batches(texts(a.data, tok, a.texts, a.seed)), a.seed), found)
    stay = kept(m, *torch.load(found), a.weights * 1e6, a.first)
    for i, (h, u) in enumerate(stay):
        print(f"layer {i}: {len(h)} heads, {len(u)} units")
    small = pruned(m.state_dict(), stay, m.layers[0].size)
    cfg |= {"vocab_size": len(words), "pad_token_id": words.index(cfg["pad_token_id"]),
            "pruned": [{"heads": h, "units": len(u)} for h, u in stay]}
    names = M.names_of(cfg)
    own = {names[k.rsplit(".", 1)[0]] + "." + k.rsplit(".", 1)[1]: v.contiguous().clone() for k, v in small.items() if k.rsplit(".", 1)[0] in names}
    json.dump(cfg, open(os.path.join(a.out, "config.json"), "w"), indent=1)
    save_file(own, os.path.join(a.out, "model.safetensors"))
    torch.save({"model": small}, os.path.join(a.out, "start.pt"))
    with torch.no_grad():
        cfg["wide"] = wide(M.load(os.path.join(a.out, "start.pt"), a.out), tok, a.data)
    json.dump(cfg, open(os.path.join(a.out, "config.json"), "w"), indent=1)
    print("wide", cfg["wide"])
    print(f"{sum(v.numel() for v in small.values()) / 1e6:.1f} M weights, {len(words)} word pieces")


if __name__ == "__main__":
    main()
