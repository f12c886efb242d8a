"""Makes tests/fixtures/llm: tiny random models as GGUF files, with what the Python `transformers` and `sentencepiece` make of them.

    pip install torch transformers gguf sentencepiece
    python tools/llm/make_gguf_fixture.py tests/fixtures/llm

`expected.json` has, for every file, the prompt that its template makes of a request, its tokens, and the likeliest tokens that follow
as long as rounding cannot change them.
"""

import io
import json
import pathlib
import sys

import gguf
import sentencepiece
import tokenizers
import torch
import transformers as hf
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

OUT = pathlib.Path(sys.argv[1])
WINDOW, WRITTEN = 1024, 40
SYSTEM, PROMPT = "Be brief.", "Should zoos be banned in 2026? Été à la plage — 動物園 🦉 it's"
CORPUS = ["Should zoos be banned? The old zoo keeps wolves, bears and owls in cages.", "Animals suffer in small cages; it's 1999.",
          "user assistant system Be brief. Été à la plage"] * 4
MARKS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TEMPLATE = """{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\n' + message.content.strip() + '<|im_end|>' + '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %}
"""
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SIZES = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=WINDOW, rms_norm_eps=1e-5, attention_dropout=0.0)
LLAMA3 = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=64)


def merged_bytes(pre):
    made = tokenizers.Tokenizer(models.BPE())
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pre != "qwen2")
    if pre == "qwen2":
        made.normalizer = normalizers.NFC()
        first = pre_tokenizers.Split(tokenizers.Regex(QWEN2), "isolated")
    else:
        first = pre_tokenizers.Digits(individual_digits=True)
    made.pre_tokenizer = pre_tokenizers.Sequence([first, level])
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=310, special_tokens=MARKS, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    return made


def pieces():
    """A model of SentencePiece as Llama 2 has it: merges, bytes for what is unknown."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_writer=written, vocab_size=330, model_type="bpe", byte_fallback=True,
        character_coverage=0.98, normalization_rule_name="identity", split_digits=True, minloglevel=2, add_dummy_prefix=True,
        remove_extra_whitespaces=False)
    return sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())


def random(model):
    """Random weights of a size that makes every layer count; fresh ones are so small that attention is flat."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.35 + (1.0 if parameter.dim() == 1 else 0.0))
    return model.eval()


def likeliest(model, ids, ends, ahead=0.005):
    """The likeliest tokens one after the other, as long as each is so far ahead of the second; and by how much the closest was."""
    ids, closest = list(ids), 1e9
    for _ in range(WRITTEN):
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0, -1]
        best, second = logits.topk(2).values
        if best - second < ahead:
            break
        closest = min(closest, float(best - second))
        ids.append(int(logits.argmax()))
        if ids[-1] in ends:
            break
    return ids, closest


