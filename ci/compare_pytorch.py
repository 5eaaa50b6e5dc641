#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times stepgate's transformers, ResNets and UNets and PyTorch's side by side on the local GPU, and prints a table.

    ci/compare_pytorch.py STEPGATE [--shapes d512,d768b8,...,llama2048,resnet50b64,unetb64] [--repeats 3] [--eager] [--heuristic]
    ci/compare_pytorch.py STEPGATE --drawn 10 [--seed S] [--at-least 1.1]
    ci/compare_pytorch.py STEPGATE --phases d768b32
    ci/compare_pytorch.py STEPGATE --kernels t8192
    ci/compare_pytorch.py STEPGATE --ranks 2 --shapes d768b8,d2048b4

The same model in both: GPT blocks with LayerNorm, biases and GELU-tanh and an untied head (gpt2: a tied one), or (llama...) blocks with RMSNorm,
rotary positions, a SwiGLU of one GEMM for gate and up, a tied head and no biases; AdamW, bf16 with fp32 master
weights, random tokens, no dropout. In PyTorch that is autocast, fused AdamW, scaled_dot_product_attention and
torch.compile, also with its CUDA graphs where steps are short; in stepgate a scenario with a graph, there also without. Every measurement is a
process of its own, and the two take turns, so that the clocks of the GPU are the same for both; a figure is the median
over the turns of the faster way. stepgate's GEMMs take the fastest algorithm that it measures ("autotune"), a GPT's gelu as their epilogue, or with
--heuristic also those that cuBLASLt names first, as PyTorch's do. A transformer has a second figure, with the sums of
attention's gradient in any order, as PyTorch's have by default; stepgate's own default is a fixed order, and only --any-order
lets the faster of the two be the first figure. With --drawn, as many transformers are drawn at random, and the seed that
draws them again is printed; any other transformer can be named with --shapes as they are: [llama]d1024l12h16t4096b4. With
--at-least, the exit code is 1 if a ratio is lower. With --phases, where in the step the time goes: PyTorch's phases between CUDA events,
stepgate's in its trace, and what its simulated device makes of the same step, whose kernels take what their bytes and
flops need at the rates of the GPU's profile. With --kernels, where it goes by kernel, in a trace of each: stepgate's of the step that it
launches as a graph, with attention's sums in any order. With --ranks, as many GPUs with a batch each: DistributedDataParallel over the
compiled model, with buckets of 25 and of 100 MiB that gradients are views of, and FSDP2 with compiled blocks, beside
stepgate's reduction in buckets of both sizes, also with ZeRO's first stage, and both with one GPU; the slowest rank's time
counts, and of traced steps the largest exposed communication of a rank. Needs any PyTorch 2 with CUDA, for images 2.3.

