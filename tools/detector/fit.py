"""Fits the joint decision (decision.py) on the development split and measures it on the test split.

python fit.py --dev dev.npz --apart dev-apart.npz --test test.npz --out joint.json      (the .npz files by score.py)

Forms of e and s, and the reading (cosine or not), are those with the least log loss over ten folds of development questions.
The thresholds come from the probabilities of the folds, that is, of questions the heads did not see:
  rho    R below it: neither; best F1 of "supports at least one side"
  tau    least probability of a side shown such that the 95 % interval of the right among the sides shown, by question, begins at .80 or
         above; what takes a side and lies below is unclear. null where fewer than 40 passages would show a side, or fewer than .05 of those with
         one side (`without_enough` holds the best that is left, with what it reaches on the test split)
  theta  best F1 of P(supports a statement), for single statements
Nothing is fitted on the test split. Intervals: 95 %, bootstrap over questions.
"""
import argparse
import json
import os

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import GroupKFold

import common
import decision as D
import windows

RIGHT, LEAST, ENOUGH = 0.80, 0.05, 40


def read(path):
    f = np.load(path)
    x = {"z": windows.together(f["z"], f["start"]) if int(f["window"]) else f["z"].astype(float), "cos": f["cos"].astype(float),
         "meta": json.loads(str(f["meta"]))}
    two = np.array([m["two"] for m in x["meta"]])
    x["two"] = np.select([two == "A", two == "B", two == "AB"], [D.FIRST, D.SECOND, D.BOTH], D.NEITHER)
    x["topic"] = np.array([m["topic"] for m in x["meta"]])
    x["window"] = {"sentences": int(f["window"]), "stride": int(f["stride"]) if int(f["window"]) else 1}
    return x


def fit_heads(x, i, engaged, side, use_cos):
    e = D.ENGAGED[engaged](x["z"][i])
    y = x["two"][i] != D.NEITHER
    f = np.column_stack([e, x["cos"][i].max(-1)]) if use_cos else e[:, None]
    m = LogisticRegression(C=10.0, max_iter=2000).fit(f, y)
    one = np.isin(x["two"][i], (D.FIRST, D.SECOND))
    s = D.SIDE[side](x["z"][i])[one]
    first = x["two"][i][one] == D.FIRST
    # every passage both ways round: no constant
    t = LogisticRegression(C=1000.0, fit_intercept=False, max_iter=2000).fit(np.concatenate([s, -s])[:, None], np.concatenate([first, ~first]))
    return {"engaged": {"form": engaged, "a": float(m.coef_[0, 0]), "b": float(m.coef_[0, 1]) if use_cos else 0.0, "d": float(m.intercept_[0])},
            "side": {"form": side, "t": float(t.coef_[0, 0])},
            "both": float((x["two"][i] == D.BOTH).sum() / max(1, y.sum()))}


def out_of_fold(x, engaged, side, use_cos, folds=10):
    r, s = np.zeros(len(x["two"])), np.zeros(len(x["two"]))
    for train, held in GroupKFold(folds).split(r, groups=x["topic"]):
        par = fit_heads(x, train, engaged, side, use_cos)
        r[held], s[held] = D.heads(par, x["z"][held], x["cos"][held])
    return r, s


def shown(r, s, two, par):
    """Sides shown, those of them that are right, and those on passages that support exactly one side."""
    on = is_shown(r, s, par)
    one = np.isin(two, (D.FIRST, D.SECOND))
    right = on & (np.where(s > 0, D.FIRST, D.SECOND) == two)
    return on.sum(), right.sum(), (on & one).sum(), one.sum()


def is_shown(r, s, par):
    return (r >= par["rho"]) & (D.likelier(r, s, par["both"]) >= par["tau"]) & (s != 0)


def least_share(r, s, two, topic, par, draws=2000, seed=7):
    """The lower end of the 95 % interval of the share of right sides among those shown. Questions are drawn, since the passages of one are alike."""
    on = is_shown(r, s, par)
    right = on & (np.where(s > 0, D.FIRST, D.SECOND) == two)
    by = np.unique(topic, return_inverse=True)[1]
    n, k = (np.bincount(by, weights=w, minlength=by.max() + 1) for w in (on, right))
    i = np.random.default_rng(seed).integers(len(n), size=(draws, len(n)))
    return float(np.percentile(k[i].sum(1) / np.maximum(n[i].sum(1), 1), 2.5))


def thresholds(r, s, two, topic, both, enough=ENOUGH):
    """The ρ with the best F1 of "takes a side"; then τ, taken from .99 down to .50 until the first that cannot promise RIGHT. Tried in an order that was
    fixed before, numbers need no correction for how many were tried (fixed-sequence testing); the best of many on 600 passages looks better than it is."""
    rho, _ = common.best_threshold((two != D.NEITHER).astype(int), r)
    best = None
    for tau in np.arange(0.99, 0.495, -0.01):
        par = {"rho": rho, "tau": round(float(tau), 2), "both": both}
        n, _, one, every = shown(r, s, two, par)
        if n < enough:
            continue
        if least_share(r, s, two, topic, par) < RIGHT:
            break
        best = (one / every, par["tau"])
    return float(rho), best[1] if best and best[0] >= LEAST else None


