"""Makes fixtures of the encoders and re-rankers of today: tiny random checkpoints, with what their reference classes make of 50 texts.

    pip install torch transformers sentence-transformers pylate FlagEmbedding
    python tools/encoders/make_modern.py tests/fixtures/modern [NAME ...]

The folders have the files and tensor names of the models on the hub, in small. Vectors come from `SentenceTransformer`, scores from
`CrossEncoder`, vectors of tokens and their MaxSim from PyLate's `ColBERT`, weights of terms from `SparseEncoder` around transformers' classes of
masked language models. No real weights were run: only the code is checked.
"""

import json
import pathlib
import shutil
import sys

import numpy
import tokenizers
import torch
import transformers as hf
from safetensors.torch import save_file
from sentence_transformers import CrossEncoder, SentenceTransformer, SparseEncoder
from tokenizers import models, pre_tokenizers, processors, trainers

OUT = pathlib.Path(sys.argv[1])
WINDOW = 40
WORDS = ("should zoo zoos be banned the old keeps wolves bears and owls in cages animals suffer small a of query passage search document "
         "task result title none text because they cannot live there as wild ones do").split()
SIZES = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48}


def fifty():
    texts = ["Should zoos be banned?", "", "the old zoo keeps wolves, bears and owls in cages " * 6,
             "Été à la plage: l'œuvre naïve — 動物園を禁止 🦉", "an UNHEARD-of word: zyzzyva, 3.14", "  blanks   and\nlines\t"]
    draw = numpy.random.default_rng(26)
    while len(texts) < 50:
        words = draw.choice(WORDS, size=int(draw.integers(1, 30)))
        texts.append(" ".join(words).capitalize() + draw.choice([".", "?", "!", ""]))
    return texts


TEXTS = fifty()
CORPUS = TEXTS + [" ".join(WORDS), "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"]


