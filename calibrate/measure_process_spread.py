#!/usr/bin/env python3
"""By how much processes differ that do the same on one core: the spread of a group's CPUs.

    python measure_process_spread.py [--processes 8] [--rounds 300] [--groups 3]

Every process goes forward and backward through small blocks of a transformer whose tensors are so
short that what takes time is Python, the dispatcher and autograd, which is what issues kernels in
training. The processes of a group take turns on one core, one pass each per round, so that neither
the core nor other load on the machine is in it: what differs is where a process lies in memory and
its hash seed. A process's speed is the median over the rounds of its CPU time in proportion to the
mean of its round. Printed: each group's speeds, their deviation, and by how much the slowest of a
group is slower than its first process and than its mean.

Needs torch; nothing in shardwise's tests runs it.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time


def serve():
    import torch

    torch.set_num_threads(1)
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[-1]})
    linears = [torch.nn.Linear(8, 8, bias=False) for _ in range(6)]
    norms = [torch.nn.LayerNorm(8) for _ in range(2)]

    def block(x):
        y = norms[0](x)
        q, k, v = (m(y) for m in linears[:3])
        x = x + linears[3](torch.softmax(q @ k.transpose(-1, -2), -1) @ v)
        y = norms[1](x)
        return x + linears[5](torch.nn.functional.silu(linears[4](y)) * y)

    x = torch.randn(2, 4, 8)
    for _ in sys.stdin:
        block(x).sum().backward()  # what another process has put out of the caches
        begin = time.thread_time_ns()
        for _ in range(8):
            block(block(x)).sum().backward()
        print(time.thread_time_ns() - begin, flush=True)


def measure(processes, rounds):
    command = [sys.executable, __file__, "--serve"]
    group = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
             for _ in range(processes)]
    ratios = [[] for _ in group]
    for i in range(rounds):
        times = []
        for member in group:
            member.stdin.write("\n")
            member.stdin.flush()
            times.append(int(member.stdout.readline()))
        mean = statistics.median(times)
        if i >= rounds // 10:
            for r, t in zip(ratios, times):
                r.append(t / mean)
    for member in group:
        member.stdin.close()
        member.wait()
    speeds = [statistics.median(r) for r in ratios]
    mean = statistics.mean(speeds)
    return [s / mean for s in speeds]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--groups", type=int, default=3)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        return serve()
    for _ in range(args.groups):
        speeds = measure(args.processes, args.rounds)
        print(json.dumps({"speeds": [round(s, 4) for s in speeds],
                          "deviation": round(statistics.stdev(speeds), 4),
                          "slowest_over_first": round(max(speeds) / speeds[0] - 1, 4),
                          "slowest_over_mean": round(max(speeds) - 1, 4)}), flush=True)


if __name__ == "__main__":
    main()
