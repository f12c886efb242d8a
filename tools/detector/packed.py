"""Pairs as tokens, and batches of them.

A pair is a passage and a statement. A row of a batch holds a passage with one statement or with two (model.py): two pairs of a batch with one
passage share a row, unless they are to be read apart. A passage is read whole, or in windows of sentences (windows.py): then it has
several pieces, each with a row of its own, and its logits are those of the pieces together. It can have more than one reading; each batch takes one
of them at random. Every text is tokenised once.
"""
import random
from array import array

import numpy as np
import torch

import common
import model as M
import windows

BF16 = True      # on a CPU, what train.py measured to be the faster


def readings(text, size):
    """The ways to read a passage: in windows, in windows that begin a sentence later, whole."""
    if not size or len(windows.sentences(text)) <= size:
        return [[text]]
    return [windows.windows(text, size, size), windows.windows(text, size, size, first=1), [text]]


class Packed:
    def __init__(self, rows, tok, max_tokens, device="cpu", window=0):
        read = {}
        for r in rows:
            if r["passage"] not in read:
                read[r["passage"]] = readings(r["passage"], window)
        number = {t: k for k, t in enumerate({r["statement"]: 0 for r in rows} | {w: 0 for v in read.values() for x in v for w in x})}
        texts, self.texts = list(number), []
        for i in range(0, len(texts), 4096):
            self.texts += [array("i", e.ids) for e in tok.encode_batch(texts[i:i + 4096], add_special_tokens=False)]
        self.marks, self.max_tokens, self.device = M.marks(tok), max_tokens, device
        pieces = {t: [[number[w] for w in x] for x in v] for t, v in read.items()}
        self.pieces = [pieces[r["passage"]] for r in rows]
        self.statement = np.array([number[r["statement"]] for r in rows])
        known = {}
        self.passage = np.array([known.setdefault((r["group"], r["passage"]), len(known)) for r in rows])
        self.label = np.array([common.CLASSES.index(r["label"]) if r["label"] else -1 for r in rows])
        put = lambda x: torch.as_tensor(x).to(device)
        self.y = put(self.label)
        self.weight = put(np.array([r["weight"] for r in rows], dtype=np.float32))
        # the cosine about its middle; nothing where it is not known
        self.cos = put(np.array([r["cos"] - 0.5 if "cos" in r else 0.0 for r in rows], dtype=np.float32))
        self.step = 8 if device != "cpu" else 1     # widths that suit the GPU's kernels

    def reading(self, pair, k=0):
        return self.pieces[pair][k % len(self.pieces[pair])]

    def together(self, pairs, apart=False):
        """The pairs that share a row: two of one passage."""
        out, waits = [], {}
        for i in pairs:
            other = None if apart else waits.pop(self.passage[i], None)
            if other is None:
                out.append([i])
                waits[self.passage[i]] = out[-1]
            else:
                other.append(i)
        return [tuple(x) for x in out]

    def size(self, row, k=0):
        """The tokens of every piece of a row."""
        before, between, after = map(len, self.marks)
        own = [min(64, len(self.texts[self.statement[i]])) + after for i in row]
        room = self.max_tokens - before - between - max(own)
        return [before * len(row) + min(room, len(self.texts[t])) + between + sum(own) for t in self.reading(row[0], k)]

    def tokens(self, rows):
        """Token ids, positions and owners of rows (piece, its pairs), on the device."""
        made = [M.row(self.texts[t].tolist(), [self.texts[self.statement[i]].tolist() for i in row], self.marks, self.max_tokens) for t, row in rows]
        width = -(-max(len(ids) for ids, _, _ in made) // self.step) * self.step
        padded = np.tile(np.array([0, 0, -1])[:, None, None], (1, len(made), width))
        for i, row in enumerate(made):
            padded[:, i, :len(row[0])] = row
        return tuple(torch.as_tensor(padded).to(self.device))

    def logits(self, m, rows, k):
        """Logits of the pairs in rows read in their `k`-th way, in their order; neither is 0 wherever a passage has more than one piece."""
        pieces = [[(t, row) for t in self.reading(row[0], x)] for row, x in zip(rows, k)]
        kind = torch.device(self.device).type
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=BF16):
            z = m(*self.tokens([p for x in pieces for p in x])).float()
        first, at = 0, []
        for row, x in zip(rows, pieces):
            at += [range(first + slot, first + slot + len(row) * len(x), len(row)) for slot in range(len(row))]
            first += len(row) * len(x)
        most = max(map(len, at))
        if most == 1:
            return z
        at = torch.tensor([[*x] + [len(z)] * (most - len(x)) for x in at]).to(z.device)
        d = torch.cat([z - z[:, 2:], torch.full((1, 3), -1e4, device=z.device)])
        joined = torch.logsumexp(d[at], 1)
        return torch.cat([joined[:, :2], torch.zeros_like(joined[:, 2:])], 1)


