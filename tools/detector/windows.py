"""A passage as windows of sentences, and what the windows say together.

A passage is read in windows of two sentences. The label is the passage's, so the windows' logits are joined:
log Σ exp over the windows of (z_supports − z_neither), the same for opposes, and 0 for neither.
"""
import re

import numpy as np

SENTENCE = re.compile(r"(?<=[.!?])[\"'”’)]*\s+")


def sentences(text):
    """Whole sentences; what has fewer than five words stays with the sentence before it."""
    ends = [m.end() for m in SENTENCE.finditer(text)] + [len(text)]
    out, at = [], 0
    for e in ends:
        s = text[at:e].strip()
        if s and out and len(s.split()) < 5:
            out[-1] += " " + s
        elif s:
            out.append(s)
        at = e
    return out


def windows(text, size=2, stride=1, first=0, most=6):
    """Runs of `size` sentences, one every `stride`, at most `most`. size 0: the whole text. `first`: a shorter first window."""
    s = sentences(text)
    if size == 0 or len(s) <= size:
        return [text]
    out = [" ".join(s[:first])] if first else []
    at = first
    while at < len(s):
        if at and len(s) - at < size and stride < size and at + size - stride >= len(s):
            break                   # everything in it has been read
        out.append(" ".join(s[at:at + size]))
        at += stride
    if len(out) > most:             # the first ones, and the rest in one
        keep = np.unique(np.linspace(0, len(out) - 1, most).round().astype(int))
        out = [out[i] for i in keep]
    return out


def together(z, start):
    """Logits of passages from the logits of their windows; `start[i]` is the first window of passage i. Neither is 0."""
    d = z - z[..., 2:]
    out = np.zeros((len(start),) + z.shape[1:])
    for i, a in enumerate(start):
        w = d[a:start[i + 1] if i + 1 < len(start) else len(z)]
        top = w.max(0)
        out[i] = top + np.log(np.exp(w - top).sum(0))
    out[..., 2] = 0.0
    return out
