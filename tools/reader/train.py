"""Training of the extractive reader, in two stages, resumable, seeded.

Stage 1 (where answers stand, on made-up questions):
  python train.py --stage 1 --base BASE --data OUT/rows.jsonl --out RUN1 --minutes 25
Stage 2 (questions of people, with passages that BM25 finds and that are silent):
  python train.py --stage 2 --base BASE --data OUT/rows.jsonl --init RUN1/last.pt --out RUN2 --minutes 35

The loss is the probability the program computes: a softmax over all spans of a passage and "no answer", in which all places of the
answer's words count. --minutes sets the length by training time (the learning rate follows it), --steps by steps, which repeats exactly.
A run that was killed goes on from its last checkpoint with the same command; best.pt is the best on the development questions.
"""
import argparse
import json
import os
import random
import time

import numpy as np
import torch
import torch.nn.functional as F

import spans as R
import text as T

SHARE = {1: {"cloze": .62, "qnli": .18, "nq": .20}, 2: {"nq": .50, "written": .38, "cloze": .06, "qnli": .06}}
# of the sequences drawn from a source, those with a passage that is silent
SILENT = {1: .15, 2: .38}
LONGEST = 16


def encode(tok, r, a, passage=None):
    title, text = passage or (r["title"], r["text"])
    c = R.context(title, text)
    e = R.Encoded(tok, r["question"], c, a.max_tokens, a.question_tokens)
    if passage:
        return e, []
    return e, [(i + e.first, j + e.first) for i, j in T.places(e.offsets, e.begins, e.ends, c, r["answers"], LONGEST)]


def stream(rows, a, tok, seed):
    rng = random.Random(seed)
    by = {}
    for r in rows:
        by.setdefault(r["source"], []).append(r)
    share = {s: w for s, w in SHARE[a.stage].items() if s in by}
    bag = {s: [] for s in share}
    while True:
        s = rng.choices(list(share), list(share.values()))[0]
        if not bag[s]:
            bag[s] = list(range(len(by[s])))
            rng.shuffle(bag[s])
        r = by[s][bag[s].pop()]
        if s == "qnli":
            yield encode(tok, r, a)[0], [], "holds" if r["holds"] else "silent"
            continue
        e, p = encode(tok, r, a)
        if p:
            yield e, p, "span"
        if r["silent"] and rng.random() < SILENT[a.stage] / (1 - SILENT[a.stage]):
            # what BM25 finds first is the hardest
            k = min(int(rng.expovariate(.5)), len(r["silent"]) - 1)
            yield encode(tok, r, a, r["silent"][k])[0], [], "silent"


def batches(it, tokens, seed, mega=30):
    rng = random.Random(seed)
    while True:
        pool, n = [], 0
        while n < mega * tokens:
            pool.append(next(it))
            n += len(pool[-1][0].ids)
        pool.sort(key=lambda x: len(x[0].ids) + rng.random() * 6)
        out, cur = [], []
        for x in pool:
            if cur and (len(cur) + 1) * len(x[0].ids) > tokens:
                out.append(cur)
                cur = []
            cur.append(x)
        out.append(cur)
        rng.shuffle(out)
        yield from out


def span_logits(z, encoded):
    """[b, n, LONGEST] scores of spans (i, i + d), less the score of no answer; −inf where no span may be."""
    start, end = z[..., 0], z[..., 1]
    b, n = start.shape
    ok_i = torch.zeros(b, n, dtype=torch.bool)
    ok_j = torch.zeros(b, n, dtype=torch.bool)
    for k, e in enumerate(encoded):
        m = len(e.begins)
        ok_i[k, e.first:e.first + m] = torch.tensor(e.begins)
        ok_j[k, e.first:e.first + m] = torch.tensor(e.ends)
    no = torch.finfo(torch.float32).min / 4
    pad = F.pad(end.masked_fill(~ok_j, no), (0, LONGEST - 1), value=no).unfold(1, LONGEST, 1)
    s = start.masked_fill(~ok_i, no)[..., None] + pad - (start[:, 0] + end[:, 0])[:, None, None]
    return s


def loss_of(z, batch):
    s = span_logits(z, [x[0] for x in batch]).flatten(1)
    total = torch.logsumexp(torch.cat([s, torch.zeros(len(batch), 1)], 1), 1)
    some = torch.logsumexp(s, 1)
    loss = []
    for k, (_, places, kind) in enumerate(batch):
        if kind == "span":
            at = torch.tensor([i * LONGEST + (j - i) for i, j in places])
            loss.append(total[k] - torch.logsumexp(s[k, at], 0))
        elif kind == "holds":
            loss.append(.5 * (total[k] - some[k]))
        else:
            loss.append(total[k])
    return torch.stack(loss).mean()


def texts(s, e, context, best=20):
    """P(text | passage) of the likeliest texts, with a wording of each."""
    p = torch.softmax(torch.cat([s.flatten(), torch.zeros(1)]), 0)[:-1]
    out = {}
    for at in p.topk(min(best, len(p))).indices.tolist():
        i, d = divmod(at, LONGEST)
        said = context[e.offsets[i - e.first][0]:e.offsets[min(i + d - e.first, len(e.offsets) - 1)][1]]
        n = T.normalised(said)
        if n:
            q, w = out.get(n, (0.0, said))
            out[n] = (q + float(p[at]), w)
    return out


