"""Training data of the extractive reader, seeded.

PARALLAX_DATA=DATA python prepare.py --out OUT
Writes OUT/rows.jsonl (what is trained on and developed with) and OUT/nq-test.json (500 questions that train nothing, the
gold passage first, then nine that BM25 finds and that hold no gold answer), OUT/nq-test-poisoned.json (questions with
five false passages behind the gold one), both in FiD's JSON.

  cloze    sentences of Wikipedia passages with a name or number taken out, their words thinned and moved (contentious-wiki)
  qnli     questions with one sentence that holds the answer or does not; where it stands is not said
  nq       questions of people with the passage of the answer (nq-open-oracle), but for the test questions
  written  written.jsonl.gz: questions written by reading passages of contentious-wiki and nq, with the answer to the letter
"""
import argparse
import csv
import glob
import gzip
import hashlib
import html
import json
import math
import os
import random
import re
from collections import Counter, defaultdict

import text as T

TEST, DEV = 500, 250
WORD = re.compile(r"[a-z0-9]+")


def lines(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(l) for l in f]


def order(question):
    return hashlib.sha256(question.encode()).hexdigest()


def key(text):
    """Names a passage in written.jsonl.gz by its first words."""
    return hashlib.sha256(" ".join(html.unescape(text).split()[:50]).encode()).hexdigest()[:16]


class Bm25:
    def __init__(self, texts, k1=0.9, b=0.4):
        docs = [Counter(WORD.findall(t.lower())) for t in texts]
        size = [sum(d.values()) for d in docs]
        mean = sum(size) / len(size)
        self.post = defaultdict(list)
        for i, d in enumerate(docs):
            norm = k1 * (1 - b + b * size[i] / mean)
            for w, n in d.items():
                self.post[w].append((i, n / (n + norm)))
        self.n = len(docs)

    def first(self, question, k):
        score = Counter()
        for w in set(WORD.findall(question.lower())):
            p = self.post.get(w, ())
            if len(p) > self.n / 4:
                continue
            idf = math.log(1 + (self.n - len(p) + .5) / (len(p) + .5))
            for i, s in p:
                score[i] += idf * s
        return [i for i, _ in score.most_common(k)]


def wiki(data):
    """Passages of 100 words: (title, text)."""
    folder = os.path.join(data, "contentious-wiki")
    titles = {}
    with open(os.path.join(folder, "articles.txt"), encoding="utf-8") as f:
        for line in f.read().splitlines()[1:]:
            _, title, number = line.split("\t")
            titles[number] = title
    out = []
    for path in sorted(glob.glob(os.path.join(folder, "articles", "clean_*.txt"))):
        number = os.path.basename(path)[6:-4]
        with open(path, encoding="utf-8", errors="replace") as f:
            words = html.unescape(f.read().replace("[REF]", "")).split()
        words = words[1:] if words[:1] == ["."] else words
        for k in range(0, len(words) - 40, 100):
            out.append((titles.get(number, ""), " ".join(words[k:k + 100])))
    return out


MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
SPANS = [
    ("date", re.compile(rf"\b(?:\d{{1,2}} )?(?:{MONTH})(?: \d{{1,2}})?,? \d{{4}}\b|\b(?:1[5-9]|20)\d\d\b")),
    ("number", re.compile(r"(?<![\w.,$£€])[$£€]?\d[\d,.]*\d?(?: (?:million|billion|percent|years|people))?%?(?![\w])")),
    ("name", re.compile(r"\b[A-Z][\w'’-]+(?: (?:of|the|for|de|van|and)(?= [A-Z])| [A-Z][\w'’.-]*)*")),
]
ASK = {"date": ["when", "in what year", "what year", "when did this happen"], "number": ["how many", "how much", "what number"],
       "name": ["who", "which", "what", "where", "what is the name", "who or what"]}