def features(z, cos):
    """Of single pairs: supports against neither, supports against opposes, the cosine."""
    return np.stack([z[..., 0] - z[..., 2], z[..., 0] - z[..., 1], cos], -1)


def fit_single(x, negated=None):
    """P(supports) of one pair. `polarity` may not be negative: a passage that opposes must not count for support. The same passages with
    negated statements are fitted too: who supports the one statement supports the negation of the other. The threshold is of `x` alone."""
    f, y, topic, losses, fitted = features(x["z"], x["cos"]).reshape(-1, 3), both_labels(x["two"]).ravel(), np.repeat(x["topic"], 2), {}, {}
    own = np.arange(len(y))
    if negated:
        i = np.flatnonzero(negated["two"] != D.BOTH)
        f = np.concatenate([f, features(negated["z"][i], negated["cos"][i]).reshape(-1, 3)])
        y = np.concatenate([y, both_labels(negated["two"][i])[:, ::-1].ravel()])
        topic = np.concatenate([topic, np.repeat(negated["topic"][i], 2)])
    for use in ((0, 2), (0, 1, 2), (0, 1), (1, 2)):
        def model(i, use=use):
            m = LogisticRegression(C=10.0, max_iter=2000).fit(f[i][:, use], y[i])
            w = np.zeros(3)
            w[list(use)] = m.coef_[0]
            return w, float(m.intercept_[0])
        p, ok = np.zeros(len(y)), True
        for train, held in GroupKFold(10).split(f, groups=topic):
            w, b = model(train)
            ok &= w[1] >= 0
            p[held] = D.sigmoid(f[held] @ w + b)
        losses[use] = log_loss(y, p) if ok else np.inf
        fitted[use] = model(np.arange(len(y))), common.best_threshold(y[own], p[own])[0]
    (w, b), th = fitted[min(losses, key=losses.get)]
    return {"support": float(w[0]), "polarity": float(w[1]), "cosine": float(w[2]), "bias": b, "threshold": float(th)}


def single(par, z, cos):
    p = par["single"]
    return D.sigmoid(features(z, cos) @ np.array([p["support"], p["polarity"], p["cosine"]]) + p["bias"])


def both_labels(two):
    """Supports the first, supports the second."""
    return np.column_stack([np.isin(two, (D.FIRST, D.BOTH)), np.isin(two, (D.SECOND, D.BOTH))]).astype(int)


def ratio(a, b):
    return float(a / b) if b else float("nan")


def kept(r, s, two, par):
    """Precision and coverage of the sides shown."""
    n, right, c, every = shown(r, s, two, par) if par["tau"] is not None else (0, 0, 0, np.isin(two, (D.FIRST, D.SECOND)).sum())
    return {"shown": int(n), "precision": round(right / n, 4) if n else None, "coverage": round(c / every, 4)}


