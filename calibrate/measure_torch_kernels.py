#!/usr/bin/env python3
"""Times the kernels that PyTorch really calls, for the same fits and as a second opinion.

    measure_torch_kernels.py --output torch_kernels.jsonl [--full]
    measure_torch_kernels.py --compare measurements.jsonl     [--output ...]
    measure_torch_kernels.py --tiny                           a few points on the CPU

Writes a measurement file like shardwise-calibrate's (calibrate/measuring/measurement_file.hpp):
attention through scaled_dot_product_attention with each of its kernels (flash2, cudnn,
memory_efficient), matrix products through torch.matmul, copies on the GPU, and the CPU's time for
issuing an eager operation. With --compare, every product and copy is also looked up in the given
file, and the two times are set side by side: they were taken by different programs, with different
loops. Exit code 1 where the median of the long ones (over 200 us) differs by more than 3 %.

Needs torch.
"""
import argparse
import datetime
import json
import os
import statistics
import sys
import time
from pathlib import Path

SHAPES = ((8192, 4096, 4096), (8192, 14336, 4096), (8192, 4096, 14336), (2048, 14336, 4096),
          (4096, 4096, 4096), (8192, 8192, 8192), (2048, 2048, 2048), (256, 14336, 4096))
COPIES = tuple(2**power for power in range(30, 17, -4))
KERNELS = {"flash2": "FLASH_ATTENTION", "cudnn": "CUDNN_ATTENTION",
           "memory_efficient": "EFFICIENT_ATTENTION"}


def timed_on_gpu(work, budget_s):
    """Medians over samples of several runs each, so that the gap before the first counts little."""
    import torch

    def sample(runs):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(runs):
            work()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3 / runs

    sample(2)
    runs = max(1, min(200, int(2e-3 / max(sample(2), 1e-6))))
    samples, until = [], time.monotonic() + budget_s
    while len(samples) < 10 or (time.monotonic() < until and len(samples) < 200):
        samples.append(sample(runs))
    return samples


def timed_on_cpu(work, _budget_s):
    samples = []
    for _ in range(5):
        begun = time.perf_counter()
        work()
        samples.append(time.perf_counter() - begun)
    return samples


class Bench:
    """Points go in, lines of the measurement file come out."""

    def __init__(self, device, budget_s):
        self.device, self.budget_s = device, budget_s
        self.timed = timed_on_gpu if device == "cuda" else timed_on_cpu
        self.lines = []

    def add(self, bench, labels, sizes, work, quantity="time_s"):
        import torch

        begun = time.monotonic()
        line = {"gpu": 0, "bench": bench, "labels": labels, "sizes": sizes, "quantity": quantity}
        try:
            samples = sorted(self.timed(work, self.budget_s))
            middle = statistics.median(samples)
            quartiles = statistics.quantiles(samples, n=4, method="inclusive")
            line.update(value=middle, spread=(quartiles[2] - quartiles[0]) / middle,
                        samples=len(samples))
        except torch.OutOfMemoryError as error:
            line.update(outcome="out_of_memory", why=str(error).splitlines()[0])
        except RuntimeError as error:  # "No available kernel", and the like
            line.update(outcome="unsupported", why=str(error).splitlines()[0])
        line.update(discarded=0, took_s=time.monotonic() - begun)
        self.lines.append(line)
        told = f"{line['value'] * 1e6:.1f} us" if "value" in line else line["outcome"]
        print(bench, labels, sizes, told, file=sys.stderr)


def attention(bench, batch, heads, kv_heads, sequence, head_dim, causal):
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    def tensor(count):
        return torch.randn(batch, count, sequence, head_dim, device=bench.device,
                           dtype=torch.bfloat16, requires_grad=True)

    q, k, v = tensor(heads), tensor(kv_heads), tensor(kv_heads)
    upstream = torch.randn_like(q)
    sizes = {"batch": batch, "heads": heads, "kv_heads": kv_heads, "sequence": sequence,
             "head_dim": head_dim}
    kernels = KERNELS if bench.device == "cuda" else {"math": "MATH"}
    for kernel, backend in kernels.items():
        labels = {"dtype": "bf16", "causal": "yes" if causal else "no", "kernel": kernel}

        def forward(backend=backend):
            with sdpa_kernel(getattr(SDPBackend, backend)):
                return scaled_dot_product_attention(
                    q, k, v, is_causal=causal, enable_gqa=kv_heads != heads)

        bench.add("attention", {**labels, "pass": "forward"}, sizes, forward)
        if "value" not in bench.lines[-1]:
            continue
        out = forward()

        def backward(out=out):
            torch.autograd.grad(out, (q, k, v), upstream, retain_graph=True)

        bench.add("attention", {**labels, "pass": "backward"}, sizes, backward)


