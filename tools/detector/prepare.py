"""Data preparation: every training set to one file of (passage, statement, label) pairs.

PARALLAX_DATA=DATA python prepare.py --out pairs.jsonl [--seed 7]

DATA is the folder that holds detector-training/, arguments-pro-con/, contentious-wiki/. The result is for the
*clean* model: rows marked pro_con_test or wiki_test, statements of those two test sets and texts that are gold in
arguments-pro-con are left out. Every row on a topic of the carried sample is left out of training.

One file, though a long one: one reader a set, each a few lines, between the rules of leaving out that all of them go through.
"""
import argparse
import collections
import csv
import glob
import gzip
import json
import os
import random
import re
import zlib

import found

csv.field_size_limit(1 << 30)

# The carried sample's own topics: a statement or a short text that matches one of these trains nothing, nor does a longer text that
# does so twice.
SAMPLE_TOPICS = {
    "zoos": r"\bzoos?\b|animals? in captivity|wild animals? .*circus",
    "car-free": r"car[- ]free|ban(ning)? (on )?(all )?cars|congestion charg|pedestriani[sz]|cars? (from|in) (the )?(city|cities|town)",
    "remote-work": r"work(ing|s)? (from|at) home|remote work|telecommut|telework|home[- ]working",
    "school-start": r"school start|start (school )?later|later (school )?(start|in the morning)|school day",
    "homework": r"\bhome ?work\b",
    "compulsory-voting": r"(compulsory|mandatory|obligatory) vot|vot(ing|e) .{0,30}(compulsory|mandatory|obligatory)|(require|force|oblige)[ds]? .{0,20}to vote",
    "voting-age": r"voting age|age of voting|votes? (at|for) (16|sixteen)|(16|sixteen)[- ]year[- ]olds? .{0,20}vot|lower .{0,20}\bvot",
    "nuclear-power": r"nuclear (power|energy|plant|reactor|waste)|atomic (power|energy)",
    "tipping": r"\btipp(ing|ed)\b|\bto tip\b|\bno tip|tips? (for|to) (waiters|servers)|gratuit(y|ies)",
    "face-recognition": r"facial[- ]recognition|face[- ]recognition|\bcctv\b|surveillance camera",
    "four-day-week": r"four[- ]day|4[- ]day (work|week)|working week|work week|workweek",
    "phones-in-school": r"(phone|smartphone|mobile)s?\b.{0,60}(school|class|student|child)|(school|class|student|child).{0,60}(phone|smartphone|mobile)s?\b",
    "wolves": r"\bwol(f|ves)\b|rewild|reintroduc",
    "museum-returns": r"museum|elgin|parthenon|cultural (property|artefact|artifact|treasure)|artefacts? |artifacts? |repatriat",
    "clock-change": r"daylight saving|summer ?time\b|clock",
    "organic": r"\borganic (farm|food|agric|produce)|organic",
    "billboards": r"billboard|outdoor advert|street advert",
    "cashless": r"cash-?less|abolish cash|paper money|\bcash\b.{0,20}(obsolete|abolish|physical)|the penny",
    "space": r"space (explor|program|travel|mission|race|station|tourism)|exploration of space|explore (the universe|space)|\bnasa\b|\bmars\b|manned mission|moon landing",
    "bull-fighting": r"bull ?-?fight",
    "transit-funding": r"public transport|public transit|mass transit|bus fares?|train fares?|free transit",
    "plastic": r"\bplastic (bag|waste|bottle|straw|packag)|single-use|\bplastics\b|bottled water",
    "admissions": r"affirmative action|university admission|college admission|admissions? (test|exam|polic)|legacy admission|entrance (exam|test)|racial quota|race-based admission|standardi[sz]ed test",
    "rising-seas": r"sea[- ]level|rising seas?|coastal (town|cit|defen|flood|erosion)|sea wall|flood (insurance|defen)",
}
SAMPLE = {k: re.compile(v, re.I) for k, v in SAMPLE_TOPICS.items()}

STOP = set("""a an the of to in on for and or by with from as at is are was were be been being do does did has have had will
would should shall can could may might must not no it its this that these those there their they we our you your i my he
she his her who whom which what when where how why more most than then so if but about into over under up out all any
some such only just also very too own same s t don't doesn't isn't aren't cannot can't won't shouldn't house believes
believe thw thbt resolved good bad better worse best right wrong people never always need needs make makes made get gets
us""".split())
# Words that say which side, not which subject.
SIDE = set("""ban banned banning abolish abolished legal legalize legalise legalized legalised illegal allow allowed
prohibit prohibited introduce adopt adopted abandon abandoned support oppose end ended stop keep kept mandatory
compulsory subsidize subsidise fight limit restrict criminal offence offense crime harm harmful harms benefit
beneficial brings bring justified permit permitted required require increase reduce raise lower scrap scrapped continue
government state""".split())


def stem(w):
    for s in ("isation", "ization", "ation", "ings", "ing", "ies", "ers", "er", "ed", "es", "s", "y", "e"):
        if w.endswith(s) and len(w) - len(s) >= 3:
            return w[:-len(s)]
    return w


def key(s):
    w = [x for x in re.findall(r"[a-z0-9]+", s.lower().replace("’", "'").replace("n't", " not")) if x not in STOP]
    k = {stem(x) for x in w if x not in SIDE}
    return frozenset(k or {stem(x) for x in w})


def near(a, b, limit):
    i = len(a & b)
    return i > 0 and i / len(a | b) >= limit


def nearest(keys):
    """Is any of the keys near to this one? Looks only at those that share a word."""
    by = collections.defaultdict(list)
    for i, k in enumerate(keys):
        for w in k:
            by[w].append(i)

    def any_near(k, limit):
        shared = collections.Counter(i for w in k for i in by[w]) if k else {}
        return any(n / (len(k) + len(keys[i]) - n) >= limit for i, n in shared.items())
    return any_near