def random(model, size=0.35):
    """Random weights of a size that makes every layer count; fresh ones are so small that attention is flat."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * size + (1.0 if parameter.dim() == 1 else 0.0))
    return model.eval()


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def bytes_tokenizer(folder, specials, template, pair=None):
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=340, special_tokens=specials, show_progress=False,
                                                         initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return finish(folder, made, specials, template, pair)


def unigram_tokenizer(folder, specials, unknown, template, pair=None):
    made = tokenizers.Tokenizer(models.Unigram())
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = tokenizers.decoders.Metaspace()
    made.train_from_iterator(CORPUS, trainers.UnigramTrainer(vocab_size=200, special_tokens=specials, unk_token=unknown, show_progress=False))
    return finish(folder, made, specials, template, pair)


def word_tokenizer(folder):
    letters = list("abcdefghijklmnopqrstuvwxyz0123456789.,:;?!'-_[]—")
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces = specials + letters + ["##" + letter for letter in letters[:36]] + WORDS + ["動", "##ing", "##s", "##ed"]
    vocabulary = {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}
    made = tokenizers.Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return finish(folder, made, specials, "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1")


def finish(folder, made, specials, template, pair):
    folder.mkdir(parents=True, exist_ok=True)
    used = [word.split(":")[0] for word in f"{template} {pair or ''}".split() if not word.startswith("$")]
    made.add_special_tokens(specials)
    made.post_processor = processors.TemplateProcessing(template, pair, [(word, made.token_to_id(word)) for word in dict.fromkeys(used)])
    made.save(str(folder / "tokenizer.json"))
    padding = next(word for word in specials if "pad" in word.lower() or "endoftext" in word)
    write_json(folder / "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": WINDOW, "pad_token": padding,
        "model_input_names": ["input_ids", "attention_mask"] + (["token_type_ids"] if ":1" in (pair or "") else [])})
    return made.get_vocab_size()


def store(folder, model, config=None):
    """Saves under the names of the hub: `save_pretrained` writes those of the checkpoints that it reads."""
    model.save_pretrained(folder)
    if config:
        read = json.loads((folder / "config.json").read_text())
        for name in config.get("without", []):
            read.pop(name, None)
        write_json(folder / "config.json", read | config.get("with", {}))


def encoder(name, pooling, prompts=None, dense=()):
    folder = OUT / name
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling")]
    for i, (rows, columns) in enumerate(dense):
        place = f"{i + 2}_Dense"
        write_json(folder / place / "config.json", {
            "in_features": columns, "out_features": rows, "bias": False, "activation_function": "torch.nn.modules.linear.Identity"})
        save_file({"linear.weight": torch.randn(rows, columns) * 0.3}, folder / place / "model.safetensors")
        kinds.append((place, "Dense"))
    kinds.append((f"{len(kinds)}_Normalize", "Normalize"))
    (folder / kinds[-1][0]).mkdir(exist_ok=True)
    write_json(folder / "modules.json", [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"} for i, (path, kind) in enumerate(kinds)])
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": WINDOW, "do_lower_case": False})
    write_json(folder / "config_sentence_transformers.json", {"prompts": prompts or {}, "similarity_fn_name": "cosine"})
    modes = {f"pooling_mode_{mode}": mode == pooling for mode in ["cls_token", "mean_tokens", "max_tokens", "lasttoken"]}
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": 32, "include_prompt": True} | modes)
    reference = SentenceTransformer(str(folder), device="cpu")
    rows = []
    for role, prompt in [("query", (prompts or {}).get("query", "")), ("passage", (prompts or {}).get("document", ""))]:
        for text in TEXTS:
            vector = reference.encode(text, prompt=prompt)
            rows.append({"role": role, "title": "", "text": text, "vector": [float(x) for x in vector]})
    write_json(folder / "expected.json", rows)


def classifier(name, model, config=None):
    folder = OUT / name
    store(folder, model, config)
    one = model.config.num_labels == 1
    reference = CrossEncoder(str(folder), device="cpu", max_length=WINDOW) if one else None
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    rows = []
    for i, text in enumerate(TEXTS):
        other = TEXTS[(i * 7 + 3) % len(TEXTS)]
        if one:
            numbers = [float(reference.predict([(other, text)], activation_fn=torch.nn.Identity())[0])]
        else:
            ids = tokenizer(text, other, return_tensors="pt", truncation=True, max_length=WINDOW)
            with torch.no_grad():
                numbers = [float(x) for x in model(input_ids=ids["input_ids"]).logits[0]]
        rows.append({"first": other, "second": text, "logits": numbers})
    write_json(folder / "expected.json", rows)


def modern_config(vocabulary, **more):
    return hf.ModernBertConfig(vocab_size=vocabulary, max_position_embeddings=64, local_attention=8, pad_token_id=0, bos_token_id=1,
                               eos_token_id=2, cls_token_id=1, sep_token_id=2, **SIZES, **more)


MODERN = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"]
# As the files on the hub were written, before `rope_parameters` and `layer_types`.
OLD_MODERN = {"without": ["rope_parameters", "layer_types"],
              "with": {"global_rope_theta": 160000.0, "local_rope_theta": 10000.0, "global_attn_every_n_layers": 3}}


def gte_modernbert():
    vocabulary = bytes_tokenizer(OUT / "gte-modernbert", MODERN, "[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]")
    store(OUT / "gte-modernbert", random(hf.ModernBertModel(modern_config(vocabulary))), OLD_MODERN)
    encoder("gte-modernbert", "cls_token")


def nomic():
    vocabulary = word_tokenizer(OUT / "nomic")
    config = hf.NomicBertConfig(vocab_size=vocabulary, max_position_embeddings=64, **SIZES)
    old = {"without": ["hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "hidden_act", "layer_norm_eps",
                       "max_position_embeddings", "rope_parameters", "head_dim"],
           "with": {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_inner": 48, "activation_function": "swiglu", "layer_norm_epsilon": 1e-12,
                    "n_positions": 64, "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0}}
    folder = OUT / "nomic"
    store(folder, random(hf.NomicBertModel(config)))
    encoder("nomic", "mean_tokens", {"query": "search_query: ", "document": "search_document: "})
    # The reference class reads the new configuration; the hub has the old one.
    read = json.loads((folder / "config.json").read_text())
    for name in old["without"]:
        read.pop(name, None)
    write_json(folder / "config.json", read | old["with"])


ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def arctic():
    vocabulary = unigram_tokenizer(OUT / "arctic", ROBERTA, "<unk>", "<s> $A </s>", "<s> $A </s> </s> $B </s>")
    config = hf.GteConfig(vocab_size=vocabulary, max_position_embeddings=64, **SIZES)
    store(OUT / "arctic", random(hf.GteModel(config)), {"without": ["rope_parameters"], "with": {"rope_theta": 160000}})
    encoder("arctic", "cls_token", {"query": "query: "})


def bge_m3():
    vocabulary = unigram_tokenizer(OUT / "bge-m3", ROBERTA, "<unk>", "<s> $A </s>", "<s> $A </s> </s> $B </s>")
    config = hf.XLMRobertaConfig(vocab_size=vocabulary, max_position_embeddings=66, pad_token_id=1, type_vocab_size=1, **SIZES)
    model = random(hf.XLMRobertaModel(config, add_pooling_layer=False))
    store(OUT / "bge-m3", model)
    encoder("bge-m3", "cls_token")
    m3_multi(OUT / "bge-m3", model)


@torch.no_grad()
def m3_multi(folder, model):
    """Multi-vectors and their scores, by FlagEmbedding's own class; its package is not imported as a whole, because it needs much more."""
    import importlib.util
    import types
    place = pathlib.Path(importlib.util.find_spec("FlagEmbedding").submodule_search_locations[0])
    parts = ["FlagEmbedding", "finetune", "embedder", "encoder_only", "m3"]
    for i in range(1, len(parts) + 1):
        package = types.ModuleType(".".join(parts[:i]))
        package.__path__ = [str(place.joinpath(*parts[1:i]))]
        sys.modules[package.__name__] = package
    from FlagEmbedding.finetune.embedder.encoder_only.m3.modeling import EncoderOnlyEmbedderM3Model
    linears = {"colbert_linear": torch.nn.Linear(32, 32), "sparse_linear": torch.nn.Linear(32, 1)}
    random(linears["colbert_linear"])
    torch.save(linears["colbert_linear"].state_dict(), folder / "colbert_linear.pt")
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    reference = EncoderOnlyEmbedderM3Model({"model": model} | linears, tokenizer=tokenizer, normalize_embeddings=True).eval()

    def vectors(text):
        ids = tokenizer(text, return_tensors="pt", truncation=True, max_length=WINDOW)
        hidden = model(input_ids=ids["input_ids"]).last_hidden_state
        mask = torch.ones_like(ids["input_ids"])
        return torch.nn.functional.normalize(reference._colbert_embedding(hidden, mask), dim=-1), mask

    rows = []
    for i, text in enumerate(TEXTS):
        other = TEXTS[(i * 7 + 3) % len(TEXTS)]
        (query, mask), (passage, _) = vectors(other), vectors(text)
        score = reference.compute_colbert_score(query, passage, q_mask=mask)
        rows.append({"first": other, "second": text, "score": float(score[0][0]), "tokens": passage.shape[1]})
    write_json(folder / "multi.json", rows)