A ResNet is torchvision's in both, on random images in the GPU's memory: SGD with momentum and weight decay, bf16 with
fp32 master weights. A UNet is the one of pytorch_unet.py, which predicts the noise that the step adds to images of 64
pixels: AdamW, bf16 with fp32 master weights. In PyTorch that is channels_last, autocast, a fused optimizer and
torch.compile: as it is, with cudnn.benchmark, and of a ResNet with the kernels that max-autotune-no-cudagraphs chooses. The
peak of the memory is that of torch.cuda.max_memory_allocated in steady steps, and of stepgate's plan.
"""

import argparse
import functools
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile

SHAPES = {  # vocabulary, tokens, hidden, layers, heads, batch; "llama" in the name: blocks as Llama has them
    "gpt2": (50257, 1024, 768, 12, 12, 8),  # 124M as such: an odd vocabulary, and a tied head
    "d512": (32768, 256, 512, 6, 8, 16),
    "d768b8": (50304, 1024, 768, 12, 12, 8),
    "d768b32": (50304, 1024, 768, 12, 12, 32),
    "d1024": (50304, 1024, 1024, 24, 16, 16),
    "d2048": (32768, 2048, 2048, 16, 16, 8),
    "d2048b4": (32768, 2048, 2048, 16, 16, 4),
    "llama768b8": (32768, 1024, 768, 12, 12, 8),
    "llama2048": (32768, 2048, 2048, 16, 16, 8),
    "t4096": (32768, 4096, 1024, 12, 16, 4),  # the last three are held out: nothing is tuned for them
    "t8192": (32768, 8192, 1024, 12, 8, 2),
    "llamat4096": (32768, 4096, 2048, 6, 16, 2),
}
# The ranges that shapes are drawn from; the hidden size is a multiple of a head's.
HEAD_SIZES = (64, 128)
HIDDEN = (512, 2048)
LAYERS = (2, 24)
SEQ = (512, 8192)  # in whole tiles of 128 tokens, each doubling as likely as the next
TOKENS = (4096, 32768)  # of a batch
MOST_BYTES = 64 << 30  # of the step, by bytes_of
DRAWN_VOCABULARY = 32768
RESNETS = {  # layers, height and width of an image, batch; the last two are held out: nothing is tuned for them
    "resnet50b64": (50, 224, 64),
    "resnet50b256": (50, 224, 256),
    "resnet101b64": (101, 224, 64),
    "resnet50b96": (50, 192, 96),
}
UNETS = {"unetb64": dict(width=128, image=64, layers=2, batch=64), "unetb16": dict(width=128, image=64, layers=2, batch=16)}
OF_IMAGES = RESNETS | UNETS
BLOCKS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3)}  # of the four stages
CLASSES = 1000
TIMES = 1000  # as in pytorch_unet.py
BOUND_BY_LAUNCHES = {"gpt2", "d512", "d768b8", "llama768b8", "resnet50b64", "resnet50b96", "resnet101b64", "unetb16"}  # where CUDA graphs may help
PEAK_FLOPS = 989e12  # H100 and H200, bf16, dense


# --- the shapes --------------------------------------------------------------------------------------


def bytes_of(name):
    """A rough upper limit of what a step keeps: 18 bytes a parameter (fp32 weights, gradients and moments, and weights of 16
    bits), what a block keeps for its gradient, and the logits with their gradient."""
    vocab, seq, hidden, layers, _, batch = SHAPES[name]
    parameters = layers * (4 * hidden + 3 * ffn_of(name, hidden)) * hidden + 2 * vocab * hidden
    of_block = 2 * (12 * hidden + 6 * ffn_of(name, hidden))
    return 18 * parameters + batch * seq * (layers * of_block + 10 * vocab)


def is_known(name):
    """Whether there is such a shape; a name as of drawn shapes says what it is."""
    if found := re.fullmatch(r"(?:llama)?d(\d+)l(\d+)h(\d+)t(\d+)b(\d+)", name):
        hidden, layers, heads, seq, batch = map(int, found.groups())
        SHAPES[name] = DRAWN_VOCABULARY, seq, hidden, layers, heads, batch
    return name in SHAPES | OF_IMAGES


def is_in_the_ranges(name):
    _, seq, hidden, layers, heads, batch = SHAPES[name]
    within = all(low <= value <= high for value, (low, high) in
                 ((hidden, HIDDEN), (layers, LAYERS), (seq, SEQ), (batch * seq, TOKENS)))
    return within and hidden in [heads * size for size in HEAD_SIZES] and seq % 128 == 0 and bytes_of(name) <= MOST_BYTES


def drawn_shapes(count, seed):
    """Names of as many different shapes; the same for the same seed."""
    draw, names = random.Random(seed), []
    while len(names) < count:
        size = draw.choice(HEAD_SIZES)
        heads = draw.randint(HIDDEN[0] // size, HIDDEN[1] // size)
        seq = 128 * round(SEQ[0] / 128 * (SEQ[1] / SEQ[0]) ** draw.random())
        batch = draw.randint(-(-TOKENS[0] // seq), TOKENS[1] // seq)
        name = f"{draw.choice(('', 'llama'))}d{heads * size}l{draw.randint(*LAYERS)}h{heads}t{seq}b{batch}"
        if is_known(name) and is_in_the_ranges(name) and name not in names:
            names.append(name)
    return names


def is_llama(name):
    return name.startswith("llama")


def is_tied(name):
    """The head multiplies by the token embedding."""
    return is_llama(name) or name == "gpt2"


def ffn_of(name, hidden):
    """Width of the MLP in both: 4 times the hidden size, of a SwiGLU 8/3 of it up to a multiple of 64."""
    return -(-8 * hidden // (3 * 64)) * 64 if is_llama(name) else 4 * hidden


def products_of_resnet(name):
    """Yields the products of a sample in each convolution, and in the head."""
    layers, image, _ = RESNETS[name]
    size, inputs = -(-image // 2), 64
    yield size**2 * 3 * inputs * 7**2
    size = -(-size // 2)
    for stage, blocks in enumerate(BLOCKS[layers]):
        width = 64 << stage
        for block in range(blocks):
            before, size = size, -(-size // 2) if stage > 0 and block == 0 else size
            yield before**2 * inputs * width
            yield size**2 * width * width * 3**2
            yield size**2 * width * 4 * width
            if block == 0:
                yield size**2 * inputs * 4 * width
            inputs = 4 * width
    yield inputs * CLASSES


def products_of_unet(name):
    """Yields the products of a sample in each layer, with those of attention's scores."""
    from pytorch_unet import layers_of

    width, size = UNETS[name]["width"], UNETS[name]["image"]
    yield size**2 * 3 * width * 3**2
    yield width * 4 * width + (4 * width) ** 2
    for kind, _, inputs, others, outputs in layers_of(UNETS[name]):
        if kind in ("down", "up"):
            size = size // 2 if kind == "down" else 2 * size
            yield size**2 * inputs * outputs * 3**2
        elif kind == "residual":
            yield size**2 * outputs * (inputs + others + outputs) * 3**2 + 4 * width * outputs
            if inputs + others != outputs:
                yield size**2 * (inputs + others) * outputs
        elif kind == "attention":
            yield size**2 * 4 * inputs**2 + 2 * size**4 * inputs
    yield size**2 * width * 3 * 3**2


