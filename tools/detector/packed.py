"""Pairs as tokens in one flat array on the device, and batches drawn from it by row number.

A row is a (passage, statement) pair. It is read whole, or in windows of sentences (windows.py): then it has several pieces, and
its logits are those of the pieces together. A row can have more than one reading; each batch takes one of them at random.
Every text is tokenised once, a batch is one gather, and only numbers travel to the device.
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
        marks, known, read = M.marks(tok), {}, {}
        for r in rows:
            if r["passage"] not in read:
                read[r["passage"]] = readings(r["passage"], window)
        texts = list({r["statement"] for r in rows} | {w for v in read.values() for x in v for w in x})
        for i in range(0, len(texts), 4096):
            part = texts[i:i + 4096]
            known.update((t, e.ids) for t, e in zip(part, tok.encode_batch(part, add_special_tokens=False)))
        flat, n, cut, self.pieces = array("i"), [], [], []
        for r in rows:
            self.pieces.append([])
            for reading in read[r["passage"]]:
                self.pieces[-1].append(range(len(n), len(n) + len(reading)))
                for w in reading:
                    ids, c = M.pair(known[w], known[r["statement"]], marks, max_tokens)
                    flat.extend(ids)
                    n.append(len(ids))
                    cut.append(c)
        self.n = np.array(n, dtype=np.int64)
        self.label = np.array([common.CLASSES.index(r["label"]) if r["label"] else -1 for r in rows])
        number = {}
        self.passage, self.statement = (np.array([number.setdefault(r[k], len(number)) for r in rows]) for k in ("passage", "statement"))
        start = np.concatenate([[0], np.cumsum(self.n)[:-1]])
        put = lambda x: torch.as_tensor(x).to(device)
        self.device, self.flat = device, put(np.array(flat, dtype=np.int32))
        self.start, self.length, self.cut = put(start), put(self.n), put(np.array(cut))
        self.y = put(self.label)
        self.weight = put(np.array([r["weight"] for r in rows], dtype=np.float32))
        # the cosine about its middle; nothing where it is not known
        self.cos = put(np.array([r["cos"] - 0.5 if "cos" in r else 0.0 for r in rows], dtype=np.float32))
        self.step = 8 if device != "cpu" else 1     # widths that suit the GPU's kernels

    def reading(self, row, k=0):
        return self.pieces[row][k % len(self.pieces[row])]

    def tokens(self, pieces):
        """Token ids, mask and types of pieces, on the device."""
        pieces = np.asarray(pieces)
        width = -(-int(self.n[pieces].max()) // self.step) * self.step
        i = torch.as_tensor(pieces).to(self.device)
        at = torch.arange(width, device=self.device)
        mask = (at < self.length[i][:, None]).long()
        ids = self.flat[(self.start[i][:, None] + at).clamp(max=len(self.flat) - 1)].long() * mask
        return ids, mask, (at >= self.cut[i][:, None]).long() * mask

    def logits(self, m, rows, k):
        """Logits of rows read in their `k`-th way; neither is 0 wherever a row has more than one piece."""
        pieces = [self.reading(r, x) for r, x in zip(rows, k)]
        kind = torch.device(self.device).type
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=BF16):
            z = m(*self.tokens([p for x in pieces for p in x])).float()
        most = max(map(len, pieces))
        if most == 1:
            return z
        at = np.full((len(rows), most), len(z))
        first = 0
        for i, x in enumerate(pieces):
            at[i, :len(x)] = range(first, first + len(x))
            first += len(x)
        d = torch.cat([z - z[:, 2:], torch.full((1, 3), -1e4, device=z.device)])
        joined = torch.logsumexp(d[torch.as_tensor(at).to(z.device)], 1)
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
            g, silent = groups[s][bag[s].pop()]
            # silent for both: one of the two is enough, and counts double
            yield ((rng.choice(g),), 2.0) if silent else (g, 1.0)


def batches(it, data, seed, tokens, most, mega=40):
    """Groups of about the same length, some `tokens` a batch; every group with the reading that it is drawn with."""
    rng = random.Random(seed + 1)
    while True:
        pool, total = [], 0
        while total < mega * tokens:
            g, factor = next(it)
            k = rng.randrange(6)
            n = [data.n[p] for r in g for p in data.reading(r, k)]
            pool.append((max(n) + rng.random() * 6, int(sum(n)), len(n), (g, factor, k)))
            total += sum(n)
        pool.sort(key=lambda x: x[0])
        out, cur, size, pieces = [], [], 0, 0
        for _, n, k, g in pool:
            if cur and (size + n > tokens * 1.05 or pieces + k > most):
                out.append(cur)
                cur, size, pieces = [], 0, 0
            cur.append(g)
            size, pieces = size + n, pieces + k
        out.append(cur)
        rng.shuffle(out)
        yield from out


@torch.no_grad()
def score(m, data, idx, w=None, tokens=4800, reading=0):
    """Logits of rows, joined with the cosine where `w` is given; in the order of `idx`."""
    was = m.training
    m.eval()
    idx = np.asarray(idx)
    size = np.array([max(data.n[p] for p in data.reading(r, reading)) for r in idx])
    many = np.array([len(data.reading(r, reading)) for r in idx])
    order = np.argsort(-size, kind="stable")
    z, at = np.zeros((len(idx), 3), dtype=np.float32), 0
    while at < len(order):
        k, n = at, 0
        while k < len(order) and (k == at or (n + many[order[k]]) * size[order[at]] <= tokens):
            n += many[order[k]]
            k += 1
        part = order[at:k]
        y = data.logits(m, idx[part], [reading] * len(part))
        i = torch.as_tensor(idx[part]).to(data.device)
        z[part] = (y if w is None else joined(y, data.cos[i], w)).cpu().numpy()
        at = k
    m.train(was)
    return z


def joined(z, cos, w):
    """The logits with the cosine: both sides are likelier where passage and statement are near."""
    return torch.cat([z[:, :2] + (w * cos)[:, None], z[:, 2:]], 1)