def e5_multilingual():
    vocabulary = unigram_tokenizer(OUT / "e5-multilingual", ROBERTA, "<unk>", "<s> $A </s>", "<s> $A </s> </s> $B </s>")
    config = hf.XLMRobertaConfig(vocab_size=vocabulary, max_position_embeddings=66, pad_token_id=1, type_vocab_size=1, **SIZES)
    store(OUT / "e5-multilingual", random(hf.XLMRobertaModel(config, add_pooling_layer=False)))
    encoder("e5-multilingual", "mean_tokens", {"query": "query: ", "document": "passage: "})


def qwen3():
    vocabulary = bytes_tokenizer(OUT / "qwen3", ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], "$A <|endoftext|>")
    config = hf.Qwen3Config(vocab_size=vocabulary, max_position_embeddings=64, num_key_value_heads=2, head_dim=16, pad_token_id=0, **SIZES)
    store(OUT / "qwen3", random(hf.Qwen3Model(config), 0.25), {"without": ["rope_parameters", "layer_types"],
                                                              "with": {"rope_theta": 1000000, "rope_scaling": None}})
    query = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
    encoder("qwen3", "lasttoken", {"query": query, "document": ""})


def gemma3():
    specials = ["<pad>", "<eos>", "<bos>", "<unk>"]
    vocabulary = unigram_tokenizer(OUT / "gemma3", specials, "<unk>", "<bos> $A <eos>")
    config = hf.Gemma3TextConfig(vocab_size=vocabulary, max_position_embeddings=64, num_key_value_heads=1, head_dim=8, sliding_window=8,
                                 query_pre_attn_scalar=8, use_bidirectional_attention=True, sliding_window_pattern=3, **SIZES)
    store(OUT / "gemma3", random(hf.Gemma3TextModel(config), 0.2))
    encoder("gemma3", "mean_tokens", {"query": "task: search result | query: ", "document": "title: none | text: "}, [(64, 32), (32, 64)])


