"""Figures of a detector on labelled pairs, with intervals by question."""
import random

import numpy as np
from sklearn.metrics import roc_auc_score

import common


def pairs_of(rows):
    by = {}
    for i, r in enumerate(rows):
        by.setdefault(r["row"], []).append(i)
    return [v for v in by.values() if len(v) == 2]


def auc(y, p):
    return float(roc_auc_score(y, p)) if 0 < y.sum() < len(y) else float("nan")


def figures(y, p, th, right):
    """right: one number per A/B row, 1 if the right side has more."""
    v = (p >= th).astype(int)
    return {"accuracy": float((v == y).mean()), "f1": common.f1(y, v),
            "precision": float(y[v == 1].mean()) if v.any() else 0.0, "recall": float(v[y == 1].mean()) if y.any() else 0.0,
            "auc": auc(y, p), "right_side": float(np.mean(right)) if len(right) else float("nan")}


def measure(rows, p, th, boot=600, seed=7):
    y = np.array([r["label"] == "supports" for r in rows]).astype(int)
    prs = [(i, j) for i, j in pairs_of(rows) if rows[i]["two"] in ("A", "B")]
    side = {i: float(p[i] > p[j]) if rows[i]["label"] == "supports" else float(p[j] > p[i]) for i, j in prs}
    out = figures(y, p, th, list(side.values()))
    q = {}
    for i, r in enumerate(rows):
        q.setdefault(r["topic"], []).append(i)
    keys = sorted(q)
    rng = random.Random(seed)
    got = {k: [] for k in out}
    for _ in range(boot):
        idx = [i for k in rng.choices(keys, k=len(keys)) for i in q[k]]
        a = np.array(idx)
        f = figures(y[a], p[a], th, [side[i] for i in idx if i in side])
        for k, v in f.items():
            if v == v:
                got[k].append(v)
    e, table = common.ece(y, p)
    r = {k: round(v, 4) if v == v else None for k, v in out.items()}
    r["interval"] = {k: [round(float(np.percentile(v, x)), 4) for x in (2.5, 97.5)] for k, v in got.items() if v}
    r.update(pairs=len(rows), questions=len(keys), positive=round(float(y.mean()), 4), sides=len(side), ece=round(e, 4),
             reliability=table)
    return r
