"""Training, in two stages, resumable, seeded.

Stage 1 (polarity: short texts, each with a statement and its opposite):
  python train.py --stage 1 --base BASE --data pairs.jsonl --out RUN1 --minutes 35
Stage 2 (the task: labels at natural prevalence, contrast sets, with some of stage 1 mixed in):
  python train.py --stage 2 --base BASE --data pairs.jsonl --init RUN1/last.pt --out RUN2 --minutes 40
Both, one after the other, in RUN/stage1 and RUN/stage2:
  python train.py --stage both --base BASE --data pairs.jsonl --out RUN --minutes 8 --device cuda

--minutes sets the length by training time (the learning rate follows it); --steps sets it by steps, which repeats
exactly with the same seed on a CPU; --epochs ends a stage before its time. A run that was killed goes on from its last
checkpoint with the same command. `last.pt` and `best.pt` hold the averaged weights under `model`.
"""
import argparse
import copy
import json
import os
import random
import time

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.metrics import roc_auc_score

import common
import model as M
import packed
import prepare

# share of the groups drawn from each source
STAGE = {
    1: {"lingnli": .17, "lingnli-alone": .05, "mnli": .10, "mnli-alone": .03, "snli": .02, "snli-alone": .01,
        "counterfactual-snli": .05, "counterfactual-snli-alone": .02, "defeasible": .06, "semi-automatic-wiki": .03,
        "semi-automatic-wiki-alone": .03, "fever": .02, "healthver": .02, "climate-fever": .01, "argq": .11, "argq-long": .02,
        "perspectrum": .09, "perspectrum-other": .01, "kpa": .03, "kpa-other": .01, "iam": .04, "rfd": .01, "arguana": .02,
        "debate": .03, "debate-point": .01},
    2: {"found": .17, "labels": .12, "edited": .13, "retrieved": .05, "contrast": .12, "aimed": .28, "web": .04, "negated": .05,
        "written": .02, "perspectrum": .005, "argq": .005, "argq-long": .005, "lingnli": .005},
}


def sides(b, data):
    """Where in the batch a supporting and an opposing pair stand that share their passage or their statement."""
    pro, con, k = [], [], 0
    for rows, *_ in b:
        g = [i for row in rows for i in row]
        for i, x in enumerate(g):
            for j, y in enumerate(g):
                if data.label[x] == 0 and data.label[y] == 1 and (
                        data.passage[x] == data.passage[y] or data.statement[x] == data.statement[y] or len(g) == 2):
                    pro.append(k + i)
                    con.append(k + j)
        k += len(g)
    return pro, con


def loss_of(z, y, weight, pro, con, a):
    """Cross-entropy and the tie of a statement to its opposite."""
    known = weight * (y >= 0)
    ce = F.cross_entropy(z, y.clamp(min=0), reduction="none", label_smoothing=a.smooth)
    ce = (ce * known).sum() / known.sum().clamp(min=1e-6)
    tie = torch.zeros((), device=z.device)
    loss = ce
    if pro:
        pro, con = torch.tensor([pro, con]).to(z.device)
        lp = F.log_softmax(z, -1)
        tie = F.softplus(a.margin - (lp[pro, 0] - lp[con, 0])).mean()
        mirror = ((lp[pro].exp() - lp[con].exp()[:, [1, 0, 2]]) ** 2).sum(-1).mean()
        loss = loss + a.tie * tie + a.mirror * mirror
    return loss, ce.detach(), tie.detach()


def report(m, dev, data, w):
    """On the development questions; `written`: the right side of two on contrast sets that do not train."""
    p = common.softmax(packed.score(m, data, range(len(dev)), w))[:, 0]
    out = {}
    for part, mark in (("labels", ""), ("written", "written_"), ("contrast", "contrast_")):
        i = [k for k, r in enumerate(dev) if source(r) == part]
        if i:
            many = np.repeat(i, [dev[k].get("stands_for", 1) for k in i])
            y = np.array([dev[k]["label"] == "supports" for k in many]).astype(int)
            th, f = common.best_threshold(y, p[many])
            out |= {mark + "auc": round(float(roc_auc_score(y, p[many])), 4), mark + "f1": round(f, 4),
                    mark + "right_side": right_side([dev[k] for k in i], p[i])}
    return out | {"cosine": round(float(w.detach()), 2)}


def value(x):
    """What the best checkpoint has most of. The written sets have more sides than the labels, so they help to see the side."""
    part = lambda k: x.get(k) or 0.0
    return x["auc"] + x["f1"] + part("right_side") + 0.5 * part("written_right_side") + 0.5 * part("contrast_right_side")


