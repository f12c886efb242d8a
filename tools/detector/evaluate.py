"""Evaluation of a detector on the development and the test split, as the program runs it: joined with the cosine.

python evaluate.py --onnx OUT/detector.onnx --json OUT/detector.json --encoder ../../assets/minilm --data pairs.jsonl --out metrics.json
The weights of the join and the threshold are those stored with the model (join.py, fitted on the development split); nothing is
tuned on the test split. Intervals: 95 %, bootstrap over questions.
"""
import argparse
import json
import os
import random
import re

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

import common
import join
import prepare
from measures import auc, measure, pairs_of


def near_training(train, test):
    """The test questions that have a statement in training with most of their content words, though the split's rule let it pass."""
    known = {frozenset(prepare.key(r["statement"])) for r in train}
    by = {}
    for k in known:
        for word in k:
            by.setdefault(word, []).append(k)
    out = set()
    for r in test:
        own = frozenset(prepare.key(r["statement"]))
        for other in {k for word in own for k in by.get(word, [])}:
            both = len(own & other)
            if both >= 2 and both >= 2 / 3 * min(len(own), len(other)):
                out.add(r["topic"])
    return out


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--onnx", required=True)
    ap.add_argument("--json", required=True)
    ap.add_argument("--encoder", required=True)
    ap.add_argument("--data", required=True)
    ap.add_argument("--out", required=True)
    a = ap.parse_args()
    cfg = json.load(open(a.json))
    th = cfg["threshold"]
    allrows = common.read(a.data)
    lab = [r for r in allrows if r["source"].startswith("labels")]
    dev, test, train = ([r for r in lab if r["split"] == s] for s in ("dev", "test", "train"))

    def probs(rows):
        return join.probabilities(join.features(a.onnx, a.encoder, rows, cfg["max_tokens"]), cfg["join"])
    xd, xt = (join.features(a.onnx, a.encoder, rows, cfg["max_tokens"]) for rows in (dev, test))
    pd, pt = (join.probabilities(x, cfg["join"]) for x in (xd, xt))
    res = {"model": cfg["name"], "sha256": cfg.get("sha256"), "threshold": th, "join": cfg["join"],
           "dev": measure(dev, pd, th), "test": measure(test, pt, th)}
    y3 = np.array([common.CLASSES.index(r["label"]) for r in test])
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
    near = near_training([r for r in allrows if r["split"] == "train"], test)
    part("a looser rule finds a like question in training", lambda r: r["topic"] in near and not r["sample_topic"], "test_by_statement")
    part("it finds none", lambda r: r["topic"] not in near and not r["sample_topic"], "test_by_statement")

    # shortcuts
    y = (y3 == 0).astype(int)
    sc = {}
    some = list(range(0, len(test), 6)) + list(range(1, len(test), 6))      # both statements of every third row
    empty = probs([dict(test[k], passage="") for k in some])
    sc["no passage: AUC of the model"] = round(auc(y[some], empty), 4)
    rng = random.Random(3)
    perm = list(range(len(test)))
    rng.shuffle(perm)
    other = probs([dict(test[k], passage=test[j]["passage"]) for k, j in enumerate(perm) if k % 3 == 0 and test[k]["topic"] != test[j]["topic"]])
    sc["another question's passage: share of yes"] = round(float((other >= th).mean()), 4)
    neg = [(k, prepare.negate(r["statement"])) for k, r in enumerate(test)]
    neg = [(k, n) for k, n in neg if n and k % 6 < 3]
    pn = probs([dict(test[k], statement=n) for k, n in neg])
    k = np.array([x for x, _ in neg])
    yes = pt[k] >= th
    sc["negated: statements"] = len(neg)
    sc["negated: share of yes that stays yes"] = round(float((pn[yes] >= th).mean()), 4)
    sup = y[k] == 1
    opp = y3[k] == 1
    sc["negated: supported pairs whose P falls"] = round(float((pn[sup] < pt[k][sup]).mean()), 4)
    sc["negated: opposed pairs whose P rises"] = round(float((pn[opp] > pt[k][opp]).mean()), 4)
    para = probs([dict(test[k], statement="It is true that " + prepare.lower1(test[k]["statement"])) for k in some])
    sc["paraphrase (it is true that ...): same verdict"] = round(float(((para >= th) == (pt[some] >= th)).mean()), 4)
    para = probs([dict(test[k], statement="I agree that " + prepare.lower1(test[k]["statement"])) for k in some])
    sc["paraphrase (I agree that ...): same verdict"] = round(float(((para >= th) == (pt[some] >= th)).mean()), 4)
    res["shortcuts"] = sc

    b = {"always no": {"accuracy": round(float((y == 0).mean()), 4), "f1": 0.0}}
    yd = np.array([r["label"] == "supports" for r in dev]).astype(int)
    v = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    X = v.fit_transform([r["statement"] for r in train])
    lr = LogisticRegression(max_iter=500).fit(X, [r["label"] == "supports" for r in train])
    sd, st = (lr.predict_proba(v.transform([r["statement"] for r in x]))[:, 1] for x in (dev, test))
    # a logit that no threshold was fitted for
    support = lambda x: 1 / (1 + np.exp(-x[:, 0]))
    for n, d, t in (("statement only (bag of words)", sd, st), ("MiniLM cosine", xd[:, 2], xt[:, 2]),
                    ("z_supports − z_neither, without the cosine", support(xd), support(xt))):
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