def cloze(rng, passage):
    """A question made of one sentence of the passage, and the span taken out of it; None if it has none."""
    title, text = passage
    sentences = [s for s in re.split(r"(?<=[.!?]) +(?=[A-Z])", text) if 8 <= len(s.split()) <= 45]
    rng.shuffle(sentences)
    for s in sentences:
        found = []
        for kind, pattern in SPANS:
            for m in pattern.finditer(s):
                if kind == "name" and (m.start() == 0 and " " not in m.group() or len(m.group()) < 3):
                    continue
                found.append((kind, m))
        if not found:
            continue
        kind, m = rng.choice(found)
        answer = m.group().rstrip(".,'’")
        rest = (s[:m.start()], s[m.end():])
        keep = rng.uniform(.55, .95)
        words = [[w for w in part.split() if rng.random() < keep] for part in rest]
        ask = rng.choice(ASK[kind])
        how = rng.random()
        if how < .35:
            q = " ".join(words[0] + [ask] + words[1])
        elif how < .7:
            q = " ".join([ask] + words[1] + words[0])
        else:
            q = " ".join([ask] + words[0] + words[1])
        if rng.random() < .3 and title.lower() not in q.lower():
            q = f"{q} {title}"
        q = re.sub(r"\s+([,.;])", r"\1", q).rstrip(" .,")
        if rng.random() < .6:
            q = re.sub(r"[,.;:()\"]", "", q.lower())
        elif rng.random() < .7:
            q += "?"
        if T.normalised(answer) and f" {T.normalised(answer)} " not in f" {T.normalised(q)} ":
            return q, answer
    return None


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", required=True)
    ap.add_argument("--cloze", type=int, default=24000)
    ap.add_argument("--seed", type=int, default=7)
    a = ap.parse_args()
    data = os.environ["PARALLAX_DATA"]
    rng = random.Random(a.seed)
    os.makedirs(a.out, exist_ok=True)

    poison = json.load(open(os.path.join(data, "reader/poisonedrag/nq.json"), encoding="utf-8"))
    poison = {p["question"].lower().strip(" ?"): p for p in poison.values()}
    nq = []
    for r in lines(os.path.join(data, "reader/nq-open-oracle/nq-open-oracle.jsonl")):
        c = r["ctxs"][0]
        nq.append({"question": r["question"], "answers": r["answers"], "title": c["title"], "text": c["text"]})
    nq.sort(key=lambda r: (r["question"].lower().strip(" ?") not in poison, order(r["question"])))
    test, dev, train = nq[:TEST], nq[TEST:TEST + DEV], nq[TEST + DEV:]
    told = {(r["title"], r["text"][:60]) for r in test}
    # a passage of a test question trains nothing, for whatever question
    train = [r for r in train if (r["title"], r["text"][:60]) not in told]

    pool = [(r["title"], r["text"]) for r in nq] + wiki(data)
    index = Bm25([f"{t} {x}" for t, x in pool])
    hidden = {(r["title"], r["text"]) for r in test}

    def silent(question, answers, own, k, also_test=False):
        """What BM25 finds and no gold answer stands in."""
        out = []
        for i in index.first(question, 60):
            p = pool[i]
            if p[1] != own and not T.holds(f"{p[0]} {p[1]}", answers) and (also_test or p not in hidden):
                out.append(p)
        return out[:k]

    rows = []

    def take(source, split, question, answers, title, text, others=6):
        rows.append({"source": source, "split": split, "question": question, "answers": answers, "title": title, "text": text,
                     "silent": silent(question, answers, text, others)})

    for r in train:
        take("nq", "train", r["question"], r["answers"], r["title"], r["text"])
    for r in dev:
        take("nq", "dev", r["question"], r["answers"], r["title"], r["text"], 9)
    by_key, missed = {key(text): (title, text) for title, text in pool if (title, text) not in hidden}, 0
    with gzip.open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "written.jsonl.gz"), "rt", encoding="utf-8") as f:
        for w in map(json.loads, f):
            title, text = by_key.get(w["passage"], ("", ""))
            text = " ".join(html.unescape(text).split())
            if w["answer"] in text:
                take("written", "train", w["question"], [w["answer"]], title, text)
            else:
                missed += 1
    print("written questions whose passage is not there:", missed)
    passages = wiki(data)
    rng.shuffle(passages)
    n = 0
    for p in passages * 3:
        made = cloze(rng, p)
        if made:
            rows.append({"source": "cloze", "split": "train", "question": made[0], "answers": [made[1]], "title": p[0], "text": p[1],
                         "silent": [rng.choice(passages)]})
            n += 1
        if n == a.cloze:
            break
    with open(os.path.join(data, "detector-training/nli-small/qnli-dev.csv"), encoding="utf-8", newline="") as f:
        for r in csv.DictReader(f):
            rows.append({"source": "qnli", "split": "train", "question": r["premise"], "title": "", "text": r["hypothesis"],
                         "holds": r["label"] == "entailment", "answers": [], "silent": []})

    def put(name, write):
        path = os.path.join(a.out, name)
        with open(path + ".new", "w", encoding="utf-8") as f:
            write(f)
        os.replace(path + ".new", path)

    put("rows.jsonl", lambda f: f.writelines(json.dumps(r, ensure_ascii=False) + "\n" for r in rows))

    def fid(rs):
        return [{"id": str(i), "question": q, "answers": g, "ctxs": [{"id": f"{i}-{j}", "title": t, "text": x} for j, (t, x) in enumerate(c)]}
                for i, (q, g, c) in enumerate(rs)]

    plain = [(r["question"], r["answers"], [(r["title"], r["text"])] + silent(r["question"], r["answers"], r["text"], 9, True))
             for r in test]
    false = [(r["question"], r["answers"], [(r["title"], r["text"])] + [("", x) for x in poison[k]["adv_texts"]])
             for r in test if (k := r["question"].lower().strip(" ?")) in poison]
    put("nq-test.json", lambda f: json.dump(fid(plain), f, ensure_ascii=False, indent=1))
    put("nq-test-poisoned.json", lambda f: json.dump(fid(false), f, ensure_ascii=False, indent=1))
    print(json.dumps(Counter(f"{r['source']} {r['split']}" for r in rows)), len(plain), len(false))


if __name__ == "__main__":
    main()