def products(bench, shapes):
    import torch

    for m, n, k in shapes:
        x = torch.rand(m, k, device=bench.device, dtype=torch.bfloat16) * 2 - 1
        w = torch.rand(n, k, device=bench.device, dtype=torch.bfloat16) * 2 - 1
        out = torch.empty(m, n, device=bench.device, dtype=torch.bfloat16)
        bench.add("gemm", {"dtype": "bf16", "layout": "tn", "epilogue": "none"},
                  {"m": m, "n": n, "k": k, "batch": 1},
                  lambda x=x, w=w, out=out: torch.matmul(x, w.t(), out=out))


def copies(bench, sizes):
    import torch

    for size in sizes:
        source = torch.ones(size, device=bench.device, dtype=torch.uint8)
        target = torch.empty_like(source)
        bench.add("copy", {"direction": "device_local", "host": "none"}, {"bytes": size},
                  lambda source=source, target=target: target.copy_(source))


def host_issue(bench):
    """The CPU's time for one eager operation, the GPU having less to do than the CPU."""
    import torch

    x = torch.ones(256, device=bench.device)
    operations = 200
    if bench.device == "cuda":
        torch.cuda.synchronize()

    def issue():
        samples = []
        for _ in range(30):
            begun = time.perf_counter()
            for _ in range(operations):
                x.mul_(1.0)
            samples.append((time.perf_counter() - begun) / operations)
            if bench.device == "cuda":
                torch.cuda.synchronize()
        return samples

    issue()
    timed, bench.timed = bench.timed, lambda _work, _budget: issue()
    bench.add("launch", {"kind": "eager_issue"}, {"kernels": operations}, None)
    bench.timed = timed


def measure(bench, asked):
    if asked.tiny:
        attention(bench, 1, 2, 1, 64, 16, True)
        products(bench, ((64, 32, 16),))
        copies(bench, (4096,))
        host_issue(bench)
        return
    products(bench, SHAPES)
    copies(bench, COPIES)
    host_issue(bench)
    lengths = (256, 512, 1024, 2048, 4096, 8192, 16384, 32768) if asked.full else (512, 2048, 8192)
    for sequence in lengths:
        batch = max(1, 8192 // sequence)
        attention(bench, batch, 32, 8, sequence, 128, True)
        if asked.full:
            attention(bench, batch, 32, 8, sequence, 128, False)
            attention(bench, batch, 32, 32, sequence, 64, True)
            attention(bench, 1, 8, 8, sequence, 128, True)


def header(device):
    import torch

    facts = {"version": f"torch {torch.__version__}", "date": datetime.date.today().isoformat(),
             "mode": "torch kernels", "cuda_runtime": str(torch.version.cuda)}
    name = torch.cuda.get_device_name(0) if device == "cuda" else "CPU"
    return {"shardwise_measurements": 1, "facts": facts, "gpus": [{"name": name}], "links": []}


def save(path, lines):
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_text("".join(json.dumps(line) + "\n" for line in lines))
    part.replace(path)


def compare(lines, other_path):
    """0 where the long points agree within 3 % at the median."""
    def key(line):
        return line["bench"], json.dumps([line["labels"], line["sizes"]], sort_keys=True)

    theirs = {}
    for text in other_path.read_text().splitlines()[1:]:
        line = json.loads(text)
        if line.get("gpu") == 0 and "value" in line:
            theirs[key(line)] = line["value"]
    ratios = {"gemm": [], "copy": []}
    for line in lines:
        if line["bench"] not in ratios or "value" not in line or key(line) not in theirs:
            continue
        other, ratio = theirs[key(line)], theirs[key(line)] / line["value"]
        print(f"{line['bench']} {line['sizes']}: {other * 1e6:.1f} us there, "
              f"{line['value'] * 1e6:.1f} us here, ratio {ratio:.4f}")
        if line["value"] > 200e-6:
            ratios[line["bench"]].append(ratio)
    agree = True
    for bench, found in ratios.items():
        if not found:
            print(f"{bench}: nothing in common")
            agree = False
            continue
        off = abs(statistics.median(found) - 1)
        print(f"{bench}: {len(found)} long points, median {100 * off:.2f} % apart")
        agree = agree and off <= 0.03
    return 0 if agree else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("torch_kernels.jsonl"))
    parser.add_argument("--compare", type=Path, help="measurements of shardwise-calibrate")
    parser.add_argument("--full", action="store_true", help="more lengths, heads and masks")
    parser.add_argument("--tiny", action="store_true", help="a few points on the CPU")
    asked = parser.parse_args()
    try:
        import torch
        device = "cpu" if asked.tiny else "cuda" if torch.cuda.is_available() else None
    except ImportError:
        device = None
    if device is None:
        print("measure_torch_kernels.py: error: PyTorch sees no GPU here (--tiny runs on the CPU)",
              file=sys.stderr)
        return 4
    bench = Bench(device, 0.5 if asked.full else 0.2)
    measure(bench, asked)
    save(asked.output, [header(device), *bench.lines])
    return compare(bench.lines, asked.compare) if asked.compare else 0


if __name__ == "__main__":
    sys.exit(main())
