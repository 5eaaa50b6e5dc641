#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes what PyTorch computes for stepgate's transformer: tests/golden/pytorch_transformer.json.

Any PyTorch 2 will do, on any machine; it runs in double precision on the CPU. Weights and batches are
drawn as stepgate draws them, so the file holds results alone: ten losses, and of every tensor of the
first gradient and of the weights after ten steps its norm and its products with two random directions,
which no wrong element escapes. The test that reads it is tests/numbers/pytorch_transformer_test.cpp.
"""

import json
import math
import pathlib
import re

import numpy as np
import torch
import torch.nn.functional as F

STEPS = 10
SLOTS = 4  # distinct batches, which the steps use in turns
SEED = 20
RATE, BETAS, EPSILON, DECAY = 1e-4, (0.9, 0.999), 1e-8, 0.01

CASES = [
    dict(name="gpt", layers=2, hidden=24, heads=3, seq=10, vocab=37, batch=4, norm="layer", clip=0.0),
    dict(name="clipped", layers=1, hidden=16, heads=2, seq=7, vocab=50, batch=3, norm="layer", clip=0.1),
    dict(name="rms", layers=3, hidden=16, heads=1, seq=5, vocab=11, batch=2, norm="rms", clip=0.0),
    dict(name="llama", layers=2, hidden=24, heads=3, seq=10, vocab=37, batch=4, norm="rms", clip=0.0, mlp="swiglu",
         position="rope", tied=True),
    dict(name="grouped", layers=2, hidden=32, heads=4, seq=9, vocab=41, batch=3, norm="rms", clip=0.1, mlp="swiglu",
         ffn=40, position="rope", kv_heads=2),
    dict(name="tied", layers=1, hidden=16, heads=2, seq=7, vocab=23, batch=3, norm="layer", clip=0.0, tied=True),
]

# Values that a case does not give: the knobs of [model] by their names, None where they are "auto"
# or "heads".
USUAL = dict(mlp="gelu", ffn=None, position="learned", tied=False, kv_heads=None)
ROPE_BASE = 10000.0


def knob(case, name):
    return case.get(name, USUAL[name])


def kv_heads_of(case):
    return knob(case, "kv_heads") or case["heads"]


def ffn_of(case):
    """Width of the MLP: as told, or 4 times the hidden size, of swiglu 8/3 of it up to a multiple of 64."""
    if knob(case, "ffn") is not None:
        return knob(case, "ffn")
    hidden = case["hidden"]
    return 4 * hidden if knob(case, "mlp") == "gelu" else math.ceil(8 * hidden / (3 * 64)) * 64


# --- stepgate's random numbers (base/random.h, device/contents.cpp) -------------------------------


def random_bits(seed, index):
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + (np.asarray(index, np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def hash_of(name):
    value = 0xCBF29CE484222325
    for letter in name.encode():
        value = ((value ^ letter) * 0x100000001B3) & (2**64 - 1)
    return value


def uniform_signed(seed, count, first=0):
    bits = random_bits(seed, np.arange(first, first + count, dtype=np.uint64)) >> np.uint64(40)
    return ((bits.astype(np.int64) - 2**23) * 2.0**-23).astype(np.float32)


# --- the parameters, in the order of stepgate's flat buffer (plan/compose/transformer/transformer_shape.cpp) -------------


def tensors_of(case):
    """Name, shape, centre and scale of each; where it begins."""
    hidden, vocab, seq, ffn = case["hidden"], case["vocab"], case["seq"], ffn_of(case)
    rows, first = [], 0

    def add(name, shape, scale, centre=0.0, aligned=True):
        nonlocal first
        if aligned:
            first = (first + 63) // 64 * 64
        rows.append((name, shape, centre, scale, first))
        first += math.prod(shape)

    def norm(name):
        add(name + " weight", (hidden,), 0.1, 1.0)
        if case["norm"] == "layer":
            add(name + " bias", (hidden,), 0.1, aligned=False)

    def product(name, outputs, inputs):
        scale = 1 / math.sqrt(inputs)
        add(name + " weight", (outputs, inputs), scale)
        add(name + " bias", (outputs,), scale)

    add("token embedding", (vocab, hidden), 0.035)
    if knob(case, "position") == "learned":
        add("position embedding", (seq, hidden), 0.035)
    for layer in range(case["layers"]):
        block = f"block {layer}: "
        norm(block + "norm 1")
        product(block + "qkv", hidden + 2 * kv_heads_of(case) * (hidden // case["heads"]), hidden)
        product(block + "projection", hidden, hidden)
        norm(block + "norm 2")
        if knob(case, "mlp") == "swiglu":
            product(block + "gate and up", 2 * ffn, hidden)
        else:
            product(block + "up", ffn, hidden)
        product(block + "down", hidden, ffn)
    norm("final norm")
    if not knob(case, "tied"):
        add("head", (vocab, hidden), 1 / math.sqrt(hidden))
    return rows


def parameters_of(case):
    seed = int(random_bits(SEED, hash_of("weights")))
    made = {}
    for name, shape, centre, scale, first in tensors_of(case):
        draws = uniform_signed(seed, math.prod(shape), first).astype(np.float64)
        numbers = (centre + scale * draws).astype(np.float32).astype(np.float64)
        made[name] = torch.tensor(numbers.reshape(shape), requires_grad=True)
    return made


def batches_of(case):
    """Of each slot tokens and labels."""
    words = case["seq"] + 1
    for slot in range(SLOTS):
        seed = int(random_bits(SEED ^ hash_of("payload"), slot))
        bits = uniform_signed(seed, case["batch"] * words).view(np.uint32)
        with np.errstate(over="ignore"):
            mixed = (bits * np.uint32(0x9E3779B1)).astype(np.uint64)
        tokens = ((mixed * np.uint64(case["vocab"])) >> np.uint64(32)).astype(np.int64)
        tokens = torch.tensor(tokens.reshape(case["batch"], words))
        yield tokens[:, :-1], tokens[:, 1:]


# --- the model ---------------------------------------------------------------------------------------


def turned(x):
    """RoPE of [batch, heads, seq, width]: numbers i and i + width / 2 turn together, as in Llama."""
    seq, width = x.shape[-2:]
    frequencies = ROPE_BASE ** (-2.0 * torch.arange(width // 2, dtype=x.dtype) / width)
    angles = torch.arange(seq, dtype=x.dtype)[:, None] * frequencies
    first, second = x.chunk(2, dim=-1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def loss_of(case, p, tokens, labels):
    batch, seq, heads, kv_heads = case["batch"], case["seq"], case["heads"], kv_heads_of(case)
    width = case["hidden"] // heads

    def norm(x, name):
        if case["norm"] == "rms":
            return F.rms_norm(x, (case["hidden"],), p[name + " weight"], 1e-5)
        return F.layer_norm(x, (case["hidden"],), p[name + " weight"], p[name + " bias"], 1e-5)

    def linear(x, name):
        return F.linear(x, p[name + " weight"], p[name + " bias"])

    def mlp(x, block):
        if knob(case, "mlp") == "swiglu":
            gate, up = linear(x, block + "gate and up").chunk(2, dim=-1)
            return linear(F.silu(gate) * up, block + "down")
        return linear(F.gelu(linear(x, block + "up"), approximate="tanh"), block + "down")

    x = p["token embedding"][tokens]
    if knob(case, "position") == "learned":
        x = x + p["position embedding"]
    for layer in range(case["layers"]):
        block = f"block {layer}: "
        qkv = linear(norm(x, block + "norm 1"), block + "qkv")
        parts = qkv.split([heads * width, kv_heads * width, kv_heads * width], dim=-1)
        q, k, v = (t.view(batch, seq, -1, width).transpose(1, 2) for t in parts)
        if knob(case, "position") == "rope":
            q, k = turned(q), turned(k)
        k, v = (t.repeat_interleave(heads // kv_heads, dim=1) for t in (k, v))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(attended.transpose(1, 2).reshape(batch, seq, -1), block + "projection")
        x = x + mlp(norm(x, block + "norm 2"), block)
    logits = F.linear(norm(x, "final norm"), p["token embedding" if knob(case, "tied") else "head"])
    return F.cross_entropy(logits.view(-1, case["vocab"]), labels.reshape(-1))


def summary(name, tensor):
    flat = tensor.detach().numpy().reshape(-1)
    directions = [uniform_signed(int(random_bits(which, hash_of(name))), flat.size) for which in (1, 2)]
    return {"norm": float(np.linalg.norm(flat)), "products": [float(flat @ d) for d in directions]}


def run(case):
    parameters = parameters_of(case)
    batches = list(batches_of(case))
    optimizer = torch.optim.AdamW(
        parameters.values(), lr=RATE, betas=BETAS, eps=EPSILON, weight_decay=DECAY
    )
    losses, gradients = [], None
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(case, parameters, *batches[step % SLOTS])
        loss.backward()
        losses.append(loss.item())
        if gradients is None:
            gradients = {name: summary(name, p.grad) for name, p in parameters.items()}
        if case["clip"] > 0:
            torch.nn.utils.clip_grad_norm_(parameters.values(), case["clip"])
        optimizer.step()
    weights = {name: summary(name, p) for name, p in parameters.items()}
    return {**case, "seed": SEED, "losses": losses, "gradients": gradients, "weights": weights}


def write_golden(name, cases):
    """Writes tests/golden/<name>.json, with a line for each tensor."""
    path = pathlib.Path(__file__).parent.parent / "tests/golden" / (name + ".json")
    version = torch.__version__.split("+")[0]
    text = json.dumps({"pytorch": version, "cases": cases}, indent=1)
    tensor = r'\{\s+("norm": .+,)\s+("products": \[)\s+(.+,)\s+(.+)\s+\]\s+\}'
    path.write_text(re.sub(tensor, r"{\1 \2\3 \4]}", text) + "\n")
    print(f"{path}: {len(cases)} cases by PyTorch {version}")


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    write_golden("pytorch_transformer", [run(case) for case in CASES])
