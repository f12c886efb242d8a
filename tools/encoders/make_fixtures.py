"""Makes tests/fixtures/encoders: tiny random checkpoints of every family, with what the Python `transformers` classes make of them.

    pip install torch transformers
    python tools/encoders/make_fixtures.py tests/fixtures/encoders

Every folder has the files that its family has on the hub, in small, and an `expected.json` with vectors in full precision.
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

OUT = pathlib.Path(sys.argv[1])
WINDOW = 24
TEXTS = [
    ("", "Should zoos be banned?"),
    ("", ""),
    ("", "the old zoo keeps wolves, bears and owls in cages " * 6),
    ("", "Été à la plage: l'œuvre naïve — 動物園を禁止 🦉"),
    ("Zoos", "Animals suffer in small cages."),
    ("", "an UNHEARD-of word: zyzzyva, 3.14 [MASK]"),
]
WORDS = "should zoo zoos be banned the old keeps wolves bears and owls in cages animals suffer small a of query passage".split()
CORPUS = [text for _, text in TEXTS] + ["Represent the question for retrieval: ", " ".join(WORDS), "query: passage: "]
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}


def wordpieces(specials):
    letters = list("abcdefghijklmnopqrstuvwxyz0123456789.,:;?!'-[]—")
    pieces = specials + letters + ["##" + letter for letter in letters[:36]] + WORDS + ["動", "##ing", "##s", "##ed"]
    return list(dict.fromkeys(pieces))


def vectors(folder, rows):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "expected.json").write_text(json.dumps(rows, ensure_ascii=False, indent=0) + "\n")


def row(role, title, text, vector):
    return {"role": role, "title": title, "text": text, "vector": [float(x) for x in vector]}


def random(model):
    """Random weights of a size that makes every layer count; fresh ones are so small that attention is flat."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.35 + (1.0 if parameter.dim() == 1 else 0.0))
    return model.eval()


def tensors(model, prefix="", dtype=torch.float32):
    return {prefix + name: value.to(dtype).contiguous() for name, value in model.state_dict().items()
            if "position_ids" not in name}


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n")


def bert_tokenizer(folder, keep_json):
    vocabulary = wordpieces(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    tokenizer = hf.BertTokenizerFast(str(folder / "vocab.txt"), do_lower_case=True)
    write_json(folder / "tokenizer_config.json", {"do_lower_case": True, "model_max_length": WINDOW})
    if keep_json:
        tokenizer.backend_tokenizer.save(str(folder / "tokenizer.json"))
        (folder / "vocab.txt").unlink()
    return tokenizer


def bert_config(cls=hf.BertConfig, **more):
    return cls(vocab_size=len(wordpieces(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])), max_position_embeddings=WINDOW, **(SIZES | more))


def encode(tokenizer, *text):
    return tokenizer(*text, truncation=True, max_length=WINDOW, return_tensors="pt")


def rounded(model, dtype):
    """The weights as they are stored, then in full precision."""
    return model.to(dtype).to(torch.float32)


def joined(title, text):
    return f"{title} {text}" if title else text


@torch.no_grad()
def contriever():
    folder = OUT / "contriever"
    tokenizer = bert_tokenizer(folder, keep_json=True)
    model = random(hf.BertModel(bert_config()))
    model.config.save_pretrained(folder)
    save_file(tensors(model), folder / "model.safetensors")
    rows = []
    for title, text in TEXTS:
        hidden = model(**encode(tokenizer, joined(title, text))).last_hidden_state[0]
        rows.append(row("passage", title, text, hidden.mean(0)))
    vectors(folder, rows)


@torch.no_grad()
def dpr():
    rows = []
    for name, cls, role in [("question_encoder", hf.DPRQuestionEncoder, "query"), ("ctx_encoder", hf.DPRContextEncoder, "passage")]:
        folder = OUT / "dpr" / name
        tokenizer = bert_tokenizer(folder, keep_json=False)
        model = random(cls(bert_config(hf.DPRConfig, projection_dim=0)))
        model.config.save_pretrained(folder)
        torch.save(tensors(model), folder / "pytorch_model.bin")
        for title, text in TEXTS:
            pair = (title, text) if title and role == "passage" else (text,)
            pooled = model(encode(tokenizer, *pair)["input_ids"]).pooler_output[0]
            rows.append(row(role, title if role == "passage" else "", text, pooled))
    vectors(OUT / "dpr", rows)