def ms_marco_minilm():
    vocabulary = word_tokenizer(OUT / "ms-marco-minilm")
    config = hf.BertConfig(vocab_size=vocabulary, max_position_embeddings=64, num_labels=1, **SIZES)
    classifier("ms-marco-minilm", random(hf.BertForSequenceClassification(config)))


def bge_reranker():
    vocabulary = unigram_tokenizer(OUT / "bge-reranker", ROBERTA, "<unk>", "<s> $A </s>", "<s> $A </s> </s> $B </s>")
    config = hf.XLMRobertaConfig(vocab_size=vocabulary, max_position_embeddings=66, pad_token_id=1, type_vocab_size=1, num_labels=1, **SIZES)
    classifier("bge-reranker", random(hf.XLMRobertaForSequenceClassification(config)))


def gte_reranker():
    vocabulary = bytes_tokenizer(OUT / "gte-reranker", MODERN, "[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]")
    config = modern_config(vocabulary, num_labels=1, classifier_pooling="mean")
    classifier("gte-reranker", random(hf.ModernBertForSequenceClassification(config)), OLD_MODERN)


def modernbert_nli():
    vocabulary = bytes_tokenizer(OUT / "modernbert-nli", MODERN, "[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]")
    labels = ["entailment", "neutral", "contradiction"]
    config = modern_config(vocabulary, id2label=dict(enumerate(labels)), label2id={name: i for i, name in enumerate(labels)})
    classifier("modernbert-nli", random(hf.ModernBertForSequenceClassification(config)))


def late(name):
    from pylate import models, scores
    folder = OUT / name
    config = json.loads((folder / "tokenizer_config.json").read_text())
    unknown = "[UNK]"
    write_json(folder / "tokenizer_config.json", config | {"mask_token": "[MASK]", "unk_token": unknown, "cls_token": "[CLS]", "sep_token": "[SEP]"})
    reference = models.ColBERT(str(folder), device="cpu")
    queries = reference.encode(TEXTS, is_query=True, batch_size=1)
    passages = reference.encode(TEXTS, is_query=False, batch_size=1)
    rows = []
    for i, text in enumerate(TEXTS):
        j = (i * 7 + 3) % len(TEXTS)
        similarity = scores.colbert_scores([queries[j]], [passages[i]])
        few = [[float(x) for x in row] for row in passages[i][:3]] + [[float(x) for x in row] for row in queries[i][-2:]]
        rows.append({"first": TEXTS[j], "second": text, "score": float(similarity[0][0]), "tokens": len(passages[i]), "some": few})
    write_json(folder / "expected.json", rows)


