"""The extractive reader: the detector's encoder with a start and an end logit on every token.

Token 0 ([CLS]) stands for "no answer in this passage". Input: [CLS] question [SEP] title. text [SEP].
"""
import importlib.util
import os
import sys

import torch
import torch.nn as nn

DETECTOR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "detector")
# last, as some scripts are called alike here and there
sys.path.append(DETECTOR)


def detectors(name):
    """A script of the detector's folder."""
    spec = importlib.util.spec_from_file_location(f"detector_{name}", os.path.join(DETECTOR, f"{name}.py"))
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


M = detectors("model")

CLS, SEP = 101, 102


class Reader(M.Encoder):
    def __init__(self, cfg, dropout=0.1):
        super().__init__(cfg, dropout)
        d = cfg["hidden_size"]
        self.mix = nn.Linear(d, d)
        self.spans = nn.Linear(d, 2)
        self.together = None      # a row holds one question and one passage from the first layer to the last

    def forward(self, input_ids, attention_mask, token_type_ids):
        # the detector's owners are the types here, so every token sees every other
        at = torch.arange(input_ids.shape[1]).expand_as(input_ids)
        x, _, _ = self.hidden(input_ids, at * attention_mask, torch.where(attention_mask > 0, token_type_ids, -1))
        return self.spans(self.drop(nn.functional.gelu(self.mix(x))))


def collate(rows):
    """Ids, mask and types of rows of ids and types."""
    width = max(len(ids) for ids, _ in rows)
    padded = lambda xs: torch.tensor([list(x) + [0] * (width - len(x)) for x in xs])
    return padded([ids for ids, _ in rows]), padded([[1] * len(ids) for ids, _ in rows]), padded([types for _, types in rows])


def from_base(folder, seed=0):
    return M.from_base(folder, seed=seed, kind=Reader)


def load(path, base):
    return M.load(path, base, kind=Reader)


def context(title, text):
    """A passage as it is read."""
    return f"{title}. {text}" if title else text


class Encoded:
    """One question with one passage: ids, token types, and where each passage token lies in the passage's text."""

    def __init__(self, tok, question, passage, max_tokens, question_tokens):
        q = tok.encode(question, add_special_tokens=False).ids[:question_tokens]
        e = tok.encode(passage, add_special_tokens=False)
        room = max_tokens - 3 - len(q)
        self.first = len(q) + 2
        self.ids = [CLS] + q + [SEP] + e.ids[:room] + [SEP]
        self.types = [0] * self.first + [1] * (len(self.ids) - self.first)
        self.offsets = e.offsets[:room]
        # a span begins and ends with a word
        pieces = e.tokens[:room]
        self.begins = [not t.startswith("##") for t in pieces]
        self.ends = [not (pieces[i + 1] if i + 1 < len(pieces) else "").startswith("##") for i in range(len(pieces))]