@torch.no_grad()
def simcse():
    folder = OUT / "simcse"
    tokenizer = bert_tokenizer(folder, keep_json=True)
    model = rounded(random(hf.BertModel(bert_config())), torch.float16)
    model.config.save_pretrained(folder)
    # As saved below a task's head, with the names of old checkpoints.
    stored = {name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
              for name, value in tensors(model, "bert.", torch.float16).items()}
    save_file(stored, folder / "model.safetensors")
    rows = []
    for title, text in TEXTS:
        out = model(**encode(tokenizer, joined(title, text)))
        rows.append(row("supervised", title, text, torch.nn.functional.normalize(out.pooler_output[0], dim=0)))
        rows.append(row("unsupervised", title, text, torch.nn.functional.normalize(out.last_hidden_state[0, 0], dim=0)))
    vectors(folder, rows)


def sentence_transformers(folder, window, pooling, width, modules=(), prompts=None, similarity="cosine"):
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling"), *modules]
    write_json(folder / "modules.json", [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds)])
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": window, "do_lower_case": False})
    write_json(folder / "config_sentence_transformers.json", {"prompts": prompts or {}, "similarity_fn_name": similarity})
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": width} | pooling)


@torch.no_grad()
def roberta():
    folder = OUT / "roberta"
    folder.mkdir(parents=True, exist_ok=True)
    trained = tokenizers.ByteLevelBPETokenizer()
    trained.train_from_iterator(CORPUS, vocab_size=320, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"], show_progress=False)
    trained.save_model(str(folder))
    tokenizer = hf.RobertaTokenizerFast(str(folder / "vocab.json"), str(folder / "merges.txt"))
    model = random(hf.RobertaModel(hf.RobertaConfig(
        vocab_size=len(tokenizer), max_position_embeddings=WINDOW + 2, pad_token_id=1, type_vocab_size=1, **SIZES),
        add_pooling_layer=False))
    model.config.save_pretrained(folder)
    save_file(tensors(model), folder / "model.safetensors")
    prompts = {"query": "query: ", "document": "passage: "}
    sentence_transformers(folder, WINDOW, {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, 32,
                          [("2_Normalize", "Normalize")], prompts)
    rows = []
    for role, prompt in [("query", "query: "), ("passage", "passage: ")]:
        for title, text in TEXTS:
            hidden = model(**encode(tokenizer, prompt + joined(title, text))).last_hidden_state[0, 0]
            rows.append(row(role, title, text, torch.nn.functional.normalize(hidden, dim=0)))
    vectors(folder, rows)


@torch.no_grad()
def mpnet():
    folder = OUT / "mpnet"
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = wordpieces(["<s>", "<pad>", "</s>", "[UNK]", "<mask>"])
    made = tokenizers.Tokenizer(models.WordPiece({word: i for i, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    made.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    made.add_special_tokens(["<s>", "<pad>", "</s>", "[UNK]", "<mask>"])
    # A file may carry its own padding and truncation; neither may count.
    made.enable_padding(pad_id=1, pad_token="<pad>", length=16)
    made.enable_truncation(8)
    made.save(str(folder / "tokenizer.json"))
    made.no_padding()
    made.no_truncation()
    tokenizer = hf.PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>")
    # Longer than the first bucket of distances, so that every kind of bucket is used.
    window = 160
    model = random(hf.MPNetModel(hf.MPNetConfig(
        vocab_size=len(vocabulary), max_position_embeddings=window + 2, pad_token_id=1, **SIZES), add_pooling_layer=False))
    model.config.save_pretrained(folder)
    save_file(tensors(model), folder / "model.safetensors")
    sentence_transformers(folder, window, {"pooling_mode": "mean"}, 32, [("2_Normalize", "Normalize")])
    rows = []
    for title, text in TEXTS + [("", TEXTS[2][1] * 4)]:
        ids = tokenizer(joined(title, text), truncation=True, max_length=window, return_tensors="pt")["input_ids"]
        hidden = model(ids).last_hidden_state[0].mean(0)
        rows.append(row("passage", title, text, torch.nn.functional.normalize(hidden, dim=0)))
    vectors(folder, rows)


@torch.no_grad()
def distilbert():
    folder = OUT / "distilbert"
    tokenizer = bert_tokenizer(folder, keep_json=False)
    model = rounded(random(hf.DistilBertModel(hf.DistilBertConfig(
        vocab_size=len(tokenizer), dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=WINDOW))), torch.bfloat16)
    model.config.save_pretrained(folder)
    stored = sorted(tensors(model, "distilbert.", torch.bfloat16).items())
    parts = {"model-00001-of-00002.safetensors": dict(stored[:10]), "model-00002-of-00002.safetensors": dict(stored[10:])}
    for name, part in parts.items():
        save_file(part, folder / name)
    write_json(folder / "model.safetensors.index.json",
               {"weight_map": {key: name for name, part in parts.items() for key in part}})
    rows = []
    for title, text in TEXTS:
        hidden = model(encode(tokenizer, joined(title, text))["input_ids"]).last_hidden_state[0].max(0).values
        rows.append(row("passage", title, text, hidden))
    sentence_transformers(folder, WINDOW, {"pooling_mode_max_tokens": True}, 32, similarity="dot")
    vectors(folder, rows)


@torch.no_grad()
def t5(name, feed_forward):
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    made = tokenizers.Tokenizer(models.Unigram())
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = tokenizers.decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=160, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False)
    made.train_from_iterator(CORPUS, trainer)
    made.post_processor = processors.TemplateProcessing("$A </s>", "$A </s> $B </s>", [("</s>", 1)])
    made.save(str(folder / "tokenizer.json"))
    tokenizer = hf.PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="</s>")
    window = 64
    model = random(hf.T5EncoderModel(hf.T5Config(
        vocab_size=made.get_vocab_size(), d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, feed_forward_proj=feed_forward)))
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if key.endswith(("SelfAttention.q.weight", "SelfAttention.k.weight")):
                parameter.mul_(0.3)
    model.config.save_pretrained(folder)
    save_file({key: value for key, value in tensors(model).items() if key != "encoder.embed_tokens.weight"}, folder / "model.safetensors")
    dense = torch.randn(24, 32) * 0.3
    (folder / "2_Dense").mkdir(exist_ok=True)
    write_json(folder / "2_Dense" / "config.json", {
        "in_features": 32, "out_features": 24, "bias": False, "activation_function": "torch.nn.modules.linear.Identity"})
    torch.save({"linear.weight": dense}, folder / "2_Dense" / "pytorch_model.bin")
    prompt = "Represent the question for retrieval: "
    sentence_transformers(folder, window, {"pooling_mode_mean_tokens": True, "include_prompt": False}, 32,
                          [("2_Dense", "Dense"), ("3_Normalize", "Normalize")], {"query": prompt})
    skipped = len(tokenizer(prompt)["input_ids"]) - 1
    rows = []
    for role, before, skip in [("query", prompt, skipped), ("passage", "", 0)]:
        for title, text in TEXTS:
            ids = tokenizer(before + joined(title, text), truncation=True, max_length=window, return_tensors="pt")["input_ids"]
            hidden = model(ids).last_hidden_state[0][skip:].mean(0)
            rows.append(row(role, title, text, torch.nn.functional.normalize(dense @ hidden, dim=0)))
    vectors(folder, rows)


if __name__ == "__main__":
    shutil.rmtree(OUT, ignore_errors=True)
    torch.manual_seed(7)
    contriever()
    dpr()
    simcse()
    roberta()
    mpnet()
    distilbert()
    t5("instructor", "relu")
    t5("instructor-gated", "gated-gelu")
