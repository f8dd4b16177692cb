/* Words that people type and pages do not use. A word of a group finds the others, too. */
export const SAME = `
  garbage gibberish nonsense garbled rubbish gobbledygook incoherent
  repeats loops repetition repetitive endless
  concatenate concat append
  convert conversion converter port
  resize resolution interpolate
  extend extension stretch longer
  fine-tune finetune finetuning
  picture image vision
  layer layers
  swap exchange
  bf16 bfloat16
  fp16 float16
  fp32 float32
  huggingface transformers hf
  neox gpt-neox
  differ different difference
  wrong incorrect bad worse
  cut truncated
  heatmap map
  lookup table
  exercise homework assignment
  crash error exception
  dim dimension channels
  seq sequence
  pos position
  max maximum
  3d three-axis axes
  scratch zero
  speculative draft eagle medusa
`.trim().split("\n").map((line) => line.trim().split(" "));

/* By page, or by section of a page: what people ask, and the errors that they paste. */
export const WORDS = {
  "": "what is positional encoding in simple words",
  "add/":
    "how to extend to 128k rope_theta missing qwen qwen2.5 llama mistral " +
    "gemma exaone phi deepseek which code does my model need paste config",
  "attention-sinks/": "keep the first tokens forever endless generation infinite chat rolling window",
  "dialects/":
    "vllm sglang ollama llama.cpp mlx exllama koboldcpp lm studio flags command line max_model_len max-model-len " +
    "derived hf-overrides --rope-scaling --rope-freq-base --rope-freq-scale --yarn-orig-ctx num_ctx modelfile " +
    "nothing happened no effect ignored setting unrecognized keys in rope_scaling",
  "serve-longer/":
    "how to extend qwen qwen2.5 to 32k 64k 128k 1m tokens longer than trained max_model_len max-model-len derived " +
    "hf-overrides ollama num_ctx context size eagle draft",
  "retold/": "introduction beginner explained simply eli5 tutorial from scratch",

  "broken/batches/": "left padding batch different results batched single prompt",
  "broken/batches/#padding-counted":
    "batch of prompts gives different output than single, only the longest is right, padding_side left",
  "broken/batches/#window-and-one": "sliding window off by one",
  "broken/batches/#drafts-one-ahead": "eagle medusa mtp draft acceptance rate low offset",
  "broken/caches/": "kv cache wrong output past_key_values first token right then garbage",
  "broken/caches/#query-after-the-cache-grew": "first token right then garbage",
  "broken/caches/#offset-is-what-is-left": "streaming eviction sliding cache loops",
  "broken/caches/#shifts-that-add-up": "context shift llama.cpp koboldcpp garbage after a while",
  "broken/configuration/#base-moved-in-version-5":
    "KeyError: 'rope_theta' missing gone rope_parameters upgrade no effect",
  "broken/configuration/#kind-under-another-key": "Unrecognized keys in rope_scaling for rope_type, ValueError",
  "broken/configuration/#rows-counted-from-two":
    "index out of bounds for dimension 0 with size, position embedding, sequence length is longer than the " +
    "specified maximum, indexing errors, 512",
  "broken/conversion/":
    "convert to hf gguf output wrong nonsense gibberish after conversion gpt-neox llama interleaved half",
  "broken/images/#resized-another-way":
    "size mismatch for pos_embed, copying a param with shape, image size resolution 224 384",
  "broken/scaling/":
    "garbage gibberish nonsense repeats itself random tokens beyond 2048 4096 8192 32768 tokens long prompt " +
    "context limit wrong factor 8 instead of 32 llama3, scaling applied twice",
  "broken/scaling/#scaling-never-read":
    "garbage after 4096 tokens, long prompt repeats itself, llama 3.1, native length, accepted but not scaled",
  "broken/scaling/#factors-switched-in-the-middle": "garbage gibberish after 4096 4k 8k tokens phi-3 phi-3.5",
  "broken/scaling/#long-factors-always": "short_factor never used",
  "broken/scaling/#attention-factor-dropped": "mscale",
  "broken/scaling/#factor-in-window-layers": "gemma 3 local global rope_local_base_freq",
  "broken/start/#frequencies-in-no-checkpoint":
    "inv_freq missing key unexpected key not in checkpoint nan meta device",
  "broken/training/#packed-and-only-reset":
    "packed sequences contamination loss spikes documents see each other cu_seqlens varlen reset position ids",

  "guide/bias/": "flash attention alibi_slopes slopes for 12 heads not a power of two t5 bias with cache",
  "guide/choosing/":
    "which encoding, which one should I use, can I switch or change a trained model to another encoding, replace " +
    "alibi by rope",
  "guide/debugging/":
    "model output is garbage gibberish nonsense repeats itself after n tokens, wrong output with kv cache, batch " +
    "different from single, my plot or heatmap does not look like the book, is my implementation wrong",
  "guide/debugging/#in-the-rotation":
    "The size of tensor a must match the size of tensor b at non-singleton dimension",
  "guide/evidence/": "bibtex cite citation how to cite lost in the middle needle in a haystack long inputs worse",
  "guide/images/":
    "another resolution image size 224 384 size mismatch for pos_embed copying a param with shape cls class token " +
    "register 3d position ids qwen-vl qwen2-vl qwen2.5-vl fps frames video repeats",
  "guide/in-a-transformer/":
    "cache keys before or after rope, left padding, position of padded tokens 0 or 1, reset position ids",
  "guide/learned/":
    "maximum length 512 1024, longer than the specified maximum sequence length, indexing errors, index out of " +
    "range in self, index out of bounds for dimension 0 with size, go past the limit, whisper longer audio",
  "guide/long-context/":
    "extend to 32k 64k 128k 1m tokens longer than trained lora same scaling in fine-tuning and inference " +
    "randomised random start positions gibberish after 8k",
  "guide/myths/#a-name-in-the-code-means-that-it-is-used": "repository says sinusoidal but uses a learned table",
  "guide/no-position/": "decoder without positional encoding, causal mask alone",
  "guide/order/": "what is positional encoding why is it needed word order ignored bag of words",
  "guide/other-shapes/": "irregular timestamps, sign flip of eigenvectors",
  "guide/read/": "linear attention mamba deltanet kda retnet rwkv",
  "guide/relative/": "rel_shift relative shift skew",
  "guide/rope/":
    "explained from scratch tutorial why only the difference m - n, one module for all layers shared, gpu differs " +
    "from cpu, partial rotary_dim half of the channels, learned parameters, precision of tables bfloat16 float32",
  "guide/sinusoidal/":
    "fixed, why add and not concatenate, why 10000, why sin and cos, even and odd, what does a frequency stand " +
    "for, whisper",

  "reference/axial_rope/": "2d rope x y cls token",
  "reference/check_positions/": "is my implementation right, test my rope, rope applied twice, position_ids ignored",
  "reference/transformer_xl/": "rel_shift relative shift",
  "reference/vit_table/": "size mismatch for pos_embed interpolate_pos_encoding resample",
};