def flops_of(name):
    """Of the model itself. Transformer: 6 a parameter of a GEMM and a token, and causal attention (6 L T d). Models of
    images: 6 a product, and 4 of the first convolution, whose input has no gradient."""
    if name in OF_IMAGES:
        first, *others = (products_of_resnet if name in RESNETS else products_of_unet)(name)
        return (4 * first + 6 * sum(others)) * batch_size_of(name)
    vocab, seq, hidden, layers, _, batch = SHAPES[name]
    parameters = layers * (4 * hidden**2 + (3 if is_llama(name) else 2) * hidden * ffn_of(name, hidden)) + vocab * hidden
    return (6 * parameters + 6 * layers * seq * hidden) * batch * seq


def batch_size_of(name):
    return UNETS[name]["batch"] if name in UNETS else (RESNETS | SHAPES)[name][-1]


# --- PyTorch, in a process of its own ----------------------------------------------------------------


PHASES = ("forward", "backward", "optimizer")
MODES = {"compile": None, "compile_graphs": "reduce-overhead", "compile_benchmark": None,  # of cuDNN
         "compile_autotune": "max-autotune-no-cudagraphs"}
BUCKETS = {"ddp": 25, "ddp100": 100}  # MiB
TRACED_STEPS = 5
TRACED_WAY = "compile_traced"  # PyTorch's "compile", with its kernels in a trace
KINDS = {  # of a transformer's kernels, by PyTorch's and stepgate's names; the first that is found counts
    "gradient of attention": r"^attention_gradient|flash_(bprop|bwd)|dot_do_o|convert_dq|FillFunctor<int>",  # the last fills what is added to
    "attention": r"^attention|flash_(fprop|fwd)",
    "GEMMs": r"^linear|^matmul|nvjet|gemm|cublasLt",
    "optimizer": r"^adamw|^square_sums|^clip|multi_tensor_apply",
    "loss": r"^cross_entropy|^report_loss|log_softmax",
    "all else": "",
}
LISTED_KERNELS = 20


def resnet_of(name):
    """torchvision's ResNet, or the same where there is no torchvision, with its loss."""
    import torch
    import torch.nn as nn
    import torch.nn.functional as F

    class Block(nn.Module):
        def __init__(self, inputs, width, stride):
            super().__init__()
            self.first = nn.Sequential(*normed(inputs, width, 1, 1), nn.ReLU(inplace=True))
            self.second = nn.Sequential(*normed(width, width, 3, stride), nn.ReLU(inplace=True))
            self.third = nn.Sequential(*normed(width, 4 * width, 1, 1))
            self.down = nn.Sequential(*normed(inputs, 4 * width, 1, stride)) if inputs != 4 * width else nn.Identity()

        def forward(self, x):
            return F.relu(self.third(self.second(self.first(x))) + self.down(x))

    def normed(inputs, outputs, window, stride):
        convolution = nn.Conv2d(inputs, outputs, window, stride, window // 2, bias=False)
        nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
        return convolution, nn.BatchNorm2d(outputs)

    def own_resnet():
        parts, inputs = [*normed(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)], 64
        for stage, blocks in enumerate(BLOCKS[layers]):
            for block in range(blocks):
                parts.append(Block(inputs, 64 << stage, 2 if stage > 0 and block == 0 else 1))
                inputs = 256 << stage
        return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, CLASSES))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            try:
                import torchvision

                self.net = getattr(torchvision.models, f"resnet{layers}")(num_classes=CLASSES)
            except ImportError:
                self.net = own_resnet()

        def forward(self, x, y):
            return F.cross_entropy(self.net(x), y)

    layers = RESNETS[name][0]
    return Model().to(memory_format=torch.channels_last)