def groups_of(rows, src):
    """Per source its groups: the row numbers that go into one batch, and whether the passage is silent on both statements."""
    by, groups = {}, {}
    for i, r in enumerate(rows):
        by.setdefault(r["group"], []).append(i)
    for g in by.values():
        groups.setdefault(src(rows[g[0]]), []).append((tuple(g), len(g) == 2 and rows[g[0]].get("two") == "-"))
    return groups


def stream(groups, shares, seed):
    """Groups without end, with a factor on their weight: every source shuffled, gone through, shuffled again."""
    rng = random.Random(seed)
    names = [s for s in shares if groups.get(s)]
    w = [shares[s] for s in names]
    bag = {s: [] for s in names}
    while True:
        for s in rng.choices(names, w, k=1000):
            if not bag[s]:
                bag[s] = list(range(len(groups[s])))
                rng.shuffle(bag[s])
            yield groups[s][bag[s].pop()]


def batches(it, data, seed, tokens, most, alone, mega=40):
    """Groups of about the same length, some `tokens` a batch: of each its pairs, its rows, and the reading that it is drawn with. A share `alone` of
    the groups is read with one statement a row. A passage that is silent on both statements is then drawn with one of them, which counts double."""
    rng = random.Random(seed + 1)
    while True:
        pool, total = [], 0
        while total < mega * tokens:
            g, silent = next(it)
            k, apart, factor = rng.randrange(6), rng.random() < alone, 1.0
            if apart and silent:
                g, factor = (rng.choice(g),), 2.0
            rows = data.together(g, apart)
            n = [x for row in rows for x in data.size(row, k)]
            pool.append((max(n) + rng.random() * 6, max(n), len(n), (rows, factor, k)))
            total += sum(n)
        pool.sort(key=lambda x: x[0])
        out, cur, width, pieces = [], [], 0, 0
        for _, n, k, g in pool:     # padding counts, for it is computed too
            if cur and (max(width, n) * (pieces + k) > tokens * 1.05 or pieces + k > most):
                out.append(cur)
                cur, width, pieces = [], 0, 0
            cur.append(g)
            width, pieces = max(width, n), pieces + k
        out.append(cur)
        rng.shuffle(out)
        yield from out


@torch.no_grad()
def score(m, data, idx, w=None, tokens=4800, reading=0, apart=False):
    """Logits of pairs, joined with the cosine where `w` is given; in the order of `idx`."""
    was = m.training
    m.eval()
    idx = np.asarray(idx)
    place = {int(i): k for k, i in enumerate(idx)}
    assert len(place) == len(idx), "a pair is asked for twice"
    rows = sorted(data.together(place, apart), key=lambda row: -max(data.size(row, reading)))
    size, many = [max(data.size(row, reading)) for row in rows], [len(data.reading(row[0], reading)) for row in rows]
    z, at = np.zeros((len(idx), 3), dtype=np.float32), 0
    while at < len(rows):
        k, n = at, 0
        while k < len(rows) and (k == at or (n + many[k]) * size[at] <= tokens):
            n += many[k]
            k += 1
        part = rows[at:k]
        y = data.logits(m, part, [reading] * len(part))
        pairs = [i for row in part for i in row]
        i = torch.as_tensor(pairs).to(data.device)
        z[[place[p] for p in pairs]] = (y if w is None else joined(y, data.cos[i], w)).cpu().numpy()
        at = k
    m.train(was)
    return z


def joined(z, cos, w):
    """The logits with the cosine: both sides are likelier where passage and statement are near."""
    return torch.cat([z[:, :2] + (w * cos)[:, None], z[:, 2:]], 1)
