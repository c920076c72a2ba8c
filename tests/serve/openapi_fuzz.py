"""Requests drawn from docs/openapi.json, sensible ones and nonsense, against a running server.

openapi_fuzz.py PROGRAM [COUNT [SEED]] starts it on a free port and asks COUNT (200) questions. Whatever is
asked, the status is one that openapi.json tells of for that address and never 500, a refusal says
what is wrong in the form told there, an answer has every key that its schema requires, and in the
end the server still answers. Prints "N passed, N failed"; a failure prints the question.
"""

import atexit
import concurrent.futures
import glob
import json
import random
import re
import subprocess
import sys
import urllib.error
import urllib.request

SECONDS_PER_ANSWER = 3  # then the server says 504
CLIENTS = 4
NONSENSE = [None, True, -1, 0, 1, 2**31, 2**63 - 1, 2**64, -2**63, 1e308, 0.5, "", " ", "\0", "x" * 5000,
            "<script>alert(1)</script>", "'\"\\", "‮txet", "\U0001F600" * 50, "../../etc/passwd", "%s%n", [],
            {}, [[]], [None], {"a": {"b": []}}, ["dp=1"] * 200]
# What people would say, for the properties whose type alone does not tell.
SENSIBLE = {
    "nodes": [1, 2, 3], "gpus_per_node": [1, 4, 8], "host_ram_gib": [0.5, 64, 2048],
    "power_limit_w": [100, 280, 1000], "peer_access": ["yes", "no"], "used_memory_gib": [0.5, 2], "pcie_lanes": [1, 4, 16],
    "measured_step_s": [0.5, 12], "measured_memory_gib": [0.5, 18], "sequence": [1, 512, 4096, 131072],
    "batch": [1, 7, 16, 128], "microbatch": [1, 2, 3], "images": [0, 1, 4],
    "image_tokens": [1, 256, 1024], "lora_rank": [1, 8, 64], "samples": [1, 10000],
    "tokens": [1, 10**9, 10**13], "jitter": [0, 0.05], "straggler": [1, 1.5], "seed": [0, 7],
    "loader_sequences_per_s": [0.1, 50], "expert_imbalance": [1, 1.7], "framework": ["torchtitan", "megatron-lm", "deepspeed", "axolotl"],
    "network": ["ethernet-10", "infiniband-ndr"], "network_share": [0.25, 1], "recompute": ["none", "full", "selective", "best", "every-2-layers"],
    "offload": ["none", "optimizer", "params"], "optimizer": ["adamw", "sgd", "adamw8bit", "muon"],
    "precision": ["bf16", "fp16", "fp32", "fp8"], "lora_targets": ["all-linear", "q,v"],
    "quantization": ["none", "nf4", "int8"], "preference": ["dpo", "kto", "reward"],
    "top": [1, 10], "objective": ["time", "headroom", "fame"], "max_memory": [0.5, 1], "fix": ["tp=2", "pp=1|2,mbs=1", "recompute=full"], "memory_gib": [1, 60],
    "budget_usd": [1, 3000], "assumed": [{}, {"sequence": 512}, {"batch": 16, "top": 10}]}
PLANS = ["dp=2", "dp=8,zero=3", "tp=2,dp=2", "pp=2,ga=4", "tp=3", "dp=0", "zero=9", "pp=4,vpp=2,schedule=zb-v", "cp=2",
         "ep=2,dp=2", "=", ",", "dp=99999999999", "split=true,pp=2", "dp=2,layers=1/2/3", "fsdp=2,offload=all", "sp=true,tp=2"]
GPUS = ["2xRTX-3090", "rtx-4090", "8xH100-SXM", "2 nodes of 8xA100-80GB", "3090+4090", "2x24GB", "dgx-h100"]


def some_configs():
    files = sorted(glob.glob("tests/catalog/hf_configs/*.json"))[::7]
    return [json.load(open(name, encoding="utf-8")) for name in files]


