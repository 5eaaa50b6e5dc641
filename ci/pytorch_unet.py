#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes what PyTorch computes for stepgate's UNets: tests/golden/pytorch_unet.json.

Like pytorch_resnet.py, in double precision on the CPU: losses of some steps, summaries of the first gradient,
and of the weights after two steps. The network is written after UNet2DModel of diffusers, which is not
asked. The test that reads the file is tests/numbers/pytorch_unet_test.cpp.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F

from pytorch_transformer import SEED, SLOTS, hash_of, random_bits, summary, uniform_signed, write_golden

# As in runner/plan/compose/update/update_rates.h.
RATE, BETAS, ADAM_EPSILON, DECAY = 1e-4, (0.9, 0.999), 1e-8, 0.01
EPSILON = 1e-5
MULTIPLES = (1, 2, 2, 4)  # of the width, by level
ATTENTION_LEVEL = 2
TIMES = 1000

# A case that is `whole` has one summary of its gradients instead of one for each tensor.
CASES = [
    dict(name="pixels", width=8, image=16, layers=1, batch=3, steps=5, whole=False),
    dict(name="blocks", width=16, image=8, layers=2, batch=2, steps=2, whole=True),
    dict(name="heads", width=64, image=8, layers=1, batch=2, steps=2, whole=True),
]


