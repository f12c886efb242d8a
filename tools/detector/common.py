"""Reading prepared pairs, probabilities, thresholds."""
import gzip
import json

import numpy as np

CLASSES = ["supports", "opposes", "neither"]


def read(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as f:
        return [json.loads(l) for l in f]


def labels_rows(path, split):
    """The pairs of parallax-labels in one split, in file order."""
    return [r for r in read(path) if r["source"].startswith("labels") and r["split"] == split]


def softmax(x):
    x = x - x.max(-1, keepdims=True)
    e = np.exp(x)
    return e / e.sum(-1, keepdims=True)


def f1(y, pred):
    tp = int(((pred == 1) & (y == 1)).sum())
    return 2 * tp / max(1, int((pred == 1).sum() + (y == 1).sum()))


def best_threshold(y, p):
    """The threshold of the best F1: the middle of the gap, averaged over a small window to be less of an accident."""
    o = np.argsort(-p)
    ys = y[o]
    tp = np.cumsum(ys)
    f = 2 * tp / (np.arange(1, len(y) + 1) + max(1, ys.sum()))
    w = max(1, len(y) // 100)
    g = np.convolve(np.pad(f, (w // 2, w - 1 - w // 2), "edge"), np.ones(w) / w, "valid")
    k = int(g.argmax())
    lo = p[o[k + 1]] if k + 1 < len(y) else 0.0
    th = (p[o[k]] + lo) / 2
    return th, f1(y, (p >= th).astype(int))


def fit_temperature(logits, y):
    best = None
    for t in np.exp(np.linspace(np.log(0.4), np.log(4), 120)):
        p = softmax(logits / t)
        l = -np.log(p[np.arange(len(y)), y] + 1e-9).mean()
        if best is None or l < best[0]:
            best = (l, t)
    return best[1]


def ece(y, p, bins=10):
    e, table = 0.0, []
    for i in range(bins):
        m = (p >= i / bins) & ((p < (i + 1) / bins) | (i == bins - 1))
        if m.any():
            e += m.mean() * abs(p[m].mean() - y[m].mean())
            table.append({"from": i / bins, "to": (i + 1) / bins, "pairs": int(m.sum()),
                          "mean_p": round(float(p[m].mean()), 4), "supports": round(float(y[m].mean()), 4)})
    return float(e), table