def unet_of(name):
    """As a user of PyTorch writes the network of pytorch_unet.py, with its noise and its loss."""
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
    from pytorch_unet import EPSILON, groups_of, heads_of, layers_of, signal_of, time_features

    def norm(channels):
        return nn.GroupNorm(groups_of(channels), channels, EPSILON)

    def convolution(inputs, outputs, stride=1):
        return nn.Conv2d(inputs, outputs, 3, stride, 1)

    class Residual(nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.first, self.second = convolution(inputs, outputs), convolution(outputs, outputs)
            self.norm1, self.norm2, self.time = norm(inputs), norm(outputs), nn.Linear(4 * width, outputs)
            self.shortcut = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

        def forward(self, x, time):
            inner = self.first(F.silu(self.norm1(x))) + self.time(time)[:, :, None, None]
            return self.shortcut(x) + self.second(F.silu(self.norm2(inner)))

    class Attention(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.norm, self.qkv, self.out = norm(channels), nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)

        def forward(self, x, _):
            b, channels, side, _ = x.shape
            tokens = self.norm(x).flatten(2).transpose(1, 2)
            q, k, v = self.qkv(tokens).view(b, side * side, 3, heads_of(channels), -1).permute(2, 0, 3, 1, 4)
            out = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, -1, channels)
            return x + self.out(out).transpose(1, 2).reshape(x.shape)

    class Resampled(nn.Module):
        def __init__(self, channels, up):
            super().__init__()
            self.up, self.convolution = up, convolution(channels, channels, 1 if up else 2)

        def forward(self, x, _):
            return self.convolution(F.interpolate(x, scale_factor=2.0, mode="nearest") if self.up else x)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.kinds, self.takes_skip, self.layers = [], [], nn.ModuleList()
            for kind, _, inputs, others, outputs in layers_of(UNETS[name]):
                self.kinds.append(kind)
                self.takes_skip.append(others > 0)
                self.layers.append({"residual": lambda: Residual(inputs + others, outputs), "attention": lambda: Attention(inputs),
                                    "keep": nn.Identity, "down": lambda: Resampled(inputs, False),
                                    "up": lambda: Resampled(inputs, True)}[kind]())
            self.time = nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, 4 * width), nn.SiLU())
            self.first, self.norm, self.last = convolution(3, width), norm(width), convolution(width, 3)

        def forward(self, x, times):
            noise, signal = torch.randn_like(x), signal_of(times).float()[:, None, None, None]
            time = self.time(time_features(UNETS[name], times).float())
            x = self.first(signal * x + torch.sqrt(1 - signal**2) * noise)
            skips = [x]
            for kind, takes_skip, layer in zip(self.kinds, self.takes_skip, self.layers):
                if kind == "keep":
                    skips.append(x)
                else:
                    x = layer(torch.cat([x, skips.pop()], 1) if takes_skip else x, time)
            return F.mse_loss(self.last(F.silu(self.norm(x))), noise)

    width = UNETS[name]["width"]
    return Model().to(memory_format=torch.channels_last)


def transformer_of(name):
    import torch
    import torch.nn as nn
    import torch.nn.functional as F

    vocab, seq, hidden, layers, heads, _ = SHAPES[name]
    llama, ffn, width = is_llama(name), ffn_of(name, hidden), hidden // heads
    norm = nn.RMSNorm if llama else nn.LayerNorm

    def turned(x, cos, sin):  # RoPE, numbers i and i + width / 2 of a head together
        first, second = x.chunk(2, dim=-1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = norm(hidden), norm(hidden)
            linear = functools.partial(nn.Linear, bias=not llama)
            self.qkv, self.projection = linear(hidden, 3 * hidden), linear(hidden, hidden)
            self.up, self.down = linear(hidden, (2 if llama else 1) * ffn), linear(ffn, hidden)

        def mlp(self, x):
            if not llama:
                return self.down(F.gelu(self.up(x), approximate="tanh"))
            gate, up = self.up(x).chunk(2, dim=-1)
            return self.down(F.silu(gate) * up)

        def forward(self, x, turns):
            b, t, _ = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, heads, -1).permute(2, 0, 3, 1, 4)
            if llama:
                q, k = turned(q, *turns), turned(k, *turns)
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.projection(a.transpose(1, 2).reshape(b, t, -1))
            return x + self.mlp(self.norm2(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(vocab, hidden)
            self.positions = None if llama else nn.Embedding(seq, hidden)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm, self.head = norm(hidden), nn.Linear(hidden, vocab, bias=False)
            if is_tied(name):
                self.head.weight = self.tokens.weight
            if llama:
                frequencies = 10000.0 ** (-2.0 * torch.arange(width // 2) / width)
                angles = torch.arange(seq)[:, None] * frequencies
                # These have 16 bits as queries and keys have: autocast would widen them otherwise.
                self.register_buffer("cos", angles.cos().to(torch.bfloat16), persistent=False)
                self.register_buffer("sin", angles.sin().to(torch.bfloat16), persistent=False)

        def forward(self, x, y):
            h = self.tokens(x)
            if not llama:
                h = h + self.positions.weight
            for block in self.blocks:
                h = block(h, (self.cos, self.sin) if llama else None)
            return F.cross_entropy(self.head(self.norm(h)).view(-1, vocab), y.view(-1))

    return Model()


def batch_of(name):
    """Inputs and labels on the GPU; a UNet's labels are times."""
    import torch

    if name in OF_IMAGES:
        image, kinds = (UNETS[name]["image"], TIMES) if name in UNETS else (RESNETS[name][1], CLASSES)
        shape = batch_size_of(name), 3, image, image
        images = torch.randn(shape, device="cuda").contiguous(memory_format=torch.channels_last)
        return images, torch.randint(0, kinds, shape[:1], device="cuda")
    vocab, seq, _, _, _, batch = SHAPES[name]
    words = torch.randint(0, vocab, (batch, seq + 1), device="cuda")
    return words[:, :-1].contiguous(), words[:, 1:].contiguous()


def run_pytorch(name, way):
    import torch
    import torch.nn as nn

    rank, ranks = (int(os.environ.get(name, default)) for name, default in (("RANK", 0), ("WORLD_SIZE", 1)))
    if ranks > 1:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        torch.distributed.init_process_group("nccl")
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.benchmark = way not in ("compile", TRACED_WAY)
    model = (resnet_of if name in RESNETS else unet_of if name in UNETS else transformer_of)(name).cuda()
    if way in BUCKETS:
        model = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=BUCKETS[way], gradient_as_bucket_view=True,
                                                    static_graph=True)
    if way == "fsdp":
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16)
        for block in model.blocks:
            block.compile()
            fully_shard(block, mp_policy=policy)
        fully_shard(model, mp_policy=policy)
    if name in RESNETS:
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, weight_decay=1e-4, fused=True)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    modes = MODES | dict.fromkeys([*BUCKETS, TRACED_WAY])
    forward = torch.compile(model, mode=modes[way]) if way in modes else model
    torch.manual_seed(rank)
    x, y = batch_of(name)

    def step(marks=None):
        def mark():
            if marks is not None:
                marks.append(torch.cuda.Event(enable_timing=True))
                marks[-1].record()

        mark()
        with torch.autocast("cuda", torch.bfloat16):
            loss = forward(x, y)
        mark()
        loss.backward()
        mark()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        mark()

    for _ in range(12):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(5):
        begin.record()
        for _ in range(10):
            step()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 10)
    if ranks > 1:
        exposed = exposed_milliseconds(traced_kernels(step, ranks)) / TRACED_STEPS
        worst = torch.tensor([statistics.median(times), exposed], device="cuda")  # each that of its worst rank
        torch.distributed.all_reduce(worst, torch.distributed.ReduceOp.MAX)
        torch.distributed.destroy_process_group()
        if rank == 0:
            print(json.dumps(dict(zip(("milliseconds", "exposed"), worst.tolist()))))
        return
    if way == TRACED_WAY:
        kernels = {}
        for event in traced_kernels(step, ranks):
            kernels[event["name"]] = kernels.get(event["name"], 0) + event["dur"] / 1e3 / TRACED_STEPS
        print(json.dumps({"milliseconds": statistics.median(times), "kernels": kernels}))
        return
    marks = [[] for _ in range(10)]
    for of_step in marks:
        step(of_step)
    torch.cuda.synchronize()
    phases = {phase: statistics.median(m[i].elapsed_time(m[i + 1]) for m in marks) for i, phase in enumerate(PHASES)}
    peak = torch.cuda.max_memory_allocated()
    print(json.dumps({"milliseconds": statistics.median(times), "phases": phases, "peak": peak}))


