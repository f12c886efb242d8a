"""The tokens of a row that the network reads: a passage with one statement or with two (model.py says what it makes of them). Needs no torch."""

# what a graph calls the three lists of a row
INPUTS = ["input_ids", "position_ids", "owners"]


def marks(tok):
    """What stands before, between and after the two texts, as the encoder knows it."""
    if tok.token_to_id("<s>") is not None:
        start, end = tok.token_to_id("<s>"), tok.token_to_id("</s>")
        return [start], [end, end], [end]
    start, end = tok.token_to_id("[CLS]"), tok.token_to_id("[SEP]")
    return [start], [end], [end]


def row(p, statements, marks, max_tokens):
    """The tokens of a passage and its statements, their positions, and to whom they belong. The passage is cut so that with the longest statement alone
    it has `max_tokens`; a statement is cut to 64 tokens."""
    before, between, after = marks
    statements = [s[:64] + after for s in statements]
    p = p[:max_tokens - len(before) - len(between) - max(map(len, statements))] + between
    ids, at, part = before * len(statements) + p, [0] * len(statements) + list(range(1, len(p) + 1)), list(range(1, len(statements) + 1)) + [0] * len(p)
    for k, s in enumerate(statements, 1):
        ids, at, part = ids + s, at + list(range(len(p) + 1, len(p) + 1 + len(s))), part + [k] * len(s)
    return ids, at, part


def encode(tok, passage, statements, max_tokens):
    p, *s = (tok.encode(x, add_special_tokens=False).ids for x in (passage, *statements))
    return row(p, s, marks(tok), max_tokens)
