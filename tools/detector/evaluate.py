"""One table of what a detector reaches, and the same figures as JSON.

python evaluate.py --joint joint.json --dev dev.npz --test test.npz --check check.npz [--negated negated.npz] [--empty empty.npz]
                   [--apart test-apart.npz] [--apart-check check-apart.npz] [--negated-check negated-check.npz] [--other other.npz] [--onnx detector.onnx] [--data pairs.jsonl] [--curves curves.csv] --out metrics.json

The .npz files are score.py's (all but the first three with --apart), joint.json is fit.py's. Nothing is fitted here. Intervals: 95 %, bootstrap over questions.
"""
import argparse
import json
import os
import re

import numpy as np

import common
import decision as D
import fit

NOT = re.compile(r"\bnot\b|n't\b|\bno\b|\bnever\b", re.I)


def part(x, i):
    return {"z": x["z"][i], "cos": x["cos"][i], "two": x["two"][i], "topic": x["topic"][i], "meta": [x["meta"][k] for k in i]}


def parts(x, key, least=20):
    """The passages by what `key` says of them, if there are enough with one side."""
    by = {}
    for i, m in enumerate(x["meta"]):
        k = key(m)
        if k is not None:
            by.setdefault(k, []).append(i)
    one = np.isin(x["two"], (D.FIRST, D.SECOND))
    return {k: part(x, np.array(i)) for k, i in sorted(by.items()) if one[i].sum() >= least}


def kinds(check):
    """Contrast sets by kind; the older written sets and the web-like passages are one kind each."""
    return parts(check, lambda m: m.get("kind") or (m["source"] if m["source"] in ("written", "web") else None), 8)


def twins(x, par):
    """Of minimal pairs with an A and a B passage: both have the right side."""
    s = D.heads(par, x["z"], x["cos"])[1]
    by = {}
    for i, m in enumerate(x["meta"]):
        if m["source"].startswith("contrast") and x["two"][i] in (D.FIRST, D.SECOND):
            by.setdefault(m["group"], []).append((s[i] > 0) == (x["two"][i] == D.FIRST))
    v = [all(g) for g in by.values() if len(g) > 1]
    return {"pairs": len(v), "both_right": round(float(np.mean(v)), 4)} if v else None


def negation(par, x, neg):
    """Single statements, before the joint decision: a yes that stays yes when the statement is negated."""
    at = {(m["row"], m["passage"]): i for i, m in enumerate(x["meta"])}
    i = np.array([at[m["row"], m["passage"]] for m in neg["meta"]])
    before, after = (fit.single(par, z, c) for z, c in ((x["z"][i], x["cos"][i]), (neg["z"], neg["cos"])))
    th, topic = par["single"]["threshold"], np.repeat(neg["topic"], 2)
    yes = before.ravel() >= th
    stays = after.ravel()[yes] >= th
    sup = np.column_stack([np.isin(x["two"][i], (D.FIRST, D.BOTH)), np.isin(x["two"][i], (D.SECOND, D.BOTH))])
    return {"statements": int(yes.size), "yes": int(yes.sum()), "stays_yes": round(float(stays.mean()), 4),
            "interval": interval(stays.astype(float), topic[yes]),
            "supported_and_falls": round(float((after < before)[sup].mean()), 4)}


def interval(v, topic, boot=500, seed=7):
    by = {}
    for x, t in zip(v, topic):
        by.setdefault(t, []).append(x)
    by, rng = [np.array(x) for x in by.values()], np.random.default_rng(seed)
    m = [np.concatenate([by[k] for k in rng.integers(len(by), size=len(by))]).mean() for _ in range(boot)]
    return [round(float(np.percentile(m, q)), 4) for q in (2.5, 97.5)]


