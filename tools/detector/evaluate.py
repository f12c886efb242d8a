"""Evaluation of an exported detector on the development and the test split.

python evaluate.py --onnx OUT/detector.onnx --json OUT/detector.json --base BASE --data pairs.jsonl --out metrics.json
The threshold and the temperature are those stored with the model (fitted on the development split); nothing is tuned
on the test split. Intervals: 95 %, bootstrap over questions.
"""
import argparse
import json
import os
import random
import re

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import common
import export
import model as M
import prepare


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


def cosine(base, rows, batch=32):
    """Mean-pooled embeddings of the base encoder, cosine of passage and statement."""
    import torch
    m = M.from_base(base).eval()
    tok = M.tokenizer(base)

    @torch.no_grad()
    def embed(texts):
        texts = sorted(set(texts), key=len)
        out = {}
        for i in range(0, len(texts), batch):
            part = texts[i:i + batch]
            enc = [([101] + e.ids[:254] + [102], None) for e in tok.encode_batch(part, add_special_tokens=False)]
            enc = [(x, [0] * len(x)) for x, _ in enc]
            ids, mask, typ = M.collate(enc)
            x = m.ln(m.word(ids) + m.typ(typ) + m.pos.weight[:ids.shape[1]])
            b = (1.0 - mask.float())[:, None, None, :] * -1e4
            for l in m.layers:
                x = l(x, b, False)
            k = mask[:, :, None].float()
            x = (x * k).sum(1) / k.sum(1)
            x = x / x.norm(dim=-1, keepdim=True)
            out.update({t: v.numpy() for t, v in zip(part, x)})
        return out
    ps, ss = embed([r["passage"] for r in rows]), embed([r["statement"] for r in rows])
    return np.array([float(ps[r["passage"]] @ ss[r["statement"]]) for r in rows])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--onnx", required=True)
    ap.add_argument("--json", required=True)
    ap.add_argument("--base", required=True)
    ap.add_argument("--data", required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--workers", type=int, default=2)
    ap.add_argument("--no-baselines", action="store_true")
    a = ap.parse_args()
    cfg = json.load(open(a.json))
    th, temp, mx = cfg["threshold"], cfg["temperature"], cfg["max_tokens"]
    tok = M.tokenizer(a.base)
    allrows = common.read(a.data)
    lab = [r for r in allrows if r["source"].startswith("labels")]
    dev, test, train = ([r for r in lab if r["split"] == s] for s in ("dev", "test", "train"))

    def probs(rows):
        return common.softmax(export.predict_onnx(a.onnx, tok, rows, mx, a.workers) / temp)
    Pd, Pt = probs(dev), probs(test)
    pd, pt = Pd[:, 0], Pt[:, 0]
    res = {"model": cfg["name"], "sha256": cfg.get("sha256"), "threshold": th, "temperature": temp,
           "dev": measure(dev, pd, th), "test": measure(test, pt, th)}
    y3 = np.array([M.CLASSES.index(r["label"]) for r in test])
    res["test"]["three_class_accuracy"] = round(float((Pt.argmax(1) == y3).mean()), 4)
    res["test_by_source"], res["test_by_set"], res["test_by_words"], res["test_by_statement"] = {}, {}, {}, {}

    def part(name, sel, store):
        i = [k for k, r in enumerate(test) if sel(r)]
        if len(i) >= 40:
            m = measure([test[k] for k in i], pt[i], th, 300)
            m.pop("reliability")
            res[store][name] = m
    for s in sorted({r["source"] for r in test}):
        part(s[7:], lambda r: r["source"] == s, "test_by_source")
    for s in sorted({r["ds"] for r in test}):
        part(s, lambda r: r["ds"] == s, "test_by_set")
    for lo, hi in ((0, 70), (70, 95), (95, 110), (110, 10000)):
        part(f"{lo}-{hi}", lambda r: lo <= r["words"] < hi, "test_by_words")
    for c in (1, 2, 3):
        part(f"confidence {c}", lambda r: r["conf"] == c, "test_by_statement")
    first = re.compile(r"\b(I|you|your|my|we)\b", re.I)
    part("first or second person", lambda r: bool(first.search(r["statement"])), "test_by_statement")
    part("with a not", lambda r: bool(re.search(r"\bnot\b|n't\b", r["statement"])), "test_by_statement")
    part("without a not", lambda r: not re.search(r"\bnot\b|n't\b", r["statement"]), "test_by_statement")
    part("topics of the sample", lambda r: r["sample_topic"], "test_by_statement")

    # shortcuts
    y = (y3 == 0).astype(int)
    sc = {}
    some = list(range(0, len(test), 6)) + list(range(1, len(test), 6))      # both statements of every third row
    empty = probs([dict(test[k], passage="") for k in some])[:, 0]
    sc["no passage: AUC of the model"] = round(auc(y[some], empty), 4)
    rng = random.Random(3)
    perm = list(range(len(test)))
    rng.shuffle(perm)
    other = probs([dict(test[k], passage=test[j]["passage"]) for k, j in enumerate(perm) if k % 3 == 0 and test[k]["topic"] != test[j]["topic"]])[:, 0]
    sc["another question's passage: share of yes"] = round(float((other >= th).mean()), 4)
    neg = [(k, prepare.negate(r["statement"])) for k, r in enumerate(test)]
    neg = [(k, n) for k, n in neg if n and k % 6 < 3]
    pn = probs([dict(test[k], statement=n) for k, n in neg])[:, 0]
    k = np.array([x for x, _ in neg])
    yes = pt[k] >= th
    sc["negated: statements"] = len(neg)
    sc["negated: share of yes that stays yes"] = round(float((pn[yes] >= th).mean()), 4)
    sup = y[k] == 1
    opp = y3[k] == 1
    sc["negated: supported pairs whose P falls"] = round(float((pn[sup] < pt[k][sup]).mean()), 4)
    sc["negated: opposed pairs whose P rises"] = round(float((pn[opp] > pt[k][opp]).mean()), 4)
    para = probs([dict(test[k], statement="It is true that " + prepare.lower1(test[k]["statement"])) for k in some])[:, 0]
    sc["paraphrase (it is true that ...): same verdict"] = round(float(((para >= th) == (pt[some] >= th)).mean()), 4)
    para = probs([dict(test[k], statement="I agree that " + prepare.lower1(test[k]["statement"])) for k in some])[:, 0]
    sc["paraphrase (I agree that ...): same verdict"] = round(float(((para >= th) == (pt[some] >= th)).mean()), 4)
    res["shortcuts"] = sc

    if not a.no_baselines:
        b = {"always no": {"accuracy": round(float((y == 0).mean()), 4), "f1": 0.0}}
        yd = np.array([r["label"] == "supports" for r in dev]).astype(int)
        v = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
        X = v.fit_transform([r["statement"] for r in train])
        lr = LogisticRegression(max_iter=500).fit(X, [r["label"] == "supports" for r in train])
        sd, st = (lr.predict_proba(v.transform([r["statement"] for r in x]))[:, 1] for x in (dev, test))
        for n, d, t in (("statement only (bag of words)", sd, st), ("MiniLM cosine", cosine(a.base, dev), cosine(a.base, test))):
            bt, _ = common.best_threshold(yd, d)
            m = measure(test, t, bt)
            b[n] = {x: m[x] for x in ("accuracy", "f1", "auc", "right_side", "interval")}
        plain = np.array([0.0 if re.search(r"\bnot\b|n't\b", r["statement"]) else 1.0 for r in test])
        m = [(plain[i] > plain[j]) if test[i]["label"] == "supports" else (plain[j] > plain[i]) if plain[i] != plain[j] else 0.5
             for i, j in pairs_of(test) if test[i]["two"] in ("A", "B")]
        b["prefer the statement without not"] = {"right_side": round(float(np.mean(m)), 4)}
        res["baselines"] = b
    json.dump(res, open(a.out + ".new", "w"), indent=1)
    os.replace(a.out + ".new", a.out)
    for s in ("dev", "test"):
        print(s, {k: res[s][k] for k in ("accuracy", "f1", "auc", "right_side", "ece", "interval")})
    print(json.dumps({k: res.get(k) for k in ("shortcuts", "baselines")}, indent=1))


if __name__ == "__main__":
    main()