def groups_of(channels):
    """At most 32 groups, each of at least 4 channels."""
    return max(g for g in range(1, 33) if channels % g == 0 and (channels // g >= 4 or g == 1))


def heads_of(channels):
    return channels // 64 if channels % 64 == 0 else 1


def layers_of(case):
    """Yields what happens between conv_in and the last norm: kind, name, inputs, channels of the skip, outputs."""
    width, blocks, levels = case["width"], case["layers"], len(MULTIPLES)
    channels, skips = width, [width]
    for level, multiple in enumerate(MULTIPLES):
        name = f"down_blocks.{level}"
        for block in range(blocks):
            yield "residual", f"{name}.resnets.{block}", channels, 0, multiple * width
            channels = multiple * width
            if level == ATTENTION_LEVEL:
                yield "attention", f"{name}.attentions.{block}", channels, 0, channels
            yield "keep", "", channels, 0, channels
            skips.append(channels)
        if level + 1 < levels:
            yield "down", f"{name}.downsamplers.0", channels, 0, channels
            yield "keep", "", channels, 0, channels
            skips.append(channels)
    yield "residual", "mid_block.resnets.0", channels, 0, channels
    yield "attention", "mid_block.attentions.0", channels, 0, channels
    yield "residual", "mid_block.resnets.1", channels, 0, channels
    for level in reversed(range(levels)):
        name, outputs = f"up_blocks.{levels - 1 - level}", MULTIPLES[level] * width
        for block in range(blocks + 1):
            yield "residual", f"{name}.resnets.{block}", channels, skips.pop(), outputs
            channels = outputs
            if level == ATTENTION_LEVEL:
                yield "attention", f"{name}.attentions.{block}", channels, 0, channels
        if level > 0:
            yield "up", f"{name}.upsamplers.0", channels, 0, channels


def parameters_of(case):
    """Weights of convolutions as PyTorch has them; stepgate's lie [outputs][height][width][inputs]."""
    seed, first, made = int(random_bits(SEED, hash_of("weights"))), 0, {}
    width = case["width"]
    wide = 4 * width

    def add(name, shape, scale, centre=0.0):
        nonlocal first
        first = (first + 63) // 64 * 64
        draws = uniform_signed(seed, math.prod(shape), first).astype(np.float64)
        first += math.prod(shape)
        numbers = torch.tensor((centre + scale * draws).reshape(shape))
        if len(shape) == 4:
            numbers = numbers.permute(0, 3, 1, 2).contiguous()
        made[name] = numbers.requires_grad_()

    def linear(name, outputs, inputs):
        add(name + ".weight", (outputs, inputs), 1 / math.sqrt(inputs))
        add(name + ".bias", (outputs,), 1 / math.sqrt(inputs))

    def convolution(name, outputs, inputs):
        add(name + ".weight", (outputs, 3, 3, inputs), 1 / math.sqrt(9 * inputs))
        add(name + ".bias", (outputs,), 1 / math.sqrt(9 * inputs))

    def norm(name, channels):
        add(name + ".weight", (channels,), 0.1, 1.0)  # drawn, so that no norm can take another's
        add(name + ".bias", (channels,), 0.1)

    linear("time_embedding.linear_1", wide, width)
    linear("time_embedding.linear_2", wide, wide)
    convolution("conv_in", width, 3)
    for kind, name, inputs, others, outputs in layers_of(case):
        if kind == "residual":
            norm(name + ".norm1", inputs + others)
            convolution(name + ".conv1", outputs, inputs + others)
            linear(name + ".time_emb_proj", outputs, wide)
            norm(name + ".norm2", outputs)
            convolution(name + ".conv2", outputs, outputs)
            if inputs + others != outputs:
                scale = 1 / math.sqrt(inputs + others)
                add(name + ".conv_shortcut.weight", (outputs, inputs), scale)
                if others:
                    add(name + ".conv_shortcut.weight of the skip", (outputs, others), scale)
                add(name + ".conv_shortcut.bias", (outputs,), scale)
        elif kind == "attention":
            norm(name + ".group_norm", inputs)
            linear(name + ".to_qkv", 3 * inputs, inputs)
            linear(name + ".to_out.0", inputs, inputs)
        elif kind in ("down", "up"):
            convolution(name + ".conv", outputs, inputs)
    norm("conv_norm_out", width)
    convolution("conv_out", 3, width)
    return made


def batches_of(case):
    """Yields the images of each slot as PyTorch has them, and times; a sample's last word is its time."""
    side = case["image"]
    for slot in range(SLOTS):
        seed = int(random_bits(SEED ^ hash_of("payload"), slot))
        words = uniform_signed(seed, case["batch"] * (3 * side * side + 1)).reshape(case["batch"], -1)
        images = torch.tensor(words[:, :-1].astype(np.float64)).view(-1, side, side, 3).permute(0, 3, 1, 2)
        times = np.ascontiguousarray(words[:, -1]).view(np.uint32) % TIMES
        yield images, torch.tensor(times.astype(np.int64))


def noise_of(images, times, step):
    """stepgate's own noise (kernels/diffusion/diffusion.h), as PyTorch has images."""
    samples, colours, side, _ = images.shape
    features = colours * side * side
    bits = np.concatenate(
        [
            random_bits(int(random_bits(step, int(time))), np.arange(n * features, (n + 1) * features, dtype=np.uint64))
            for n, time in enumerate(times)
        ]
    )
    radius = ((bits >> np.uint64(40)) + np.uint64(1)).astype(np.float64) * 2.0**-24
    angle = (bits >> np.uint64(16) & np.uint64(0xFFFFFF)).astype(np.float64) * 2.0**-24
    noise = np.sqrt(-2 * np.log(radius)) * np.cos(2 * math.pi * angle)
    return torch.tensor(noise).view(samples, side, side, colours).permute(0, 3, 1, 2)


def signal_of(times):
    def angle(share):
        return (share + 0.008) / 1.008 * math.pi / 2

    return torch.cos(angle((times + 1).double() / TIMES)) / math.cos(angle(0.0))


def time_features(case, times):
    half = case["width"] // 2
    frequencies = torch.exp(-math.log(10000.0) * torch.arange(half, dtype=torch.float64, device=times.device) / half)
    angles = times.double()[:, None] * frequencies[None]
    return torch.cat([torch.cos(angles), torch.sin(angles)], 1)


def predict(case, p, images, features):
    def linear(name, x):
        return F.linear(x, p[name + ".weight"], p[name + ".bias"])

    def convolution(name, x, stride=1):
        return F.conv2d(x, p[name + ".weight"], p[name + ".bias"], stride=stride, padding=1)

    def norm(name, x):
        return F.group_norm(x, groups_of(x.shape[1]), p[name + ".weight"], p[name + ".bias"], EPSILON)

    time = F.silu(linear("time_embedding.linear_2", F.silu(linear("time_embedding.linear_1", features))))
    x = convolution("conv_in", images)
    skips = [x]
    for kind, name, inputs, others, outputs in layers_of(case):
        if kind == "keep":
            skips.append(x)
        elif kind == "down":
            x = convolution(name + ".conv", x, 2)
        elif kind == "up":
            x = convolution(name + ".conv", F.interpolate(x, scale_factor=2.0, mode="nearest"))
        elif kind == "residual":
            if others:
                x = torch.cat([x, skips.pop()], 1)
            inner = convolution(name + ".conv1", F.silu(norm(name + ".norm1", x)))
            inner = inner + linear(name + ".time_emb_proj", time)[:, :, None, None]
            inner = convolution(name + ".conv2", F.silu(norm(name + ".norm2", inner)))
            if inputs + others != outputs:
                weight = p[name + ".conv_shortcut.weight"]
                if others:
                    weight = torch.cat([weight, p[name + ".conv_shortcut.weight of the skip"]], 1)
                x = F.conv2d(x, weight[:, :, None, None], p[name + ".conv_shortcut.bias"])
            x = x + inner
        else:
            samples, channels, side, _ = x.shape
            tokens = norm(name + ".group_norm", x).flatten(2).transpose(1, 2)
            qkv = linear(name + ".to_qkv", tokens).view(samples, side * side, 3, heads_of(channels), -1)
            q, k, v = qkv.permute(2, 0, 3, 1, 4)
            probabilities = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(q.shape[-1]), -1)
            attended = (probabilities @ v).transpose(1, 2).reshape(samples, -1, channels)
            out = linear(name + ".to_out.0", attended).transpose(1, 2).reshape(x.shape)
            x = x + out
    return convolution("conv_out", F.silu(norm("conv_norm_out", x)))


def loss_of(case, p, images, times, step):
    dtype = next(iter(p.values())).dtype
    noise, signal = noise_of(images, times, step), signal_of(times)[:, None, None, None]
    noisy = signal * images + torch.sqrt(1 - signal**2) * noise
    return F.mse_loss(predict(case, p, noisy.to(dtype), time_features(case, times).to(dtype)), noise.to(dtype))


def flat(tensor):
    return tensor.permute(0, 2, 3, 1).contiguous() if tensor.dim() == 4 else tensor


def summary_of_all(name, tensors):
    return summary(name, torch.cat([flat(t).detach().reshape(-1) for t in tensors]))


def first_gradients(case, dtype):
    parameters = {name: p.detach().to(dtype).requires_grad_() for name, p in parameters_of(case).items()}
    loss_of(case, parameters, *next(batches_of(case)), 0).backward()
    return {name: p.grad.double() for name, p in parameters.items()}


def error_of_fp32(case):
    """The largest relative error of a gradient of PyTorch's own in fp32: how far fp32 can agree. Keys have no
    gradient of their bias but for rounding, since a softmax has no slope along it."""
    exact, rounded = (first_gradients(case, dtype) for dtype in (torch.float64, torch.float32))
    return max(
        ((rounded[name] - g).norm() / g.norm()).item() for name, g in exact.items() if not name.endswith("to_qkv.bias")
    )


def optimizer_of(parameters):
    return torch.optim.AdamW(parameters.values(), lr=RATE, betas=BETAS, eps=ADAM_EPSILON, weight_decay=DECAY)


def after_two_steps(case):
    """Trains twice on the first batch, with the noise of the first two steps."""
    parameters = parameters_of(case)
    images, times = next(batches_of(case))
    optimizer = optimizer_of(parameters)
    for step in range(2):
        optimizer.zero_grad()
        loss_of(case, parameters, images, times, step).backward()
        optimizer.step()
    return summary_of_all("weights", parameters.values())


def run(case):
    parameters = parameters_of(case)
    batches = list(batches_of(case))
    optimizer = optimizer_of(parameters)
    losses, gradients = [], None
    for step in range(case["steps"]):
        optimizer.zero_grad()
        loss = loss_of(case, parameters, *batches[step % SLOTS], step)
        loss.backward()
        losses.append(loss.item())
        if gradients is None and case["whole"]:
            gradients = {"gradients": summary_of_all("gradients", [p.grad for p in parameters.values()])}
        elif gradients is None:
            gradients = {name: summary(name, flat(p.grad)) for name, p in parameters.items()}
        optimizer.step()
    results = {"losses": losses, "gradients": gradients, "weights after two steps": after_two_steps(case)}
    return {**case, "seed": SEED, "fp32_error": error_of_fp32(case), **results}


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    write_golden("pytorch_unet", [run(case) for case in CASES])
