"""Makes tests/fixtures/detectors: tiny random classifiers of every family, with the numbers that `transformers` gives pairs.

    pip install torch transformers
    python tools/detector/make_fixtures.py tests/fixtures/detectors
    python tools/detector/make_fixtures.py tests/fixtures/detectors t5     # this one alone; the others stay

Every folder has the files that its family has on the hub, in small, and an `expected.json` with the numbers of every class.
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
WINDOW = 128
LONG = "the old zoo keeps wolves bears and owls in cages "
PAIRS = [
    ("", "Animals suffer in small cages.", "Zoos should be banned."),
    ("Zoos", "The old zoo keeps wolves, bears and owls.", "Zoos should not be banned."),
    ("", "Été à la plage: l'œuvre naïve — 動物園を禁止 🦉", "an UNHEARD-of word: zyzzyva, 3.14"),
    ("", LONG * 3, "Should zoos be banned?"),
    ("", "a", "a"),
]
WORDS = "should zoo zoos be banned not the old keeps wolves bears and owls in cages animals suffer small a of".split()
CORPUS = [text for pair in PAIRS for text in pair] + [" ".join(WORDS)]
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}


def labels(*names):
    return {"id2label": dict(enumerate(names)), "label2id": {name: i for i, name in enumerate(names)}, "num_labels": len(names)}


def random(model):
    """Random weights of a size that makes every layer count; fresh ones are so small that attention is flat."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.35 + (1.0 if parameter.dim() == 1 else 0.0))
    return model.eval()


@torch.no_grad()
def write(folder, model, tokenizer):
    model.config.save_pretrained(folder)
    save_file({name: value.contiguous() for name, value in model.state_dict().items() if "position_ids" not in name},
              folder / "model.safetensors")
    rows = []
    for title, text, statement in PAIRS:
        passage = f"{text} {title}".rstrip()
        logits = model(**tokenizer(passage, statement, return_tensors="pt")).logits[0]
        rows.append({"title": title, "text": text, "statement": statement, "logits": [float(x) for x in logits]})
    (folder / "expected.json").write_text(json.dumps(rows, ensure_ascii=False, indent=0) + "\n")


def bert(name, kinds=2, **config):
    folder = OUT / name
    folder.mkdir(parents=True)
    letters = list("abcdefghijklmnopqrstuvwxyz0123456789.,:;?!'-—")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + letters + ["##" + letter for letter in letters[:36]] + WORDS
    vocabulary = list(dict.fromkeys(pieces))
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    tokenizer = hf.BertTokenizerFast(str(folder / "vocab.txt"), do_lower_case=True)
    config = hf.BertConfig(vocab_size=len(vocabulary), max_position_embeddings=WINDOW, type_vocab_size=kinds, **SIZES, **config)
    write(folder, random(hf.AutoModelForSequenceClassification.from_config(config)), tokenizer)


def roberta():
    folder = OUT / "roberta"
    folder.mkdir(parents=True)
    trained = tokenizers.ByteLevelBPETokenizer()
    trained.train_from_iterator(CORPUS, vocab_size=320, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"], show_progress=False)
    trained.save_model(str(folder))
    tokenizer = hf.RobertaTokenizerFast(str(folder / "vocab.json"), str(folder / "merges.txt"))
    config = hf.RobertaConfig(vocab_size=len(tokenizer), max_position_embeddings=WINDOW + 2, pad_token_id=1, type_vocab_size=1,
                              **SIZES, **labels("CONTRADICTION", "NEUTRAL", "ENTAILMENT"))
    write(folder, random(hf.AutoModelForSequenceClassification.from_config(config)), tokenizer)


def deberta(name, **config):
    folder = OUT / name
    folder.mkdir(parents=True)
    made = tokenizers.Tokenizer(models.Unigram())
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=160, special_tokens=["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"], unk_token="[UNK]",
                                      show_progress=False)
    made.train_from_iterator(CORPUS, trainer)
    made.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 1), ("[SEP]", 2)])
    made.save(str(folder / "tokenizer.json"))
    tokenizer = hf.PreTrainedTokenizerFast(tokenizer_object=made, pad_token="[PAD]",
                                           model_input_names=["input_ids", "token_type_ids", "attention_mask"])
    config = hf.DebertaV2Config(vocab_size=made.get_vocab_size(), max_position_embeddings=WINDOW, relative_attention=True, **SIZES, **config)
    write(folder, random(hf.AutoModelForSequenceClassification.from_config(config)), tokenizer)