def baselines(dev, test, data):
    """The cosine alone, the statement without "not", and a bag of the statement's words."""
    y = {n: np.column_stack([np.isin(x["two"], (D.FIRST, D.BOTH)), np.isin(x["two"], (D.SECOND, D.BOTH))]).ravel().astype(int)
         for n, x in (("dev", dev), ("test", test))}
    th, _ = common.best_threshold(y["dev"], dev["cos"].ravel())
    one = np.isin(test["two"], (D.FIRST, D.SECOND))
    right = lambda d: float(np.where(d[one] == 0, .5, (d[one] > 0) == (test["two"][one] == D.FIRST)).mean())
    free = np.array([[0.0 if NOT.search(s) else 1.0 for s in m["statements"]] for m in test["meta"]])
    from sklearn.metrics import roc_auc_score
    out = {"cosine alone": {"f1": common.f1(y["test"], (test["cos"].ravel() >= th).astype(int)), "auc": float(roc_auc_score(y["test"], test["cos"].ravel())),
                            "right_side": right(test["cos"][:, 0] - test["cos"][:, 1])},
           "the statement without a negation": {"right_side": right(free[:, 0] - free[:, 1])}}
    if data:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        rows = [r for r in common.read(data) if r["split"] == "train" and r["source"].startswith("labels")]
        v = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
        m = LogisticRegression(max_iter=500).fit(v.fit_transform([r["statement"] for r in rows]), [r["label"] == "supports" for r in rows])
        p = m.predict_proba(v.transform([s for t in test["meta"] for s in t["statements"]]))[:, 1]
        out["the statement's words alone"] = {"auc": float(roc_auc_score(y["test"], p)), "right_side": right(p[0::2] - p[1::2])}
    return {k: {n: round(v, 4) for n, v in d.items()} for k, d in out.items()}


def wrong(x, par, n):
    """The passages with one side where the surest answers are wrong, to be read by hand."""
    r, s = D.heads(par, x["z"], x["cos"])
    one = np.isin(x["two"], (D.FIRST, D.SECOND))
    bad = np.flatnonzero(one & ((s > 0) != (x["two"] == D.FIRST)))
    for i in bad[np.argsort(-np.abs(s[bad]))][:n]:
        m = x["meta"][i]
        said = int(s[i] < 0)
        print(f"\n{D.sigmoid(abs(s[i])):.2f} sure, R {r[i]:.2f} · {m.get('kind', m['source'])} · {m['topic']}\n  said: {m['statements'][said]}\n"
              f"  label: {m['statements'][1 - said]}\n  {m['passage']}")


def cell(m, k):
    if m.get(k) is None:
        return "–"
    i = m.get("interval", {}).get(k)
    return f"{m[k]:.3f}" + (f" ({i[0]:.3f}–{i[1]:.3f})" if i else "")


def table(r):
    o = ["| own test | value (95 % interval) |", "| --- | --- |"]
    names = {"right_side": "right side of two", "right_side_surer_half": "right side, the surer half", "f1": "F1", "auc": "AUC",
             "engaged_auc": "takes a side or not: AUC", "engaged_f1": "takes a side or not: F1", "precision": "sides shown: right",
             "coverage": "sides shown: coverage", "aurc": "AURC (lower is better)", "engaged_ece": "ECE of R", "side_ece": "ECE of S"}
    t = r["test"]
    o += [f"| {v} | {cell(t, k)} |" for k, v in names.items()]
    o += [f"| passages, with one side, questions | {t['passages']}, {t['one_side']}, {t['questions']} |"]
    o += [f"| {k} | " + ", ".join(f"{n} {x:.3f}" for n, x in v.items()) + " |" for k, v in r["baselines"].items()]
    for k, title in (("kinds", "contrast sets that do not train"), ("sources", "own test, by kind of text"), ("words", "own test, by words in the passage")):
        o += ["", f"| {title} | passages with one side | right side | F1 | AUC |", "| --- | --- | --- | --- | --- |"]
        o += [f"| {n} | {m['one_side']} | {cell(m, 'right_side')} | {cell(m, 'f1')} | {cell(m, 'auc')} |" for n, m in r[k].items()]
    o += ["", "| other checks | |", "| --- | --- |"]
    if r.get("twins"):
        o.append(f"| minimal pairs with both sides right | {r['twins']['both_right']:.3f} of {r['twins']['pairs']} |")
    for k, title in (("negation", "own test, statement negated: a yes that stays yes"), ("negation_check", "contrast sets, the same")):
        if r.get(k):
            n = r[k]
            o.append(f"| {title} | {n['stays_yes']:.3f} ({n['interval'][0]:.3f}–{n['interval'][1]:.3f}) of {n['yes']} |")
    o += [f"| {k} | {v} |" for k, v in r["checks"].items()]
    return "\n".join(o)