def traced_kernels(step, ranks):
    """The kernels of a trace of TRACED_STEPS steps; "ts" and "dur" in microseconds."""
    import torch

    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder, "trace.json")
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA],
                                    schedule=torch.profiler.schedule(wait=0, warmup=1, active=TRACED_STEPS),
                                    on_trace_ready=lambda done: done.export_chrome_trace(str(trace))) as profiler:
            for traced in range(1 + TRACED_STEPS):
                step()
                if traced == 0:  # is not kept: ranks would wait for whoever begins to trace last
                    torch.cuda.synchronize()
                    if ranks > 1:
                        torch.distributed.barrier()
                        torch.cuda.synchronize()
                profiler.step()
        return [event for event in json.loads(trace.read_text())["traceEvents"] if event.get("cat") == "kernel"]


def exposed_milliseconds(kernels):
    """Of a trace's collectives, the time beside which no other kernel ran, as stepgate's exposed_comm_us."""
    spans = [(event["ts"], event["ts"] + event["dur"], event["name"].startswith("ncclDevKernel")) for event in kernels]
    edges = sorted((edge, step, collective) for begin, end, collective in spans for edge, step in ((begin, 1), (end, -1)))
    running, exposed, since = [0, 0], 0.0, 0.0  # kernels, collectives
    for edge, step, collective in edges:
        if running[True] > 0 and running[False] == 0:
            exposed += edge - since
        running[collective] += step
        since = edge
    return exposed / 1e3


def time_pytorch(name, way, ranks=1):
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)] if ranks > 1 else []
    command = [sys.executable, *launcher, __file__, "--pytorch", name, way]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"PyTorch, {name}, {way}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


# --- stepgate ----------------------------------------------------------------------------------------

SCENARIO = """
claim = "the step that PyTorch is compared with"
[model]
{model}dtype = "bf16"
[batch]
size = {batch}
[transfer]
host = "resident"  # as the batch that PyTorch trains on
[optim]
kind = "{optimizer}"
master = true
[launch]
gemm = "autotune"
{launch}[measure]
steps = 10
rounds = 8
max_seconds = 300
[variant.only]
[expect]
{assertion}
"""
TRANSFORMER = """kind = "transformer"
vocab = {}
seq = {}
hidden = {}
layers = {}
heads = {}
"""
RESNET = """kind = "resnet"
layers = {}
image = {}
"""
UNET = """kind = "unet"
width = {width}
image = {image}
layers = {layers}
"""
LLAMA = """norm = "rms"
mlp = "swiglu"
ffn = {}
position = "rope"
bias = false
"""
OWN_WAYS = {  # what to set in the scenario
    "graph": ["launch.via=graph"],
    "arena": ["launch.via=graph", "alloc.with=arena"],  # memory is used again where a tensor's life ends, as PyTorch's cache does
    "stream": ["launch.via=stream"],
    "padded": ["launch.via=graph", "model.vocab_multiple=64"],  # as torch.compile pads by itself
    "heuristic": ["launch.via=graph", "launch.gemm=heuristic"],
    "any order": ["launch.via=graph", "launch.attention_sums=any"],
    "padded, any order": ["launch.via=graph", "model.vocab_multiple=64", "launch.attention_sums=any"],
}
IN_ANY_ORDER = ("any order", "padded, any order")
OWN_REDUCTIONS = {
    "buckets of 25 MiB": ["ranks.bucket=25 MiB"],
    "buckets of 100 MiB": ["ranks.bucket=100 MiB"],
    "and the optimizer's states sharded": ["ranks.bucket=100 MiB", "ranks.shard=optimizer"],
}
TIMED = 'is_timed = "only.step_ms_p50 <= 100 s"'
EXPOSED = 'is_exposed = "only.exposed_comm_us <= 100 s"'
TRACED = 'is_traced = "only.host_waits_per_step == 0"'


