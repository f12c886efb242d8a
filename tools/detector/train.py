"""Training, in two stages, resumable, seeded.

Stage 1 (polarity: short texts, each with a statement and its opposite):
  python train.py --stage 1 --base BASE --data pairs.jsonl --out RUN1 --minutes 35
Stage 2 (the task: labels at natural prevalence, with some of stage 1 mixed in):
  python train.py --stage 2 --base BASE --data pairs.jsonl --init RUN1/last.pt --out RUN2 --minutes 40

--minutes sets the length by training time (the learning rate follows it); --steps sets it by steps, which repeats
exactly with the same seed. A run that was killed goes on from its last checkpoint with the same command.
"""
import argparse
import json
import os
import random
import time

import numpy as np
import torch
import torch.nn.functional as F

import common
import model as M

# share of the groups drawn from each source
STAGE = {
    1: {"argq": .20, "argq-long": .07, "argq-other": .02, "perspectrum": .17, "perspectrum-other": .02, "kpa": .03,
        "kpa-other": .03, "iam": .08, "iam-silent": .02, "rfd": .07, "rfd-other": .02, "arguana": .10,
        "arguana-other": .02, "arguana-point": .02, "debate": .10, "debate-other": .02, "debate-point": .03,
        "debate-point-other": .02, "mnli": .10, "snli": .02, "sick": .02, "healthver": .03, "climate-fever": .02},
    2: {"labels": .70, "rfd": .06, "arguana": .06, "debate": .06, "argq": .02, "argq-long": .02, "perspectrum": .02,
        "debate-point": .015, "arguana-point": .01, "mnli": .02, "healthver": .01, "climate-fever": .01,
        "debate-other": .005, "iam": .01},
}


def stream(groups, shares, seed):
    """Groups without end: every source shuffled, gone through, shuffled again."""
    rng = random.Random(seed)
    names = [s for s in shares if groups.get(s)]
    w = [shares[s] for s in names]
    bag = {s: [] for s in names}
    while True:
        s = rng.choices(names, w)[0]
        if not bag[s]:
            bag[s] = list(range(len(groups[s])))
            rng.shuffle(bag[s])
        g = groups[s][bag[s].pop()]
        if s == "labels" and g[0]["two"] == "-":
            g = [rng.choice(g)]     # silent for both: one of the two is enough, its weight is doubled below
            g = [dict(g[0], weight=g[0]["weight"] * 2)]
        yield g


def batches(it, seed, tokens, most, mega=40):
    rng = random.Random(seed + 1)
    while True:
        pool, n = [], 0
        while n < mega * tokens:
            g = next(it)
            pool.append(g)
            n += sum(len(r["enc"][0]) for r in g)
        pool.sort(key=lambda g: max(len(r["enc"][0]) for r in g) + rng.random() * 6)
        out, cur, width = [], [], 0
        for g in pool:
            wid = max(len(r["enc"][0]) for r in g)
            k = sum(len(x) for x in cur) + len(g)
            if cur and (k * max(width, wid) > tokens * 1.05 or k > most):
                out.append(cur)
                cur, width = [], 0
            cur.append(g)
            width = max(width, wid)
        out.append(cur)
        rng.shuffle(out)
        yield from out


def loss_of(z, rows, pairs, a):
    y = torch.tensor([common.CLASSES.index(r["label"]) for r in rows])
    w = torch.tensor([r["weight"] for r in rows])
    ce = F.cross_entropy(z, y, reduction="none", label_smoothing=a.smooth)
    loss = (ce * w).sum() / w.sum()
    lp = F.log_softmax(z, -1)
    i = [p for p in pairs if {rows[p[0]]["label"], rows[p[1]]["label"]} == {"supports", "opposes"}]
    tie = torch.zeros(())
    if i:
        pro = torch.tensor([p[0] if rows[p[0]]["label"] == "supports" else p[1] for p in i])
        con = torch.tensor([p[1] if rows[p[0]]["label"] == "supports" else p[0] for p in i])
        tie = F.softplus(a.margin - (lp[pro, 0] - lp[con, 0])).mean()
        mirror = ((lp[pro].exp() - lp[con].exp()[:, [1, 0, 2]]) ** 2).sum(-1).mean()
        loss = loss + a.tie * tie + a.mirror * mirror
    return loss, float(ce.detach().mean()), float(tie.detach())


