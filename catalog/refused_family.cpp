// Architectures that are refused by name, and why: transformers 5.24 of PyPI, models/<model_type>.
#include <algorithm>
#include <array>
#include <string>

#include "catalog/huggingface_family.hpp"

namespace shardwise {
namespace {

constexpr std::string_view recurrent = "it has state-space layers instead of attention";
constexpr std::string_view seq2seq = "it is an encoder-decoder; only decoders are supported";
constexpr std::string_view encoder = "it is an encoder; only decoders are supported";
constexpr std::string_view crossed = "every fifth of its layers is cross-attention to an image";
constexpr std::string_view no_attention = "it is recurrent and has no attention";
constexpr std::string_view unread = "no row describes its layers yet";
constexpr std::string_view post_norm = "its norms follow the residual sums (post-norm)";
constexpr std::string_view squares = "its queries and keys have LayerNorms, its MLP squares a ReLU";
constexpr std::string_view sinusoids = "its positions are sinusoids, added to scaled embeddings";
constexpr std::string_view codebooks =
    "it attends to another encoder's text, with a head a codebook";
constexpr std::string_view drafts =
    "it drafts with the keys of another model and is not trained alone";
constexpr std::string_view sized = "its local and global layers have different attention sizes";
constexpr std::string_view diffusion =
    "it makes images or video by diffusion; only language models are supported";
constexpr std::string_view embeds =
    "it is trained on pooled outputs, without logits, which is not modelled";
constexpr std::string_view streams = "its residual stream is several, joined by hyper-connections";
constexpr std::string_view biased = "positions are learned relative biases of its attention";
constexpr std::string_view blocks = "its attention chooses blocks of keys, which is not modelled";
constexpr auto refused = std::to_array<RefusedFamily>({
    {"nemotron-nas", "its layers differ from each other, and some have no attention", "llama"},
    {"mimo_v2_flash", sized, "mixtral"},
    {"step3p5", sized, "glm4_moe"},
    {"step3p7_text", sized, "glm4_moe"},
    {"step3p7", sized, "glm4_moe"},
    {"laguna", "its layers may differ in their numbers of heads", "afmoe"},
    {"deepseek_v4", "its attention to compressed keys is not modelled", "deepseek_v32"},
    {"deepseek_ref", "its attention to compressed keys is not modelled", "deepseek_v32"},
    {"minimax_m3", blocks, "minimax_m2"},
    {"minimax_m3_vl", blocks, "minimax_m2"},
    {"minimax_m3_vl_text", blocks, "minimax_m2"},
    {"kimi_k3", "its layers attend to what earlier ones gave (attention residuals)", "kimi_linear"},
    {"dots3_note_text", "its attention chooses keys through an indexer of its own kind",
     "deepseek_v32"},
    {"mistral_large4_text", "its layers share latent keys of others", "mistral4"},
    {"muse_glimmer_text", "norms of its queries and keys have no weights", "afmoe"},
    {"muse_spark_text", "its residual sums pass gates, and its experts lie between two linears",
     "afmoe"},
    {"molmo2_text", "its embedding has rows that its head lacks", "qwen3"},
    {"voxtral_realtime_text", "its norms are scaled through two linears by how long it waits",
     "ministral3"},
    {"hy_v4", streams, "hy_v3"},
    {"hy_v4_vl_text", streams, "hy_v3"},
    {"glm5_next_text", streams, "glm_moe_dsa"},
    {"qwen4_exp_text", streams, "qwen3_5_moe_text"},
    {"bailing_hybrid", "its linear attention has gates of full rank, which are not described",
     "kimi_linear"},
    {"axk1", "its expert layers have a norm more than its dense ones", "deepseek_v3"},
    {"axk2", "gates through a low rank follow its norms", "deepseek_v32"},
    {"longcat_flash", "its layers have two attentions each, and experts that do nothing",
     "deepseek_v3"},
    {"zaya", "its attention convolves compressed queries and keys (CCA)", "qwen3_moe"},
    {"inkling_text", biased, "gpt_oss"},
    {"inkling2_text", biased, "gpt_oss"},
    {"inkling2_loop_text", biased, "gpt_oss"},
    {"jetmoe", "its attention heads are experts", "mixtral"},
    {"diffllama", "its attention is the difference of two softmaxes", "llama"},
    {"doge", "its attention masks keys by their values", "llama"},
    {"bitnet", "its linears are trained through weights of three values", "llama"},
    {"hrm_text", "its layers run several times for one token", "llama"},
    {"blt", "it reads bytes in patches of changing length", "llama"},
    {"zamba", "its state-space layers share attention blocks", "bamba"},
    {"zamba2", "its attention blocks share weights, with adapters of their own", "bamba"},
    {"phi4flash", "it has Mamba-1 layers, and its later layers share what one of them gives",
     "phi3"},
    {"recurrent_gemma", "it mixes recurrent layers with attention", "gemma"},
    {"nanochat",
     "its norms have no weights; the catalog has the sizes of nanochat's own code (nanochat-d20)",
     "llama"},
    {"mllama", crossed, "llama"},
    {"mllama_text_model", crossed, "llama"},
    {"mamba", recurrent, "jamba"},
    {"mamba2", recurrent, "bamba"},
    {"falcon_mamba", recurrent, "jamba"},
    {"xlstm", no_attention, "llama"},
    {"rwkv", no_attention, "llama"},
    {"rwkv5", no_attention, "llama"},
    {"rwkv6", no_attention, "llama"},
    {"rwkv7", no_attention, "llama"},
    {"cohere_compass_text", "it is close to Cohere 2, but nobody has counted its layers",
     "cohere2"},
    {"flint", "its attention keeps fp32 scores, with a sink for each head, beside a shared expert",
     "qwen3_moe"},
    {"beam", unread, "llama"},
    {"lara_mini", unread, "llama"},
    {"inkling", unread, "llama"},
    {"ernie4_5_vl_moe_text", "its tokens of text and of images have experts of their own",
     "ernie4_5_moe"},
    {"aria_text", unread, "llama"},
    {"emu3_text_model", "its images are tokens of a quantiser of its own", "llama"},
    {"emu3", "its images are tokens of a quantiser of its own", "llama"},
    {"fuyu", squares, "gpt_neox"},
    {"git", post_norm, "gpt2"},
    {"got_ocr2", "its decoder is a Qwen 2; the encoder of images before it is not described",
     "qwen2"},
    {"gpt_neox_japanese", "only its last layer's attention has a bias", "gpt_neox"},
    {"modernbert-decoder", "a layer and a norm of their own stand before its head", "llama"},
    {"moshi", "a second decoder runs over the codebooks of every step", "llama"},
    {"moss_transcribe_diarize",
     "its decoder is a Qwen 3; the encoder of speech before it is not described", "qwen3"},
    {"musicgen", codebooks, "gpt2"},
    {"musicgen_melody", codebooks, "gpt2"},
    {"reformer", "its attention hashes keys, and its layers can be run backwards", "gpt2"},
    {"xlm", post_norm, "gpt2"},
    {"xlnet", "its attention runs over permutations of the tokens", "gpt2"},
    {"gemma4_assistant", drafts, "gemma4_text"},
    {"gemma4_unified_assistant", drafts, "gemma4_text"},
    {"persimmon", squares, "gpt_neox"},
    {"xglm", sinusoids, "opt"},
    {"biogpt", "its layers are like OPT's, but nobody has counted them", "opt"},
    {"codegen", "its layers are like GPT-J's, but nobody has counted them", "gptj"},
    {"ctrl", sinusoids, "gpt2"},
    {"openai-gpt", post_norm, "gpt2"},
    {"cpmant", biased, "gpt2"},
    {"dory", unread, "llama"},
    {"t5", seq2seq, "gpt2"},
    {"mt5", seq2seq, "gpt2"},
    {"umt5", seq2seq, "gpt2"},
    {"bart", seq2seq, "gpt2"},
    {"mbart", seq2seq, "gpt2"},
    {"blenderbot", seq2seq, "gpt2"},
    {"blenderbot-small", seq2seq, "gpt2"},
    {"whisper", seq2seq, "gpt2"},
    {"pegasus", seq2seq, "gpt2"},
    {"bigbird_pegasus", seq2seq, "gpt2"},
    {"marian", seq2seq, "gpt2"},
    {"mvp", seq2seq, "gpt2"},
    {"plbart", seq2seq, "gpt2"},
    {"prophetnet", seq2seq, "gpt2"},
    {"trocr", seq2seq, "gpt2"},
    {"t5gemma", seq2seq, "gpt2"},
    {"t5gemma2", seq2seq, "gpt2"},
    {"switch_transformers", seq2seq, "gpt2"},
    {"led", seq2seq, "gpt2"},
    {"longt5", seq2seq, "gpt2"},
    {"bert", encoder, "gpt2"},
    {"roberta", encoder, "gpt2"},
    {"deberta-v2", encoder, "gpt2"},
    {"modernbert", encoder, "gpt2"},
    {"electra", encoder, "gpt2"},
    {"camembert", encoder, "gpt2"},
    {"xlm-roberta", encoder, "gpt2"},
    {"xlm-roberta-xl", encoder, "gpt2"},
    {"roberta-prelayernorm", encoder, "gpt2"},
    {"bert-generation", encoder, "gpt2"},
    {"big_bird", encoder, "gpt2"},
    {"data2vec-text", encoder, "gpt2"},
    {"ernie", encoder, "gpt2"},
    {"megatron-bert", encoder, "gpt2"},
    {"rembert", encoder, "gpt2"},
    {"roc_bert", encoder, "gpt2"},
    {"roformer", encoder, "gpt2"},
    {"xmod", encoder, "gpt2"},
    {"eurobert", encoder, "gpt2"},
    {"distilbert", encoder, "gpt2"},
    {"albert", encoder, "gpt2"},
    // A word of ours: the decoder's own type stands in its config.json.
    {"embedding", embeds, "qwen3"},
    {"diffusion", diffusion, ""},  // pipelines of diffusers: model_index.json has no model_type
});

}  // namespace

const RefusedFamily* refused_family(std::string_view model_type) {
  const auto named = [&](const std::string& type) {
    return std::find_if(refused.begin(), refused.end(),
                        [&](const RefusedFamily& f) { return f.model_type == type; });
  };
  const auto* found = named(std::string(model_type));
  // Of what sees or hears as well, the language model has the reason.
  if (found == refused.end()) found = named(std::string(model_type) + "_text");
  return found == refused.end() ? nullptr : found;
}

}  // namespace shardwise
