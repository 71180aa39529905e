#!/usr/bin/env python3
"""Measures what one device attains: matrix products, attention, copies, and whole training iterations.

    python measure.py --output kernels.json
    plantui calibrate --kernels kernels.json --hardware my-board.toml --write ours.json

It needs PyTorch and one idle device, and takes about five minutes on a GPU. `--tiny` makes every size small, so that it
runs on a CPU in seconds; such figures say nothing about training.
"""

import argparse
import json
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional

SCHEMA = "plantui.kernels/1"

# Llama 3.2 1B, and a model for tests.
ONE_B = dict(hidden=2048, layers=16, heads=32, kv_heads=8, ffn=8192, vocabulary=128256, sequence=4096)
TINY = dict(hidden=64, layers=2, heads=4, kv_heads=2, ffn=128, vocabulary=256, sequence=64)


class Clock:
    """Median seconds of a call after warm-up, with the device idle before and after."""

    def __init__(self, device, rounds):
        self.device, self.rounds = device, rounds

    def wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def seconds(self, call, warm_up=3):
        for _ in range(warm_up):
            call()
        times = []
        for _ in range(self.rounds):
            self.wait()
            start = time.perf_counter()
            call()
            self.wait()
            times.append(time.perf_counter() - start)
        return statistics.median(times)


def products(clock, device, tiny):
    """Rows of matrix products m x k times k x n, in 16 bits and, where PyTorch can, in 8."""
    sizes = [(64, 64, 64), (128, 64, 128)] if tiny else [
        (m, n, k) for m in (2048, 4096, 8192, 16384) for n, k in ((2048, 2048), (4096, 4096), (8192, 8192), (4096, 14336), (28672, 8192))
    ]
    for m, n, k in sizes:
        a = torch.randn(m, k, device=device, dtype=torch.bfloat16)
        b = torch.randn(n, k, device=device, dtype=torch.bfloat16)
        yield dict(precision="bf16", m=m, n=n, k=k, seconds=clock.seconds(lambda: a @ b.t()))
        if device.type != "cuda" or not hasattr(torch, "float8_e4m3fn"):
            continue
        one = torch.ones((), device=device)
        try:
            a8, b8 = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
            call = lambda: torch._scaled_mm(a8, b8.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
            yield dict(precision="fp8", m=m, n=n, k=k, seconds=clock.seconds(call))
        except (RuntimeError, TypeError, ValueError):
            continue  # This device has no products in 8 bits.


def attentions(clock, device, tiny):
    """Rows of causal attention, forward and backward."""
    for sequence in (64,) if tiny else (2048, 4096, 8192, 16384, 32768):
        heads, head_size = (4, 16) if tiny else (32, 128)
        batch = max(1, 8192 // sequence) if not tiny else 1
        q, k, v = (
            torch.randn(batch, heads, sequence, head_size, device=device, dtype=torch.bfloat16, requires_grad=True)
            for _ in range(3)
        )
        forward = lambda: functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        out = forward()
        gradient = torch.ones_like(out)

        def backward():
            torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True)

        yield dict(
            batch=batch, heads=heads, head_size=head_size, sequence=sequence,
            forward_s=clock.seconds(forward), backward_s=clock.seconds(backward),
        )


def copies(clock, device, tiny):
    """Rows of copies within the device's memory; `bytes` counts reads and writes."""
    for size in (1 << 16,) if tiny else (1 << 26, 1 << 28, 1 << 30):
        source = torch.zeros(size, device=device, dtype=torch.uint8)
        target = torch.empty_like(source)
        yield dict(bytes=2 * size, seconds=clock.seconds(lambda: target.copy_(source)))


class Layer(nn.Module):
    """Decoder layer: grouped attention and a gated feed-forward block."""

    def __init__(self, hidden, heads, kv_heads, ffn):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, hidden // heads
        self.before_attention, self.before_mlp = nn.RMSNorm(hidden), nn.RMSNorm(hidden)
        self.qkv = nn.Linear(hidden, (heads + 2 * kv_heads) * self.size, bias=False)
        self.out = nn.Linear(hidden, hidden, bias=False)
        self.gate, self.up = nn.Linear(hidden, ffn, bias=False), nn.Linear(hidden, ffn, bias=False)
        self.down = nn.Linear(ffn, hidden, bias=False)

    def forward(self, x):
        batch, sequence, hidden = x.shape
        both = self.qkv(self.before_attention(x)).view(batch, sequence, -1, self.size).transpose(1, 2)
        q, k, v = both.split((self.heads, self.kv_heads, self.kv_heads), dim=1)
        groups = self.heads // self.kv_heads
        k, v = (side.repeat_interleave(groups, dim=1) for side in (k, v))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, sequence, hidden))
        inner = self.before_mlp(x)
        return x + self.down(functional.silu(self.gate(inner)) * self.up(inner))


class Decoder(nn.Module):
    """Decoder with an embedding and a head of its own."""

    def __init__(self, hidden, layers, heads, kv_heads, ffn, vocabulary, sequence):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.layers = nn.ModuleList(Layer(hidden, heads, kv_heads, ffn) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(hidden), nn.Linear(hidden, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def iterations(clock, device, tiny):
    """Rows of iterations with AdamW: weights, gradients and moments in 16 bits, no recomputation."""
    sizes = TINY if tiny else ONE_B
    config = dict(
        model_type="llama", hidden_size=sizes["hidden"], num_hidden_layers=sizes["layers"],
        num_attention_heads=sizes["heads"], num_key_value_heads=sizes["kv_heads"], intermediate_size=sizes["ffn"],
        vocab_size=sizes["vocabulary"], max_position_embeddings=sizes["sequence"], tie_word_embeddings=False,
    )
    for micro_batch in (1, 2, 4):
        try:
            model = Decoder(**sizes).to(device=device, dtype=torch.bfloat16)
            compiled = device.type == "cuda"
            step_model = torch.compile(model) if compiled else model
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=compiled)
            tokens = torch.randint(sizes["vocabulary"], (micro_batch, sizes["sequence"]), device=device)

            def step():
                logits = step_model(tokens).flatten(0, 1).float()
                functional.cross_entropy(logits, tokens.flatten()).backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)

            if device.type == "cuda":
                torch.cuda.reset_peak_memory_stats(device)
            seconds = clock.seconds(step)
            row = dict(config=config, sequence=sizes["sequence"], micro_batch=micro_batch, precision="bf16",
                       compiled=compiled, seconds=seconds)
            if device.type == "cuda":
                row["peak_bytes"] = torch.cuda.max_memory_allocated(device)
            yield row
        except torch.OutOfMemoryError:
            return
        finally:
            model = step_model = optimizer = None
            if device.type == "cuda":
                torch.cuda.empty_cache()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="JSON file to write; standard output without it")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=20, help="repetitions of each measurement")
    parser.add_argument("--tiny", action="store_true", help="small sizes, to try the script on a CPU")
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    if device.type == "cpu" and not arguments.tiny:
        sys.exit("measure.py: there is no GPU here; give --device, or --tiny to try the script on the CPU")
    torch.manual_seed(0)
    clock = Clock(device, arguments.rounds)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    document = dict(
        schema=SCHEMA,
        device=name,
        torch=torch.__version__,
        products=list(products(clock, device, arguments.tiny)),
        attention=list(attentions(clock, device, arguments.tiny)),
        copies=list(copies(clock, device, arguments.tiny)),
        iterations=list(iterations(clock, device, arguments.tiny)),
    )
    text = json.dumps(document, indent=1) + "\n"
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as file:
            file.write(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
