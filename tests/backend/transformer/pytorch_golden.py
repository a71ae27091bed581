"""Writes golden figures of Hugging Face's GPT-2 and Llama in PyTorch, float64, for pytorch_golden_test.cpp.

Run with PyTorch 1.13.1 (CPU) and transformers 4.40.2 under Python 3.11:

    python3 pytorch_golden.py > pytorch_golden.txt

Each line: model, tensor, number of elements, elements in C order. Tensors: "loss" (mean over all tokens), "logits", and
the gradient of the loss by each parameter under its name. Weights and tokens are not written: both sides make them by
`fraction`, in whole numbers, so that they are the same to the last bit.
"""

import torch
import transformers

SEQUENCES, LENGTH, VOCABULARY = 2, 5, 11


def fraction(stream, index):
    """Stream and index to a number in [0, 1): 32 bits of a mixed product."""
    x = ((stream + 1) * 2654435761 + index * 2246822519) % 2**32
    x ^= x >> 15
    x = x * 3266489917 % 2**32
    x ^= x >> 13
    return x / 2**32


def report(model, name, values):
    numbers = [f"{value:.12g}" for value in values.detach().reshape(-1).tolist()]
    print(model, name, len(numbers), *numbers)


def run(name, model):
    model = model.double().eval()
    # In the order of the names, for that is the same everywhere. Norm weights lie about 1.
    for stream, (tensor, parameter) in enumerate(sorted(model.named_parameters())):
        middle = 1.0 if "ln_" in tensor or "norm" in tensor else 0.0
        values = [middle + fraction(stream, i) - 0.5 for i in range(parameter.numel())]
        with torch.no_grad():
            parameter.copy_(torch.tensor(values, dtype=torch.float64).reshape(parameter.shape))
    count = SEQUENCES * LENGTH
    tokens = torch.tensor([int(fraction(100, i) * VOCABULARY) for i in range(count)]).reshape(SEQUENCES, LENGTH)
    targets = torch.tensor([int(fraction(101, i) * VOCABULARY) for i in range(count)])
    logits = model(tokens).logits
    loss = torch.nn.functional.cross_entropy(logits.reshape(count, VOCABULARY), targets)
    loss.backward()
    report(name, "loss", loss)
    report(name, "logits", logits)
    for tensor, parameter in sorted(model.named_parameters()):
        report(name, tensor, parameter.grad)


run("gpt2", transformers.GPT2LMHeadModel(transformers.GPT2Config(
    vocab_size=VOCABULARY, n_positions=LENGTH, n_embd=8, n_layer=2, n_head=2, n_inner=16,
    activation_function="gelu_new", layer_norm_epsilon=1e-5, tie_word_embeddings=True)))
run("llama", transformers.LlamaForCausalLM(transformers.LlamaConfig(
    vocab_size=VOCABULARY, hidden_size=8, intermediate_size=12, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=LENGTH, rms_norm_eps=1e-5, rope_theta=50.0,
    tie_word_embeddings=False, attention_bias=False)))
