"""The joint decision on a passage and two opposite statements: does it take a side, and which?

Engaged: R = σ(a·e + b·cos + d), with e a function of both statements' logits that stays when the statements are swapped.
Side: S = σ(t·s), with s a function that changes its sign when they are swapped. `cos` is the greater of the two cosines.
P(first only) = R·S·(1 − B), P(second only) = R·σ(−t·s)·(1 − B), P(both) = R·B, P(neither) = 1 − R.
"""
import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-np.clip(x, -60, 60)))


def over(z):
    """supports and opposes against neither."""
    return z[..., 0] - z[..., 2], z[..., 1] - z[..., 2]


def both(x, y):
    """log(exp x + exp y)"""
    return np.logaddexp(x, y)


# every function takes z of shape (passages, 2 statements, 3 classes)
ENGAGED = {
    "max_supports": lambda z: np.max(over(z)[0], -1),
    "max_any": lambda z: np.max(np.maximum(*over(z)), -1),
    "sum_any": lambda z: both(*over(z)).sum(-1) / 2,
    "logsum": lambda z: np.logaddexp.reduce(np.concatenate(over(z), -1), axis=-1),
    "logsum_supports": lambda z: np.logaddexp.reduce(over(z)[0], axis=-1),
}
SIDE = {
    "supports_opposes": lambda z: (z[:, 0, 0] - z[:, 0, 1]) - (z[:, 1, 0] - z[:, 1, 1]),
    "supports": lambda z: over(z)[0][:, 0] - over(z)[0][:, 1],
    "class": lambda z: z[:, 0, 0] - z[:, 1, 0],
}
FIRST, SECOND, BOTH, NEITHER, UNCLEAR = 0, 1, 2, 3, 4
NAMES = ["first", "second", "both", "neither", "unclear"]


def heads(par, z, cos):
    """R and t·s."""
    e = ENGAGED[par["engaged"]["form"]](z)
    return (sigmoid(par["engaged"]["a"] * e + par["engaged"]["b"] * cos.max(-1) + par["engaged"]["d"]),
            par["side"]["t"] * SIDE[par["side"]["form"]](z))


def probabilities(par, z, cos):
    """first only, second only, both, neither."""
    r, s = heads(par, z, cos)
    b = par["both"]
    return np.column_stack([r * sigmoid(s) * (1 - b), r * sigmoid(-s) * (1 - b), r * b, 1 - r])


def likelier(r, s, b):
    """P(the likelier side only)."""
    return r * sigmoid(np.abs(s)) * (1 - b)


def decide(par, z, cos):
    r, s = heads(par, z, cos)
    side = np.where(s > 0, FIRST, SECOND)
    tau = 2 if par["tau"] is None else par["tau"]
    side = np.where((likelier(r, s, par["both"]) >= tau) & (s != 0), side, UNCLEAR)
    return np.where(r < par["rho"], NEITHER, np.where(par["both"] >= par["beta"], BOTH, side))
