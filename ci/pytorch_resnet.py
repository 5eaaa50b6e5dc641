#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes what PyTorch computes for stepgate's ResNets: tests/golden/pytorch_resnet.json and pytorch_resnet_224.json.

Like pytorch_transformer.py, in double precision on the CPU: losses of some steps, summaries of the first
gradient and of the weights after these steps, and of weights and running statistics after two steps with
the same batch. The network of 50 layers is torchvision's own where torchvision is there; it is compared with
the one below first. At 224 pixels only losses are kept, and how far losses in fp32 and in bf16 are off; that
takes a quarter of an hour on two cores. The tests that read the files are
tests/numbers/pytorch_resnet_*test.cpp.
"""

import contextlib
import math

import numpy as np
import torch
import torch.nn.functional as F

from pytorch_transformer import SEED, SLOTS, hash_of, random_bits, summary, uniform_signed, write_golden

# As in runner/plan/compose/update/update_rates.h.
RATE, MOMENTUM, DECAY = 1e-3, 0.9, 1e-4
EPSILON, NORM_MOMENTUM = 1e-5, 0.1
BLOCKS = {14: (1, 1, 1, 1), 26: (2, 2, 2, 2), 50: (3, 4, 6, 3)}

CASES = [
    dict(name="resnet50", layers=50, width=64, stem="imagenet", image=32, classes=1000, batch=4, steps=2),
    dict(name="cifar", layers=14, width=8, stem="cifar", image=16, classes=10, batch=6, steps=10),
    dict(name="odd", layers=26, width=8, stem="imagenet", image=75, classes=7, batch=3, steps=4),
]

AT_224 = dict(name="resnet50 at 224", layers=50, width=64, stem="imagenet", image=224, classes=1000, batch=8, steps=10)
DRAWS = 4  # networks and batches whose losses say how far rounding moves a loss


def convolutions_of(case):
    """Yields the name of each convolution and of its norm, inputs, outputs, window and stride, in the forward order."""
    width, inputs = case["width"], case["width"]
    wide = case["stem"] == "imagenet"
    yield "conv1", "bn1", 3, inputs, 7 if wide else 3, 2 if wide else 1
    for stage, blocks in enumerate(BLOCKS[case["layers"]], start=1):
        for index in range(blocks):
            name = f"layer{stage}.{index}"
            stride = 2 if stage > 1 and index == 0 else 1
            yield f"{name}.conv1", f"{name}.bn1", inputs, width, 1, 1
            yield f"{name}.conv2", f"{name}.bn2", width, width, 3, stride
            yield f"{name}.conv3", f"{name}.bn3", width, 4 * width, 1, 1
            if index == 0:
                yield f"{name}.downsample.0", f"{name}.downsample.1", inputs, 4 * width, 1, stride
            inputs = 4 * width
        width *= 2


def parameters_of(case, seed=SEED):
    """Weights of convolutions as PyTorch has them; stepgate's lie [outputs][height][width][inputs]."""
    seed, first, made = int(random_bits(seed, hash_of("weights"))), 0, {}

    def add(name, shape, scale, centre=0.0):
        nonlocal first
        first = (first + 63) // 64 * 64
        draws = uniform_signed(seed, math.prod(shape), first).astype(np.float64)
        first += math.prod(shape)
        numbers = torch.tensor((centre + scale * draws).reshape(shape))
        if len(shape) == 4:
            numbers = numbers.permute(0, 3, 1, 2).contiguous()
        made[name] = numbers.requires_grad_()

    for conv, norm, inputs, outputs, window, _ in convolutions_of(case):
        add(conv + ".weight", (outputs, window, window, inputs), math.sqrt(6 / (window * window * outputs)))
        add(norm + ".weight", (outputs,), 0.1, 1.0)  # drawn, so that no norm can take another's
        add(norm + ".bias", (outputs,), 0.1)
    features = 32 * case["width"]
    add("fc.weight", (case["classes"], features), 1 / math.sqrt(features))
    add("fc.bias", (case["classes"],), 1 / math.sqrt(features))
    return made