def sample_topic(s):
    for k, r in SAMPLE.items():
        if r.search(s):
            return k
    return None


def about_sample(text):
    """The sample's topic that a text is about: a short one that names it, a longer one that does so twice."""
    least = 1 if len(text.split()) < 25 else 2
    return next((k for k, r in SAMPLE.items() if len(r.findall(text)) >= least), None)


def clean(s):
    s = re.sub(r"\[[ivxlcdm0-9]+\]|\(\d{1,2}\)|https?://\S+", " ", s or "", flags=re.I)
    s = s.replace("-LRB-", "(").replace("-RRB-", ")").replace("-LSB-", "[").replace("-RSB-", "]").replace("``", '"').replace("''", '"')
    return re.sub(r"\s+", " ", s).strip().strip('"').strip()


def shingles(text, n=10):
    w = re.findall(r"[a-z0-9]+", text.lower())
    return {hash(" ".join(w[i:i + n])) for i in range(max(1, len(w) - n + 1))} if len(w) >= n else set()


# How often a sentence that its text supports comes with its bare negation too. More would teach that "not" is false.
NEG = 0.2

# ---------------------------------------------------------------- statements and their opposites
AUX = r"should|must|shall|can|could|will|would|is|are|was|were|has to|have to|does|do|did|may|might"
IRREG = {"has": "have", "does": "do", "goes": "go", "is": "be"}


def sentence(s):
    s = s.strip().rstrip(".").strip()
    s = re.sub(r"^(this house (believes|thinks)( that)?|thbt|resolved:?|that)\s+", "", s, flags=re.I)
    s = re.sub(r"^(this house would|thw)\s+", "We should ", s, flags=re.I)
    s = re.sub(r"^this house (supports)\s+", "We should support ", s, flags=re.I)
    s = re.sub(r"^this house (opposes|regrets)\s+", "We should oppose ", s, flags=re.I)
    s = re.sub(r"^this house should\s+", "We should ", s, flags=re.I)
    s = re.sub(r"^this house\s+", "We should ", s, flags=re.I)
    s = re.sub(r"^(yes|no), ?", "", s, flags=re.I)
    return s[:1].upper() + s[1:] + "." if s else s


def question(q):
    """A yes/no question as a statement, or None."""
    q = q.strip().rstrip("?").strip()
    m = re.match(r"^shouldn't (encourage .*|it be .*)$", q, re.I)
    if m:
        return None
    q = re.sub(r"^should (you|I|we) ", "We should ", q, flags=re.I)
    if q.startswith("We should"):
        return q + "."
    m = re.match(r"^(should|can|is|are|will|does|do)(?:n't)? (.+)$", q, re.I)
    if not m:
        return None
    aux, rest = m.group(1).lower(), m.group(2)
    if aux == "should":
        m = re.search(r"\b(be|have|implement|limit|restrict|encourage|offer|remain)\b", rest)
        return (rest[:m.start()] + "should " + rest[m.start():] + ".").capitalize() if m and m.start() else None
    return None


def negate(s):
    """The opposite by 'not' (or without it), or None."""
    s = s.strip()
    for pat, rep in ((r"\bcannot\b", "can"), (r"\bcan't\b", "can"), (r"\bwon't\b", "will"), (r"\b(should|could|would|is|are|was|were|must|does|do|did)n't\b", r"\1"),
                     (r"\b(should|must|can|could|will|would|is|are|was|were|may|do|does|did) not\b", r"\1")):
        if re.search(pat, s):
            t = re.sub(pat, rep, s, count=1)
            if re.search(r"\b(do|does|did)\b", t) and re.search(r"\b(do|does|did)(n't| not)\b", s):
                return None if "does" in t else re.sub(r"\b(do|did) ", "", t, count=1)
            return t
    m = re.search(r"\b(should|must|can|could|will|would)\b", s) or re.search(r"\b(is|are|was|were)\b", s)
    if m:
        return s[:m.end()] + " not" + s[m.end():]
    m = re.match(r"^(\w+(?: \w+){0,3}?) (brings?|needs?|does?|makes?|causes?|leads?|helps?|benefits?|harms?|deserves?|provides?|increases?|reduces?) (.*)$", s)
    if m:
        v = m.group(2)
        base = v[:-1] if v.endswith("s") else v
        return f"{m.group(1)} {'does' if v.endswith('s') else 'do'} not {base} {m.group(3)}"
    return None