@torch.no_grad()
def t5():
    """A T5 that answers 1 or 0, as google/t5_xxl_true_nli_mixture. As in T5's own vocabulary, 1 is one token and 0 is two."""
    folder = OUT / "t5"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    spaces = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    made = tokenizers.Tokenizer(models.Unigram())
    made.pre_tokenizer = spaces
    trainer = trainers.UnigramTrainer(vocab_size=150, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False)
    made.train_from_iterator(CORPUS + ["premise: hypothesis:"] * 9, trainer)
    vocabulary = json.loads(made.to_str())["model"]["vocab"]
    known = {piece for piece, _ in vocabulary}
    vocabulary += [(piece, score) for piece, score in (("▁1", -5.0), ("▁", -3.0), ("0", -5.0)) if piece not in known]
    made = tokenizers.Tokenizer(models.Unigram([tuple(entry) for entry in vocabulary], unk_id=2))
    made.pre_tokenizer = spaces
    made.decoder = tokenizers.decoders.Metaspace()
    made.add_special_tokens(["<pad>", "</s>", "<unk>"])
    made.post_processor = processors.TemplateProcessing("$A </s>", "$A </s> $B </s>", [("</s>", 1)])
    made.save(str(folder / "tokenizer.json"))
    yes, no = (made.encode(answer, add_special_tokens=False) for answer in ("1", "0"))
    assert yes.tokens == ["▁1"] and no.tokens == ["▁", "0"]
    config = hf.T5Config(vocab_size=made.get_vocab_size(), d_model=24, d_kv=6, d_ff=40, num_layers=2, num_heads=4,
                         feed_forward_proj="gated-gelu", tie_word_embeddings=False, decoder_start_token_id=0)
    model = random(hf.T5ForConditionalGeneration(config)).half().float()
    model.config.save_pretrained(folder)
    # The decoder's and the encoder's words are the shared ones.
    save_file({name: value.half().contiguous() for name, value in model.state_dict().items() if "embed_tokens" not in name},
              folder / "model.safetensors")
    rows = []
    for title, text, statement in PAIRS:
        passage = f"{text} {title}".rstrip()
        ids = torch.tensor([made.encode(f"premise: {passage} hypothesis: {statement}").ids])
        scores = model(input_ids=ids, decoder_input_ids=torch.tensor([[0]])).logits[0, -1]
        logits = [float(scores[yes.ids[0]]), float(scores[no.ids[0]])]
        rows.append({"title": title, "text": text, "statement": statement, "logits": logits})
    (folder / "expected.json").write_text(json.dumps(rows, ensure_ascii=False, indent=0) + "\n")


if __name__ == "__main__":
    torch.manual_seed(11)
    if "t5" in sys.argv[2:]:
        t5()
        sys.exit()
    shutil.rmtree(OUT, ignore_errors=True)
    bert("bert", **labels("entailment", "neutral", "contradiction"))
    bert("bert-one", num_labels=1)
    roberta()
    # As version 3 has it: shared projections and buckets smaller than the texts, so that far distances share one.
    deberta("deberta-v3", position_biased_input=False, type_vocab_size=0, share_att_key=True, position_buckets=16,
            pos_att_type="p2c|c2p", norm_rel_ebd="layer_norm", max_relative_positions=-1, **labels("entailment", "not_entailment"))
    # And as version 2 may: projections of their own, every distance with a row, positions and segments in what is read.
    deberta("deberta-v2", position_biased_input=True, type_vocab_size=2, share_att_key=False, position_buckets=-1,
            pos_att_type=["c2p", "p2c"], norm_rel_ebd="none", num_labels=2)
    t5()