def scenario_of(name, assertion):
    if name in RESNETS:
        model, optimizer, launch = RESNET.format(*RESNETS[name]), "momentum", ""
    elif name in UNETS:
        model, optimizer, launch = UNET.format(**UNETS[name]), "adamw", ""
    else:
        llama = LLAMA.format(ffn_of(name, SHAPES[name][2])) if is_llama(name) else ""
        model, optimizer = TRANSFORMER.format(*SHAPES[name]) + llama + "tied = true\n" * is_tied(name), "adamw"
        launch = "" if is_llama(name) else 'fuse = "epilogue"\n'  # of gelu, which pays with measured algorithms
    return SCENARIO.format(model=model, batch=batch_size_of(name), optimizer=optimizer, launch=launch, assertion=assertion)


def phases_of_stepgate(program, name, device):
    """Milliseconds a step of the device's timeline, by phase."""
    with tempfile.TemporaryDirectory() as folder:
        scenario = pathlib.Path(folder, "compared.toml")
        scenario.write_text(scenario_of(name, TRACED))
        done = subprocess.run([program, "run", scenario, "--device", device, "--trace", pathlib.Path(folder, "trace")],
                              capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"stepgate: {done.stdout}{done.stderr}")
        events = json.loads(pathlib.Path(folder, "trace.compared.only.json").read_text())["traceEvents"]
    steps = sum(event["name"].startswith("ProfilerStep") for event in events)
    sums = dict.fromkeys(PHASES, 0.0)
    for event in events:
        if event.get("cat") == "gpu_user_annotation" and event["name"] in sums:
            sums[event["name"]] += event["dur"] / 1e3 / steps
    return sums


def run_stepgate(program, name, way, settings, assertion):
    with tempfile.TemporaryDirectory() as folder:
        scenario = pathlib.Path(folder, "compared.toml")
        scenario.write_text(scenario_of(name, assertion))
        result = pathlib.Path(folder, "result.json")
        done = subprocess.run(
            [program, "run", scenario, *(["--no-trace"] if assertion == TIMED else []), "--device", "cuda", "--json", result,
             *(word for setting in [*OWN_WAYS[way], *settings] for word in ("--set", setting))],
            capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"stepgate: {done.stdout}{done.stderr}")
        return json.loads(result.read_text().splitlines()[-1])


def time_stepgate(program, name, way, settings=()):
    variant = run_stepgate(program, name, way, settings, TIMED)["variants"][0]
    return {"milliseconds": variant["step_seconds_p50"] * 1e3, "peak": variant["peak_bytes"]}


def exposed_of_stepgate(program, name, way, settings):
    return run_stepgate(program, name, way, settings, EXPOSED)["expect"][0]["left"] * 1e3


# --- the table ---------------------------------------------------------------------------------------


def ways_of(name, eager, heuristic, wanted):
    """Of PyTorch, as far as they are wanted, and of stepgate."""
    graphs_help = name in BOUND_BY_LAUNCHES
    theirs = ["compile"] + ["compile_benchmark"] * (name in OF_IMAGES) + ["compile_autotune"] * (name in RESNETS)
    theirs += ["compile_graphs"] * graphs_help + ["eager"] * eager
    theirs = [way for way in theirs if way in (wanted or theirs)]
    is_padded = name in SHAPES and SHAPES[name][0] % 64 != 0
    ours = ["arena" if name in OF_IMAGES else "graph"] + ["stream"] * (graphs_help or name in OF_IMAGES) + ["padded"] * is_padded + ["heuristic"] * heuristic
    return theirs, ours + [IN_ANY_ORDER[is_padded]] * (name in SHAPES)


def words_of(name):
    """The shape, what a step trains on, and its unit."""
    if name in RESNETS:
        layers, image, batch = RESNETS[name]
        return f"ResNet-{layers} {image}x{image} B{batch}", batch / 1e3, "k img/s"
    if name in UNETS:
        image, batch = UNETS[name]["image"], UNETS[name]["batch"]
        return f"UNet {image}x{image} B{batch}", batch / 1e3, "k img/s"
    vocab, seq, hidden, layers, heads, batch = SHAPES[name]
    blocks = "Llama " if is_llama(name) else ""
    return f"{blocks}V{vocab} T{seq} d{hidden} L{layers} h{heads} B{batch}", batch * seq / 1e6, "M tok/s"