def interleaved(weight, heads):
    """The order in which llama.cpp turns queries and keys: neighbours together."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def slowed():
    """What convert_hf_to_gguf.py writes as rope_freqs.weight."""
    import math
    factors = []
    for pair in range(4):
        length = 2 * math.pi * LLAMA3["rope_theta"] ** (2 * pair / 8)
        long, short = (LLAMA3["original_max_position_embeddings"] / LLAMA3[f"{side}_freq_factor"] for side in ("low", "high"))
        smooth = (LLAMA3["original_max_position_embeddings"] / length - 1) / 3
        factors.append(1 if length < short else 8 if length > long else 1 / ((1 - smooth) / 8 + smooth))
    return torch.tensor(factors, dtype=torch.float32)


def write(name, arch, model, kind, vocabulary):
    config, out = model.config, gguf.GGUFWriter(OUT / f"{name}.gguf", arch)
    out.add_block_count(config.num_hidden_layers)
    out.add_context_length(WINDOW)
    out.add_embedding_length(config.hidden_size)
    out.add_feed_forward_length(config.intermediate_size)
    out.add_head_count(config.num_attention_heads)
    out.add_head_count_kv(config.num_key_value_heads)
    out.add_layer_norm_rms_eps(config.rms_norm_eps)
    out.add_rope_freq_base(10000.0)
    if arch == "qwen3":
        out.add_key_length(config.head_dim)
        out.add_value_length(config.head_dim)
    vocabulary(out)
    names = gguf.get_tensor_name_map({"llama": gguf.MODEL_ARCH.LLAMA, "qwen2": gguf.MODEL_ARCH.QWEN2,
                                      "qwen3": gguf.MODEL_ARCH.QWEN3}[arch], config.num_hidden_layers)
    for own, value in model.state_dict().items():
        if own == "lm_head.weight" and config.tie_word_embeddings:
            continue
        if arch == "llama" and "q_proj" in own:
            value = interleaved(value, config.num_attention_heads)
        if arch == "llama" and "k_proj" in own:
            value = interleaved(value, config.num_key_value_heads)
        value = value.contiguous().numpy()
        if kind == "q8_0" and value.ndim == 2:
            packed = gguf.quantize(value, gguf.GGMLQuantizationType.Q8_0)
            out.add_tensor(names.get_name(own, (".weight", ".bias")), packed, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        else:
            out.add_tensor(names.get_name(own, (".weight", ".bias")), value)
    if name == "llama":
        out.add_tensor("rope_freqs.weight", slowed().numpy())
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def by_bytes(made, pre):
    def write(out):
        whole = json.loads(made.to_str())["model"]
        tokens = sorted(whole["vocab"], key=whole["vocab"].get)
        out.add_tokenizer_model("gpt2")
        out.add_tokenizer_pre(pre)
        out.add_token_list(tokens)
        out.add_token_types([3 if token in MARKS else 1 for token in tokens])
        out.add_token_merges([" ".join(merge) for merge in whole["merges"]])
        out.add_bos_token_id(0)
        out.add_eos_token_id(2)
        out.add_add_bos_token(pre == "smollm")
        out.add_chat_template(TEMPLATE)
    return write


def by_pieces(made):
    def write(out):
        count = range(made.vocab_size())
        out.add_tokenizer_model("llama")
        out.add_token_list([made.id_to_piece(i) for i in count])
        out.add_token_scores([made.get_score(i) for i in count])
        out.add_token_types([2 if made.is_unknown(i) else 3 if made.is_control(i) else 6 if made.is_byte(i) else 1 for i in count])
        out.add_bos_token_id(made.bos_id())
        out.add_eos_token_id(made.eos_id())
        out.add_unk_token_id(made.unk_id())
    return write


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    expected, closest = {}, {}
    request = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": PROMPT}]
    for name, arch, pre, config in [
        ("llama", "llama", "smollm", lambda n: hf.LlamaConfig(vocab_size=n, rope_parameters=LLAMA3, **SIZES)),
        ("qwen2", "qwen2", "qwen2", lambda n: hf.Qwen2Config(vocab_size=n, tie_word_embeddings=True, **SIZES)),
        ("qwen3", "qwen3", "qwen2", lambda n: hf.Qwen3Config(vocab_size=n, head_dim=16, tie_word_embeddings=True, **SIZES)),
    ]:
        made = merged_bytes(pre)
        fast = hf.PreTrainedTokenizerFast(tokenizer_object=made, chat_template=TEMPLATE)
        prompt = fast.apply_chat_template(request, tokenize=False, add_generation_prompt=True, enable_thinking=False)
        ids = ([0] if pre == "smollm" else []) + made.encode(prompt).ids
        torch.manual_seed(7)
        model = random(hf.AutoModelForCausalLM.from_config(config(made.get_vocab_size())))
        all_ids, closest[name] = likeliest(model, ids, [0, 2])
        write(name, arch, model, "f32", by_bytes(made, pre))
        expected[name] = {"prompt": prompt, "ids": ids, "next": all_ids[len(ids):]}
    made = pieces()
    prompt = f"{SYSTEM}\n\n{PROMPT}\n\n"
    ids = [made.bos_id()] + made.encode(prompt)
    torch.manual_seed(7)
    model = random(hf.LlamaForCausalLM(hf.LlamaConfig(vocab_size=made.vocab_size(), tie_word_embeddings=True, **SIZES | {"intermediate_size": 64})))
    write("pieces", "llama", model, "q8_0", by_pieces(made))
    with torch.no_grad():
        for own, value in model.named_parameters():
            if value.dim() == 2:
                kind = gguf.GGMLQuantizationType.Q8_0
                value.copy_(torch.from_numpy(gguf.dequantize(gguf.quantize(value.numpy(), kind), kind)))
    # Products of quantised weights round the other side to 8 bits as well.
    all_ids, closest["pieces"] = likeliest(model, ids, [made.eos_id()], ahead=0.05)
    expected["pieces"] = {"prompt": prompt, "ids": ids, "next": all_ids[len(ids):]}
    whole = {"system": SYSTEM, "question": PROMPT, "files": expected}
    (OUT / "expected.json").write_text(json.dumps(whole, ensure_ascii=False) + "\n")
    for name, gap in closest.items():
        print(f"{name}: {len(expected[name]['ids'])} tokens, {len(expected[name]['next'])} more, the closest ahead by {gap:.4f}")


main()