def main():
    ap = argparse.ArgumentParser()
    for name in ("--joint", "--dev", "--test", "--check", "--out"):
        ap.add_argument(name, required=True)
    ap.add_argument("--wrong", type=int, default=0, help="print so many passages of the test split where it is sure and wrong")
    for name in ("--apart", "--apart-check", "--negated", "--negated-check", "--empty", "--other", "--onnx", "--data"):
        ap.add_argument(name)
    a = ap.parse_args()
    if a.negated and not a.apart or a.negated_check and not a.apart_check:
        ap.error("--negated needs --apart, and --negated-check needs --apart-check")
    par = json.load(open(a.joint))
    dev, test, check = (fit.read(p) for p in (a.dev, a.test, a.check))
    least = lambda d: {k: {n: v for n, v in fit.measure(x, par, 300).items() if n != "reliability"} for k, x in d.items()}
    everything = {"all contrast kinds": part(check, np.array([i for i, m in enumerate(check["meta"]) if m["source"].startswith("contrast")], dtype=int))}
    r = {"joint": par, "dev": fit.measure(dev, par), "test": fit.measure(test, par) | {"risk_coverage": fit.curve(test, par)},
         "kinds": least(kinds(check) | (everything if len(everything["all contrast kinds"]["two"]) else {})),
         "sources": least(parts(test, lambda m: m["source"].split("-", 1)[1])),
         "words": least(parts(test, lambda m: next((f"{lo}–{hi}" for lo, hi in ((0, 70), (70, 95), (95, 110), (110, 10000)) if lo <= m["words"] < hi), None))),
         "twins": twins(check, par), "baselines": baselines(dev, test, a.data), "checks": {}}
    th = par["single"]["threshold"]
    if a.negated:
        r["negation"] = negation(par, fit.read(a.apart), fit.read(a.negated))
    if a.negated_check:
        r["negation_check"] = negation(par, fit.read(a.apart_check), fit.read(a.negated_check))
    if a.empty:
        x = fit.read(a.empty)
        y = np.column_stack([np.isin(x["two"], (D.FIRST, D.BOTH)), np.isin(x["two"], (D.SECOND, D.BOTH))]).ravel()
        from sklearn.metrics import roc_auc_score
        r["checks"]["no passage: AUC"] = round(float(roc_auc_score(y, fit.single(par, x["z"], x["cos"]).ravel())), 4)
    if a.other:
        x = fit.read(a.other)
        r["checks"]["another question's passage: share of yes"] = round(float((fit.single(par, x["z"], x["cos"]) >= th).mean()), 4)
    f = np.load(a.test)
    r["checks"]["pairs a second, in windows" if int(f["window"]) else "pairs a second, whole passages"] = round(float(f["rate"]), 1)
    if a.onnx:
        r["checks"]["size"] = f"{os.path.getsize(a.onnx) / 1e6:.1f} MB"
    with open(a.out + ".new", "w") as f:
        json.dump(r, f, indent=1)
    os.replace(a.out + ".new", a.out)
    print(table(r))
    if a.wrong:
        wrong(test, par, a.wrong)


if __name__ == "__main__":
    main()