def compare(program, name, repeats, eager, heuristic, wanted, any_order):
    """A row of the table, and its ratio."""
    their_ways, own_ways = ways_of(name, eager, heuristic, wanted)
    times, peaks = {}, {}
    for _ in range(repeats):
        measured = {way: time_stepgate(program, name, way) for way in own_ways}
        measured |= {way: found for way in their_ways if (found := time_pytorch(name, way))}
        for way, found in measured.items():
            times.setdefault(way, []).append(found["milliseconds"])
            peaks[way] = found["peak"] / 2**30
    medians = {way: statistics.median(values) for way, values in times.items()}
    in_any_order = next((way for way in own_ways if way in IN_ANY_ORDER), None)
    figures = [way for way in own_ways if any_order or way != in_any_order]
    theirs, ours = (min((way for way in ways if way in medians), key=medians.get) for ways in (their_ways, figures))
    other = f"{medians[in_any_order]:.2f} ms, {medians[theirs] / medians[in_any_order]:.3f}" if in_any_order else "-"
    print(f"{name:8} " + "  ".join(f"{way} {ms:.2f} ms {peaks[way]:.2f} GiB" for way, ms in medians.items()), file=sys.stderr)
    words, work, unit = words_of(name)
    seconds = medians[ours] / 1e3
    ratio = medians[theirs] / medians[ours]
    return (f"| {words} | {medians[theirs]:.2f} ms | {medians[ours]:.2f} ms | {work / seconds:.3f} {unit} "
            f"| {flops_of(name) / seconds / PEAK_FLOPS:.1%} | {ratio:.3f} | {other} "
            f"| {peaks[theirs]:.2f} GiB | {peaks[ours]:.2f} GiB |"), ratio


def compare_ranks(program, name, repeats, ranks):
    """A row of the table, and its ratio."""
    times, exposed = {}, {}
    for _ in range(repeats):
        theirs = {way: found for way in [*BUCKETS, "fsdp"] if (found := time_pytorch(name, way, ranks))}
        ours = {way: [f"ranks.count={ranks}", *settings] for way, settings in OWN_REDUCTIONS.items()}
        measured = {"ours alone": time_stepgate(program, name, "stream")["milliseconds"],
                    **{way: time_stepgate(program, name, "stream", settings)["milliseconds"] for way, settings in ours.items()},
                    "theirs alone": time_pytorch(name, "compile")["milliseconds"],
                    **{way: found["milliseconds"] for way, found in theirs.items()}}
        hidden = {**{way: exposed_of_stepgate(program, name, "stream", settings) for way, settings in ours.items()},
                  **{way: found["exposed"] for way, found in theirs.items()}}
        for kept, found in ((times, measured), (exposed, hidden)):
            for way, milliseconds in found.items():
                kept.setdefault(way, []).append(milliseconds)
    medians, exposed = ({way: statistics.median(values) for way, values in kept.items()} for kept in (times, exposed))
    print(f"{name:8} " + "  ".join(f"{way} {ms:.2f} ms" for way, ms in medians.items())
          + "; exposed: " + "  ".join(f"{way} {ms:.2f} ms" for way, ms in exposed.items()), file=sys.stderr)
    shape = SHAPES[name]
    theirs, ours = (min((way for way in ways if way in medians), key=medians.get) for ways in ([*BUCKETS, "fsdp"], OWN_REDUCTIONS))
    ratio = medians[theirs] / medians[ours]
    return (f"| V{shape[0]} T{shape[1]} d{shape[2]} L{shape[3]} B{shape[5]} | {theirs}, {medians[theirs]:.2f} ms | {ours}, {medians[ours]:.2f} ms "
            f"| {ratio:.3f} | {medians['theirs alone'] / medians[theirs]:.1%} | {medians['ours alone'] / medians[ours]:.1%} "
            f"| {exposed[theirs]:.2f} ms | {exposed[ours]:.2f} ms |"), ratio


def compare_phases(program, name):
    theirs = time_pytorch(name, "compile")["phases"]
    ours = phases_of_stepgate(program, name, "cuda")
    simulated = phases_of_stepgate(program, name, "simulated")
    print("| phase | torch.compile | stepgate | at the rates of the profile |\n|---|---|---|---|")
    for phase in PHASES:
        print(f"| {phase} | {theirs[phase]:.2f} ms | {ours[phase]:.2f} ms | {simulated[phase]:.2f} ms |")
    print(f"| sum | {sum(theirs.values()):.2f} ms | {sum(ours.values()):.2f} ms | {sum(simulated.values()):.2f} ms |")