def colbertv2():
    folder = OUT / "colbertv2"
    vocabulary = word_tokenizer(folder)
    read = json.loads((folder / "tokenizer.json").read_text())
    # The marks of the two sides, in the place of two letters that no text has.
    for old, new in [("##8", "[unused0]"), ("##9", "[unused1]")]:
        read["model"]["vocab"][new] = read["model"]["vocab"].pop(old)
    write_json(folder / "tokenizer.json", read)
    config = hf.BertConfig(vocab_size=vocabulary, max_position_embeddings=64, architectures=["HF_ColBERT"], **SIZES)
    model = random(hf.BertModel(config, add_pooling_layer=False))
    config.save_pretrained(folder)
    weights = {f"bert.{name}": value.contiguous() for name, value in model.state_dict().items() if "position_ids" not in name}
    save_file(weights | {"linear.weight": torch.randn(16, 32) * 0.3}, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    write_json(folder / "config.json", config | {"architectures": ["HF_ColBERT"]})
    write_json(folder / "artifact.metadata", {"query_token_id": "[unused0]", "doc_token_id": "[unused1]", "query_maxlen": 16, "doc_maxlen": 40,
                                              "dim": 16, "mask_punctuation": True, "attend_to_mask_tokens": False})
    late("colbertv2")


def moderncolbert():
    folder = OUT / "moderncolbert"
    vocabulary = bytes_tokenizer(folder, MODERN + ["[Q] ", "[D] "], "[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]")
    # A layer of near tokens sees less than a filled query, so some mask tokens see nothing.
    store(folder, random(hf.ModernBertModel(modern_config(vocabulary))), OLD_MODERN)
    write_json(folder / "1_Dense" / "config.json", {
        "in_features": 32, "out_features": 16, "bias": False, "activation_function": "torch.nn.modules.linear.Identity"})
    save_file({"linear.weight": torch.randn(16, 32) * 0.3}, folder / "1_Dense" / "model.safetensors")
    write_json(folder / "modules.json", [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Dense", "type": "pylate.models.Dense.Dense"}])
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": WINDOW - 1, "do_lower_case": False})
    punctuation = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
    write_json(folder / "config_sentence_transformers.json", {
        "prompts": {}, "similarity_fn_name": "MaxSim", "query_prefix": "[Q] ", "document_prefix": "[D] ", "query_length": 16,
        "document_length": WINDOW, "attend_to_expansion_tokens": False, "skiplist_words": punctuation, "do_query_expansion": True})
    late("moderncolbert")


@torch.no_grad()
def sparse(name, model, twice=False, table=False):
    """The weights of terms: by the class of the masked language model itself, and by `SparseEncoder`, which must agree."""
    folder = OUT / name
    reference = SparseEncoder(str(folder), device="cpu")
    reference.max_seq_length = WINDOW
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    inputs = {"bert": ["input_ids", "attention_mask", "token_type_ids"]}.get(model.config.model_type, ["input_ids", "attention_mask"])
    rows = []
    for role in ["query", "passage"] if table else ["passage"]:
        for text in TEXTS:
            if role == "query":
                weights = reference.encode_query(text, convert_to_sparse_tensor=False)
            else:
                ids = tokenizer(text, return_tensors="pt", truncation=True, max_length=WINDOW)
                logits = model(**{name: ids[name] for name in inputs if name in ids}).logits[0]
                weights = torch.log1p(torch.relu(logits).amax(dim=0))
                weights = torch.log1p(weights) if twice else weights
                other = reference.encode_document(text, convert_to_sparse_tensor=False)
                assert (weights - other).abs().max() < 1e-5, (name, text)
            terms = [[i, float(f"{float(x):.7g}")] for i, x in enumerate(weights) if x > 0]
            rows.append({"role": role, "text": text, "terms": terms})
    (folder / "expected.json").write_text(json.dumps(rows, ensure_ascii=False) + "\n")


def fewer(model):
    """Lowers the bias of most terms, so that a text has some and not all."""
    bias = [value for name, value in model.named_parameters() if name.endswith(("predictions.bias", "vocab_projector.bias", "decoder.bias"))]
    with torch.no_grad():
        bias[0].copy_(torch.randn_like(bias[0]) * 2 - 4)
    return model


def splade():
    vocabulary = word_tokenizer(OUT / "splade")
    config = hf.BertConfig(vocab_size=vocabulary, max_position_embeddings=64, **SIZES)
    model = fewer(random(hf.BertForMaskedLM(config)))
    store(OUT / "splade", model)
    sparse("splade", model)


def splade_modern():
    folder = OUT / "splade-modern"
    vocabulary = bytes_tokenizer(folder, MODERN, "[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]")
    # As on the hub, the table of words has more rows than the tokenizer has tokens.
    model = fewer(random(hf.ModernBertForMaskedLM(modern_config(vocabulary + 4))))
    store(folder, model, OLD_MODERN)
    sparse("splade-modern", model)


def os_sparse_doc():
    folder = OUT / "os-sparse-doc"
    vocabulary = word_tokenizer(folder)
    sizes = {"dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 48}
    model = fewer(random(hf.DistilBertForMaskedLM(hf.DistilBertConfig(vocab_size=vocabulary, max_position_embeddings=64, **sizes))))
    store(folder, model)
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    words = tokenizer.get_vocab()
    draw = numpy.random.default_rng(7)
    idf = {word: round(float(draw.uniform(0.5, 9.0)), 4) for word in sorted(words, key=words.get) if not word.startswith("[")}
    write_json(folder / "idf.json", idf)
    write_json(folder / "document_1_SpladePooling" / "config.json", {
        "pooling_strategy": "max", "activation_function": "log1p_relu", "word_embedding_dimension": vocabulary})
    table = folder / "query_0_SparseStaticEmbedding"
    write_json(table / "config.json", {"frozen": True})
    save_file({"weight": torch.tensor([idf.get(word, 0.0) for word in sorted(words, key=words.get)])}, table / "model.safetensors")
    for file in ["tokenizer.json", "tokenizer_config.json"]:
        shutil.copy(folder / file, table / file)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": WINDOW, "do_lower_case": False})
    write_json(folder / "modules.json", [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Router"}])
    base = "sentence_transformers.sparse_encoder.models"
    write_json(folder / "router_config.json", {
        "types": {"query_0_SparseStaticEmbedding": f"{base}.SparseStaticEmbedding.SparseStaticEmbedding",
                  "": f"{base}.MLMTransformer.MLMTransformer",
                  "document_1_SpladePooling": f"{base}.SpladePooling.SpladePooling"},
        "structure": {"query": ["query_0_SparseStaticEmbedding"], "document": ["", "document_1_SpladePooling"]},
        "parameters": {"default_route": "document", "allow_empty_key": True}})
    write_json(folder / "config_sentence_transformers.json", {
        "model_type": "SparseEncoder", "prompts": {"query": "", "document": ""}, "similarity_fn_name": "dot"})
    sparse("os-sparse-doc", model, twice=True, table=True)
    # The tokenizer lies beside the network too.
    for file in ["tokenizer.json", "tokenizer_config.json"]:
        (table / file).unlink()


ALL = [gte_modernbert, nomic, arctic, bge_m3, e5_multilingual, qwen3, gemma3, ms_marco_minilm, bge_reranker, gte_reranker, modernbert_nli,
       colbertv2, moderncolbert, splade, splade_modern, os_sparse_doc]

if __name__ == "__main__":
    for i, make in enumerate(ALL):
        if sys.argv[2:] and make.__name__ not in sys.argv[2:]:
            continue
        shutil.rmtree(OUT / make.__name__.replace("_", "-"), ignore_errors=True)
        torch.manual_seed(26 + i)
        make()
        print(make.__name__)