ANTO = [  # (pattern, opposites) on whole statements
    (r"^We should (?:ban|prohibit) (.+)\.$", ["{0} should be allowed.", "We should allow {0}.", "We should keep {0} legal."]),
    (r"^We should (?:abolish|scrap|abandon|end) (.+)\.$", ["We should keep {0}.", "{0} should be kept.", "We should hold on to {0}."]),
    (r"^We should (?:legali[sz]e) (.+)\.$", ["{0} should stay illegal.", "We should keep {0} illegal.", "{0} should be banned."]),
    (r"^We should (?:adopt|introduce) (.+)\.$", ["We should reject {0}.", "{0} would be a mistake.", "We are better off without {0}."]),
    (r"^We should (?:subsidi[sz]e) (.+)\.$", ["We should stop subsidising {0}.", "Public money should not go to {0}."]),
    (r"^We should (?:support|promote|encourage) (.+)\.$", ["We should oppose {0}.", "We should discourage {0}."]),
    (r"^We should (?:oppose|fight) (.+)\.$", ["We should support {0}.", "We should welcome {0}."]),
    (r"^We should (?:limit|restrict) (.+)\.$", ["We should leave {0} unrestricted.", "{0} should not be restricted."]),
    (r"^We should close (.+)\.$", ["{0} should stay open.", "We should keep {0} open."]),
    (r"^We should stop (.+)\.$", ["We should continue {0}.", "We should go on with {0}."]),
    (r"^(.+) brings? more harm than good\.$", ["{0} brings more good than harm.", "{0} does more good than harm.", "On the whole {0} is beneficial."]),
    (r"^(.+) should be (?:banned|prohibited|illegal|forbidden|outlawed)\.$", ["{0} should be allowed.", "{0} should be legal.", "We should permit {0}."]),
    (r"^(.+) should be (?:legal|legali[sz]ed|allowed|permitted)\.$", ["{0} should be banned.", "{0} should be illegal.", "We should prohibit {0}."]),
    (r"^(.+) should be (?:abolished|scrapped|ended|abandoned)\.$", ["{0} should be kept.", "We should keep {0}.", "{0} should stay."]),
    (r"^(.+) (?:should|must) be (?:made )?(?:mandatory|compulsory)\.$", ["{0} should be voluntary.", "{0} should be a free choice.", "Nobody should be forced into {0}."]),
    (r"^(.+) should be a criminal offence\.$", ["{0} should be legal.", "{0} should not be a crime.", "{0} should be decriminalised."]),
    (r"^(.+) (is|are) beneficial(.*)\.$", ["{0} {1} harmful{2}."]),
    (r"^(.+) (is|are) harmful(.*)\.$", ["{0} {1} beneficial{2}."]),
    (r"^(.+) (is|are) necessary(.*)\.$", ["{0} {1} unnecessary{2}."]),
    (r"^(.+) (is|are) justified(.*)\.$", ["{0} {1} unjustified{2}."]),
    (r"^(.+) (is|are) right(.*)\.$", ["{0} {1} wrong{2}."]),
    (r"^(.+) (is|are) dangerous(.*)\.$", ["{0} {1} safe{2}."]),
    (r"^(.+) (is|are) safe(.*)\.$", ["{0} {1} dangerous{2}."]),
    (r"^(.+) better than (.+)\.$", ["{0} worse than {1}."]),
]
POS = [(r"^We should not (.+)\.$", ["It would be wrong to {0}.", "It would be a mistake to {0}.", "There are good reasons not to {0}."]),
       (r"^We should (?!not)(.+)\.$", ["It would be right to {0}.", "It is time to {0}.", "There are good reasons to {0}.", "I am in favour of a decision to {0}.", "It would be a good thing to {0}."]),
       (r"^(.+) should not be (banned|prohibited|abolished|allowed|legali[sz]ed|legal|illegal)\.$", ["It would be a mistake if {0} were {1}.", "I do not want {0} to be {1}."]),
       (r"^(.+) should be (banned|prohibited|abolished|allowed|legali[sz]ed|legal|illegal)\.$", ["I would like {0} to be {1}.", "We should see to it that {0} be {1}."])]


def lower1(s):
    return s if re.match(r"^(I |I'|[A-Z]{2,}|[A-Z]\w+ [A-Z])", s) else s[:1].lower() + s[1:]


def fill(pats, s, rng):
    for p, outs in pats:
        m = re.match(p, s)
        if m:
            g = [x or "" for x in m.groups()]
            t = rng.choice(outs).format(*[lower1(x) if i == 0 else x for i, x in enumerate(g)])
            return t[:1].upper() + t[1:]
    return None


def both_forms(s, rng, neg=None):
    """A (statement, opposite) pair for a plain statement: forms are drawn, so that 'not' gives nothing away."""
    n = neg or negate(s)
    x = rng.random()
    pos_, neg_ = s, n
    if x < 0.30 or n is None:
        anto = fill(ANTO, s, rng)
        if anto:
            neg_ = anto
    if neg_ is None:
        neg_ = f"It is not true that {lower1(s)}"
    y = rng.random()
    if y < 0.12:
        p2 = fill(POS, pos_, rng)
        pos_ = p2 or pos_
    elif y < 0.20:
        pos_ = rng.choice(["I agree that ", "You think that ", "I believe that ", "It is true that "]) + lower1(pos_)
    elif y < 0.24 and n:
        pos_ = rng.choice(["It is not true that ", "It is wrong to say that ", "I disagree that "]) + lower1(n)
    z = rng.random()
    if z < 0.12:
        n2 = fill(POS, neg_, rng)
        neg_ = n2 or neg_
    elif z < 0.20:
        neg_ = rng.choice(["I disagree that ", "You do not think that ", "It is not true that ", "It is wrong to say that "]) + lower1(s)
    elif z < 0.24:
        neg_ = rng.choice(["I agree that ", "I believe that "]) + lower1(neg_)
    return pos_, neg_


# ---------------------------------------------------------------- reading the sets
def window(text, rng, lo=45, hi=110):
    """A run of whole sentences of the text, about lo..hi words."""
    sents = re.split(r"(?<=[.!?])\s+", text)
    n = [len(x.split()) for x in sents]
    if sum(n) <= hi:
        return text
    want = rng.randint(lo, hi)
    start = rng.choice([i for i in range(len(sents)) if sum(n[i:]) >= min(lo, sum(n))] or [0])
    out, c = [], 0
    for s, k in zip(sents[start:], n[start:]):
        if c and c + k > hi:
            break
        out.append(s)
        c += k
        if c >= want:
            break
    return " ".join(" ".join(out).split()[:hi])


