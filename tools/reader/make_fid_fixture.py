"""Makes tests/fixtures/fid: tiny random T5 checkpoints, with what FiD makes of them by the Python `transformers` classes.

    pip install torch transformers
    python tools/reader/make_fid_fixture.py tests/fixtures/fid

Every passage goes through the encoder alone, and the decoder is given all that came out as one sequence, each passage padded as FiD's
own code pads it. Every folder has an `expected.json` with the tokens of its answers, the scores before the first of them, and how the
first shares its attention out. `wrapped` has the plain weights under FiD's names, and the bias by distance in the attention from the
answer to the passages, which the `transformers` of FiD's time had and later versions do not make; here it is put in.

    python tools/reader/make_fid_fixture.py tests/fixtures/fid wrapped     # only the expectations of this one, from its weights
"""

import json
import pathlib
import shutil
import sys

import tokenizers
import torch
import transformers as hf
from safetensors.torch import save_file
from tokenizers import models, pre_tokenizers, processors, trainers
from transformers.modeling_outputs import BaseModelOutput

torch.set_num_threads(1)
OUT = pathlib.Path(sys.argv[1])
WINDOW, LENGTH, STEPS = 200, 50, 2
WOLVES = ("Zoos", "The old zoo keeps wolves, bears and owls in small cages.")
SUFFER = ("Animals", "Animals suffer in small cages, and zoos should be banned.")
RARE = ("", "Zoos breed rare owls; without zoos some would be gone.")
LONG = ("Bears", "the old bears sleep in the cage and wolves do not " * 30)
ODD = ("Été", "À la plage: l'œuvre naïve — 動物園を禁止 🦉")
CASES = [
    ("Should zoos be banned?", []),
    ("Should zoos be banned?", [WOLVES]),
    ("Should zoos be banned?", [WOLVES, SUFFER]),
    ("Should zoos be banned?", [WOLVES, SUFFER, RARE]),
    ("Should zoos be banned?", [RARE, LONG, ("", "")]),
    ("who keeps owls", [SUFFER, RARE, ODD, WOLVES, WOLVES]),
    ("who keeps owls", [LONG]),
    ("", [ODD]),
    ("œuvre naïve?", []),
]
TEXTS = [part for _, passages in CASES for passage in passages for part in passage] + [question for question, _ in CASES]


def tokenizer():
    made = tokenizers.Tokenizer(models.Unigram())
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    made.decoder = tokenizers.decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=112, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False)
    made.train_from_iterator(TEXTS + ["question: title: context:"], trainer)
    made.post_processor = processors.TemplateProcessing("$A </s>", "$A </s> $B </s>", [("</s>", 1)])
    return made


def random(rows, feed_forward, tied):
    """Random weights as halves. A fresh network says one token for ever: here layers outweigh words, and the end is likely."""
    # Rows, heads and their width are no multiples of one another, so that none can be taken for another.
    config = hf.T5Config(vocab_size=rows, d_model=32, d_kv=6, d_ff=40, num_layers=2, num_decoder_layers=3, num_heads=4,
                         feed_forward_proj=feed_forward, tie_word_embeddings=tied, decoder_start_token_id=0)
    model = hf.T5ForConditionalGeneration._from_config(config, attn_implementation="eager")
    if not tied:
        model.lm_head.weight = torch.nn.Parameter(torch.empty(rows, 32))
    for name, parameter in model.named_parameters():
        scale = 1.0 if "bias" in name else 0.15 if "Attention.q" in name else 0.35
        parameter.data = torch.randn_like(parameter) * scale + (1.0 if parameter.dim() == 1 else 0.0)
    model.lm_head.weight.data[1] *= 2.5
    model.decoder.final_layer_norm.weight.data *= 3 if tied else 1
    for parameter in model.parameters():
        parameter.data = parameter.data.half()
    # Read in double precision, so that what is expected has no error of its own.
    return model.double().eval()


def inputs(question, passages):
    return [f"question: {question} title: {title} context: {text}" for title, text in passages] or [f"question: {question}"]


@torch.no_grad()
def read(model, made, question, passages):
    whole = [made.encode(text).ids for text in inputs(question, passages)]
    ids = [row if len(row) <= WINDOW else row[: WINDOW - 1] + [1] for row in whole]
    rows = [model.encoder(torch.tensor([row])).last_hidden_state for row in ids]
    rows = [torch.nn.functional.pad(row, (0, 0, 0, WINDOW - row.shape[1])) for row in rows]
    joined = BaseModelOutput(last_hidden_state=torch.cat(rows, 1))
    mask = torch.tensor([[int(place < len(row)) for row in ids for place in range(WINDOW)]])
    out = model.generate(encoder_outputs=joined, attention_mask=mask,
                         max_length=LENGTH, do_sample=False, num_beams=1, use_cache=False, return_dict_in_generate=True, output_logits=True,
                         output_attentions=True)
    best = [logits[0].topk(2).values for logits in out.logits]
    said = [token for token in out.sequences[0].tolist()[1:] if token != 1]
    first = torch.stack(out.cross_attentions[0]).mean((0, 1, 2, 3))
    return {
        "question": question,
        "passages": passages,
        "cut": sum(len(row) > WINDOW for row in whole) if passages else 0,
        "tokens": said,
        "text": made.decode(said).strip(),
        "scores": [[round(float(x), 6) for x in logits[0]] for logits in out.logits[:STEPS]],
        "attention": [round(float(part.sum()), 6) for part in first.split(WINDOW)] if passages else [],
    }, min(float(a - b) for a, b in best), len(said) + 1 < LENGTH


