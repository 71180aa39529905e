#!/usr/bin/env python3
"""Records the answers of a plantui binary, and compares two records.

    record.py freeze DIR [--reference FOLDER]     writes inputs and questions.tsv, once
    record.py run DIR BINARY OUT [--threads 1,2] [--only TEXT] [--without TEXT] [--exports]
    record.py compare BEFORE AFTER [--slower 1.5]
    record.py check DIR BINARY OUT                lets BINARY check every plan that `run` kept beside OUT

Questions are published inputs with the limits of tests/figures, large inputs, and 500 random instances per family. A record
has a line per question: status, objective, bound, simulated time, peak memory, hash of the stages, least limits of an
infeasible question, hashes of exports, CPU seconds and peak resident memory of the process.
"""
import argparse, concurrent.futures, csv, hashlib, json, os, random, resource, shlex, subprocess, sys, tempfile, time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXPORTS = "chrome-trace svg csv dot piper-result pipedream rank-file placement-split jax megatron deepspeed torch torch-schedule torchtitan galvatron vllm megatron-bridge maxtext".split()
EXPORT_EVERY = 16
COLUMNS = ["id", "threads", "code", "status", "objective", "bound", "simulated", "peak_memory", "stages", "least", "exports", "cpu", "rss"]


def table(name):
    rows = csv.reader((line for line in open(ROOT / "tests/figures" / name) if not line.startswith("#")), delimiter="\t")
    head = next(rows)
    return [dict(zip(head, row)) for row in rows]


# ---------------------------------------------------------------- published questions

def published(reference):
    """Questions on the published inputs; paths are absolute."""
    at = lambda path: str(reference / path)
    variants = {
        "Piper": "", "noDP": "--set data_parallel=false", "noTP": "--set tensor_parallel=false", "noAR": "--set recompute=never",
        "AR": "--set recompute=always", "AON": "--set recompute=all-or-none",
    }
    seen = set()
    for row in table("piper.tsv"):
        key = (row["input"], row["devices"], row["memory_bytes"], row["microbatches"], row["bandwidth"])
        limits = f'--devices {row["devices"]} --memory {float(row["memory_bytes"]):.0f} --microbatches {row["microbatches"]} --bandwidth {float(row["bandwidth"]):.0f}'
        settings = variants.get(row["variant"], "")
        if (key, settings) in seen:
            continue
        seen.add((key, settings))
        yield "piper", at(row["input"]), f"--planner piper {limits} {settings}"
        if not settings:
            yield "piper", at(row["input"]), f"--planner equal-partition {limits}"
            yield "piper", at(row["input"]), f"--planner piper {limits} --set knapsack=greedy"
            yield "piper", at(row["input"]), f"--planner piper {limits} --set warmup=cumulative"
    for row in table("joint.tsv"):
        limits = f'--devices {row["devices"]} --microbatches {row["microbatches"]} --memory {row["memory_gib"]}GiB'
        file = at("joint/" + row["input"])
        for settings in ["", "--set schedule=zb-h1", "--set schedule=interleaved", "--set space=any", "--set engine=megatron", "--set recompute=never", "--set schedule=auto"]:
            yield "joint", file, f"--planner joint {limits} {settings}"
        yield "joint", file, f"--planner ensemble {limits}"
        yield "joint", file, f"--planner piper {limits}"
    for file in sorted((reference / "piper-extended").glob("*.json")):
        for devices, memory in [(64, 8), (256, 4), (1024, 2)]:
            yield "extended", str(file), f"--planner piper --devices {devices} --memory {memory}GiB --microbatches 1024"
            yield "extended", str(file), f"--planner joint --devices {devices} --memory {memory}GiB --microbatches 1024"
    for row in table("dapple.tsv"):
        machines = row["machines"]
        limits = f'--machines {machines} --batch {row["batch"]}'
        for planner in ["dapple", "dapple-hpgo"]:
            yield "dapple", at(row["input"]), f"--planner {planner} {limits}"
    for file in sorted((reference / "hpgo/profiles").glob("*/graph.txt")):
        for planner in ["parmesan", "joint", "ensemble"]:
            if planner == "ensemble" and "nasnet" in str(file):
                continue
            yield "layers", str(file), f"--planner {planner} --devices 8 --batch 128"
    for row in table("pase.tsv"):
        flops = f'--flops {float(row["tflops"])}e12 --bandwidth {float(row["gbytes_per_s"])}GB/s --devices {row["devices"]}'
        yield "pase", f'generate:{row["graph"]} --batch {row["batch"]}', f"--planner pase {flops}"
    inputs = sorted({row["input"] for row in table("placement-table.tsv")})
    for file in inputs:
        latency = "latency-inputs" in file
        planners = ["placement-dp", "placement-dpl", "placement-pipedream", "placement-local-search", "placement-one", "placement-multilevel", "placement-scotch", "placement-ip", "placement-ip --set contiguity=contiguous"]
        if latency:
            planners += ["placement-latency-ip", "placement-latency-greedy", "placement-latency-dp", "placement-expert"]
        for planner in planners:
            yield "placement", at(file), f"--planner {planner}"
        for devices in [2, 4, 8, 12]:
            if "bert_l-12" not in file.lower():
                yield "placement", at(file), f"--planner placement-dp --devices {devices}"
    ip = at("dnn-partitioning/throughput-inputs/OperatorGraphs/bert_l-6_training.json")
    yield "placement", ip, "--planner placement-ip --set objective=separate-maxima"