def figures(x, p, r, s, par, i):
    """Everything that is measured on the passages `i`."""
    two, one = x["two"][i], np.isin(x["two"][i], (D.FIRST, D.SECOND))
    eng = two != D.NEITHER
    first, second = np.isin(two, (D.FIRST, D.BOTH)), np.isin(two, (D.SECOND, D.BOTH))
    y, q = np.concatenate([first, second]).astype(int), np.concatenate([p[i, 0] + p[i, 2], p[i, 1] + p[i, 2]])
    ok = np.where(s[i] > 0, D.FIRST, D.SECOND) == two
    order = np.argsort(-np.abs(s[i][one]))
    risk = np.cumsum(~ok[one][order]) / np.arange(1, one.sum() + 1) if one.any() else np.array([np.nan])
    half = max(1, one.sum() // 2)
    out = {"f1": common.f1(y, (q >= par["theta"]).astype(int)), "auc": float(roc_auc_score(y, q)) if 0 < y.sum() < len(y) else np.nan,
           "engaged_auc": float(roc_auc_score(eng, r[i])) if 0 < eng.sum() < len(eng) else np.nan,
           "engaged_f1": common.f1(eng.astype(int), (r[i] >= par["rho"]).astype(int)),
           "right_side": ratio(ok[one].sum(), one.sum()), "right_side_surer_half": ratio(ok[one][order][:half].sum(), half if one.any() else 0),
           "aurc": float(risk.mean())}
    n, right, c, every = shown(r[i], s[i], two, par) if par["tau"] is not None else (0, 0, 0, one.sum())
    out |= {"precision": ratio(right, n), "coverage": ratio(c, every)}
    sure = D.sigmoid(np.abs(s[i][one]))
    out |= {"engaged_ece": common.ece(eng.astype(float), r[i])[0], "side_ece": common.ece(ok[one].astype(float), sure)[0] if one.any() else np.nan}
    return out


def measure(x, par, boot=500, seed=7):
    r, s = D.heads(par, x["z"], x["cos"])
    p = D.probabilities(par, x["z"], x["cos"])
    every = np.arange(len(r))
    out = {k: None if v != v else round(v, 4) for k, v in figures(x, p, r, s, par, every).items()}
    by = {}
    for i, t in enumerate(x["topic"]):
        by.setdefault(t, []).append(i)
    by, rng, got = [np.array(v) for v in by.values()], np.random.default_rng(seed), {}
    for _ in range(boot):
        i = np.concatenate([by[k] for k in rng.integers(len(by), size=len(by))])
        for k, v in figures(x, p, r, s, par, i).items():
            if v == v:
                got.setdefault(k, []).append(v)
    out["interval"] = {k: [round(float(np.percentile(v, q)), 4) for q in (2.5, 97.5)] for k, v in got.items()}
    one = np.isin(x["two"], (D.FIRST, D.SECOND))
    out |= {"passages": len(r), "questions": len(by), "one_side": int(one.sum()),
            "reliability": {"engaged": common.ece((x["two"] != D.NEITHER).astype(float), r)[1],
                            "side": common.ece((np.where(s > 0, D.FIRST, D.SECOND) == x["two"])[one].astype(float), D.sigmoid(np.abs(s[one])))[1]}}
    return out


def curve(x, par):
    """Right sides among the surest: the risk-coverage curve in ten steps."""
    one = np.isin(x["two"], (D.FIRST, D.SECOND))
    s, two = D.heads(par, x["z"], x["cos"])[1][one], x["two"][one]
    o = np.argsort(-np.abs(s))
    ok = (np.where(s > 0, D.FIRST, D.SECOND) == two)[o]
    return [{"coverage": round(k / 10, 1), "right": round(float(ok[:max(1, len(ok) * k // 10)].mean()), 4)} for k in range(1, 11)]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--dev", required=True)
    ap.add_argument("--apart", required=True, help="the development split with each statement read by itself, for single pairs")
    ap.add_argument("--negated", help="the same with negated statements")
    ap.add_argument("--test")
    ap.add_argument("--out", required=True)
    a = ap.parse_args()
    x = read(a.dev)
    two = x["two"]
    one = np.isin(two, (D.FIRST, D.SECOND))
    losses = {}
    for c in (True, False):
        for e in D.ENGAGED:
            r, _ = out_of_fold(x, e, "supports", c)
            losses["engaged", e, c] = log_loss(two != D.NEITHER, r)
    for f in D.SIDE:
        _, s = out_of_fold(x, "logsum", f, True)
        losses["side", f] = log_loss(two[one] == D.FIRST, D.sigmoid(s[one]))
    for k, v in losses.items():
        print(*k, round(v, 4))
    _, engaged, use_cos = min((k for k in losses if k[0] == "engaged"), key=losses.get)
    _, side = min((k for k in losses if k[0] == "side"), key=losses.get)
    r, s = out_of_fold(x, engaged, side, use_cos)
    par = fit_heads(x, np.arange(len(two)), engaged, side, use_cos)
    par["rho"], par["tau"] = thresholds(r, s, two, x["topic"], par["both"])
    par["beta"] = 1.0
    par["window"] = x["window"]
    par["single"] = fit_single(read(a.apart), read(a.negated) if a.negated else None)
    if par["tau"] is None:
        tau = thresholds(r, s, two, x["topic"], par["both"], 10)[1]
        par["without_enough"] = tau and {"tau": tau, "dev_folds": kept(r, s, two, par | {"tau": tau})}
    b = par["both"]
    par["prior"] = float((two != D.NEITHER).mean())
    q = np.concatenate([r * D.sigmoid(s) * (1 - b) + r * b, r * D.sigmoid(-s) * (1 - b) + r * b])
    y = np.concatenate([np.isin(two, (D.FIRST, D.BOTH)), np.isin(two, (D.SECOND, D.BOTH))]).astype(int)
    par["theta"] = float(common.best_threshold(y, q)[0])
    # the development figures are of the folds, so of questions that the heads did not see
    par["dev_folds"] = kept(r, s, two, par) | {
                        "right_side": round(float(((s > 0) == (two == D.FIRST))[one].mean()), 4),
                        "engaged_auc": round(float(roc_auc_score(two != D.NEITHER, r)), 4), "auc": round(float(roc_auc_score(y, q)), 4),
                        "f1": round(common.f1(y, (q >= par["theta"]).astype(int)), 4)}
    if a.test:
        t = read(a.test)
        par["test"] = measure(t, par)
        par["test"]["risk_coverage"] = curve(t, par)
        if par.get("without_enough"):
            w = par["without_enough"]
            w["test"] = kept(*D.heads(par, t["z"], t["cos"]), t["two"], par | {"tau": w["tau"]})
    with open(a.out + ".new", "w") as f:
        json.dump(par, f, indent=1)
    os.replace(a.out + ".new", a.out)
    short = lambda d: {k: v for k, v in d.items() if k not in ("reliability", "interval")}
    print(json.dumps({k: short(v) if isinstance(v, dict) else v for k, v in par.items()}, indent=1))
    if a.test:
        print(json.dumps(par["test"]["interval"]))


if __name__ == "__main__":
    main()