def paired(rows, what):
    """Groups of one supporting and one opposing row that share `what`; what finds no partner is alone. The label is a row's last."""
    by = collections.defaultdict(list)
    for r in rows:
        by[what(r)].append(r)
    for g in by.values():
        pro, con = ([r for r in g if r[-1] == l] for l in ("supports", "opposes"))
        k = min(len(pro), len(con))
        yield from ([a, b] for a, b in zip(pro, con))
        yield from ([r] for r in pro[k:] + con[k:] + [r for r in g if r[-1] == "neither"])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", required=True)
    ap.add_argument("--seed", type=int, default=7)
    a = ap.parse_args()
    root = os.environ["PARALLAX_DATA"]
    d = os.path.join(root, "detector-training")
    rng = random.Random(a.seed)
    left = collections.Counter()
    sample_left = collections.Counter()

    def jl(p):
        return [json.loads(l) for l in open(p, encoding="utf-8")]

    def cs(p, **k):
        return list(csv.DictReader(open(p, encoding="utf-8", newline=""), **k))

    # -- what belongs to the two test sets
    gold_ids, gold_text, held_keys = set(), set(), []
    apc = os.path.join(root, "arguments-pro-con")
    for p in glob.glob(os.path.join(apc, "**", "*.qrels"), recursive=True):
        for l in open(p, encoding="utf-8"):
            f = l.split()
            if len(f) >= 4 and f[3] != "0":
                gold_ids.add(f[2])
    for p in glob.glob(os.path.join(apc, "**", "corpus*.jsonl"), recursive=True):
        for r in jl(p):
            if r.get("_id") in gold_ids:
                gold_text |= shingles(clean(r.get("text", "")))
    def add_held(s):
        if isinstance(s, str) and 3 <= len(s.split()) <= 40:
            held_keys.append(key(s))
    for p in [os.path.join(root, x, "questions.jsonl") for x in ("arguments-pro-con", "contentious-wiki")]:
        for r in jl(p):
            for v in r.values():
                for s in (v if isinstance(v, list) else [v]):
                    add_held(s)
    held_keys = list(set(k for k in held_keys if k))
    print("held-out test statements:", len(held_keys), "gold texts' shingles:", len(gold_text), "gold ids:", len(gold_ids))

    # -- parallax-labels: clusters of near questions, then train/dev/test by cluster
    lab = []
    for r in jl(os.path.join(d, "parallax-labels", "labels.jsonl")):
        if r["pro_con_test"] or r["wiki_test"]:
            left["parallax-labels: marked pro_con_test or wiki_test"] += 1
        else:
            lab.append(r)
    qs = {}
    for r in lab:
        qs.setdefault((r["a"], r["b"]), key(r["a"]) | key(r["q"]) if len(key(r["a"])) < 2 else key(r["a"]))
    names = list(qs)
    parent = {n: n for n in names}

    def find(x):
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x
    for i, x in enumerate(names):
        for y in names[:i]:
            if near(qs[x], qs[y], 0.5):
                parent[find(x)] = find(y)
    qmap = {}
    for r in lab:
        k = find((r["a"], r["b"]))
        if r["q"] in qmap:
            parent[find(k)] = find(qmap[r["q"]])
        qmap[r["q"]] = find(k)
    groups = collections.defaultdict(list)
    for n in names:
        groups[find(n)].append(n)
    rows_of = collections.Counter((r["a"], r["b"]) for r in lab)
    top = {n: sample_topic(" ".join(n)) for n in names}
    order = sorted(groups, key=str)
    rng.shuffle(order)
    total = sum(rows_of.values())
    split, got = {}, collections.Counter()
    sizes = sorted((sum(rows_of[n] for n in groups[g]) for g in order), reverse=True)
    print("label question clusters:", len(order), "largest (rows):", sizes[:5])
    for g in order:
        size = sum(rows_of[n] for n in groups[g])
        if any(top[n] for n in groups[g]):
            s = "test"          # a sample topic trains nothing, nor tunes; it may be tested on
        elif size > 100:
            s = "train"
        elif got["dev"] < 0.09 * total:
            s = "dev"
        elif got["test"] < 0.16 * total:
            s = "test"
        else:
            s = "train"
        if not any(top[n] for n in groups[g]):
            got[s] += size
        for n in groups[g]:
            split[n] = s
    eval_keys = [qs[n] for n in names if split[n] != "train"]
    eval_text = set()
    for r in lab:
        if split[(r["a"], r["b"])] != "train":
            eval_text |= shingles(clean(r["doc"]))
    train_keys_of = {}
    near_held, near_eval = nearest(held_keys), nearest(eval_keys)

    def topic_ok(stmt, src):
        """May a statement train? (not the sample's topic, not of the test sets, not near a dev or test question)"""
        if stmt in train_keys_of:
            why = train_keys_of[stmt]
        else:
            k = key(stmt)
            t = sample_topic(stmt)
            if t:
                why = ("sample", t)
            elif near_held(k, 0.5):
                why = ("held", "statement of arguments-pro-con or contentious-wiki")
            elif near_eval(k, 0.5):
                why = ("split", "statement near a dev or test question")
            else:
                why = None
            train_keys_of[stmt] = why
        if why:
            if why[0] == "sample":
                sample_left[why[1]] += 1
                left[f"{src}: topic of the sample"] += 1
            else:
                left[f"{src}: {why[1]}"] += 1
        return why is None

    def text_ok(text, src):
        t = about_sample(text)
        if t:
            sample_left[t] += 1
            left[f"{src}: topic of the sample"] += 1
            return False
        s = shingles(text)
        if s & gold_text:
            left[f"{src}: text is gold in arguments-pro-con"] += 1
            return False
        if len(s & eval_text) > 3:
            left[f"{src}: text in dev or test"] += 1
            return False
        return True

    out = []
    gid = [0]

    def group(items, src, topic, weight=1.0, split_="train", two=True, extra=None):
        """items: [(passage, statement, label)]; the rows of a group go into one batch. What may not train is left out here."""
        if split_ == "train" and not src.startswith("labels") and not all(
                topic_ok(s, src) and text_ok(p, src) for p, s, _ in items):
            return
        gid[0] += 1
        for p, s, l in items:
            r = {"passage": p, "statement": s, "label": l, "source": src, "weight": weight, "split": split_,
                 "topic": topic, "group": gid[0]}
            if extra:
                r.update(extra)
            out.append(r)

    def stance(text, stmt, pro, src, weight=1.0, neg=None):
        p, n = both_forms(stmt, rng, neg)
        group([(text, p, "supports" if pro else "opposes"), (text, n, "opposes" if pro else "supports")], src, stmt, weight)

    # parallax-labels
    n_over = 0
    for r in lab:
        sp = split[(r["a"], r["b"])]
        text = clean(r["doc"])
        full = f"{text} {clean(r['title'])}".strip() if r["title"] else text
        if sp == "train":
            if top[(r["a"], r["b"])]:
                sample_left[top[(r["a"], r["b"])]] += 1
                continue
            if len(shingles(text) & eval_text) > 3:
                n_over += 1
                left["parallax-labels: passage also in dev or test"] += 1
                continue
            t = about_sample(text)
            if t:
                sample_left[t] += 1
                left["parallax-labels: passage about a topic of the sample"] += 1
                continue
        elif top[(r["a"], r["b"])]:
            sample_left[top[(r["a"], r["b"])]] += 1
            left["parallax-labels: topic of the sample (kept for test only)"] += 1
        L = r["label"]
        la = "supports" if "A" in L else "opposes" if L == "B" else "neither"
        lb = "supports" if "B" in L else "opposes" if L == "A" else "neither"
        w = {3: 1.0, 2: 0.8, 1: 0.4}[r["conf"]]
        group([(full, r["a"], la), (full, r["b"], lb)], "labels-" + r["src"], r["q"], w, sp,
              extra={"row": r["id"], "two": L, "conf": r["conf"], "words": len(text.split()), "ds": r["ds"],
                     "sample_topic": bool(top[(r["a"], r["b"])])})

    # further labels on passages of these sets, for statements that train (found.py)
    for r in found.labels(root, clean):
        label = {"A": ("supports", "opposes"), "B": ("opposes", "supports"), "AB": ("supports",) * 2, "-": ("neither",) * 2}[r["label"]]
        group([(r["text"], r[k], l) for k, l in zip("ab", label)], "retrieved" if r.get("retrieved") else "found", r["a"],
              {3: 1.0, 2: 0.8, 1: 0.4}[r["conf"]],
              extra={"row": r["ref"], "two": r["label"], "conf": r["conf"], "words": len(r["text"].split())})

    # polarity: short crowd arguments
    argq = collections.defaultdict(list)
    for r in cs(os.path.join(d, "ibm-argq-30k", "arg_quality_rank_30k.csv")):
        s = sentence(r["topic"])
        if float(r["stance_WA_conf"] or 0) < 0.8 or r["stance_WA"] not in ("1", "-1") or not topic_ok(s, "ibm-argq-30k"):
            continue
        t = clean(r["argument"])
        if len(t.split()) >= 5 and text_ok(t, "ibm-argq-30k"):
            argq[s].append((t, r["stance_WA"] == "1"))
    tops = sorted(argq)
    for s in tops:
        for t, pro in argq[s]:
            stance(t, s, pro, "argq")
    # two or three arguments of one side joined: a passage
    for s in tops:
        for pro in (True, False):
            x = [t for t, q in argq[s] if q == pro]
            rng.shuffle(x)
            for i in range(0, min(len(x) - 3, 60), 3):
                stance(" ".join(y[:1].upper() + y[1:] + ("" if y.endswith(".") else ".") for y in x[i:i + 3]), s, pro, "argq-long")
    for s in tops:      # silence: another topic's argument
        for _ in range(12):
            o = rng.choice([x for x in tops if x != s])
            t, _q = rng.choice(argq[o])
            p, n = both_forms(s, rng)
            group([(t, p, "neither"), (t, n, "neither")], "argq-other", s, 0.7)
    # key points
    for n in ("kpm_data-{}_train", "kpm_data-{}_dev", "test_data-{}_test"):
        A = {r["arg_id"]: r for r in cs(os.path.join(d, "ibm-kpa-2021", n.format("arguments") + ".csv"))}
        K = {r["key_point_id"]: r for r in cs(os.path.join(d, "ibm-kpa-2021", n.format("key_points") + ".csv"))}
        bytop = collections.defaultdict(list)
        for r in K.values():
            bytop[(r["topic"], r["stance"])].append(r["key_point"])
        for r in cs(os.path.join(d, "ibm-kpa-2021", n.format("labels") + ".csv")):
            x, k = A[r["arg_id"]], K[r["key_point_id"]]
            if not topic_ok(sentence(x["topic"]), "ibm-kpa-2021"):
                continue
            t = clean(x["argument"])
            if not text_ok(t, "ibm-kpa-2021"):
                continue
            if r["label"] == "1":
                opp = bytop[(x["topic"], "-1" if x["stance"] == "1" else "1")]
                it = [(t, sentence(k["key_point"]), "supports")]
                ng = negate(sentence(k["key_point"]))
                if ng and rng.random() < NEG:
                    it.append((t, ng, "opposes"))
                group(it, "kpa", x["topic"])
            elif rng.random() < 0.25:
                group([(t, sentence(k["key_point"]), "neither")], "kpa-other", x["topic"])
        for r in A.values():
            s = sentence(r["topic"])
            if r["topic"].startswith(("Routine", "Social media platforms", "The USA")) and topic_ok(s, "ibm-kpa-2021"):
                stance(clean(r["argument"]), s, r["stance"] == "1", "argq")
    # IAM
    for f in ("train", "dev", "test"):
        for l in open(os.path.join(d, "iam", "stance", f + ".txt"), encoding="utf-8"):
            c = l.rstrip("\n").split("\t")
            s = question(c[1])
            if s and topic_ok(s, "iam") and text_ok(clean(c[2]), "iam"):
                stance(clean(c[2]), s, c[4] == "1", "iam")
    for f in ("dev", "test"):
        for l in open(os.path.join(d, "iam", "claims", f + ".txt"), encoding="utf-8"):
            c = l.rstrip("\n").split("\t")
            s = question(c[1])
            t = clean(c[2])
            if c[0] == "O" and s and len(t.split()) >= 12 and rng.random() < 0.25 and topic_ok(s, "iam") and text_ok(t, "iam"):
                p, n = both_forms(s, rng)
                group([(t, rng.choice([p, n]), "neither")], "iam-silent", s, 0.5)
    # Room for Debate comments
    rfd, seen = [], set()
    for r in cs(os.path.join(d, "ukp-rfd-stance", "exported-3365-stance-taking-arguments.tsv"), delimiter="\t", quoting=csv.QUOTE_NONE):
        s1, s2 = sentence(r["stance1"]), sentence(r["stance2"])
        t = clean(r["text"])
        if r["annotatedSarcastic"] == "true" or len(t.split()) < 12 or min(len(s1.split()), len(s2.split())) < 3:
            continue
        if not topic_ok(s1, "ukp-rfd-stance") or not topic_ok(s2, "ukp-rfd-stance") or not text_ok(t, "ukp-rfd-stance"):
            continue
        pro = r["annotatedStance"] == r["stance1"]
        rfd.append((t, s1, s2, r["title"] + r["url"]))
        t = window(t, rng)
        group([(t, s1, "supports" if pro else "opposes"), (t, s2, "opposes" if pro else "supports")], "rfd", r["url"])
    for i, (t, s1, s2, u) in enumerate(rfd):
        o = rng.choice(rfd)
        if o[3] != u and i % 3 == 0:
            t = window(t, rng)
            group([(t, rng.choice(o[1:3]), "neither")], "rfd-other", o[3], 0.7)
    # Perspectrum
    pool = {p["pId"]: p["text"] for p in json.load(open(os.path.join(d, "perspectrum", "perspective_pool_v1.0.json"), encoding="utf-8"))}
    P = json.load(open(os.path.join(d, "perspectrum", "perspectrum_with_answers_v1.0.json"), encoding="utf-8"))
    ok = []
    for c in P:
        s = sentence(clean(c["text"]))
        if len(s.split()) < 3 or not topic_ok(s, "perspectrum"):
            continue
        ok.append((c, s))
        for g in c["perspectives"]:
            if g["stance_label_3"] not in ("SUPPORT", "UNDERMINE"):
                continue
            for pid in g["pids"][:2]:
                t = clean(pool[pid])
                if len(t.split()) >= 4 and text_ok(t, "perspectrum"):
                    stance(t, s, g["stance_label_3"] == "SUPPORT", "perspectrum")
    for c, s in ok:
        o, _ = rng.choice(ok)
        if o is not c and o["perspectives"]:
            t = clean(pool[rng.choice(o["perspectives"])["pids"][0]])
            p, n = both_forms(s, rng)
            group([(t, rng.choice([p, n]), "neither")], "perspectrum-other", s, 0.7)
    # debate paragraphs
    bycl = collections.defaultdict(list)
    for r in jl(os.path.join(d, "debate-pro-con-raw", "pairs.jsonl")):
        s, t = sentence(clean(r["claim"])), clean(r["text"])
        if len(t.split()) < 20 or len(s.split()) < 3 or not topic_ok(s, "debate-pro-con-raw") or not text_ok(t, "debate-pro-con-raw"):
            continue
        bycl[s].append((t, r["side"] == "for", sentence(clean(r["perspective"]))))
    cl = sorted(bycl)
    for s in cl:
        for t, pro, per in bycl[s]:
            stance(window(t, rng), s, pro, "debate")
            if len(per.split()) >= 5 and not per.endswith(":.") and not sample_topic(per):
                it = [(window(t, rng), per, "supports")]
                ng = negate(per)
                if ng and rng.random() < NEG:
                    it.append((it[0][0], ng, "opposes"))
                group(it, "debate-point", s)
                o = rng.choice(bycl[s])
                if o[0] != t and o[1] == pro and rng.random() < 0.5:
                    group([(window(o[0], rng), per, "neither")], "debate-point-other", s, 0.5)
            if rng.random() < 0.35:
                o = rng.choice(bycl[rng.choice(cl)])
                if o not in bycl[s]:
                    p, n = both_forms(s, rng)
                    group([(window(o[0], rng), rng.choice([p, n]), "neither")], "debate-other", s, 0.7)
    # arguana-clean
    byth = collections.defaultdict(list)
    for r in jl(os.path.join(d, "arguana-clean", "arguments.jsonl")):
        s, t = sentence(clean(r["thesis"])), clean(r["text"])
        if s.endswith("?.") or len(t.split()) < 20 or not topic_ok(s, "arguana-clean") or not text_ok(t, "arguana-clean"):
            continue
        byth[s].append((t, r["stance_to_thesis"] == "pro", clean(r["title"] or "")))
    th = sorted(byth)
    for s in th:
        for t, pro, title in byth[s]:
            stance(window(t, rng), s, pro, "arguana")
            if len(title.split()) >= 6 and not title.endswith(":") and not sample_topic(title):
                ts = sentence(title)
                it = [(window(t, rng, 70, 110), ts, "supports")]
                ng = negate(ts)
                if ng and rng.random() < NEG:
                    it.append((it[0][0], ng, "opposes"))
                group(it, "arguana-point", s)
            if rng.random() < 0.25:
                o = rng.choice(byth[rng.choice(th)])
                if o not in byth[s]:
                    p, n = both_forms(s, rng)
                    group([(window(o[0], rng), rng.choice([p, n]), "neither")], "arguana-other", s, 0.7)
    # entailment
    m3 = {"entailment": "supports", "contradiction": "opposes", "neutral": "neither"}
    for n, cap in (("mnli-dev", 20000), ("snli-dev", 5000), ("sick-train", 3000), ("commitment_bank-train", 250), ("rte-train", 2490), ("scitail-dev", 2126)):
        R = cs(os.path.join(d, "nli-small", n + ".csv"))
        rng.shuffle(R)
        R = [(clean(r["premise"]), clean(r["hypothesis"]), r["label"]) for r in R]
        R = [(p, h, m3[l]) for p, h, l in R if l in m3 and len(h.split()) >= 3 and not sample_topic(h)
             and not (n in ("rte-train", "scitail-dev") and negate(h) is None)][:cap]
        for it in paired(R, lambda r: r[0]):
            ng = negate(it[0][1]) if len(it) == 1 and it[0][2] == "supports" else None
            if ng and rng.random() < NEG:
                it.append((it[0][0], ng, "opposes"))
            group(it, n.split("-")[0] + ("" if len(it) == 2 else "-alone"), "nli")
    # entailment, the larger sets
    for n in ("lingnli", "semi-automatic-wiki", "counterfactual-snli", "control"):
        R = [(clean(r["premise"]), clean(r["hypothesis"]), m3.get(r["label"])) for r in cs(os.path.join(d, "nli-more", n + ".csv"))]
        R = [r for r in R if r[2] and len(r[1].split()) >= 3 and not sample_topic(r[1])]
        rng.shuffle(R)
        same = 1 if n == "counterfactual-snli" else 0
        for it in paired(R, lambda r: r[same]):
            group(it, n + ("" if len(it) == 2 else "-alone"), "nli")
    R = []
    for r in cs(os.path.join(d, "nli-more", "defeasible.csv")):
        p, u, h = clean(r["premise"]), clean(r["update"]), sentence(clean(r["hypothesis"]))
        if len(h.split()) >= 3 and not sample_topic(h):
            R.append((p, u, h, "supports" if r["label"] == "strengthener" else "opposes"))
    rng.shuffle(R)
    for it in paired(R, lambda r: (r[0], r[2])):
        behind = rng.random() < 0.5
        group([(f"{sentence(p)} {u}" if behind else u, h, l) for p, u, h, l in it], "defeasible" if len(it) == 2 else "defeasible-alone", "nli")
    v3 = {"Supports": "supports", "Refutes": "opposes", "Neutral": "neither"}
    for n in ("dev", "test"):
        for r in cs(os.path.join(d, "healthver", f"healthver_{n}.csv")):
            if topic_ok(r["claim"], "healthver"):
                group([(clean(r["evidence"]), sentence(clean(r["claim"])), v3[r["label"]])], "healthver", r["question"])
    c3 = {"SUPPORTS": "supports", "REFUTES": "opposes", "NOT_ENOUGH_INFO": "neither"}
    for r in jl(os.path.join(d, "climate-fever", "climate-fever.jsonl")):
        if topic_ok(r["claim"], "climate-fever"):
            for e in r["evidences"]:
                if e["evidence_label"] != "NOT_ENOUGH_INFO" or rng.random() < 0.4:
                    group([(clean(e["evidence"]), sentence(clean(r["claim"])), c3[e["evidence_label"]])], "climate-fever", r["claim"])
    R = [r for r in jl(os.path.join(d, "fever-nli-dev", "dev.jsonl")) if r["label"] == "entailment"]
    rng.shuffle(R)
    for r in R[:2500]:
        h = sentence(clean(r["claim"]))
        ng = negate(h)
        p = " ".join(clean(r["evidence"]).split()[:110])
        if ng and not sample_topic(h):
            group([(p, h, "supports"), (p, ng, "opposes")], "fever", "fever")
    for n in ("dev", "test"):
        for r in jl(os.path.join(d, "wice", f"oracle_chunks-claim-{n}.jsonl")):
            t = clean(" ".join(r["evidence"]))
            if r["label"] == "supported" and len(t.split()) <= 160 and negate(r["claim"]) and not sample_topic(r["claim"]):
                group([(t, clean(r["claim"]), "supports"), (t, negate(clean(r["claim"])), "opposes")], "wice", "wice")

    # contrast sets written for this: every passage with two forms of its question's statements and the pair on another point
    wr = random.Random(a.seed + 1)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "written.jsonl.gz")
    if os.path.exists(path):
        for i, q in enumerate(json.loads(l) for l in gzip.open(path, "rt", encoding="utf-8")):
            where = "check" if i % 12 == 0 else "train"
            forms = [(x, "side") for x in q["pairs"]] + [(q["other"], "other")]
            forms = [(x, k) for x, k in forms if all(topic_ok(sentence(clean(s)), "written") for s in x)]
            if not topic_ok(q["question"], "written"):
                continue
            for p in q["passages"]:
                t = clean(p["text"])
                if not text_ok(t, "written"):
                    continue
                for (x, y), k in forms:
                    side = p[k]
                    label = {"A": ("supports", "opposes"), "B": ("opposes", "supports"), "AB": ("supports",) * 2,
                             "-": ("neither",) * 2}[side]
                    it = [(t, sentence(clean(s)), l) for s, l in zip((x, y), label)]
                    wr.shuffle(it)
                    group(it, "written" if k == "side" else "written-other", q["question"], 1.0, where,
                          extra={"two": side, "row": f"w{i}"})

    # passages as the web has them, written for this and labelled by other readers; one question in five is kept aside, but for later ones that all train
    for x in (json.loads(l) for l in gzip.open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "web.jsonl.gz"), "rt", encoding="utf-8")):
        st, t = [sentence(clean(s)) for s in x["statements"]], clean(" ".join(y for y in (x["text"], x["title"]) if y))
        if not all(topic_ok(s, "web") for s in st) or not topic_ok(x["question"], "web") or not text_ok(t, "web"):
            continue
        where = "check" if zlib.crc32(x["question"].encode()) % 5 == 0 and not x.get("trains") else "train"
        label = {"A": ("supports", "opposes"), "B": ("opposes", "supports"), "AB": ("supports",) * 2, "-": ("neither",) * 2}[x["label"]]
        group([(t, s, l) for s, l in zip(st, label)], "web", x["question"], 1.0, where,
              extra={"two": x["label"], "row": f"web{gid[0]}", "register": x["register"]})

    # minimal pairs: the passages of a line are alike and take other sides, so the whole line is one group. Of contrast.jsonl.gz, one question in
    # eight is kept aside, by a sum over its words. All of contrast-trains.jsonl.gz trains, so that later detectors are measured on the same passages.
    lines, own = [], os.path.dirname(os.path.abspath(__file__))
    for name, trains in (("contrast.jsonl.gz", False), ("contrast-trains.jsonl.gz", True)):
        with gzip.open(os.path.join(own, name), "rt", encoding="utf-8") as f:
            lines += [json.loads(l) | {"trains": trains} for l in f]
    trained = nearest([key(r["statement"]) for r in out if r["split"] == "train" and r["source"].startswith("written")])
    aside = {q: zlib.crc32(q.strip().lower().encode()) % 8 == 0 for q in {x["question"] for x in lines if not x["trains"]}}
    aside = {q: on and not any(trained(key(sentence(s)), 0.6) for x in lines if x["question"] == q for s in x["statements"][:1])
             for q, on in aside.items()}
    kept_aside = nearest([key(sentence(x["statements"][0])) for x in lines if aside.get(x["question"]) and not x["trains"]])
    for x in lines:
        where = "check" if aside.get(x["question"]) and not x["trains"] else "train"
        st = [sentence(clean(s)) for s in x["statements"]]
        if where == "train" and (aside.get(x["question"]) or kept_aside(key(st[0]), 0.5)):
            left["contrast: near a question kept aside"] += 1
            continue
        if not all(text_ok(clean(p["text"]), "contrast") for p in x["passages"]):
            continue
        # some lines have other statements too, which the same passages decide: a group of its own
        for st in (st, [sentence(clean(s)) for s in x.get("again", [])]):
            if len(st) != 2 or not all(topic_ok(s, "contrast") for s in st):
                continue
            if where == "train" and kept_aside(key(st[0]), 0.5):
                left["contrast: near a question kept aside"] += 1
                continue
            gid[0] += 1
            for p in x["passages"]:
                label = {"A": ("supports", "opposes"), "B": ("opposes", "supports"), "AB": ("supports",) * 2, "-": ("neither",) * 2}[p["side"]]
                both = [{"passage": clean(p["text"]), "statement": s, "label": l, "source": ("aimed-" if x["trains"] else "contrast-") + x["kind"],
                         "weight": 1.0, "split": where, "topic": x["question"], "group": gid[0], "two": p["side"], "row": f"c{gid[0]}",
                         "kind": x["kind"], "text_type": x.get("text_type", ""), "words": len(p["text"].split())} for s, l in zip(st, label)]
                if zlib.crc32(p["text"].encode()) % 2:      # which statement comes first says nothing
                    both.reverse()
                    for r in both:
                        r["two"] = {"A": "B", "B": "A"}.get(r["two"], r["two"])
                out += both

    # passages of the found labels turned round, each in one group with the passage that it was (found.py)
    sides = {"A": ("supports", "opposes"), "B": ("opposes", "supports")}
    for r in found.edited(root, clean):
        was = {"A": "B", "B": "A"}[r["label"]]
        group([(t, r[k], l) for t, side in ((r["before"], was), (r["text"], r["label"])) for k, l in zip("ab", sides[side])], "edited", r["a"],
              extra={"row": r["ref"]})

    with open(a.out + ".new", "w", encoding="utf-8") as f:
        for r in out:
            f.write(json.dumps(r, ensure_ascii=False) + "\n")
    os.replace(a.out + ".new", a.out)
    print("\nleft out:")
    for k, v in sorted(left.items()):
        print(f"  {v:6d}  {k}")
    print("\nleft out of training as topics of the sample:", sum(sample_left.values()))
    for k, v in sorted(sample_left.items()):
        print(f"  {v:6d}  {k}")
    print("\npairs kept (source, split, label):")
    c = collections.Counter((r["source"], r["split"], r["label"]) for r in out)
    for k in sorted({(s, p) for s, p, _ in c}):
        print(f"  {k[0]:20s} {k[1]:6s}", {l: c[(*k, l)] for l in ("supports", "opposes", "neither")})
    qn = {s: len({r["topic"] for r in out if r["source"].startswith("labels") and r["split"] == s}) for s in ("train", "dev", "test")}
    print("label questions:", qn)
    ev = {r["statement"] for r in out if r["split"] == "test"}
    print("statements shared between test and train:", len(ev & {r["statement"] for r in out if r["split"] == "train"}))


if __name__ == "__main__":
    main()