def batches_of(case, seed=SEED):
    """Yields the images of each slot as PyTorch has them, and labels; a sample's last word is its label."""
    side = case["image"]
    for slot in range(SLOTS):
        words = uniform_signed(int(random_bits(seed ^ hash_of("payload"), slot)), case["batch"] * (3 * side * side + 1)).reshape(case["batch"], -1)
        images = torch.tensor(words[:, :-1].astype(np.float64)).view(-1, side, side, 3).permute(0, 3, 1, 2)
        labels = np.ascontiguousarray(words[:, -1]).view(np.uint32) % case["classes"]
        yield images, torch.tensor(labels.astype(np.int64))


def logits_of(case, p, running, images):
    def normed(x, conv, norm, stride):
        window = p[conv + ".weight"].shape[-1]
        x = F.conv2d(x, p[conv + ".weight"], stride=stride, padding=window // 2)
        mean, variance = running[norm]
        return F.batch_norm(x, mean, variance, p[norm + ".weight"], p[norm + ".bias"], True, NORM_MOMENTUM, EPSILON)

    strides = {conv: stride for conv, _, _, _, _, stride in convolutions_of(case)}
    x = F.relu(normed(images, "conv1", "bn1", strides["conv1"]))
    if case["stem"] == "imagenet":
        x = F.max_pool2d(x, 3, 2, 1)
    for stage, blocks in enumerate(BLOCKS[case["layers"]], start=1):
        for index in range(blocks):
            name, shortcut, inner = f"layer{stage}.{index}", x, x
            for place in (1, 2, 3):
                conv = f"{name}.conv{place}"
                inner = normed(inner, conv, f"{name}.bn{place}", strides[conv])
                if place < 3:
                    inner = F.relu(inner)
            down = f"{name}.downsample.0"
            if down in strides:
                shortcut = normed(x, down, f"{name}.downsample.1", strides[down])
            x = F.relu(inner + shortcut)
    return F.linear(x.mean((2, 3)), p["fc.weight"], p["fc.bias"])


def fresh_statistics(case):
    return {
        norm: (torch.zeros(outputs), torch.ones(outputs)) for _, norm, _, outputs, _, _ in convolutions_of(case)
    }


def compare_with_torchvision(case):
    try:
        from torchvision.models import resnet50
    except ImportError:
        print("torchvision is not there; the network was not compared with its own")
        return
    parameters, (images, labels) = parameters_of(case), next(batches_of(case))
    theirs = resnet50(num_classes=case["classes"]).train()
    own = {name: p.detach() for name, p in parameters.items()}
    missing, unexpected = theirs.load_state_dict(own, strict=False)
    assert not unexpected and all("running" in name or "tracked" in name for name in missing), (missing, unexpected)
    loss = F.cross_entropy(theirs(images), labels)
    loss.backward()
    running = fresh_statistics(case)
    ours = F.cross_entropy(logits_of(case, parameters, running, images), labels)
    ours.backward()
    assert abs(loss.item() - ours.item()) < 1e-12, (loss.item(), ours.item())
    for name, p in theirs.named_parameters():
        difference = (p.grad - parameters[name].grad).norm() / p.grad.norm()
        assert difference < 1e-8, (name, difference)
    for name, (mean, variance) in running.items():
        module = theirs.get_submodule(name)
        assert torch.allclose(module.running_mean, mean) and torch.allclose(module.running_var, variance), name
    print(f"{case['name']}: torchvision's loss, gradients and running statistics")


def first_gradients(case, dtype):
    parameters = {name: p.detach().to(dtype).requires_grad_() for name, p in parameters_of(case).items()}
    running = {name: (mean.to(dtype), variance.to(dtype)) for name, (mean, variance) in fresh_statistics(case).items()}
    images, labels = next(batches_of(case))
    F.cross_entropy(logits_of(case, parameters, running, images.to(dtype)), labels).backward()
    return {name: p.grad.double() for name, p in parameters.items()}


def error_of_fp32(case):
    """The largest relative error of a gradient of PyTorch's own in fp32: how far fp32 can agree at all."""
    exact, rounded = (first_gradients(case, dtype) for dtype in (torch.float64, torch.float32))
    return max(((rounded[name] - g).norm() / g.norm()).item() for name, g in exact.items())


def flat(tensor):
    return tensor.permute(0, 2, 3, 1).contiguous() if tensor.dim() == 4 else tensor


def optimizer_of(parameters):
    return torch.optim.SGD(parameters.values(), lr=RATE, momentum=MOMENTUM, weight_decay=DECAY)


def after_two_steps(case):
    """Trains twice on the first batch."""
    parameters, running = parameters_of(case), fresh_statistics(case)
    images, labels = next(batches_of(case))
    optimizer = optimizer_of(parameters)
    for _ in range(2):
        optimizer.zero_grad()
        F.cross_entropy(logits_of(case, parameters, running, images), labels).backward()
        optimizer.step()
    statistics = torch.cat([part for pair in running.values() for part in pair])
    weights = torch.cat([flat(p).detach().reshape(-1) for p in parameters.values()])
    return {"weights": summary("weights", weights), "running": summary("running statistics", statistics)}


def run(case):
    parameters, running = parameters_of(case), fresh_statistics(case)
    batches = list(batches_of(case))
    optimizer = optimizer_of(parameters)
    losses, gradients = [], None
    for step in range(case["steps"]):
        optimizer.zero_grad()
        images, labels = batches[step % SLOTS]
        loss = F.cross_entropy(logits_of(case, parameters, running, images), labels)
        loss.backward()
        losses.append(loss.item())
        if gradients is None:
            gradients = {name: summary(name, flat(p.grad)) for name, p in parameters.items()}
        optimizer.step()
    weights = {name: summary(name, flat(p)) for name, p in parameters.items()}
    results = {"losses": losses, "gradients": gradients, "weights": weights, "after two steps": after_two_steps(case)}
    return {**case, "seed": SEED, "fp32_error": error_of_fp32(case), **results}


def losses_of(case, parameters, batches, dtype, autocast=False, memory_format=torch.contiguous_format):
    parameters = {name: p.detach().to(dtype, copy=True).requires_grad_() for name, p in parameters.items()}
    running = {name: (mean.to(dtype), variance.to(dtype)) for name, (mean, variance) in fresh_statistics(case).items()}
    optimizer, losses = optimizer_of(parameters), []
    for step in range(case["steps"]):
        optimizer.zero_grad()
        images, labels = batches[step % SLOTS]
        with torch.autocast("cpu", torch.bfloat16) if autocast else contextlib.nullcontext():
            logits = logits_of(case, parameters, running, images.to(dtype, memory_format=memory_format))
        loss = F.cross_entropy(logits.to(dtype), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses)


def rounding_errors(case):
    """Of each step's loss, the root of the mean square of its relative error over some networks: in fp32 between two
    orders of the same sums, and in bf16 against fp32."""
    errors = {"fp32_errors": [], "bf16_errors": []}
    for seed in range(SEED, SEED + DRAWS):
        network = case, parameters_of(case, seed), list(batches_of(case, seed)), torch.float32
        expected = losses_of(*network)
        errors["fp32_errors"].append(losses_of(*network, memory_format=torch.channels_last) / expected - 1)
        errors["bf16_errors"].append(losses_of(*network, autocast=True) / expected - 1)
    return {name: np.sqrt(np.mean(np.square(found), axis=0)).tolist() for name, found in errors.items()}


def run_at_224(case):
    losses = losses_of(case, parameters_of(case), list(batches_of(case)), torch.float64)
    return {**case, "seed": SEED, **rounding_errors(case), "losses": losses.tolist()}


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    compare_with_torchvision(CASES[0])
    write_golden("pytorch_resnet", [run(case) for case in CASES])
    write_golden("pytorch_resnet_224", [run_at_224(AT_224)])