class Questions:
    def __init__(self, api, models, gpus, seed):
        self.draw = random.Random(seed)
        schemas = api["components"]["schemas"]
        self.properties = {}  # by path: the keys of every command and those of its own
        for path, verbs in api["paths"].items():
            if "post" in verbs:
                told = verbs["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"]
                self.properties[path] = {**schemas["Question"]["properties"],
                                         **schemas[told.split("/")[-1]].get("properties", {})}
        self.paths = sorted(p for p, verbs in api["paths"].items() if "post" in verbs)
        self.models, self.gpus, self.configs = models, gpus, some_configs()

    def config(self):
        config = dict(self.draw.choice(self.configs))
        for _ in range(self.draw.randrange(3)):
            key = self.draw.choice(sorted(config) or [""])
            if self.draw.random() < 0.5:
                config.pop(key, None)
            else:
                config[key] = self.draw.choice(NONSENSE)
        return config

    def value(self, key, schema):
        if self.draw.random() < 0.07:
            return self.draw.choice(NONSENSE)
        if key == "config":
            return self.config()
        if key == "model":
            return self.draw.choice(self.models)
        if key == "gpus":
            small = self.draw.choice(self.gpus)
            return self.draw.choice(GPUS + [small, f"{self.draw.randrange(20)}x{small}"])
        if schema["type"] == "array":
            words = schema["items"].get("enum", PLANS)
            return self.draw.sample(words, self.draw.randrange(1, 3))
        if schema["type"] == "boolean":
            return self.draw.random() < 0.3
        return self.draw.choice(SENSIBLE[key])

    def next(self):
        path = self.draw.choice(self.paths)
        if path == "/api/plan" and self.draw.random() < 0.8:
            path = "/api/fit"  # a whole plan space takes its time
        body = {"model": self.draw.choice(self.models), "gpus": self.draw.choice(GPUS)}
        if self.draw.random() < 0.15:
            body = {"config": self.config(), "gpus": self.draw.choice(GPUS)}
        properties = self.properties[path]
        for key in self.draw.sample(sorted(properties), self.draw.randrange(5)):
            if key != "config":
                body[key] = self.value(key, properties[key])
        if self.draw.random() < 0.05:
            body[self.draw.choice(["", "Model", "__proto__", "request"])] = self.draw.choice(NONSENSE)
        text = json.dumps(body)
        if self.draw.random() < 0.03:  # broken off, or a byte that is not there
            text = text[:self.draw.randrange(len(text))]
        return path, text


class Server:
    def __init__(self, program):
        self.process = subprocess.Popen(
            [program, "serve", "--port", "0", "--seconds", str(SECONDS_PER_ANSWER)], stdout=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)  # also where a question of ours fails
        line = self.process.stdout.readline()
        self.address = re.fullmatch(r"(http://127\.0\.0\.1:\d+)/\n", line).group(1)

    def ask(self, path, text=None):
        request = urllib.request.Request(self.address + path, None if text is None else text.encode())
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status, reply.read()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read()


def breach(api, required, path, status, text):
    """What is wrong with a reply, or None."""
    told = api["paths"][path]["post"]["responses"]
    if str(status) not in told or status == 500:
        return f"status {status}"
    try:
        answer = json.loads(text)
    except ValueError:
        return f"status {status} without JSON: {text[:80]!r}"
    if status != 200:
        problems = answer.get("problems")
        named = bool(problems) and all(p.get("what") and isinstance(p.get("where"), str) for p in problems)
        return None if named else f"status {status} names no problem: {text[:80]!r}"
    lacking = [key for key in required.get(path, []) if key not in answer]
    return f"answered without {lacking}" if lacking else None


def required_keys(api):
    keys = {}
    for path in api["paths"]:
        command = path.removeprefix("/api/")
        try:
            with open(f"docs/schemas/{command}.schema.json", encoding="utf-8") as file:
                keys[path] = json.load(file)["required"]
        except OSError:
            pass  # a page, a list of names, the document that a page draws
    return keys


def main():
    program, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200
    with open("docs/openapi.json", encoding="utf-8") as file:
        api = json.load(file)
    server = Server(program)
    names = [json.loads(server.ask(f"/api/{kind}.json")[1]) for kind in ("models", "gpus")]
    names = [[n if isinstance(n, str) else next(iter(n.values())) for n in (x if isinstance(x, list) else next(iter(x.values())))]
             for x in names]
    questions = Questions(api, names[0], names[1], int(sys.argv[3]) if len(sys.argv) > 3 else 20261121)
    drawn = [questions.next() for _ in range(count)]
    required, statuses, failed = required_keys(api), {}, 0
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
        replies = clients.map(lambda q: server.ask(*q), drawn)
        for (path, text), (status, reply) in zip(drawn, replies):
            statuses[status] = statuses.get(status, 0) + 1
            wrong = breach(api, required, path, status, reply)
            if wrong:
                failed += 1
                print(f"FAILED: {path} {text[:2000]}\n  {wrong}")
    # Half of the questions are good ones: a fuzzer that is only refused tests nothing.
    for ok, what in ((statuses.get(200, 0) >= count // 4, f"few were answered: {statuses}"),
                     (statuses.get(400, 0) >= count // 20, f"few were refused: {statuses}"),
                     (server.process.poll() is None, "the server is gone"),
                     (server.ask("/api/fit", '{"model": "gpt2", "gpus": "rtx-4090"}')[0] == 200, "it answers no more")):
        if not ok:
            failed += 1
            print("FAILED:", what)
    server.process.terminate()
    server.process.wait()
    print("statuses:", dict(sorted(statuses.items())))
    print(f"{count + 4 - failed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