def telling(model, made):
    """What it says, if its answers differ, some end by themselves, and none hangs on the last bits of a score."""
    rows, ended = [], 0
    for case in CASES:
        row, margin, end = read(model, made, *case)
        if margin < 0.005:
            return None
        rows.append(row)
        ended += end
    texts = {row["text"] for row in rows}
    varied = max(len(set(row["tokens"])) for row in rows)
    return rows if len(texts) >= 7 and 2 <= ended < len(CASES) and varied >= 8 else None


def found(made, feed_forward, tied):
    for seed in range(2_000):
        torch.manual_seed(seed)
        model = random(made.get_vocab_size(), feed_forward, tied)
        if rows := telling(model, made):
            return model, rows
    raise SystemExit("no seed makes a network that says different things")


def with_bias(model, table):
    """The same model with a bias in the attention to the encoder's rows, as every block of transformers 3.0.2 shares it."""
    attention = hf.models.t5.modeling_t5.T5Attention(model.decoder.config, has_relative_attention_bias=True)
    own = model.decoder.block[0].layer[1].EncDecAttention
    attention.load_state_dict({**own.state_dict(), "relative_attention_bias.weight": table})
    model.decoder.block[0].layer[1].EncDecAttention = attention.double()
    return model.double().eval()


def wrapped():
    """The model of the stored folder `wrapped`, under the names that `transformers` has now."""
    tensors = torch.load(OUT / "wrapped/pytorch_model.bin")
    bias = tensors.pop("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight")
    plain = {key.replace("encoder.encoder.", "encoder.").replace(".module.layer.", ".layer."): value for key, value in tensors.items()}
    config = hf.T5Config(**json.loads((OUT / "plain/config.json").read_text()))
    model = hf.T5ForConditionalGeneration._from_config(config, attn_implementation="eager")
    model.load_state_dict(plain)
    return with_bias(model.double(), bias)


def expect(name, rows):
    (OUT / name / "expected.json").write_text(json.dumps(rows, ensure_ascii=False, indent=None).replace('{"question"', '\n{"question"') + "\n")


def store(name, model, rows, made, old_names=False):
    folder = OUT / name
    folder.mkdir(parents=True)
    made.save(str(folder / "tokenizer.json"), pretty=False)
    config = json.loads(model.config.to_json_string())
    tensors = {key: value.half().contiguous() for key, value in model.state_dict().items()}
    if old_names:
        # As FiD's own code saved them with transformers 3: every table under every name, and a bias across.
        wrapped = {}
        for key, value in tensors.items():
            if key.startswith("encoder."):
                key = "encoder." + key
                head, dot, rest = key.partition(".layer.")
                key = head + dot.replace(".layer.", ".module.layer.") + rest if ".block." in key else key
            wrapped[key] = value
        wrapped["decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"] = torch.randn(32, 4).half()
        torch.save(wrapped, folder / "pytorch_model.bin")
        config = {key: config[key] for key in ["d_model", "d_kv", "d_ff", "num_layers", "num_decoder_layers", "num_heads", "vocab_size",
                                               "relative_attention_num_buckets", "layer_norm_epsilon", "model_type", "eos_token_id",
                                               "pad_token_id"]}
    else:
        dropped = {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"} | ({"lm_head.weight"} if "untied" not in name else set())
        save_file({key: value for key, value in tensors.items() if key not in dropped}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    if rows:
        expect(name, rows)


def expect_wrapped():
    made = tokenizers.Tokenizer.from_file(str(OUT / "wrapped/tokenizer.json"))
    model = wrapped()
    read_all = [read(model, made, *case) for case in CASES]
    print("wrapped: the least margin between two tokens is", min(margin for _, margin, _ in read_all))
    expect("wrapped", [row for row, _, _ in read_all])


if __name__ == "__main__":
    if sys.argv[2:] == ["wrapped"]:
        raise SystemExit(expect_wrapped())
    shutil.rmtree(OUT, ignore_errors=True)
    torch.manual_seed(7)
    made = tokenizer()
    for name, feed_forward, tied in [("plain", "relu", True), ("plain-untied", "relu", False), ("gated", "gated-gelu", True),
                                     ("gated-untied", "gated-gelu", False)]:
        model, rows = found(made, feed_forward, tied)
        store(name, model, rows, made)
        if name == "plain":
            store("wrapped", model, None, made, old_names=True)
            expect_wrapped()
        print(name, *(row["text"] for row in rows), sep="\n  ")