@torch.no_grad()
def report(m, tok, dev, a, depth=5):
    """Exact match from the gold passage alone, and from it with silent ones: each passage says what it holds, the sum decides."""
    m.eval()
    one = many = 0
    for r in dev[:a.looked]:
        contexts = [R.context(title, text) for title, text in [(r["title"], r["text"])] + r["silent"][:depth - 1]]
        encoded = [R.Encoded(tok, r["question"], c, a.max_tokens, a.question_tokens) for c in contexts]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = m(*R.collate([(e.ids, e.types) for e in encoded]))
        s = span_logits(z.float(), encoded)
        said = [texts(s[i], e, c) for i, (e, c) in enumerate(zip(encoded, contexts))]
        best = max(said[0], key=lambda t: (said[0][t][0], t), default="")
        one += T.exact(best, r["answers"])
        total = {}
        for t in said:
            for k, (p, _) in t.items():
                total[k] = total.get(k, 0) + p
        many += T.exact(max(total, key=lambda t: (total[t], t), default=""), r["answers"])
    m.train()
    return {"em1": round(one / len(dev[:a.looked]), 4), f"em{depth}": round(many / len(dev[:a.looked]), 4)}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--stage", type=int, required=True)
    ap.add_argument("--base", required=True)
    ap.add_argument("--data", required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--init")
    ap.add_argument("--minutes", type=float, default=0)
    ap.add_argument("--steps", type=int, default=0)
    ap.add_argument("--seed", type=int, default=7)
    ap.add_argument("--lr", type=float)
    ap.add_argument("--tokens", type=int, default=3000, help="a batch")
    ap.add_argument("--max-tokens", type=int, default=256)
    ap.add_argument("--question-tokens", type=int, default=48)
    ap.add_argument("--every", type=float, default=300, help="seconds between checkpoints")
    ap.add_argument("--looked", type=int, default=150, help="development questions asked at a checkpoint")
    ap.add_argument("--threads", type=int, default=2)
    a = ap.parse_args()
    lr = a.lr or {1: 2e-4, 2: 1e-4}[a.stage]
    torch.set_num_threads(a.threads)
    torch.manual_seed(a.seed)
    os.makedirs(a.out, exist_ok=True)
    tok = R.M.tokenizer(a.base)
    with open(a.data, encoding="utf-8") as f:
        rows = [json.loads(l) for l in f]
    dev = [r for r in rows if r["split"] == "dev"]
    rows = [r for r in rows if r["split"] == "train"]

    m = R.from_base(a.base, seed=a.seed)
    if a.init:
        m.load_state_dict(torch.load(a.init, map_location="cpu", weights_only=False)["model"])
    m.word.weight.requires_grad_(False)
    new = [p for n, p in m.named_parameters() if n.startswith(("mix", "spans"))]
    old = [p for n, p in m.named_parameters() if p.requires_grad and not n.startswith(("mix", "spans"))]
    opt = torch.optim.AdamW([{"params": old, "k": 1.0}, {"params": new, "k": 3.0}], lr=lr, betas=(0.9, 0.98), weight_decay=.01, fused=True)
    step, spent, seen, log = 0, 0.0, 0, []
    last = os.path.join(a.out, "last.pt")
    if os.path.exists(last):
        s = torch.load(last, map_location="cpu", weights_only=False)
        m.load_state_dict(s["model"])
        opt.load_state_dict(s["opt"])
        step, spent, seen, log = s["step"], s["spent"], s["seen"], s["log"]
        print("going on from step", step, flush=True)
    it = batches(stream(rows, a, tok, a.seed * 100 + a.stage), a.tokens, a.seed)
    for _ in range(step):
        next(it)

    def save(name, **more):
        path = os.path.join(a.out, name)
        torch.save({"model": m.state_dict(), "step": step, "spent": spent, "seen": seen, "log": log, **more}, path + ".new")
        os.replace(path + ".new", path)

    def look():
        log.append({"step": step, "spent": round(spent), "seen": seen, **report(m, tok, dev, a)})
        print(json.dumps(log[-1]), flush=True)
        if sum(log[-1][k] for k in ("em1", "em5")) >= max(sum(x[k] for k in ("em1", "em5")) for x in log):
            save("best.pt")
        save("last.pt", opt=opt.state_dict())

    m.train()
    looked, t, mean = spent, time.time(), []
    while (done := step / a.steps if a.steps else spent / (a.minutes * 60)) < 1:
        for g in opt.param_groups:
            g["lr"] = lr * g["k"] * min(1.0, done / 0.06 + 0.02) * max(0.02, 1 - done)
        b = next(it)
        ids, mask, typ = R.collate([(x[0].ids, x[0].types) for x in b])
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = m(ids, mask, typ)
        loss = loss_of(z.float(), b)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(old + new, 1.0)
        opt.step()
        opt.zero_grad()
        step += 1
        seen += len(b)
        mean.append(float(loss.detach()))
        now = time.time()
        spent, t = spent + now - t, now
        if step % 25 == 0:
            print(f"step {step} seen {seen} spent {spent:.0f}s done {done:.3f} loss {np.mean(mean):.4f} {seen / spent:.1f}/s", flush=True)
            mean = []
        if spent - looked > a.every:
            look()
            looked, t = spent, time.time()
    look()
    print("finished", flush=True)


if __name__ == "__main__":
    main()
