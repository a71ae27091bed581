"""Writes tiny GPT-2 and Llama models as Hugging Face's transformers save them, and their losses, for
tests/backend/checkpoint/hugging_face_test.cpp.

With PyTorch 1.13, transformers 4.40.2 and safetensors 0.8.0, in this folder:

    python3 golden.py > losses.txt

The losses are summed cross entropies in float64 of the weights as they are saved.
"""

import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

SEQUENCE, VOCABULARY = 6, 13


def save(name, model, dtype, **options):
    torch.manual_seed(7)
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            parameter.normal_(0.0, 0.3)
            if parameter.dim() == 1 and "weight" in parameter_name:  # of a norm
                parameter.add_(1.0)
    model.to(dtype).save_pretrained(name, safe_serialization=True, **options)
    model = type(model).from_pretrained(name, torch_dtype=torch.float64).eval()
    inputs = torch.randint(0, VOCABULARY, (1, SEQUENCE))
    targets = torch.randint(0, VOCABULARY, (1, SEQUENCE))
    with torch.no_grad():
        logits = model(inputs).logits[0]
    loss = torch.nn.functional.cross_entropy(logits, targets[0], reduction="sum").item()
    print(name, repr(loss), *inputs[0].tolist(), *targets[0].tolist())


save(
    "gpt2",
    GPT2LMHeadModel(
        GPT2Config(vocab_size=VOCABULARY, n_positions=2 * SEQUENCE, n_embd=16, n_layer=2, n_head=4, n_inner=32)
    ),
    torch.float32,
)
llama = dict(
    vocab_size=VOCABULARY,
    hidden_size=16,
    intermediate_size=24,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=SEQUENCE,
    rms_norm_eps=1e-5,
    rope_theta=100.0,
)
save("llama", LlamaForCausalLM(LlamaConfig(**llama)), torch.bfloat16, max_shard_size="5KB")
