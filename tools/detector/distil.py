"""A small model learns from one or more teachers.

python distil.py --base BASE --teacher-base TEACHER --teacher T1/stage2/best.pt [--teacher T2/stage2/best.pt]
                 --data pairs.jsonl --crossings crossings.jsonl.gz --out RUN --minutes 6 [--device cuda]

The teachers score every pair of training and every crossing (cross.py); their mean, as logits, is kept in RUN/teacher.npz with
its figures on the development and the test questions, so that the student can be trained again without a teacher. The student
learns what the teacher says (--temperature, --soft: its share in the loss), the labels where there are any, and the tie
of a statement to its opposite. The cosine of its own base encoder stands beside it in the loss, as in use (join.py).
"""
import argparse
import hashlib
import json
import os

import numpy as np
import torch

import common
import measures
import model as M
import packed
import train as T

SHARES = {"cross": .40, "labels": .14, "written": .14, "written-other": .04} | {
    s: .28 * x for s, x in T.STAGE[1].items()}


def logits(a, rows):
    """The mean of the teachers' log probabilities."""
    total = 0.0
    tok = M.tokenizer(a.teacher_base)
    data = packed.Packed(rows, tok, a.max_tokens, a.device)
    for path in a.teacher:
        m = M.load(path, a.teacher_base).to(a.device)
        z = packed.score(m, data, range(len(rows)), tokens=a.tokens * 4)
        total = total + np.log(common.softmax(z) + 1e-7)
        print("scored", len(rows), "pairs with", path, flush=True)
    return (total / len(a.teacher)).astype(np.float32)


def figures(rows, z):
    """The teachers on development and test questions, with the threshold of the development questions."""
    p, out = common.softmax(z)[:, 0], {}
    split = {s: [i for i, r in enumerate(rows) if r["split"] == s and T.source(r) == "labels"] for s in ("dev", "test")}
    y = np.array([r["label"] == "supports" for r in rows]).astype(int)
    th, _ = common.best_threshold(y[split["dev"]], p[split["dev"]])
    for s, i in split.items():
        m = measures.measure([rows[k] for k in i], p[i], th, 200)
        out[s] = {k: m[k] for k in ("pairs", "questions", "accuracy", "f1", "auc", "right_side", "ece", "interval")}
    return out


@torch.no_grad()
def cosines(a, rows):
    """Adds the base encoder's cosine of passage and statement where it is not known."""
    rows = [r for r in rows if "cos" not in r]
    m, tok, known = M.from_base(a.base).eval().to(a.device), M.tokenizer(a.base), {}
    texts = sorted({r[k] for r in rows for k in ("passage", "statement")}, key=len)
    before, _, after = M.marks(tok)
    for i in range(0, len(texts), 256):
        part = texts[i:i + 256]
        ids = [before + e.ids[:254] + after for e in tok.encode_batch(part, add_special_tokens=False)]
        ids, mask, typ = (x.to(a.device) for x in M.collate([(x, [0] * len(x)) for x in ids]))
        with torch.autocast(torch.device(a.device).type, dtype=torch.bfloat16):
            x = m.hidden(ids, mask, typ).float()
        x = (x * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
        known.update(zip(part, torch.nn.functional.normalize(x, dim=-1).half().cpu().numpy()))
    for r in rows:
        r["cos"] = round(float(known[r["passage"]].astype(np.float32) @ known[r["statement"]].astype(np.float32)), 4)


def digest(rows):
    h = hashlib.sha256()
    for r in rows:
        h.update((r["passage"] + "\t" + r["statement"] + "\n").encode())
    return h.hexdigest()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--teacher", action="append", default=[])
    ap.add_argument("--teacher-base")
    ap.add_argument("--crossings")
    ap.add_argument("--init", help="a checkpoint of the student to start from")
    ap.add_argument("--temperature", type=float, default=2.0)
    ap.add_argument("--soft", type=float, default=0.7)
    T.options(ap)
    a = T.start(ap)
    os.makedirs(a.out, exist_ok=True)
    all_rows = common.read(a.data)
    rows, dev = T.select(all_rows + (common.read(a.crossings) if a.crossings else []), SHARES)
    rows, dev = T.trial(rows, dev, a.limit)
    kept, mark = os.path.join(a.out, "teacher.npz"), digest(rows)
    if os.path.exists(kept) and str(np.load(kept)["digest"]) == mark:
        soft = np.load(kept)["logits"]
    elif not a.teacher:
        raise SystemExit(f"no teacher given, and none for these pairs in {kept}")
    else:
        judged = dev if a.limit else [r for r in all_rows if T.source(r) == "labels" and r["split"] in ("dev", "test")]
        soft = logits(a, rows + judged)
        soft, of = soft[:len(rows)], soft[len(rows):]
        np.savez_compressed(kept + ".new.npz", logits=soft.astype(np.float16), digest=mark)
        os.replace(kept + ".new.npz", kept)
        if not a.limit:
            json.dump(figures(judged, of), open(os.path.join(a.out, "teacher.json"), "w"), indent=1)
            print(open(os.path.join(a.out, "teacher.json")).read(), flush=True)
    if not a.no_cosine:
        cosines(a, rows + dev)
    tok = M.tokenizer(a.base)
    m = M.load(a.init, a.base) if a.init else M.from_base(a.base, seed=a.seed)
    groups = packed.groups_of(rows, T.source)
    T.fit(m, packed.Packed(rows, tok, a.max_tokens, a.device), groups, SHARES, dev,
          packed.Packed(dev, tok, a.max_tokens, a.device), a, a.out, a.lr or 2e-4, sum(map(len, groups.values())),
          torch.as_tensor(soft.astype(np.float32)).to(a.device))


if __name__ == "__main__":
    main()