def compare_kernels(program, name):
    theirs = time_pytorch(name, TRACED_WAY)
    if theirs is None:
        return "there is no trace of PyTorch's step"
    found = run_stepgate(program, name, "any order", [], f"{TIMED}\n{TRACED}")
    sides = {f"torch.compile, {theirs['milliseconds']:.1f} ms": theirs["kernels"],
             f"stepgate, {found['variants'][0]['step_seconds_p50'] * 1e3:.1f} ms":
                 {kernel: work["seconds"] * 1e3 for kernel, work in found["mechanism"]["variants"][0]["work"].items()}}
    sums = [dict.fromkeys(KINDS, 0.0) for _ in sides]
    for kinds, kernels in zip(sums, sides.values()):
        for kernel, milliseconds in kernels.items():
            kinds[next(kind for kind, names in KINDS.items() if re.search(names, kernel))] += milliseconds
    print(f"| kernels | {' | '.join(sides)} |\n|---|---|---|")
    for kind in KINDS:
        print(f"| {kind} | {' | '.join(f'{kinds[kind]:.2f} ms' for kinds in sums)} |")
    print(f"| sum | {' | '.join(f'{sum(kinds.values()):.2f} ms' for kinds in sums)} |")
    for side, kernels in sides.items():
        print(f"\n{side}:")
        for kernel in sorted(kernels, key=kernels.get, reverse=True)[:LISTED_KERNELS]:
            print(f"  {kernels[kernel]:8.3f} ms  {kernel[:100]}")
    return None


def main():
    if sys.argv[1:2] == ["--pytorch"]:
        return run_pytorch(sys.argv[2], sys.argv[3]) if is_known(sys.argv[2]) else f"no shape is called {sys.argv[2]}"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stepgate")
    parser.add_argument("--shapes", help=f"all where neither this nor --drawn is given: {','.join(SHAPES | OF_IMAGES)}")
    parser.add_argument("--drawn", type=int, default=0, metavar="N", help="as many transformers, drawn at random")
    parser.add_argument("--seed", type=int, help="draws the same again")
    parser.add_argument("--any-order", action="store_true", help="figures may be those of attention with sums in any order")
    parser.add_argument("--at-least", type=float, default=0, metavar="R", help="exit with 1 if a ratio is lower")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--eager", action="store_true", help="also without torch.compile")
    parser.add_argument("--ways", type=lambda text: text.split(","), help=f"only these of PyTorch's: {','.join(MODES)}")
    parser.add_argument("--heuristic", action="store_true", help="also with the algorithms that cuBLASLt names first")
    parser.add_argument("--phases", metavar="SHAPE", help="the phases of one shape instead")
    parser.add_argument("--kernels", metavar="SHAPE", help="the kernels of one transformer's step instead")
    parser.add_argument("--ranks", type=int, default=1, help="as many GPUs, with a batch each")
    arguments = parser.parse_args()
    shapes = arguments.shapes.split(",") if arguments.shapes else [] if arguments.drawn else [*SHAPES, *OF_IMAGES]
    if unknown := [name for name in [arguments.phases, arguments.kernels, *shapes] if name and not is_known(name)]:
        parser.error(f"no shape is called {unknown[0]}; there are {', '.join(SHAPES | OF_IMAGES)}, and such as d1024l12h16t4096b4")
    if arguments.drawn:
        seed = random.SystemRandom().randrange(10**6) if arguments.seed is None else arguments.seed
        drawn = drawn_shapes(arguments.drawn, seed)
        print(f"--drawn {arguments.drawn} --seed {seed}: {', '.join(drawn)}\n", flush=True)
        shapes += drawn
    if arguments.ranks > 1 and (of_images := [name for name in shapes if name in OF_IMAGES]):
        parser.error(f"{of_images[0]} is compared on one GPU alone; name transformers with --shapes")
    if arguments.kernels:
        if arguments.kernels in OF_IMAGES:
            parser.error(f"{arguments.kernels} is no transformer, whose kernels --kernels tells apart")
        return compare_kernels(arguments.stepgate, arguments.kernels)
    if arguments.phases:
        return compare_phases(arguments.stepgate, arguments.phases)
    if arguments.ranks > 1:
        print("| model, a GPU | PyTorch, its best | stepgate | ratio | scaling of PyTorch | of stepgate | exposed by PyTorch | by stepgate |\n"
              "|---|---|---|---|---|---|---|---|")
        rows = (compare_ranks(arguments.stepgate, name, arguments.repeats, arguments.ranks) for name in shapes)
    else:
        print("| model | PyTorch, its best | stepgate | | MFU | ratio | sums of attention in any order | peak of PyTorch | of stepgate |\n"
              "|---|---|---|---|---|---|---|---|---|")
        rows = (compare(arguments.stepgate, name, arguments.repeats, arguments.eager, arguments.heuristic, arguments.ways,
                        arguments.any_order) for name in shapes)
    too_low = []
    for name, (row, ratio) in zip(shapes, rows):
        print(row, flush=True)
        if ratio < arguments.at_least:
            too_low.append(f"{name} {ratio:.3f}")
    return f"lower than {arguments.at_least}: {', '.join(too_low)}" if too_low else None


if __name__ == "__main__":
    sys.exit(main())