def right_side(rows, p):
    by = {}
    for i, r in enumerate(rows):
        by.setdefault((r["group"], r["passage"]), []).append(i)
    ok = [p[i] > p[j] if rows[i]["label"] == "supports" else p[j] > p[i]
          for i, j in (g for g in by.values() if len(g) == 2) if rows[i]["two"] in ("A", "B")]
    return round(float(np.mean(ok)), 4) if ok else None


def source(r):
    return r["source"].split("-")[0] if r["source"].startswith(("labels", "contrast", "aimed")) else r["source"]


def select(rows, shares):
    """The rows that train, and those that the training is watched with."""
    train = [r for r in rows if r["split"] == "train" and source(r) in shares]
    dev = [r for r in rows if r["split"] == "dev" and source(r) == "labels"
           or r["split"] == "check" and source(r) in ("written", "contrast") and r["two"] != "-"]
    return train, dev


def negations(rows):
    """Passages with the negations of their statements, where these are not the statements themselves: who supports one opposes its negation.
    A negation is the right answer as often as a statement, so "not" gives nothing away."""
    turned = {"supports": "opposes", "opposes": "supports", "neither": "neither"}
    by = {}
    for r in rows:
        if source(r) in ("labels", "found", "retrieved", "edited", "web", "written", "contrast", "aimed"):
            by.setdefault(r["group"], []).append(r)
    out = []
    for g in by.values():
        negated = [prepare.negate(r["statement"]) for r in g]
        if all(negated) and all(r["label"] for r in g) and not set(negated) & {r["statement"] for r in g}:
            out += [dict(r, statement=n, label=turned[r["label"]], source="negated", group=("negated", r["group"]))
                    for r, n in zip(g, negated)]
    return out