@torch.no_grad()
def score(m, rows, batch=24):
    m.eval()
    o = sorted(range(len(rows)), key=lambda i: len(rows[i]["enc"][0]))
    z = np.zeros((len(rows), 3), dtype=np.float32)
    for i in range(0, len(o), batch):
        k = o[i:i + batch]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z[k] = m(*M.collate([rows[j]["enc"] for j in k])).float().numpy()
    m.train()
    return z


def report(m, dev):
    z = score(m, dev)
    p = common.softmax(z)[:, 0]
    y = np.array([r["label"] == "supports" for r in dev]).astype(int)
    from sklearn.metrics import roc_auc_score
    by = {}
    for i, r in enumerate(dev):
        by.setdefault(r["row"], []).append(i)
    ok = [p[i] > p[j] if dev[i]["label"] == "supports" else p[j] > p[i]
          for i, j in by.values() if dev[i]["two"] in ("A", "B")]
    th, f = common.best_threshold(y, p)
    return {"auc": round(float(roc_auc_score(y, p)), 4), "f1": round(f, 4), "th": round(float(th), 3),
            "right_side": round(float(np.mean(ok)), 4)}


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
    ap.add_argument("--head-lr", type=float, default=3.0, help="the head's learning rate, as a multiple")
    ap.add_argument("--tokens", type=int, default=2400, help="a batch")
    ap.add_argument("--most", type=int, default=48, help="sequences in a batch")
    ap.add_argument("--max-tokens", type=int, default=192)
    ap.add_argument("--tie", type=float, default=1.0)
    ap.add_argument("--margin", type=float, default=1.0)
    ap.add_argument("--mirror", type=float, default=0.3)
    ap.add_argument("--smooth", type=float, default=0.03)
    ap.add_argument("--save-every", type=float, default=180)
    ap.add_argument("--eval-every", type=float, default=300)
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--device", default="cpu")
    a = ap.parse_args()
    lr = a.lr or {1: 1.5e-4, 2: 8e-5}[a.stage]
    torch.set_num_threads(a.threads)
    torch.manual_seed(a.seed)
    os.makedirs(a.out, exist_ok=True)
    tok = M.tokenizer(a.base)
    shares = STAGE[a.stage]
    rows, dev = [], []
    for r in common.read(a.data):
        lab = r["source"].startswith("labels")
        if lab and r["split"] == "dev":
            dev.append(r)
        elif r["split"] == "train" and (lab and "labels" in shares or r["source"] in shares):
            r["src"] = "labels" if lab else r["source"]
            rows.append(r)
    for r in rows + dev:
        r["enc"] = M.encode(tok, r["passage"], r["statement"], a.max_tokens)
    by = {}
    for r in rows:
        by.setdefault(r["group"], []).append(r)
    groups = {}
    for g in by.values():
        groups.setdefault(g[0]["src"], []).append(g)
    print(json.dumps({s: len(g) for s, g in groups.items()}), flush=True)

    m = M.from_base(a.base, seed=a.seed)
    if a.init:
        w = torch.load(a.init, map_location="cpu", weights_only=False)["model"]
        own = m.state_dict()
        m.load_state_dict({k: w[k] if k in w and w[k].shape == v.shape else v for k, v in own.items()})
    m.word.weight.requires_grad_(False)
    m.to(a.device)
    head = [p for n, p in m.named_parameters() if n.startswith(("pool", "head"))]
    dec = [p for n, p in m.named_parameters() if p.requires_grad and p.dim() > 1 and not n.startswith(("pool", "head"))]
    rest = [p for n, p in m.named_parameters() if p.requires_grad and p.dim() <= 1 and not n.startswith(("pool", "head"))]
    opt = torch.optim.AdamW([{"params": dec, "weight_decay": 0.01, "k": 1.0}, {"params": rest, "weight_decay": 0.0, "k": 1.0},
                             {"params": head, "weight_decay": 0.01, "k": a.head_lr}], lr=lr, betas=(0.9, 0.98), fused=True)
    step, spent, seen, log = 0, 0.0, 0, []
    last = os.path.join(a.out, "last.pt")
    if os.path.exists(last):
        s = torch.load(last, map_location="cpu", weights_only=False)
        m.load_state_dict(s["model"])
        opt.load_state_dict(s["opt"])
        step, spent, seen, log = s["step"], s["spent"], s["seen"], s["log"]
        torch.set_rng_state(s["rng"])
        print("going on from step", step, flush=True)
    it = batches(stream(groups, shares, a.seed * 100 + a.stage), a.seed, a.tokens, a.most)
    for _ in range(step):
        next(it)

    def save():
        torch.save({"model": m.state_dict(), "opt": opt.state_dict(), "step": step, "spent": spent, "seen": seen,
                    "log": log, "rng": torch.get_rng_state(), "args": vars(a)}, last + ".new")
        os.replace(last + ".new", last)

    def keep_best():
        """best.pt: the best development figures so far (AUC, F1 and right side, summed)."""
        def value(x):
            return x["auc"] + x["f1"] + x["right_side"]
        if value(log[-1]) >= max(value(x) for x in log):
            torch.save({"model": m.state_dict(), "step": step, "dev": log[-1]}, os.path.join(a.out, "best.pt.new"))
            os.replace(os.path.join(a.out, "best.pt.new"), os.path.join(a.out, "best.pt"))

    m.train()
    saved = ev = spent
    t = time.time()
    avg = [0.0, 0.0, 0]
    budget = a.minutes * 60
    while True:
        done = step / a.steps if a.steps else spent / budget
        if done >= 1:
            break
        scale = min(1.0, done / 0.05 + 0.02) * max(0.02, 1 - done) ** 1.0
        for g in opt.param_groups:
            g["lr"] = lr * scale * g["k"]
        b = next(it)
        rs, pairs = [], []
        for g in b:
            if len(g) == 2:
                pairs.append((len(rs), len(rs) + 1))
            rs += g
        ids, mask, typ = (x.to(a.device) for x in M.collate([r["enc"] for r in rs]))
        with torch.autocast(a.device, dtype=torch.bfloat16):
            z = m(ids, mask, typ)
        loss, ce, tie = loss_of(z.float().cpu(), rs, pairs, a)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(dec + rest + head, 1.0)
        opt.step()
        opt.zero_grad()
        step += 1
        seen += len(rs)
        avg = [avg[0] + ce, avg[1] + tie, avg[2] + 1]
        now = time.time()
        spent += now - t
        t = now
        if step % 50 == 0:
            print(f"step {step} seen {seen} spent {spent:.0f}s done {done:.3f} ce {avg[0]/avg[2]:.4f} "
                  f"tie {avg[1]/avg[2]:.4f} seqs/s {seen/spent:.1f}", flush=True)
            avg = [0.0, 0.0, 0]
        if spent - saved > a.save_every:
            save()
            saved = spent
        if spent - ev > a.eval_every:
            log.append({"step": step, "spent": round(spent), **report(m, dev)})
            print(json.dumps(log[-1]), flush=True)
            keep_best()
            ev = spent
            t = time.time()
    log.append({"step": step, "spent": round(spent), "seen": seen, **report(m, dev)})
    print(json.dumps(log[-1]), flush=True)
    save()
    keep_best()
    print("finished", flush=True)


if __name__ == "__main__":
    main()