def large(reference):
    bert = str(reference / "piper/inputs/bert32a100.json")
    yield "large", bert, "--planner piper --devices 2048 --memory 2GiB --microbatches 2048"
    yield "large", bert, "--planner joint --devices 2048 --memory 2GiB --microbatches 2048"
    for network in ["nasnetalarge", "gnmt_16"]:
        yield "large", str(reference / f"hpgo/profiles/{network}/graph.txt"), "--planner dapple --machines 16x8"
    yield "large", str(reference / "dnn-partitioning/throughput-inputs/LayerGraphs/inceptionv3_training.json"), "--planner placement-dp"
    yield "large", "chain:1000", "--planner piper --devices 1024 --memory 1GB --microbatches 1024"
    yield "large", "chain:1000", "--planner joint --devices 1024 --memory 1GB --microbatches 1024"
    for model, devices, batch in [("llama-3.1-405b", 1024, 1024), ("llama-3.1-405b", 8192, 4096), ("deepseek-v3", 512, 15360), ("deepseek-v3", 2048, 15360), ("llama-3.1-70b", 64, 128), ("llama-3-8b", 8, 128), ("mixtral-8x7b", 64, 256)]:
        yield "training", model, f"--devices {devices} --batch {batch} --hardware h100"


# ---------------------------------------------------------------- random instances

def shuffled_dag(draw, n):
    order = list(range(n))
    draw.shuffle(order)
    shape = draw.choice(["chain", "any", "branches"])
    edges = set()
    for i in range(n):
        for j in range(i + 1, min(n, i + (2 if shape == "chain" else 5))):
            if shape == "chain" or draw.random() < 0.35:
                edges.add((order[i], order[j]))
    return sorted(edges)


def random_piper(draw):
    n = draw.choice([2, 3, 4, 5, 6, 8, 12, 20])
    edges = shuffled_dag(draw, n)
    whole = draw.random() < 0.5
    amount = (lambda most: draw.randint(0, most)) if whole else (lambda most: draw.uniform(0, most))
    degrees = draw.choice([[1], [1, 2], [1, 2, 4]])
    uniform = draw.random() < 0.5
    nodes = []
    for v in range(n):
        ins = [u for u, w in edges if w == v]
        outs = [w for u, w in edges if u == v]
        base_time, base_parameters, a, b = 1 + amount(20), amount(30), amount(10), amount(40)
        modes = {}
        for t in degrees:
            row = []
            for name in ["vanilla", "activation recomp"][: 1 + (draw.random() < 0.7)]:
                recompute = name != "vanilla"
                scale = 1 if uniform else draw.uniform(0.8, 1.2)
                time = base_time / t ** 0.8 * (1.3 if recompute else 1) * scale
                row.append({
                    "id": name, "timePerSample": time, "forwardTimePerSample": time / 3, "parameterSize": base_parameters * 4 / t,
                    "memoryUsageA": a / t * (0.3 if recompute else 1), "memoryUsageB": b / t,
                    "syncTimeFw": {str(u): amount(3) if t > 1 else 0 for u in ins}, "syncTimeBw": {str(w): amount(3) if t > 1 else 0 for w in outs},
                })
            modes[str(t)] = row
        nodes.append({"id": v, "name": f"n{v}", "TMPCs": modes})
    total = sum(node["TMPCs"]["1"][0]["memoryUsageA"] * 2 + node["TMPCs"]["1"][0]["memoryUsageB"] for node in nodes)
    return {
        "maxDevices": draw.choice([1, 2, 3, 4, 6, 8, 16]), "maxMemoryPerDevice": max(1, total * draw.choice([0.1, 0.3, 0.6, 2])),
        "bandwidth": draw.choice([1, 10, 100]), "mbsInBatch": draw.choice([1, 2, 4, 6, 12, 16]), "nodes": nodes,
        "edges": [{"sourceId": u, "destId": w, "communicationCost": 1 + amount(20)} for u, w in edges],
    }


