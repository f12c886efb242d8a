"""SQuAD's normalisation, and where an answer stands in a text."""
import re
import string

DROP = str.maketrans("", "", string.punctuation)


def normalised(text):
    text = text.lower().translate(DROP)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def exact(answer, gold):
    return normalised(answer) in {normalised(g) for g in gold}


def holds(text, gold):
    t = f" {normalised(text)} "
    return any(f" {normalised(g)} " in t for g in gold if normalised(g))


def places(offsets, begins, ends, text, gold, longest):
    """Token spans (i, j) whose words are an answer, as exact match takes it."""
    want = {normalised(g) for g in gold} - {""}
    lengths = {len(w.split()) for w in want}
    out = []
    starts = [i for i, b in enumerate(begins) if b]
    for i in starts:
        for j in range(i, min(len(offsets), i + longest)):
            if not ends[j]:
                continue
            said = text[offsets[i][0]:offsets[j][1]]
            n = normalised(said)
            if len(n.split()) > max(lengths, default=0) + 1:
                break
            # the shortest wording: no article or sign at either end
            if n in want and normalised(text[offsets[i][0]:offsets[i][1]]) and normalised(text[offsets[j][0]:offsets[j][1]]):
                out.append((i, j))
    return out