def watched(dev, n, seed):
    """A part of the development rows, to look often: n passages with one side, n / 2 of the others, which then stand for more,
    and n / 2 of the written sets. The same every time."""
    if not n:
        return dev
    rng, out = random.Random(seed), []
    for part, sided, most in (("labels", True, n), ("labels", False, n // 2), ("written", True, n // 3), ("contrast", True, n // 2)):
        by = {}
        for r in dev:
            if source(r) == part and (r["two"] in ("A", "B")) == sided:
                by.setdefault((r["group"], r["passage"]), []).append(r)
        kept = rng.sample(sorted(by), min(most, len(by)))
        out += [dict(r, stands_for=max(1, round(len(by) / len(kept)))) for g in sorted(kept) for r in by[g]]
    return out


def write(x, path):
    torch.save(x, path + ".new")
    os.replace(path + ".new", path)


def fit(m, data, groups, shares, dev, dev_data, a, out, lr, alone, epoch):
    """Trains `m` until the minutes, the steps or the epochs (of `epoch` groups) are over; the averaged model is left in `out`."""
    os.makedirs(out, exist_ok=True)
    last = os.path.join(out, "last.pt")
    print(out, json.dumps({s: len(g) for s, g in groups.items()}), flush=True)
    # these learn little from so few texts, and a gradient for them costs much
    m.freeze(a.freeze)
    m.to(a.device).train()
    w = torch.nn.Parameter(torch.tensor(0.0 if a.no_cosine else 5.0, device=a.device), requires_grad=not a.no_cosine)
    own = [(n, p) for n, p in m.named_parameters() if p.requires_grad]
    head = [p for n, p in own if n.startswith(("pool", "head"))]
    dec = [p for n, p in own if p.dim() > 1 and not n.startswith(("pool", "head"))]
    rest = [p for n, p in own if p.dim() <= 1 and not n.startswith(("pool", "head"))]
    opt = torch.optim.AdamW([{"params": dec, "weight_decay": 0.01, "k": 1.0}, {"params": rest, "weight_decay": 0.0, "k": 1.0},
                             {"params": head, "weight_decay": 0.01, "k": a.head_lr},
                             {"params": [w], "weight_decay": 0.0, "k": 30.0}], lr=lr, betas=(0.9, 0.98), fused=True)
    mean = copy.deepcopy(m).eval().requires_grad_(False)
    step, drawn, seen, spent, log = 0, 0, 0, 0.0, []
    if os.path.exists(last):
        s = torch.load(last, map_location="cpu", weights_only=False)
        m.load_state_dict(s["raw"])
        mean.load_state_dict(s["model"])
        opt.load_state_dict(s["opt"])
        w.data.fill_(s["cosine"])
        step, drawn, seen, spent, log = s["step"], s["drawn"], s["seen"], s["spent"], s["log"]
        torch.set_rng_state(s["rng"])
        print("going on from step", step, flush=True)
        if s["finished"]:
            return mean
    before, after = [p for _, p in own], [dict(mean.named_parameters())[n] for n, _ in own]
    it = packed.batches(packed.stream(groups, shares, a.seed), data, a.seed, a.tokens, a.most, alone)
    for _ in range(step):
        next(it)

    def save(finished=False):
        write({"model": mean.state_dict(), "raw": m.state_dict(), "opt": opt.state_dict(), "cosine": float(w.detach()),
               "step": step, "drawn": drawn, "seen": seen, "spent": spent, "log": log, "rng": torch.get_rng_state(),
               "args": vars(a), "finished": finished}, last)

    def look():
        log.append({"step": step, "seen": seen, "spent": round(spent), **report(mean, dev, dev_data, w)})
        print(json.dumps(log[-1]), flush=True)
        if value(log[-1]) >= max(value(x) for x in log):
            write({"model": mean.state_dict(), "cosine": float(w.detach()), "step": step, "dev": log[-1]},
                  os.path.join(out, "best.pt"))

    saved = looked = spent
    t, sums, n = time.time(), torch.zeros(2, device=a.device), 0
    while True:
        done = max(step / a.steps if a.steps else 0.0, spent / (a.minutes * 60) if a.minutes else 0.0,
                   drawn / (a.epochs * epoch) if a.epochs else 0.0)
        if done >= 1:
            break
        for g in opt.param_groups:
            g["lr"] = lr * min(1.0, done / 0.05 + 0.02) * max(0.02, 1 - done) * g["k"]
        b = next(it)
        rows, ways = [row for g, *_ in b for row in g], [k for g, _, k in b for _ in g]
        idx = [i for row in rows for i in row]
        factor = torch.tensor([f for g, f, _ in b for row in g for _ in row]).to(a.device)
        i = torch.as_tensor(idx).to(a.device)
        z = data.logits(m, rows, ways)
        loss, ce, tie = loss_of(packed.joined(z, data.cos[i], w), data.y[i], data.weight[i] * factor, *sides(b, data), a)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(before, 1.0)
        opt.step()
        opt.zero_grad()
        step, drawn, seen, n = step + 1, drawn + len(b), seen + len(idx), n + 1
        if step % 4 == 0:
            torch._foreach_lerp_(after, [p.detach() for p in before], 1 - min(a.average, step / (40 + step)) ** 4)
        sums += torch.stack([ce, tie])
        if step % 50 == 0:      # reading a number makes the CPU wait for the GPU, so seldom
            ce, tie = (sums / n).tolist()
            print(f"step {step} seen {seen} spent {spent:.0f}s done {done:.3f} ce {ce:.4f} tie {tie:.4f} "
                  f"pairs/s {seen / max(spent, 1e-3):.1f}", flush=True)
            sums, n = torch.zeros(2, device=a.device), 0
        now = time.time()
        spent, t = spent + min(now - t, 30), now    # a process that was stopped for a while has not trained
        if spent - saved > a.save_every:
            save()
            saved = spent
        if spent - looked > a.eval_every:
            look()
            looked = spent
        t = now if a.device != "cpu" else time.time()       # on a GPU, the time is what is short: looking counts too
    look()
    save(True)
    print("finished", flush=True)
    return mean


def options(ap):
    for name in ("--base", "--data", "--out"):
        ap.add_argument(name, required=True)
    ap.add_argument("--minutes", type=float, default=0)
    ap.add_argument("--steps", type=int, default=0)
    ap.add_argument("--epochs", type=float, default=0, help="of all groups in stage 1, of the labels in stage 2")
    ap.add_argument("--seed", type=int, default=7)
    ap.add_argument("--lr", type=float)
    ap.add_argument("--head-lr", type=float, default=3.0, help="the head's learning rate, as a multiple")
    ap.add_argument("--tokens", type=int, help="a batch; 2400 on a CPU, 16384 on a GPU")
    ap.add_argument("--most", type=int, help="sequences in a batch; 48 on a CPU, 256 on a GPU")
    ap.add_argument("--max-tokens", type=int, default=192)
    ap.add_argument("--tie", type=float, default=1.0)
    ap.add_argument("--margin", type=float, default=1.0)
    ap.add_argument("--mirror", type=float, default=0.3)
    ap.add_argument("--smooth", type=float, default=0.03)
    ap.add_argument("--dropout", type=float, default=0.1)
    ap.add_argument("--average", type=float, default=0.995, help="how much of the averaged weights stays at a step")
    ap.add_argument("--no-cosine", action="store_true", help="the model must know the topic by itself (a teacher)")
    ap.add_argument("--save-every", type=float, help="seconds; 180 on a CPU, 60 on a GPU")
    ap.add_argument("--eval-every", type=float, help="seconds; 600 on a CPU, 30 on a GPU")
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--device", default="cpu")
    ap.add_argument("--alone", type=float, help="share of the groups that are read with one statement a row; .5 in stage 1, .2 in stage 2")
    ap.add_argument("--window", type=int, default=0, help="sentences in a window, 0: passages are read whole")
    ap.add_argument("--freeze", type=int, default=0, help="how many of the lowest layers do not train")
    ap.add_argument("--format", choices=["measure", "bf16", "f32"], default="measure", help="of numbers on a CPU")
    ap.add_argument("--watch", type=int, default=0, help="passages with a side to look at each time; 0: the whole development split")
    ap.add_argument("--share", action="append", default=[], metavar="SOURCE=SHARE", help="in place of the stage's own; 0: none of it")
    ap.add_argument("--limit", type=int, default=0, help="only so many groups of a source and so many dev rows: a trial")


def start(ap):
    a = ap.parse_args()
    gpu = a.device != "cpu"
    for name, cpu, cuda in (("tokens", 2400, 16384), ("most", 48, 256), ("save_every", 180, 60), ("eval_every", 600, 30)):
        if getattr(a, name) is None:
            setattr(a, name, cuda if gpu else cpu)
    torch.set_num_threads(a.threads)
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(a.seed)
    a.bf16 = gpu or a.format == "bf16" or a.format == "measure" and bf16_is_faster()
    packed.BF16 = a.bf16
    return a


def bf16_is_faster():
    """Processors differ: with AVX-512 but without its bfloat16 part, bfloat16 is four times slower than f32."""
    rate = {}
    for kind in (torch.float32, torch.bfloat16):
        x, w = torch.randn(2400, 768).to(kind), torch.randn(3072, 768).to(kind)
        x @ w.T
        t, n = time.time(), 0
        while n < 3 or time.time() - t < 1:
            x @ w.T
            n += 1
        rate[kind] = n * 2 * 2400 * 768 * 3072 / (time.time() - t) / 1e9
    print("GFLOP/s:", {str(k): round(v) for k, v in rate.items()}, flush=True)
    return rate[torch.bfloat16] > rate[torch.float32]


def shares_of(stage, changed):
    shares = STAGE[stage] | {s: float(v) for s, v in (x.split("=") for x in changed)}
    unknown = set(shares) - set(STAGE[1]) - set(STAGE[2])
    assert not unknown, f"no such source: {unknown}"
    return {s: v for s, v in shares.items() if v > 0}


def trial(train, dev, limit):
    """A small part of everything, to see that it runs."""
    if not limit:
        return train, dev
    kept, count = {}, {}
    for r in train:
        if r["group"] not in kept:
            count[source(r)] = count.get(source(r), 0) + 1
            kept[r["group"]] = count[source(r)] <= limit
    dev = [r for s in ("dev", "check") for r in [x for x in dev if x["split"] == s][:2 * limit]]
    return [r for r in train if kept[r["group"]]], dev


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--stage", choices=["1", "2", "both"], required=True)
    ap.add_argument("--init")
    ap.add_argument("--first", type=float, default=0.6, help="stage 1's part of the minutes (and of the steps), with both")
    options(ap)
    a = start(ap)
    rows, tok, total = common.read(a.data), M.tokenizer(a.base), (a.minutes, a.steps)
    for stage in ([1, 2] if a.stage == "both" else [int(a.stage)]):
        out, init = a.out, a.init
        if a.stage == "both":
            out = os.path.join(a.out, f"stage{stage}")
            init = a.init if stage == 1 else os.path.join(a.out, "stage1", "last.pt")
            part = a.first if stage == 1 else 1 - a.first
            a.minutes, a.steps = total[0] * part, round(total[1] * part)
        shares = shares_of(stage, a.share)
        train, dev = trial(*select(rows, shares), a.limit)
        if "negated" in shares:
            train += negations(train)
        dev = watched(dev, a.watch, a.seed)
        m = M.from_base(a.base, a.dropout, a.seed)
        if init:
            old, own = M.state_of(init), m.state_dict()
            m.load_state_dict({k: old[k] if k in old and old[k].shape == v.shape else v for k, v in own.items()})
            print("starting from", init, "with", sum(k in old for k in own), "of", len(own), "weights", flush=True)
        groups = packed.groups_of(train, source)
        known = {s: shares[s] for s in groups}
        epoch = sum(map(len, groups.values()))
        if stage == 2 and "labels" in known:
            epoch = len(groups["labels"]) * sum(known.values()) / known["labels"]
        lr = (a.lr or {384: 1.5e-4}.get(m.cfg["hidden_size"], 4e-5)) * (1 if stage == 1 else 0.5)
        # Two statements of stage 1 are one that is supported and one that is opposed. So that their number does not give that away, half stand alone.
        alone = {1: 0.5, 2: 0.2}[stage] if a.alone is None else a.alone
        fit(m, packed.Packed(train, tok, a.max_tokens, a.device, a.window), groups, shares, dev,
            packed.Packed(dev, tok, a.max_tokens, a.device, a.window), a, out, lr, alone, epoch)


if __name__ == "__main__":
    main()