def random_placement(draw):
    n = draw.choice([3, 4, 5, 6, 8, 12, 20])
    edges = shuffled_dag(draw, n)
    whole = draw.random() < 0.5
    amount = (lambda most: draw.randint(0, most)) if whole else (lambda most: draw.uniform(0, most))
    training = draw.random() < 0.3
    nodes = []
    for v in range(n):
        time = 1 + amount(20)
        nodes.append({
            "id": v, "name": f"n{v}", "supportedOnFpga": int(draw.random() < 0.95), "cpuLatency": time * draw.choice([2, 10]), "fpgaLatency": time,
            "isBackwardNode": 0, "size": amount(10), "colorClass": draw.choice([v, v, v, 1000 + v // 2]) if training else v,
        })
    if not training:
        for node in nodes:
            del node["colorClass"]
    total = sum(node["size"] for node in nodes)
    sent = [amount(8) for _ in range(n)]
    return {
        "maxSizePerFPGA": max(1, total * draw.choice([0.3, 0.6, 2])), "maxFPGAs": draw.choice([1, 2, 3, 4, 6]), "maxCPUs": draw.choice([0, 1, 2]), "nodes": nodes,
        "edges": [{"sourceId": u, "destId": w, "cost": sent[u]} for u, w in edges],
    }


def random_layers(draw):
    n = draw.choice([2, 3, 5, 8, 12, 20])
    text = f"# profile_batch={draw.choice([1, 2, 4])}\n"
    for v in range(1, n + 1):
        text += f"node{v} -- layer{v} -- forward_compute_time={draw.randint(0, 19)}, backward_compute_time={draw.randint(1, 40)}, activation_size={draw.randint(0, 19) * 1000000}.000, parameter_size={draw.choice([0, 1, 10, 100]) * 1000000}\n"
    for v in range(2, n + 1):
        text += f"\tnode{v - 1} -- node{v}\n"
        if v > 2 and draw.random() < 0.25:
            text += f"\tnode{draw.randint(1, v - 2)} -- node{v}\n"
    return text


def random_operators(draw):
    extents = [1, 2, 3, 4, 6, 8, 12]
    batch, width = draw.choice(extents), draw.choice(extents)
    operators = [{"id": 0, "name": "op0", "kind": "dense", "inputs": [{"shape": [batch, width]}], "units": draw.choice(extents)}]
    widths = [operators[0]["units"]]
    for v in range(1, draw.randint(2, 8)):
        source = draw.randrange(max(0, v - 3), v)
        same = [u for u in range(v) if widths[u] == widths[source]]
        kind = draw.choice(["dense", "dense", "elementwise", "softmax", "concat", "norm"])
        operator = {"id": v, "name": f"op{v}", "kind": kind, "inputs": [{"from": source}]}
        widths.append(widths[source])
        if kind == "dense":
            operator["units"] = widths[v] = draw.choice(extents)
        elif kind == "elementwise":
            operator["inputs"].append({"from": draw.choice(same)})
        elif kind == "concat":
            other = draw.randrange(v)
            operator["inputs"].append({"from": other})
            operator["axis"] = 1
            widths[v] = widths[source] + widths[other]
        else:
            operator["axis"] = draw.choice([0, 1])
        operators.append(operator)
    return {
        "schema": "plantui.operators/1", "devices": draw.choice([1, 2, 3, 4, 6, 8, 12]), "flops": 1e12, "bandwidth": draw.choice([1e8, 1e9, 1e10]),
        "cutoff": draw.choice([1, 1, 2]), "operators": operators,
    }


def random_model(draw):
    heads = draw.choice([8, 16, 32])
    hidden = heads * draw.choice([64, 128])
    configuration = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": hidden, "intermediate_size": hidden * draw.choice([2, 3, 4]),
        "num_attention_heads": heads, "num_key_value_heads": draw.choice([heads, heads // 4]), "num_hidden_layers": draw.choice([4, 8, 12, 24, 40]),
        "vocab_size": draw.choice([32000, 128256]), "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "tie_word_embeddings": draw.random() < 0.3, "hidden_act": "silu",
    }
    if draw.random() < 0.3:
        configuration.update(architectures=["MixtralForCausalLM"], model_type="mixtral", num_local_experts=draw.choice([4, 8]), num_experts_per_tok=2)
    devices = draw.choice([1, 2, 4, 8, 16, 32, 64, 96])
    limits = f"--devices {devices} --batch {draw.choice([1, 2, 4]) * max(devices, 8)} --hardware {draw.choice(['a100-40', 'a100-80', 'h100', 'b200'])} --sequence-length {draw.choice([1024, 4096])}"
    for chance, extra in [(0.2, "--precision fp8"), (0.2, "--stack torchtitan"), (0.3, f"--memory {draw.choice([10, 20, 40])}GiB"), (0.2, "--set stages=2"), (0.2, "--set recompute=never")]:
        if draw.random() < chance and not ("fp8" in extra and "a100" in limits):
            limits += " " + extra
    return configuration, limits


def random_questions(folder):
    """500 instances per family, with every planner of the family in turn."""
    folder.mkdir(parents=True, exist_ok=True)
    piper = ["piper", "joint", "joint --set space=any", "piper --set knapsack=greedy", "equal-partition", "ensemble", "parmesan", "piper --set warmup=cumulative", "piper --set recompute=all-or-none", "piper --set stages=2", "joint --set schedule=auto", "piper --set most_replicas=3", "joint --set engine=any", "joint --topology dgx-1"]
    placement = ["placement-dp", "placement-ip", "placement-dpl", "placement-latency-ip", "placement-dp --set contract_layers=true", "placement-ip --set contiguity=contiguous", "placement-ip --set objective=separate-maxima", "placement-pipedream", "placement-local-search", "placement-latency-greedy", "placement-latency-dp", "placement-multilevel", "placement-scotch", "parmesan"]
    layers = ["dapple", "dapple-hpgo", "joint", "parmesan", "ensemble", "dapple --machines 2x2,4"]
    for i in range(500):
        draw = random.Random(f"piper {i}")
        file = folder / f"piper-{i}.json"
        file.write_text(json.dumps(random_piper(draw)))
        for planner in ["piper", piper[i % len(piper)], piper[(i + 1 + i // len(piper)) % len(piper)]]:
            yield "random-piper", str(file), f"--planner {planner}"
        draw = random.Random(f"placement {i}")
        file = folder / f"placement-{i}.json"
        file.write_text(json.dumps(random_placement(draw)))
        for planner in ["placement-dp", "placement-ip", placement[i % len(placement)]]:
            yield "random-placement", str(file), f"--planner {planner}"
        draw = random.Random(f"layers {i}")
        file = folder / f"layers-{i}.txt"
        file.write_text(random_layers(draw))
        for planner in {"dapple", layers[i % len(layers)]}:
            machines = draw.choice(["2x2", "4x2", "8", "3,5", "1,1,2", "2x4"]) if planner == "dapple" else "2x4"
            if "--machines" in planner:
                yield "random-layers", str(file), f"--planner {planner} --batch 16"
            else:
                yield "random-layers", str(file), f"--planner {planner} --machines {machines} --batch {draw.choice([8, 16, 32])} --memory {draw.choice(['16GB', '1GB', '300MB'])}"
        draw = random.Random(f"operators {i}")
        file = folder / f"operators-{i}.json"
        file.write_text(json.dumps(random_operators(draw)))
        yield "random-operators", str(file), f"--planner {draw.choice(['pase', 'pase', 'pase --memory 3000', 'pase-data-parallel'])}"
        draw = random.Random(f"model {i}")
        file = folder / f"model-{i}.json"
        configuration, limits = random_model(draw)
        file.write_text(json.dumps(configuration))
        yield "random-training", str(file), limits


def chain(n):
    """A chain of `n` layers with random costs, two modes, degrees 1 and 2."""
    draw = random.Random(f"chain {n}")
    nodes = []
    for v in range(n):
        time, parameters, a, b = draw.uniform(1e-3, 1e-2), draw.uniform(1e7, 2e8), draw.uniform(5e6, 5e7), draw.uniform(1e7, 1e8)
        modes = {}
        for t in [1, 2]:
            modes[str(t)] = [{
                "id": name, "timePerSample": time * slow / t ** 0.85, "forwardTimePerSample": time * slow / t ** 0.85 / 3, "parameterSize": parameters / t, "memoryUsageA": a * kept / t, "memoryUsageB": b / t,
                "syncTimeFw": {str(v - 1): 1e6 * (t > 1)} if v else {}, "syncTimeBw": {str(v + 1): 1e6 * (t > 1)} if v + 1 < n else {},
            } for name, slow, kept in [("vanilla", 1, 1), ("activation recomp", 1.3, 0.2)]]
        nodes.append({"id": v, "name": f"layer{v}", "TMPCs": modes})
    edges = [{"sourceId": v, "destId": v + 1, "communicationCost": draw.uniform(1e6, 5e7)} for v in range(n - 1)]
    return {"maxDevices": 64, "maxMemoryPerDevice": 1e9, "bandwidth": 25e9, "mbsInBatch": 1024, "nodes": nodes, "edges": edges}


# ---------------------------------------------------------------- commands

def freeze(arguments):
    folder = Path(arguments.folder).resolve()
    (folder / "made").mkdir(parents=True, exist_ok=True)
    reference = Path(arguments.reference).resolve()
    made, rows = {}, []
    for group, file, question in [*published(reference), *large(reference), *random_questions(folder / "random")]:
        if file.startswith("generate:"):
            name = file.removeprefix("generate:")
            if name not in made:
                made[name] = folder / "made" / (name.replace(" ", "").replace("--", "-") + ".json")
                subprocess.run([arguments.binary, "generate", *name.split(), "-o", made[name], "--force"], check=True, stdout=subprocess.DEVNULL)
            file = str(made[name])
        elif file.startswith("chain:"):
            path = folder / "made" / f"chain-{file[6:]}.json"
            path.write_text(json.dumps(chain(int(file[6:]))))
            file = str(path)
        rows.append((group, file, " ".join(question.split())))
    rows = list(dict.fromkeys(rows))
    missing = sorted({file for _, file, _ in rows if not Path(file).exists() and file[0] == "/"})
    if missing:
        sys.exit(f"{missing[0]} does not exist; --reference names the folder with the published inputs")
    with open(folder / "questions.tsv", "w") as out:
        for i, row in enumerate(rows):
            print(i, *row, sep="\t", file=out)
    print(len(rows), "questions")


def digest(value):
    return hashlib.sha256(value if isinstance(value, bytes) else json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def timed(command, limit):
    """Exit code, output, CPU seconds and peak memory of a command."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        deadline = time.time() + limit
        pause = 0.0005
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.time() > deadline:
                process.kill()
                _, status, usage = os.wait4(process.pid, 0)
                break
            time.sleep(pause)
            pause = min(pause * 1.2, 0.02)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        return process.returncode, out.read(), usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def ask(job):
    binary, (number, group, file, question), threads, exports, keep, limit = job
    command = [binary, "plan", file, *shlex.split(question), "--json", "--threads", str(threads)]
    code, out, cpu, rss = timed(command, limit)
    record = dict.fromkeys(COLUMNS, "-")
    record.update(id=number, threads=threads, code=code, cpu=f"{cpu:.3f}", rss=rss)
    try:
        plan = json.loads(out)
    except ValueError:
        return record
    simulation, least = plan.get("simulation") or {}, plan.get("infeasible") or {}
    stages = [{k: s.get(k) for k in ("nodes", "data_parallel", "tensor_parallel", "devices", "choices", "recompute", "modes")} for s in plan["stages"]]
    record.update(
        status=plan["status"], objective=(plan["objective"] or {}).get("value", "-"), bound=plan.get("lower_bound") or "-",
        simulated=simulation.get("iteration_s") or simulation.get("latency_s") or "-", peak_memory=simulation.get("peak_memory_bytes") or "-",
        stages=digest(stages) if stages else "-", least=json.dumps({k: v for k, v in least.items() if k != "explanation"}) if least else "-",
    )
    if stages and keep:
        path = keep / f"{number}-{threads}.json"
        path.write_bytes(out)
        if exports:
            written = []
            for name in EXPORTS:
                code, out, _, _ = timed([binary, "export", str(path), "--to", name, "--workload", file, "-o", "-"], limit)
                if code == 0:
                    written.append(f"{name}:{digest(out)}")
            record["exports"] = " ".join(written) or "-"
    return record


def questions(folder):
    return [line.rstrip("\n").split("\t") for line in open(Path(folder) / "questions.tsv")]


def run(arguments):
    keep = Path(arguments.out + ".plans")
    keep.mkdir(exist_ok=True)
    chosen = [q for q in questions(arguments.folder) if int(q[0]) >= arguments.first and (arguments.only or "") in " ".join(q[1:]) and not any(word in " ".join(q[1:]) for word in (arguments.without or "").split(",") if word)]
    jobs = [(arguments.binary, q, threads, arguments.exports and int(q[0]) % EXPORT_EVERY == 0 and not q[1].startswith("random") and threads == "1", keep, arguments.limit) for q in chosen for threads in arguments.threads.split(",")]
    with open(arguments.out, "w") as out, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        print(*COLUMNS, sep="\t", file=out)
        for record in pool.map(ask, jobs):
            print(*(record[c] for c in COLUMNS), sep="\t", file=out, flush=True)


def check(arguments):
    names = {q[0]: q for q in questions(arguments.folder)}
    bad = done = 0
    for path in sorted(Path(arguments.out + ".plans").glob("*.json")):
        question = names[path.stem.split("-")[0]]
        result = subprocess.run([arguments.binary, "check", question[2], str(path)], capture_output=True, text=True)
        done += 1
        if result.returncode:
            bad += 1
            print(path.name, *question[1:], "\n   ", (result.stdout + result.stderr).strip()[:300])
    print(done, "plans checked,", bad, "refused")


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def compare(arguments):
    read = lambda path: {(row["id"], row["threads"]): row for row in csv.DictReader(open(path), delimiter="\t")}
    before, after = read(arguments.before), read(arguments.after)
    names = {q[0]: q for q in questions(arguments.folder)} if arguments.folder else {}
    equal = plans = 0
    cpu = {}
    for key in sorted(before.keys() & after.keys(), key=lambda k: (int(k[0]), k[1])):
        a, b = before[key], after[key]
        differences = []
        for column in ["code", "status", "objective", "bound", "simulated", "peak_memory", "least", "exports"]:
            if a[column] == b[column] or (column == "exports" and "-" in (a[column], b[column])):
                continue
            x, y = number(a[column]), number(b[column])
            if x is not None and y is not None and abs(x - y) <= 1e-9 * max(abs(x), abs(y)):
                continue
            differences.append(f"{column} {a[column]} -> {b[column]}")
        group = names.get(key[0], ["", "?"])[1]
        total = cpu.setdefault((group, key[1]), [0.0, 0.0, 0])
        total[0] += float(a["cpu"]); total[1] += float(b["cpu"]); total[2] += 1
        name = " ".join(names.get(key[0], key)[1:])
        if differences:
            print(f"#{key[0]} ({key[1]} threads) {name}\n    " + "\n    ".join(differences))
        else:
            equal += 1
            plans += a["stages"] != b["stages"]
        if float(b["cpu"]) > max(arguments.slower * float(a["cpu"]), float(a["cpu"]) + arguments.least):
            print(f"slower: {float(a['cpu']):.2f} -> {float(b['cpu']):.2f} s #{key[0]} ({key[1]} threads) {name}")
    print(f"{equal} of {len(before.keys() & after.keys())} equal, {plans} of them with another plan of the same worth")
    for (group, threads), (x, y, count) in sorted(cpu.items()):
        print(f"  {group:18} {threads} threads {count:5} questions: {x:8.2f} -> {y:8.2f} CPU s")


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
commands = parser.add_subparsers(dest="command", required=True)
p = commands.add_parser("freeze"); p.add_argument("folder"); p.add_argument("binary"); p.add_argument("--reference", default=os.environ.get("PLANTUI_REFERENCE", "."))
p = commands.add_parser("run"); p.add_argument("folder"); p.add_argument("binary"); p.add_argument("out"); p.add_argument("--threads", default="1,2"); p.add_argument("--first", type=int, default=0); p.add_argument("--only"); p.add_argument("--without"); p.add_argument("--exports", action="store_true"); p.add_argument("--jobs", type=int, default=2); p.add_argument("--limit", type=float, default=150)
p = commands.add_parser("compare"); p.add_argument("before"); p.add_argument("after"); p.add_argument("--folder"); p.add_argument("--slower", type=float, default=1.5); p.add_argument("--least", type=float, default=0.05)
p = commands.add_parser("check"); p.add_argument("folder"); p.add_argument("binary"); p.add_argument("out")
arguments = parser.parse_args()
globals()[arguments.command](arguments)
