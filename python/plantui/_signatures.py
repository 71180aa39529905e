"""The calls, with the arguments of the commands. Written by python/signatures.py; do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Mapping, Optional, Sequence, Union

from plantui import _calls
from plantui._arguments import Count, PathLike, PlanLike, Quantity, Value, Values, WorkloadLike

if TYPE_CHECKING:
    from plantui._results import (
        Calibration,
        Check,
        Comparison,
        Estimate,
        Explanation,
        Findings,
        Goal,
        Job,
        Plan,
        Simulation,
        Sweep,
        Table,
        Workload,
    )

__all__ = [
    "calibrate",
    "check",
    "compare",
    "convert",
    "estimate",
    "explain",
    "export",
    "generate",
    "hardware",
    "import_job",
    "lint",
    "map",
    "plan",
    "planners",
    "seek",
    "simulate",
    "sweep",
    "terms",
    "topologies",
]


def plan(
    workload: WorkloadLike,
    *,
    devices: Optional[Union[Count, str]] = None,
    cpus: Optional[Union[Count, str]] = None,
    memory: Optional[Quantity] = None,
    microbatches: Optional[Union[Count, str]] = None,
    bandwidth: Optional[Quantity] = None,
    batch: Optional[Union[Count, str]] = None,
    machines: Optional[Values] = None,
    flops: Optional[Quantity] = None,
    topology: Optional[PathLike] = None,
    nvlink_gbps: Optional[Quantity] = None,
    pcie: Optional[Union[Count, str]] = None,
    hardware: Optional[str] = None,
    fabric: Optional[str] = None,
    sequence_length: Optional[Values] = None,
    precision: Optional[str] = None,
    stack: Optional[str] = None,
    reserve: Optional[Quantity] = None,
    adapter: Optional[str] = None,
    imbalance: Optional[PathLike] = None,
    calibration: Optional[PathLike] = None,
    profile_batch: Optional[Union[Count, str]] = None,
    micro_batch: Optional[Union[Count, str]] = None,
    planner: Optional[str] = None,
    options: Optional[Mapping[str, Value]] = None,
    deadline: Optional[Quantity] = None,
    threads: Optional[Union[Count, str]] = None,
    seed: Optional[Union[Count, str]] = None,
    price: Optional[Quantity] = None,
    tokens: Optional[Quantity] = None,
    failures_per_day: Optional[str] = None,
    mtbf: Optional[str] = None,
    checkpoint_time: Optional[str] = None,
    restart_time: Optional[str] = None,
    global_batch: Optional[Union[Count, str]] = None,
) -> Plan:
    """Plan a workload and print the plan.

    devices: Devices available; a plan may use fewer. `plan` takes several, such as 64..512, and shows what each
        costs. Kinds, such as 16xh100,32xa100-80, are planned together.
    cpus: CPUs that can run nodes beside the devices (device placement)
    memory: Memory per device, such as 16GiB, 80GB or 8589934592. A number is in bytes.
    microbatches: Microbatches in a batch; the replicas of a stage must divide them.
    bandwidth: Bandwidth between any two devices, such as 25GB/s, 25GiB/s or 200Gb/s (bits) A number is in bytes
        per second.
    batch: Samples in a batch over all devices (layer profiles, training); `plan` takes a list, such as
        32,64,128.
    machines: Devices of each machine, such as 8,8 or 2x8, or counted through as [8,16] (layer profiles)
    flops: Operations per second of a device, such as 10e12, 10T or 312TFLOPS (operator graphs)
    topology: Topology: a preset such as dgx-1 or 4xdgx-h100, a file, or several machines of one, such as
        8xbox.txt+ib-ndr; `plantui topologies` lists the presets.
    nvlink_gbps: GB/s of one NVLink (or xGMI link) each way, for tables without bandwidths [default: that of the
        hardware]
    pcie: PCIe of a device: gen3, gen4, gen5 or GB/s, for tables without bandwidths.
    hardware: Hardware: a preset of `plantui hardware`, or a TOML file with figures of your own [default: that
        of the topology, else h100]
    fabric: Network above the machines: devices of a pod and how many times less bandwidth leaves it, such as
        3072:7, or roce-24k [default: full bandwidth between all]
    sequence_length: Tokens in a sequence; `sweep` takes several, such as 4096,8192 [default: the model's
        longest, at most 8192]
    precision: Number format of matrix products: fp32, bf16, fp16, fp8, mxfp8 or nvfp4 [default: bf16]
    stack: Profile of the training software: megatron-2025, nemo-24, torchtitan or plain [default:
        megatron-2025]
    reserve: Memory per device kept free for the allocator, NCCL and the context [default: 6GiB] A number is in
        bytes.
    adapter: Adapters in place of training all weights: lora or qlora, such as lora:r=16, or PEFT's
        adapter_config.json.
    imbalance: Load of the ranks of experts: balanced, random, a factor from 1, capacity:FACTOR, or a JSON file
        with the tokens of each expert.
    calibration: Calibration file: factors that `plantui calibrate` fitted to your runs.
    profile_batch: Samples in the profiled batch [default: the line `# profile_batch=N`, else derived from image
        sizes, else 1]
    micro_batch: Micro-batch whose profile is taken from a file with one for each (Piper's profiles); of a job,
        its micro-batch.
    planner: The planner; without it the first that can plan the workload. One of: joint, piper,
        equal-partition, placement-dp, placement-dpl, placement-ip, placement-pipedream, placement-local-search,
        placement-one, placement-expert, placement-latency-ip, placement-latency-greedy, placement-latency-dp,
        placement-multilevel, placement-scotch, dapple, dapple-hpgo, parmesan, ensemble, pase,
        pase-data-parallel.
    options: Sets an option of the planner; `plantui planners` lists them. May be repeated.
    deadline: Stops after this time, such as 60s or 2min, with the best plan so far; its simulation may take one
        more second. A number is in seconds.
    threads: Threads to plan with; the plan is the same for any number [default: one per core]
    seed: Seed of planners with random choices. Default: 0.
    price: Price of a device for an hour, in any currency; with `tokens`, the cost is printed.
    tokens: Tokens to train on, such as 15T or 300B: prints the days, and with `price` the cost.
    failures_per_day: Failures of the whole job in a day, such as 7.8: prints the goodput, which days and costs
        then count.
    mtbf: Mean time between two failures of one device, such as 50000h; the job's is that divided by the
        devices.
    checkpoint_time: Time to write a checkpoint, during which nothing is trained [with failures: 60s]
    restart_time: Time from a failure until training goes on [with failures: 10min]
    global_batch: Another name of `batch`.
    """
    return _calls.plan(workload, _calls.given(locals(), "workload"))


def check(
    workload: WorkloadLike,
    plan: PlanLike,
    *,
    devices: Optional[Union[Count, str]] = None,
    cpus: Optional[Union[Count, str]] = None,
    memory: Optional[Quantity] = None,
    microbatches: Optional[Union[Count, str]] = None,
    bandwidth: Optional[Quantity] = None,
    batch: Optional[Union[Count, str]] = None,
    machines: Optional[Values] = None,
    flops: Optional[Quantity] = None,
    topology: Optional[PathLike] = None,
    nvlink_gbps: Optional[Quantity] = None,
    pcie: Optional[Union[Count, str]] = None,
    hardware: Optional[str] = None,
    fabric: Optional[str] = None,
    sequence_length: Optional[Values] = None,
    precision: Optional[str] = None,
    stack: Optional[str] = None,
    reserve: Optional[Quantity] = None,
    adapter: Optional[str] = None,
    imbalance: Optional[PathLike] = None,
    calibration: Optional[PathLike] = None,
    profile_batch: Optional[Union[Count, str]] = None,
    micro_batch: Optional[Union[Count, str]] = None,
    objective: Optional[str] = None,
    strict: bool = False,
    deadline: Optional[Quantity] = None,
    global_batch: Optional[Union[Count, str]] = None,
) -> Check:
    """Validate and score a plan.

    devices: Devices available; a plan may use fewer. `plan` takes several, such as 64..512, and shows what each
        costs. Kinds, such as 16xh100,32xa100-80, are planned together.
    cpus: CPUs that can run nodes beside the devices (device placement)
    memory: Memory per device, such as 16GiB, 80GB or 8589934592. A number is in bytes.
    microbatches: Microbatches in a batch; the replicas of a stage must divide them.
    bandwidth: Bandwidth between any two devices, such as 25GB/s, 25GiB/s or 200Gb/s (bits) A number is in bytes
        per second.
    batch: Samples in a batch over all devices (layer profiles, training); `plan` takes a list, such as
        32,64,128.
    machines: Devices of each machine, such as 8,8 or 2x8, or counted through as [8,16] (layer profiles)
    flops: Operations per second of a device, such as 10e12, 10T or 312TFLOPS (operator graphs)
    topology: Topology: a preset such as dgx-1 or 4xdgx-h100, a file, or several machines of one, such as
        8xbox.txt+ib-ndr; `plantui topologies` lists the presets.
    nvlink_gbps: GB/s of one NVLink (or xGMI link) each way, for tables without bandwidths [default: that of the
        hardware]
    pcie: PCIe of a device: gen3, gen4, gen5 or GB/s, for tables without bandwidths.
    hardware: Hardware: a preset of `plantui hardware`, or a TOML file with figures of your own [default: that
        of the topology, else h100]
    fabric: Network above the machines: devices of a pod and how many times less bandwidth leaves it, such as
        3072:7, or roce-24k [default: full bandwidth between all]
    sequence_length: Tokens in a sequence; `sweep` takes several, such as 4096,8192 [default: the model's
        longest, at most 8192]
    precision: Number format of matrix products: fp32, bf16, fp16, fp8, mxfp8 or nvfp4 [default: bf16]
    stack: Profile of the training software: megatron-2025, nemo-24, torchtitan or plain [default:
        megatron-2025]
    reserve: Memory per device kept free for the allocator, NCCL and the context [default: 6GiB] A number is in
        bytes.
    adapter: Adapters in place of training all weights: lora or qlora, such as lora:r=16, or PEFT's
        adapter_config.json.
    imbalance: Load of the ranks of experts: balanced, random, a factor from 1, capacity:FACTOR, or a JSON file
        with the tokens of each expert.
    calibration: Calibration file: factors that `plantui calibrate` fitted to your runs.
    profile_batch: Samples in the profiled batch [default: the line `# profile_batch=N`, else derived from image
        sizes, else 1]
    micro_batch: Micro-batch whose profile is taken from a file with one for each (Piper's profiles); of a job,
        its micro-batch.
    objective: Objective of a device placement [default: that of the file, else max-load] One of: max-load,
        separate-maxima, latency.
    strict: Rejects plans with warnings.
    deadline: Stops the simulation, with a warning, after this time, such as 60s or 2min. A number is in
        seconds.
    global_batch: Another name of `batch`.
    """
    return _calls.check(workload, plan, _calls.given(locals(), "workload", "plan"))


def compare(
    workload: WorkloadLike,
    *,
    planners: Optional[Sequence[str]] = None,
    plans: Optional[Sequence[PlanLike]] = None,
    options: Optional[Mapping[str, Value]] = None,
    deadline: Optional[Quantity] = None,
    seed: Optional[Union[Count, str]] = None,
    devices: Optional[Union[Count, str]] = None,
    cpus: Optional[Union[Count, str]] = None,
    memory: Optional[Quantity] = None,
    microbatches: Optional[Union[Count, str]] = None,
    bandwidth: Optional[Quantity] = None,
    batch: Optional[Union[Count, str]] = None,
    machines: Optional[Values] = None,
    flops: Optional[Quantity] = None,
    topology: Optional[PathLike] = None,
    nvlink_gbps: Optional[Quantity] = None,
    pcie: Optional[Union[Count, str]] = None,
    hardware: Optional[str] = None,
    fabric: Optional[str] = None,
    sequence_length: Optional[Values] = None,
    precision: Optional[str] = None,
    stack: Optional[str] = None,
    reserve: Optional[Quantity] = None,
    adapter: Optional[str] = None,
    imbalance: Optional[PathLike] = None,
    calibration: Optional[PathLike] = None,
    profile_batch: Optional[Union[Count, str]] = None,
    micro_batch: Optional[Union[Count, str]] = None,
    price: Optional[Quantity] = None,
    tokens: Optional[Quantity] = None,
    failures_per_day: Optional[str] = None,
    mtbf: Optional[str] = None,
    checkpoint_time: Optional[str] = None,
    restart_time: Optional[str] = None,
    schedule: Optional[PathLike] = None,
    virtual_stages: Optional[Union[Count, str]] = None,
    sequence_slices: Optional[Union[Count, str]] = None,
    warmup: Optional[str] = None,
    extra_warmup: Optional[Union[Count, str]] = None,
    weight_gradient_share: Optional[Quantity] = None,
    forward_share: Optional[Quantity] = None,
    no_overlap: bool = False,
    links: Optional[PathLike] = None,
    buckets: Optional[Union[Count, str]] = None,
    optimizer_step: Optional[Quantity] = None,
    global_batch: Optional[Union[Count, str]] = None,
) -> Comparison:
    """Plan with all suitable planners and compare the plans in one simulator.

    planners: Only this planner; may be repeated [default: every planner that can plan the workload] One of:
        joint, piper, equal-partition, placement-dp, placement-dpl, placement-ip, placement-pipedream,
        placement-local-search, placement-one, placement-expert, placement-latency-ip, placement-latency-greedy,
        placement-latency-dp, placement-multilevel, placement-scotch, dapple, dapple-hpgo, parmesan, ensemble,
        pase, pase-data-parallel.
    plans: Adds a plan from a file; may be repeated.
    options: A setting of the training, such as fsdp=true or between_places=1GB/s; planners keep their defaults.
        May be repeated.
    deadline: Time for each planner, such as 10s or 2min [default: 10s] A number is in seconds.
    seed: Seed of planners with random choices. Default: 0.
    devices: Devices available; a plan may use fewer. `plan` takes several, such as 64..512, and shows what each
        costs. Kinds, such as 16xh100,32xa100-80, are planned together.
    cpus: CPUs that can run nodes beside the devices (device placement)
    memory: Memory per device, such as 16GiB, 80GB or 8589934592. A number is in bytes.
    microbatches: Microbatches in a batch; the replicas of a stage must divide them.
    bandwidth: Bandwidth between any two devices, such as 25GB/s, 25GiB/s or 200Gb/s (bits) A number is in bytes
        per second.
    batch: Samples in a batch over all devices (layer profiles, training); `plan` takes a list, such as
        32,64,128.
    machines: Devices of each machine, such as 8,8 or 2x8, or counted through as [8,16] (layer profiles)
    flops: Operations per second of a device, such as 10e12, 10T or 312TFLOPS (operator graphs)
    topology: Topology: a preset such as dgx-1 or 4xdgx-h100, a file, or several machines of one, such as
        8xbox.txt+ib-ndr; `plantui topologies` lists the presets.
    nvlink_gbps: GB/s of one NVLink (or xGMI link) each way, for tables without bandwidths [default: that of the
        hardware]
    pcie: PCIe of a device: gen3, gen4, gen5 or GB/s, for tables without bandwidths.
    hardware: Hardware: a preset of `plantui hardware`, or a TOML file with figures of your own [default: that
        of the topology, else h100]
    fabric: Network above the machines: devices of a pod and how many times less bandwidth leaves it, such as
        3072:7, or roce-24k [default: full bandwidth between all]
    sequence_length: Tokens in a sequence; `sweep` takes several, such as 4096,8192 [default: the model's
        longest, at most 8192]
    precision: Number format of matrix products: fp32, bf16, fp16, fp8, mxfp8 or nvfp4 [default: bf16]
    stack: Profile of the training software: megatron-2025, nemo-24, torchtitan or plain [default:
        megatron-2025]
    reserve: Memory per device kept free for the allocator, NCCL and the context [default: 6GiB] A number is in
        bytes.
    adapter: Adapters in place of training all weights: lora or qlora, such as lora:r=16, or PEFT's
        adapter_config.json.
    imbalance: Load of the ranks of experts: balanced, random, a factor from 1, capacity:FACTOR, or a JSON file
        with the tokens of each expert.
    calibration: Calibration file: factors that `plantui calibrate` fitted to your runs.
    profile_batch: Samples in the profiled batch [default: the line `# profile_batch=N`, else derived from image
        sizes, else 1]
    micro_batch: Micro-batch whose profile is taken from a file with one for each (Piper's profiles); of a job,
        its micro-batch.
    price: Price of a device for an hour, in any currency; with `tokens`, the cost is printed.
    tokens: Tokens to train on, such as 15T or 300B: prints the days, and with `price` the cost.
    failures_per_day: Failures of the whole job in a day, such as 7.8: prints the goodput, which days and costs
        then count.
    mtbf: Mean time between two failures of one device, such as 50000h; the job's is that divided by the
        devices.
    checkpoint_time: Time to write a checkpoint, during which nothing is trained [with failures: 60s]
    restart_time: Time from a failure until training goes on [with failures: 10min]
    schedule: Pipeline schedule, a CSV file with one as PyTorch writes it, or a table of all [default: the
        plan's, else 1f1b] One of: 1f1b, gpipe, interleaved, eager-1f1b, zb-h1, zb-v, zb-2p, interleaved-zb,
        looped-bfs, combined-1f1b, dualpipe, dualpipe-v, seq1f1b, inference, all.
    virtual_stages: Virtual stages per device under `interleaved`, `interleaved-zb` and `looped-bfs` [default:
        the plan's, else 2]
    sequence_slices: Slices of a sequence under `seq1f1b` [default: 2]
    warmup: Rounding of warm-up microbatches where replicas differ: up at every stage, or cumulative from the
        last one [default: the plan's, else published] One of: published, cumulative.
    extra_warmup: Warm-up microbatches of `eager-1f1b` beyond those of 1F1B [default: twice as many as 1F1B in
        total]
    weight_gradient_share: Weight gradients as a share of the backward pass, which zero-bubble schedules defer
        [default: 0.5]
    forward_share: Forward share of a node's time, if the profile has one time for both passes [default: 1/3]
    no_overlap: Devices do not compute while they send or receive.
    links: Use of the link between two stages, or of a machine's ports: without limit, one transfer at a time,
        or shared fairly. Default: private. One of: private, exclusive, shared.
    buckets: Buckets of the gradient all-reduce; with more than one they overlap the last backward pass.
    optimizer_step: Optimizer step of every device at the end, such as 20ms [default: none] A number is in
        seconds.
    global_batch: Another name of `batch`.
    """
    return _calls.compare(workload, _calls.given(locals(), "workload"))


def estimate(
    model: WorkloadLike,
    *,
    topology: Optional[PathLike] = None,
    nvlink_gbps: Optional[Quantity] = None,
    pcie: Optional[Union[Count, str]] = None,
    hardware: Optional[str] = None,
    fabric: Optional[str] = None,
    devices: Optional[Union[Count, str]] = None,
    parallel: Optional[Union[str, Mapping[str, Count]]] = None,
    global_batch: Optional[Union[Count, str]] = None,
    sequence_length: Optional[Quantity] = None,
    precision: Optional[str] = None,
    recompute: Optional[str] = None,
    schedule: Optional[str] = None,
    stack: Optional[str] = None,
    layers: Optional[Values] = None,
    options: Optional[Mapping[str, Value]] = None,
    adapter: Optional[str] = None,
    imbalance: Optional[PathLike] = None,
    price: Optional[Quantity] = None,
    tokens: Optional[Quantity] = None,
    failures_per_day: Optional[str] = None,
    mtbf: Optional[str] = None,
    checkpoint_time: Optional[str] = None,
    restart_time: Optional[str] = None,
    like: Optional[str] = None,
    calibration: Optional[PathLike] = None,
) -> Estimate:
    """Predict time, throughput and memory of a training run from the model and the hardware.

    topology: Topology: a preset such as dgx-1 or 4xdgx-h100, a file, or several machines of one, such as
        8xbox.txt+ib-ndr; `plantui topologies` lists the presets.
    nvlink_gbps: GB/s of one NVLink (or xGMI link) each way, for tables without bandwidths [default: that of the
        hardware]
    pcie: PCIe of a device: gen3, gen4, gen5 or GB/s, for tables without bandwidths.
    hardware: Hardware: a preset of `plantui hardware`, or a TOML file with figures of your own [default: that
        of the topology, else h100]
    fabric: Network above the machines: devices of a pod and how many times less bandwidth leaves it, such as
        3072:7, or roce-24k [default: full bandwidth between all]
    devices: Number of devices [default: the product of the degrees]
    parallel: Degrees of parallelism and the micro-batch, such as tp=4,pp=2,mbs=1.
    global_batch: Sequences in an iteration, over all devices; also `batch` [default: 128]
    sequence_length: Tokens in a sequence [default: the model's longest, at most 8192]
    precision: Number format of matrix products: fp32, bf16, fp16, fp8, mxfp8 or nvfp4 [default: bf16]
    recompute: Recomputation in the backward pass: none, selective (the stack's modules), selective:MODULES,
        full, full:N for N layers of a virtual stage, or every:N for one layer in N [default: none]
    schedule: Schedule: 1f1b (interleaved where vp is above 1), zb-h1, zb-v or interleaved-zb [default: 1f1b]
    stack: Profile of the training software; it sets the defaults of `set` [default: megatron-2025]
    layers: Layers of each stage (each virtual stage, in the model's order) in place of an even split; m,0 at
        the end puts the layers that predict further tokens before the head.
    options: Sets a setting of the software; may be repeated.
    adapter: Adapters in place of training all weights: lora or qlora, such as lora:r=16,targets=all, or PEFT's
        adapter_config.json.
    imbalance: Load of the ranks of experts: balanced, random, a factor from 1, capacity:FACTOR, or a JSON file
        with the tokens of each expert.
    price: Price of a device for an hour, in any currency; with `tokens`, the cost is printed.
    tokens: Tokens to train on, such as 15T or 300B: prints the days, and with `price` the cost.
    failures_per_day: Failures of the whole job in a day, such as 7.8: prints the goodput, which days and costs
        then count.
    mtbf: Mean time between two failures of one device, such as 50000h; the job's is that divided by the
        devices.
    checkpoint_time: Time to write a checkpoint, during which nothing is trained [with failures: 60s]
    restart_time: Time from a failure until training goes on [with failures: 10min]
    like: Known architecture by whose rules a config.json of an unknown one is read, such as llama.
    calibration: Calibration file: factors that `plantui calibrate` fitted to your runs.
    """
    return _calls.estimate(model, _calls.given(locals(), "model"))


def calibrate(
    model: Optional[PathLike] = None,
    *,
    runs: Optional[Sequence[PathLike]] = None,
    kernels: Optional[PathLike] = None,
    hardware: Optional[str] = None,
    devices: Optional[Union[Count, str]] = None,
    global_batch: Optional[Union[Count, str]] = None,
    sequence_length: Optional[Quantity] = None,
    precision: Optional[str] = None,
    recompute: Optional[str] = None,
    stack: Optional[str] = None,
    options: Optional[Mapping[str, Value]] = None,
) -> Calibration:
    """Fit the constants of `estimate` to measured runs.

    runs: Measured runs: a table or an engine's log; may be repeated.
    kernels: Measured kernels and iterations of one device: the file of examples/measure/measure.py.
    hardware: Hardware, if the runs do not state it [default: h100]
    devices: Number of devices, if the runs do not state it.
    global_batch: Sequences in an iteration, if the runs do not state it.
    sequence_length: Tokens in a sequence, if the runs do not state it.
    precision: Number format of matrix products, if the runs do not state it.
    recompute: Recomputation, if the runs do not state it.
    stack: Profile of the training software, if the runs do not state it [default: megatron-2025]
    options: Sets a setting of the software, if the runs do not state it; may be repeated.
    """
    return _calls.calibrate(model, _calls.given(locals(), "model"))


def explain(
    workload: WorkloadLike,
    *,
    model: Optional[PathLike] = None,
    devices: Optional[Union[Count, str]] = None,
    cpus: Optional[Union[Count, str]] = None,
    memory: Optional[Quantity] = None,
    microbatches: Optional[Union[Count, str]] = None,
    bandwidth: Optional[Quantity] = None,
    batch: Optional[Union[Count, str]] = None,
    machines: Optional[Values] = None,
    flops: Optional[Quantity] = None,
    topology: Optional[PathLike] = None,
    nvlink_gbps: Optional[Quantity] = None,
    pcie: Optional[Union[Count, str]] = None,
    hardware: Optional[str] = None,
    fabric: Optional[str] = None,
    sequence_length: Optional[Values] = None,
    precision: Optional[str] = None,
    stack: Optional[str] = None,
    reserve: Optional[Quantity] = None,
    adapter: Optional[str] = None,
    imbalance: Optional[PathLike] = None,
    calibration: Optional[PathLike] = None,
    profile_batch: Optional[Union[Count, str]] = None,
    micro_batch: Optional[Union[Count, str]] = None,
    planner: Optional[str] = None,
    options: Optional[Mapping[str, Value]] = None,
    deadline: Optional[Quantity] = None,
    threads: Optional[Union[Count, str]] = None,
    seed: Optional[Union[Count, str]] = None,
    each: Optional[Quantity] = None,
    global_batch: Optional[Union[Count, str]] = None,
) -> Explanation:
    """Explain a plan: bottleneck, binding limits, changes that would help, alternatives.

    model: The model of a job that does not state it: a published name or a Hugging Face config.json.
    devices: Devices available; a plan may use fewer. `plan` takes several, such as 64..512, and shows what each
        costs. Kinds, such as 16xh100,32xa100-80, are planned together.
    cpus: CPUs that can run nodes beside the devices (device placement)
    memory: Memory per device, such as 16GiB, 80GB or 8589934592. A number is in bytes.
    microbatches: Microbatches in a batch; the replicas of a stage must divide them.
    bandwidth: Bandwidth between any two devices, such as 25GB/s, 25GiB/s or 200Gb/s (bits) A number is in bytes
        per second.
    batch: Samples in a batch over all devices (layer profiles, training); `plan` takes a list, such as
        32,64,128.
    machines: Devices of each machine, such as 8,8 or 2x8, or counted through as [8,16] (layer profiles)
    flops: Operations per second of a device, such as 10e12, 10T or 312TFLOPS (operator graphs)
    topology: Topology: a preset such as dgx-1 or 4xdgx-h100, a file, or several machines of one, such as
        8xbox.txt+ib-ndr; `plantui topologies` lists the presets.
    nvlink_gbps: GB/s of one NVLink (or xGMI link) each way, for tables without bandwidths [default: that of the
        hardware]
    pcie: PCIe of a device: gen3, gen4, gen5 or GB/s, for tables without bandwidths.
    hardware: Hardware: a preset of `plantui hardware`, or a TOML file with figures of your own [default: that
        of the topology, else h100]
    fabric: Network above the machines: devices of a pod and how many times less bandwidth leaves it, such as
        3072:7, or roce-24k [default: full bandwidth between all]
    sequence_length: Tokens in a sequence; `sweep` takes several, such as 4096,8192 [default: the model's
        longest, at most 8192]
    precision: Number format of matrix products: fp32, bf16, fp16, fp8, mxfp8 or nvfp4 [default: bf16]
    stack: Profile of the training software: megatron-2025, nemo-24, torchtitan or plain [default:
        megatron-2025]
    reserve: Memory per device kept free for the allocator, NCCL and the context [default: 6GiB] A number is in
        bytes.
    adapter: Adapters in place of training all weights: lora or qlora, such as lora:r=16, or PEFT's
        adapter_config.json.
    imbalance: Load of the ranks of experts: balanced, random, a factor from 1, capacity:FACTOR, or a JSON file
        with the tokens of each expert.
    calibration: Calibration file: factors that `plantui calibrate` fitted to your runs.
    profile_batch: Samples in the profiled batch [default: the line `# profile_batch=N`, else derived from image
        sizes, else 1]
    micro_batch: Micro-batch whose profile is taken from a file with one for each (Piper's profiles); of a job,
        its micro-batch.
    planner: The planner; without it the first that can plan the workload. One of: joint, piper,
        equal-partition, placement-dp, placement-dpl, placement-ip, placement-pipedream, placement-local-search,
        placement-one, placement-expert, placement-latency-ip, placement-latency-greedy, placement-latency-dp,
        placement-multilevel, placement-scotch, dapple, dapple-hpgo, parmesan, ensemble, pase,
        pase-data-parallel.
    options: Sets an option of the planner; `plantui planners` lists them. May be repeated.
    deadline: Stops after this time, such as 60s or 2min, with the best plan so far; its simulation may take one
        more second. A number is in seconds.
    threads: Threads to plan with; the plan is the same for any number [default: one per core]
    seed: Seed of planners with random choices. Default: 0.
    each: Time for each re-plan [default: 2s, or twice the time of the plan; with `deadline` all re-plans
        together take that time again] A number is in seconds.
    global_batch: Another name of `batch`.
    """
    return _calls.explain(workload, _calls.given(locals(), "workload"))


def map(
    workload: WorkloadLike,
    plan: PlanLike,
    *,
    devices: Optional[Union[Count, str]] = None,
    cpus: Optional[Union[Count, str]] = None,
    memory: Optional[Quantity] = None,
    microbatches: Optional[Union[Count, str]] = None,
    bandwidth: Optional[Quantity] = None,
    batch: Optional[Union[Count, str]] = None,
    machines: Optional[Values] = None,
    flops: Optional[Quantity] = None,
    topology: Optional[PathLike] = None,
    nvlink_gbps: Optional[Quantity] = None,
    pcie: Optional[Union[Count, str]] = None,
    hardware: Optional[str] = None,
    fabric: Optional[str] = None,
    sequence_length: Optional[Values] = None,
    precision: Optional[str] = None,
    stack: Optional[str] = None,
    reserve: Optional[Quantity] = None,
    adapter: Optional[str] = None,
    imbalance: Optional[PathLike] = None,
    calibration: Optional[PathLike] = None,
    profile_batch: Optional[Union[Count, str]] = None,
    micro_batch: Optional[Union[Count, str]] = None,
    method: Optional[str] = None,
    no_p2p: bool = False,
    no_allr: bool = False,
    shared_links: bool = False,
    parallel_same_t: Optional[Union[Count, str]] = None,
    parallel_degree: Optional[Union[Count, str]] = None,
    seed: Optional[Union[Count, str]] = None,
    deadline: Optional[Quantity] = None,
    global_batch: Optional[Union[Count, str]] = None,
) -> Plan:
    """Map a plan's parts onto the devices of a topology.

    devices: Devices available; a plan may use fewer. `plan` takes several, such as 64..512, and shows what each
        costs. Kinds, such as 16xh100,32xa100-80, are planned together.
    cpus: CPUs that can run nodes beside the devices (device placement)
    memory: Memory per device, such as 16GiB, 80GB or 8589934592. A number is in bytes.
    microbatches: Microbatches in a batch; the replicas of a stage must divide them.
    bandwidth: Bandwidth between any two devices, such as 25GB/s, 25GiB/s or 200Gb/s (bits) A number is in bytes
        per second.
    batch: Samples in a batch over all devices (layer profiles, training); `plan` takes a list, such as
        32,64,128.
    machines: Devices of each machine, such as 8,8 or 2x8, or counted through as [8,16] (layer profiles)
    flops: Operations per second of a device, such as 10e12, 10T or 312TFLOPS (operator graphs)
    topology: Topology: a preset such as dgx-1 or 4xdgx-h100, a file, or several machines of one, such as
        8xbox.txt+ib-ndr; `plantui topologies` lists the presets.
    nvlink_gbps: GB/s of one NVLink (or xGMI link) each way, for tables without bandwidths [default: that of the
        hardware]
    pcie: PCIe of a device: gen3, gen4, gen5 or GB/s, for tables without bandwidths.
    hardware: Hardware: a preset of `plantui hardware`, or a TOML file with figures of your own [default: that
        of the topology, else h100]
    fabric: Network above the machines: devices of a pod and how many times less bandwidth leaves it, such as
        3072:7, or roce-24k [default: full bandwidth between all]
    sequence_length: Tokens in a sequence; `sweep` takes several, such as 4096,8192 [default: the model's
        longest, at most 8192]
    precision: Number format of matrix products: fp32, bf16, fp16, fp8, mxfp8 or nvfp4 [default: bf16]
    stack: Profile of the training software: megatron-2025, nemo-24, torchtitan or plain [default:
        megatron-2025]
    reserve: Memory per device kept free for the allocator, NCCL and the context [default: 6GiB] A number is in
        bytes.
    adapter: Adapters in place of training all weights: lora or qlora, such as lora:r=16, or PEFT's
        adapter_config.json.
    imbalance: Load of the ranks of experts: balanced, random, a factor from 1, capacity:FACTOR, or a JSON file
        with the tokens of each expert.
    calibration: Calibration file: factors that `plantui calibrate` fitted to your runs.
    profile_batch: Samples in the profiled batch [default: the line `# profile_batch=N`, else derived from image
        sizes, else 1]
    micro_batch: Micro-batch whose profile is taken from a file with one for each (Piper's profiles); of a job,
        its micro-batch.
    method: Method. Default: search. One of: search, identity, random, greedy, annealing, bipartition,
        exhaustive.
    no_p2p: Ignores transfers between stages.
    no_allr: Ignores all-reduces.
    shared_links: Counts the total traffic of every link, instead of each transfer alone.
    parallel_same_t: Parallel searches per target. Default: 1.
    parallel_degree: Parallel searches in total. Default: 2.
    seed: Seed of random choices. Default: 0.
    deadline: Stops after this time, such as 60s or 2min, with the best mapping so far; its simulation may take
        one more second. A number is in seconds.
    global_batch: Another name of `batch`.
    """
    return _calls.map(workload, plan, _calls.given(locals(), "workload", "plan"))


def seek(
    workload: WorkloadLike,
    *,
    least: str,
    until: str,
    among: Optional[Values] = None,
    devices: Optional[Union[Count, str]] = None,
    cpus: Optional[Union[Count, str]] = None,
    memory: Optional[Quantity] = None,
    microbatches: Optional[Union[Count, str]] = None,
    bandwidth: Optional[Quantity] = None,
    batch: Optional[Union[Count, str]] = None,
    machines: Optional[Values] = None,
    flops: Optional[Quantity] = None,
    topology: Optional[PathLike] = None,
    nvlink_gbps: Optional[Quantity] = None,
    pcie: Optional[Union[Count, str]] = None,
    hardware: Optional[str] = None,
    fabric: Optional[str] = None,
    sequence_length: Optional[Values] = None,
    precision: Optional[str] = None,
    stack: Optional[str] = None,
    reserve: Optional[Quantity] = None,
    adapter: Optional[str] = None,
    imbalance: Optional[PathLike] = None,
    calibration: Optional[PathLike] = None,
    profile_batch: Optional[Union[Count, str]] = None,
    micro_batch: Optional[Union[Count, str]] = None,
    planner: Optional[str] = None,
    options: Optional[Mapping[str, Value]] = None,
    deadline: Optional[Quantity] = None,
    threads: Optional[Union[Count, str]] = None,
    seed: Optional[Union[Count, str]] = None,
    each: Optional[Quantity] = None,
    global_batch: Optional[Union[Count, str]] = None,
) -> Goal:
    """Find the least devices, memory, cost or time that reach a goal.

    least: Limit to minimise; on devices with prices also `cost` (or `usd`) and `iteration_time`. One of:
        devices, cpus, memory, microbatches, bandwidth, batch, flops, cost, iteration_time.
    until: Goal, such as 'iteration_time<=40s' or 'throughput>=40/s'.
    among: Allowed values of the limit: a list A,B,C or a range A..B, A..B:x2, A..B:+8 [default: all]
    devices: Devices available; a plan may use fewer. `plan` takes several, such as 64..512, and shows what each
        costs. Kinds, such as 16xh100,32xa100-80, are planned together.
    cpus: CPUs that can run nodes beside the devices (device placement)
    memory: Memory per device, such as 16GiB, 80GB or 8589934592. A number is in bytes.
    microbatches: Microbatches in a batch; the replicas of a stage must divide them.
    bandwidth: Bandwidth between any two devices, such as 25GB/s, 25GiB/s or 200Gb/s (bits) A number is in bytes
        per second.
    batch: Samples in a batch over all devices (layer profiles, training); `plan` takes a list, such as
        32,64,128.
    machines: Devices of each machine, such as 8,8 or 2x8, or counted through as [8,16] (layer profiles)
    flops: Operations per second of a device, such as 10e12, 10T or 312TFLOPS (operator graphs)
    topology: Topology: a preset such as dgx-1 or 4xdgx-h100, a file, or several machines of one, such as
        8xbox.txt+ib-ndr; `plantui topologies` lists the presets.
    nvlink_gbps: GB/s of one NVLink (or xGMI link) each way, for tables without bandwidths [default: that of the
        hardware]
    pcie: PCIe of a device: gen3, gen4, gen5 or GB/s, for tables without bandwidths.
    hardware: Hardware: a preset of `plantui hardware`, or a TOML file with figures of your own [default: that
        of the topology, else h100]
    fabric: Network above the machines: devices of a pod and how many times less bandwidth leaves it, such as
        3072:7, or roce-24k [default: full bandwidth between all]
    sequence_length: Tokens in a sequence; `sweep` takes several, such as 4096,8192 [default: the model's
        longest, at most 8192]
    precision: Number format of matrix products: fp32, bf16, fp16, fp8, mxfp8 or nvfp4 [default: bf16]
    stack: Profile of the training software: megatron-2025, nemo-24, torchtitan or plain [default:
        megatron-2025]
    reserve: Memory per device kept free for the allocator, NCCL and the context [default: 6GiB] A number is in
        bytes.
    adapter: Adapters in place of training all weights: lora or qlora, such as lora:r=16, or PEFT's
        adapter_config.json.
    imbalance: Load of the ranks of experts: balanced, random, a factor from 1, capacity:FACTOR, or a JSON file
        with the tokens of each expert.
    calibration: Calibration file: factors that `plantui calibrate` fitted to your runs.
    profile_batch: Samples in the profiled batch [default: the line `# profile_batch=N`, else derived from image
        sizes, else 1]
    micro_batch: Micro-batch whose profile is taken from a file with one for each (Piper's profiles); of a job,
        its micro-batch.
    planner: The planner; without it the first that can plan the workload. One of: joint, piper,
        equal-partition, placement-dp, placement-dpl, placement-ip, placement-pipedream, placement-local-search,
        placement-one, placement-expert, placement-latency-ip, placement-latency-greedy, placement-latency-dp,
        placement-multilevel, placement-scotch, dapple, dapple-hpgo, parmesan, ensemble, pase,
        pase-data-parallel.
    options: Sets an option of the planner; `plantui planners` lists them. May be repeated.
    deadline: Stops after this time, such as 60s or 2min, with the best plan so far; its simulation may take one
        more second. A number is in seconds.
    threads: Threads to plan with; the plan is the same for any number [default: one per core]
    seed: Seed of planners with random choices. Default: 0.
    each: Time for each re-plan [default: 10s]; `deadline` limits all of them together. A number is in seconds.
    global_batch: Another name of `batch`.
    """
    return _calls.seek(workload, _calls.given(locals(), "workload"))


def sweep(
    workload: Union[WorkloadLike, Sequence[WorkloadLike]],
    *,
    devices: Optional[Values] = None,
    cpus: Optional[Values] = None,
    memory: Optional[Values] = None,
    microbatches: Optional[Values] = None,
    bandwidth: Optional[Values] = None,
    batch: Optional[Values] = None,
    flops: Optional[Values] = None,
    machines: Optional[Values] = None,
    topology: Optional[Sequence[PathLike]] = None,
    nvlink_gbps: Optional[Quantity] = None,
    pcie: Optional[Union[Count, str]] = None,
    hardware: Optional[str] = None,
    fabric: Optional[str] = None,
    sequence_length: Optional[Values] = None,
    precision: Optional[str] = None,
    stack: Optional[str] = None,
    reserve: Optional[Quantity] = None,
    adapter: Optional[str] = None,
    imbalance: Optional[PathLike] = None,
    calibration: Optional[PathLike] = None,
    profile_batch: Optional[Union[Count, str]] = None,
    micro_batch: Optional[Union[Count, str]] = None,
    planners: Optional[Sequence[str]] = None,
    series: Optional[Sequence[str]] = None,
    options: Optional[Mapping[str, Value]] = None,
    study: Optional[str] = None,
    deadline: Optional[Quantity] = None,
    threads: Optional[Union[Count, str]] = None,
    seed: Optional[Union[Count, str]] = None,
    shard: Optional[Sequence[int]] = None,
    price: Optional[Quantity] = None,
    tokens: Optional[Quantity] = None,
    failures_per_day: Optional[str] = None,
    mtbf: Optional[str] = None,
    checkpoint_time: Optional[str] = None,
    restart_time: Optional[str] = None,
    resume: Optional[Sequence[PathLike]] = None,
    global_batch: Optional[Union[Count, str]] = None,
) -> Sweep:
    """Plan over ranges of one or two limits: table, CSV, JSON, chart.

    devices: Devices available; a plan may use fewer. Several kinds are one cluster: 16xh100,32xa100-80; repeat
        the flag to sweep over clusters.
    cpus: CPUs that can run nodes beside the devices (device placement)
    memory: Memory per device, such as 1GiB,2GiB,8GiB,80GiB. A number is in bytes.
    microbatches: Microbatches in a batch; the replicas of a stage must divide them.
    bandwidth: Bandwidth between any two devices, such as 12.5GB/s..100GB/s. A number is in bytes per second.
    batch: Samples in a batch over all devices (layer profiles, training)
    flops: Operations per second of a device (operator graphs)
    machines: Devices of each machine, such as 8,8 or 2x8 (layer profiles)
    topology: Topologies, such as dgx-1,2xdgx-a100: presets or files; plans are mapped to each.
    nvlink_gbps: GB/s of one NVLink (or xGMI link) each way, for tables without bandwidths [default: that of the
        hardware]
    pcie: PCIe of a device: gen3, gen4, gen5 or GB/s, for tables without bandwidths.
    hardware: Hardware: a preset of `plantui hardware`, or a TOML file with figures of your own [default: that
        of the topology, else h100]
    fabric: Network above the machines: devices of a pod and how many times less bandwidth leaves it, such as
        3072:7, or roce-24k [default: full bandwidth between all]
    sequence_length: Tokens in a sequence; `sweep` takes several, such as 4096,8192 [default: the model's
        longest, at most 8192]
    precision: Number format of matrix products: fp32, bf16, fp16, fp8, mxfp8 or nvfp4 [default: bf16]
    stack: Profile of the training software: megatron-2025, nemo-24, torchtitan or plain [default:
        megatron-2025]
    reserve: Memory per device kept free for the allocator, NCCL and the context [default: 6GiB] A number is in
        bytes.
    adapter: Adapters in place of training all weights: lora or qlora, such as lora:r=16, or PEFT's
        adapter_config.json.
    imbalance: Load of the ranks of experts: balanced, random, a factor from 1, capacity:FACTOR, or a JSON file
        with the tokens of each expert.
    calibration: Calibration file: factors that `plantui calibrate` fitted to your runs.
    profile_batch: Samples in the profiled batch [default: the line `# profile_batch=N`, else derived from image
        sizes, else 1]
    micro_batch: Micro-batch whose profile is taken from a file with one for each (Piper's profiles); of a job,
        its micro-batch.
    planners: A planner, with the settings of `set`; may be repeated [default: the first that can plan the
        workload] One of: joint, piper, equal-partition, placement-dp, placement-dpl, placement-ip,
        placement-pipedream, placement-local-search, placement-one, placement-expert, placement-latency-ip,
        placement-latency-greedy, placement-latency-dp, placement-multilevel, placement-scotch, dapple,
        dapple-hpgo, parmesan, ensemble, pase, pase-data-parallel.
    series: A planner with its own settings, such as "slow:piper,recompute=never"; may be repeated.
    options: Sets an option of every planner that has it, or a setting of the training. May be repeated.
    study: An experiment of a paper over its published inputs. One of: piper-figure-1, piper-figure-2,
        piper-figure-2-replicas, piper-figure-3, piper-gnmt, piper-resnet, placement-throughput,
        placement-latency, joint-headroom.
    deadline: Time for each point, such as 10s or 2min. A number is in seconds.
    threads: Threads to plan with; the points are the same for any number [default: one per core]
    seed: Seed of planners with random choices. Default: 0.
    shard: Computes one share of the points, such as 3/16: the third, the nineteenth, and so on.
    price: Price of a device for an hour, in any currency; with `tokens`, the cost is printed.
    tokens: Tokens to train on, such as 15T or 300B: prints the days, and with `price` the cost.
    failures_per_day: Failures of the whole job in a day, such as 7.8: prints the goodput, which days and costs
        then count.
    mtbf: Mean time between two failures of one device, such as 50000h; the job's is that divided by the
        devices.
    checkpoint_time: Time to write a checkpoint, during which nothing is trained [with failures: 60s]
    restart_time: Time from a failure until training goes on [with failures: 10min]
    resume: Continues the sweep of this CSV file, or starts it, and keeps the file up to date. Several files are
        joined.
    global_batch: Another name of `batch`.
    """
    return _calls.sweep(workload, _calls.given(locals(), "workload"))


def simulate(
    workload: WorkloadLike,
    plan: Optional[PlanLike] = None,
    *,
    deadline: Optional[Quantity] = None,
    schedule: Optional[PathLike] = None,
    virtual_stages: Optional[Union[Count, str]] = None,
    sequence_slices: Optional[Union[Count, str]] = None,
    warmup: Optional[str] = None,
    extra_warmup: Optional[Union[Count, str]] = None,
    weight_gradient_share: Optional[Quantity] = None,
    forward_share: Optional[Quantity] = None,
    no_overlap: bool = False,
    links: Optional[PathLike] = None,
    buckets: Optional[Union[Count, str]] = None,
    optimizer_step: Optional[Quantity] = None,
    devices: Optional[Union[Count, str]] = None,
    cpus: Optional[Union[Count, str]] = None,
    memory: Optional[Quantity] = None,
    microbatches: Optional[Union[Count, str]] = None,
    bandwidth: Optional[Quantity] = None,
    batch: Optional[Union[Count, str]] = None,
    machines: Optional[Values] = None,
    flops: Optional[Quantity] = None,
    topology: Optional[PathLike] = None,
    nvlink_gbps: Optional[Quantity] = None,
    pcie: Optional[Union[Count, str]] = None,
    hardware: Optional[str] = None,
    fabric: Optional[str] = None,
    sequence_length: Optional[Values] = None,
    precision: Optional[str] = None,
    stack: Optional[str] = None,
    reserve: Optional[Quantity] = None,
    adapter: Optional[str] = None,
    imbalance: Optional[PathLike] = None,
    calibration: Optional[PathLike] = None,
    profile_batch: Optional[Union[Count, str]] = None,
    micro_batch: Optional[Union[Count, str]] = None,
    global_batch: Optional[Union[Count, str]] = None,
) -> Simulation:
    """Simulate one iteration of a plan.

    deadline: Stops the simulation after this time, such as 60s or 2min. A number is in seconds.
    schedule: Pipeline schedule, a CSV file with one as PyTorch writes it, or a table of all [default: the
        plan's, else 1f1b] One of: 1f1b, gpipe, interleaved, eager-1f1b, zb-h1, zb-v, zb-2p, interleaved-zb,
        looped-bfs, combined-1f1b, dualpipe, dualpipe-v, seq1f1b, inference, all.
    virtual_stages: Virtual stages per device under `interleaved`, `interleaved-zb` and `looped-bfs` [default:
        the plan's, else 2]
    sequence_slices: Slices of a sequence under `seq1f1b` [default: 2]
    warmup: Rounding of warm-up microbatches where replicas differ: up at every stage, or cumulative from the
        last one [default: the plan's, else published] One of: published, cumulative.
    extra_warmup: Warm-up microbatches of `eager-1f1b` beyond those of 1F1B [default: twice as many as 1F1B in
        total]
    weight_gradient_share: Weight gradients as a share of the backward pass, which zero-bubble schedules defer
        [default: 0.5]
    forward_share: Forward share of a node's time, if the profile has one time for both passes [default: 1/3]
    no_overlap: Devices do not compute while they send or receive.
    links: Use of the link between two stages, or of a machine's ports: without limit, one transfer at a time,
        or shared fairly. Default: private. One of: private, exclusive, shared.
    buckets: Buckets of the gradient all-reduce; with more than one they overlap the last backward pass.
    optimizer_step: Optimizer step of every device at the end, such as 20ms [default: none] A number is in
        seconds.
    devices: Devices available; a plan may use fewer. `plan` takes several, such as 64..512, and shows what each
        costs. Kinds, such as 16xh100,32xa100-80, are planned together.
    cpus: CPUs that can run nodes beside the devices (device placement)
    memory: Memory per device, such as 16GiB, 80GB or 8589934592. A number is in bytes.
    microbatches: Microbatches in a batch; the replicas of a stage must divide them.
    bandwidth: Bandwidth between any two devices, such as 25GB/s, 25GiB/s or 200Gb/s (bits) A number is in bytes
        per second.
    batch: Samples in a batch over all devices (layer profiles, training); `plan` takes a list, such as
        32,64,128.
    machines: Devices of each machine, such as 8,8 or 2x8, or counted through as [8,16] (layer profiles)
    flops: Operations per second of a device, such as 10e12, 10T or 312TFLOPS (operator graphs)
    topology: Topology: a preset such as dgx-1 or 4xdgx-h100, a file, or several machines of one, such as
        8xbox.txt+ib-ndr; `plantui topologies` lists the presets.
    nvlink_gbps: GB/s of one NVLink (or xGMI link) each way, for tables without bandwidths [default: that of the
        hardware]
    pcie: PCIe of a device: gen3, gen4, gen5 or GB/s, for tables without bandwidths.
    hardware: Hardware: a preset of `plantui hardware`, or a TOML file with figures of your own [default: that
        of the topology, else h100]
    fabric: Network above the machines: devices of a pod and how many times less bandwidth leaves it, such as
        3072:7, or roce-24k [default: full bandwidth between all]
    sequence_length: Tokens in a sequence; `sweep` takes several, such as 4096,8192 [default: the model's
        longest, at most 8192]
    precision: Number format of matrix products: fp32, bf16, fp16, fp8, mxfp8 or nvfp4 [default: bf16]
    stack: Profile of the training software: megatron-2025, nemo-24, torchtitan or plain [default:
        megatron-2025]
    reserve: Memory per device kept free for the allocator, NCCL and the context [default: 6GiB] A number is in
        bytes.
    adapter: Adapters in place of training all weights: lora or qlora, such as lora:r=16, or PEFT's
        adapter_config.json.
    imbalance: Load of the ranks of experts: balanced, random, a factor from 1, capacity:FACTOR, or a JSON file
        with the tokens of each expert.
    calibration: Calibration file: factors that `plantui calibrate` fitted to your runs.
    profile_batch: Samples in the profiled batch [default: the line `# profile_batch=N`, else derived from image
        sizes, else 1]
    micro_batch: Micro-batch whose profile is taken from a file with one for each (Piper's profiles); of a job,
        its micro-batch.
    global_batch: Another name of `batch`.
    """
    return _calls.simulate(workload, plan, _calls.given(locals(), "workload", "plan"))


def export(
    plan: PlanLike,
    *,
    to: str,
    workload: Optional[PathLike] = None,
    layers: Optional[str] = None,
    block_name: Optional[str] = None,
    first_names: Optional[Sequence[str]] = None,
    last_names: Optional[Sequence[str]] = None,
    micro_batch_size: Optional[Union[Count, str]] = None,
    schedule: Optional[PathLike] = None,
    virtual_stages: Optional[Union[Count, str]] = None,
    exact: bool = False,
    deadline: Optional[Quantity] = None,
    devices: Optional[Union[Count, str]] = None,
    cpus: Optional[Union[Count, str]] = None,
    memory: Optional[Quantity] = None,
    microbatches: Optional[Union[Count, str]] = None,
    bandwidth: Optional[Quantity] = None,
    batch: Optional[Union[Count, str]] = None,
    machines: Optional[Values] = None,
    flops: Optional[Quantity] = None,
    topology: Optional[PathLike] = None,
    nvlink_gbps: Optional[Quantity] = None,
    pcie: Optional[Union[Count, str]] = None,
    hardware: Optional[str] = None,
    fabric: Optional[str] = None,
    sequence_length: Optional[Values] = None,
    precision: Optional[str] = None,
    stack: Optional[str] = None,
    reserve: Optional[Quantity] = None,
    adapter: Optional[str] = None,
    imbalance: Optional[PathLike] = None,
    calibration: Optional[PathLike] = None,
    profile_batch: Optional[Union[Count, str]] = None,
    micro_batch: Optional[Union[Count, str]] = None,
    layer_names: Optional[str] = None,
    global_batch: Optional[Union[Count, str]] = None,
) -> str:
    """Write a plan for a training engine, a spreadsheet or another tool.

    to: Format to write. One of: chrome-trace, svg, csv, dot, piper-result, pipedream, rank-file,
        torch-schedule, placement-split, jax, megatron, deepspeed, torch, torchtitan, galvatron, vllm,
        megatron-bridge, maxtext, accelerate.
    workload: Workload of the plan [default: the file named in the plan]
    layers: Name of the repeated layers, with a * for the number.
    block_name: The engine's name of a repeated layer, with {} for its number. Default: layers.{}.
    first_names: The engine's modules before the repeated layers. Default: tok_embeddings.
    last_names: The engine's modules after the repeated layers. Default: norm,lm_head.
    micro_batch_size: Samples in a microbatch [default: that of the plan or the workload]
    schedule: Order in which a stage works through its microbatches. One of: 1f1b, gpipe, interleaved,
        eager-1f1b, zb-h1, zb-v, zb-2p, interleaved-zb, looped-bfs, combined-1f1b, dualpipe, dualpipe-v,
        seq1f1b, inference.
    virtual_stages: Virtual stages on every rank under ``schedule` interleaved` [default: 2]
    exact: Refuses a plan that the engine cannot run, instead of writing the nearest one.
    deadline: Stops the search for the nearest plan, or the simulation for a trace, after this time, such as 60s
        or 2min. A number is in seconds.
    devices: Devices available; a plan may use fewer. `plan` takes several, such as 64..512, and shows what each
        costs. Kinds, such as 16xh100,32xa100-80, are planned together.
    cpus: CPUs that can run nodes beside the devices (device placement)
    memory: Memory per device, such as 16GiB, 80GB or 8589934592. A number is in bytes.
    microbatches: Microbatches in a batch; the replicas of a stage must divide them.
    bandwidth: Bandwidth between any two devices, such as 25GB/s, 25GiB/s or 200Gb/s (bits) A number is in bytes
        per second.
    batch: Samples in a batch over all devices (layer profiles, training); `plan` takes a list, such as
        32,64,128.
    machines: Devices of each machine, such as 8,8 or 2x8, or counted through as [8,16] (layer profiles)
    flops: Operations per second of a device, such as 10e12, 10T or 312TFLOPS (operator graphs)
    topology: Topology: a preset such as dgx-1 or 4xdgx-h100, a file, or several machines of one, such as
        8xbox.txt+ib-ndr; `plantui topologies` lists the presets.
    nvlink_gbps: GB/s of one NVLink (or xGMI link) each way, for tables without bandwidths [default: that of the
        hardware]
    pcie: PCIe of a device: gen3, gen4, gen5 or GB/s, for tables without bandwidths.
    hardware: Hardware: a preset of `plantui hardware`, or a TOML file with figures of your own [default: that
        of the topology, else h100]
    fabric: Network above the machines: devices of a pod and how many times less bandwidth leaves it, such as
        3072:7, or roce-24k [default: full bandwidth between all]
    sequence_length: Tokens in a sequence; `sweep` takes several, such as 4096,8192 [default: the model's
        longest, at most 8192]
    precision: Number format of matrix products: fp32, bf16, fp16, fp8, mxfp8 or nvfp4 [default: bf16]
    stack: Profile of the training software: megatron-2025, nemo-24, torchtitan or plain [default:
        megatron-2025]
    reserve: Memory per device kept free for the allocator, NCCL and the context [default: 6GiB] A number is in
        bytes.
    adapter: Adapters in place of training all weights: lora or qlora, such as lora:r=16, or PEFT's
        adapter_config.json.
    imbalance: Load of the ranks of experts: balanced, random, a factor from 1, capacity:FACTOR, or a JSON file
        with the tokens of each expert.
    calibration: Calibration file: factors that `plantui calibrate` fitted to your runs.
    profile_batch: Samples in the profiled batch [default: the line `# profile_batch=N`, else derived from image
        sizes, else 1]
    micro_batch: Micro-batch whose profile is taken from a file with one for each (Piper's profiles); of a job,
        its micro-batch.
    layer_names: Another name of `block_name`.
    global_batch: Another name of `batch`.
    """
    return _calls.export(plan, _calls.given(locals(), "plan"))


def lint(
    workload: WorkloadLike,
    *,
    profile_batch: Optional[Union[Count, str]] = None,
    micro_batch: Optional[Union[Count, str]] = None,
) -> Findings:
    """List facts in a workload that may mislead a planner.

    profile_batch: Samples in the profiled batch [default: the line `# profile_batch=N`, else derived from image
        sizes, else 1]
    micro_batch: Micro-batch whose profile is taken from a file with one for each (Piper's profiles); of a job,
        its micro-batch.
    """
    return _calls.lint(workload, _calls.given(locals(), "workload"))


def convert(
    workload: WorkloadLike,
    *,
    to: str,
    plan: Optional[PathLike] = None,
    devices: Optional[Union[Count, str]] = None,
    cpus: Optional[Union[Count, str]] = None,
    memory: Optional[Quantity] = None,
    microbatches: Optional[Union[Count, str]] = None,
    bandwidth: Optional[Quantity] = None,
    batch: Optional[Union[Count, str]] = None,
    machines: Optional[Values] = None,
    flops: Optional[Quantity] = None,
    topology: Optional[PathLike] = None,
    nvlink_gbps: Optional[Quantity] = None,
    pcie: Optional[Union[Count, str]] = None,
    hardware: Optional[str] = None,
    fabric: Optional[str] = None,
    sequence_length: Optional[Values] = None,
    precision: Optional[str] = None,
    stack: Optional[str] = None,
    reserve: Optional[Quantity] = None,
    adapter: Optional[str] = None,
    imbalance: Optional[PathLike] = None,
    calibration: Optional[PathLike] = None,
    profile_batch: Optional[Union[Count, str]] = None,
    micro_batch: Optional[Union[Count, str]] = None,
    global_batch: Optional[Union[Count, str]] = None,
) -> Workload:
    """Write a workload in another format.

    to: Format to write. One of: placement, piper, pipedream.
    plan: Plan whose stages are written as stage ids (PipeDream)
    devices: Devices available; a plan may use fewer. `plan` takes several, such as 64..512, and shows what each
        costs. Kinds, such as 16xh100,32xa100-80, are planned together.
    cpus: CPUs that can run nodes beside the devices (device placement)
    memory: Memory per device, such as 16GiB, 80GB or 8589934592. A number is in bytes.
    microbatches: Microbatches in a batch; the replicas of a stage must divide them.
    bandwidth: Bandwidth between any two devices, such as 25GB/s, 25GiB/s or 200Gb/s (bits) A number is in bytes
        per second.
    batch: Samples in a batch over all devices (layer profiles, training); `plan` takes a list, such as
        32,64,128.
    machines: Devices of each machine, such as 8,8 or 2x8, or counted through as [8,16] (layer profiles)
    flops: Operations per second of a device, such as 10e12, 10T or 312TFLOPS (operator graphs)
    topology: Topology: a preset such as dgx-1 or 4xdgx-h100, a file, or several machines of one, such as
        8xbox.txt+ib-ndr; `plantui topologies` lists the presets.
    nvlink_gbps: GB/s of one NVLink (or xGMI link) each way, for tables without bandwidths [default: that of the
        hardware]
    pcie: PCIe of a device: gen3, gen4, gen5 or GB/s, for tables without bandwidths.
    hardware: Hardware: a preset of `plantui hardware`, or a TOML file with figures of your own [default: that
        of the topology, else h100]
    fabric: Network above the machines: devices of a pod and how many times less bandwidth leaves it, such as
        3072:7, or roce-24k [default: full bandwidth between all]
    sequence_length: Tokens in a sequence; `sweep` takes several, such as 4096,8192 [default: the model's
        longest, at most 8192]
    precision: Number format of matrix products: fp32, bf16, fp16, fp8, mxfp8 or nvfp4 [default: bf16]
    stack: Profile of the training software: megatron-2025, nemo-24, torchtitan or plain [default:
        megatron-2025]
    reserve: Memory per device kept free for the allocator, NCCL and the context [default: 6GiB] A number is in
        bytes.
    adapter: Adapters in place of training all weights: lora or qlora, such as lora:r=16, or PEFT's
        adapter_config.json.
    imbalance: Load of the ranks of experts: balanced, random, a factor from 1, capacity:FACTOR, or a JSON file
        with the tokens of each expert.
    calibration: Calibration file: factors that `plantui calibrate` fitted to your runs.
    profile_batch: Samples in the profiled batch [default: the line `# profile_batch=N`, else derived from image
        sizes, else 1]
    micro_batch: Micro-batch whose profile is taken from a file with one for each (Piper's profiles); of a job,
        its micro-batch.
    global_batch: Another name of `batch`.
    """
    return _calls.convert(workload, _calls.given(locals(), "workload"))


def import_job(
    job: PathLike,
    *,
    model: Optional[PathLike] = None,
    from_: Optional[str] = None,
    hardware: Optional[str] = None,
    devices: Optional[Union[Count, str]] = None,
    parallel: Optional[Union[str, Mapping[str, Count]]] = None,
    global_batch: Optional[Union[Count, str]] = None,
    sequence_length: Optional[Quantity] = None,
    precision: Optional[str] = None,
    recompute: Optional[str] = None,
    adapter: Optional[str] = None,
    options: Optional[Mapping[str, Value]] = None,
    define: Optional[Mapping[str, Value]] = None,
    with_: Optional[Mapping[str, Value]] = None,
    ignore: Optional[Sequence[str]] = None,
    recipe: Optional[str] = None,
    for_: Optional[PathLike] = None,
    deadline: Optional[Quantity] = None,
) -> Job:
    """Read the job of a training engine, predict it, and compare it with the best layout.

    model: The same as a flag.
    from_: Format of the job [default: recognised by its names] One of: megatron, megatron-bridge, nemo,
        gpt-neox, nanotron, torchtitan, deepspeed, accelerate, huggingface, axolotl, llama-factory, ms-swift,
        verl, maxtext, galvatron, torch.
    hardware: Hardware: a preset of `plantui hardware`, or a TOML file with figures of your own [default: h100]
    devices: Number of devices.
    parallel: Degrees of parallelism and the micro-batch, such as tp=4,pp=2,mbs=1.
    global_batch: Sequences in an iteration, over all devices.
    sequence_length: Tokens in a sequence.
    precision: Number format of matrix products: fp32, bf16, fp16, fp8, mxfp8 or nvfp4.
    recompute: Recomputation in the backward pass, as `plantui estimate` takes it.
    adapter: Adapters in place of training all weights, such as lora:r=16.
    options: Sets a setting of the software; may be repeated.
    define: Value of a variable of a script or a parameter of a function; may be repeated.
    with_: Adds a setting of the job, in the job's own name, as if the file ended with it; may be repeated.
    ignore: Leaves out a setting that is not understood; may be repeated.
    recipe: Function of a Python file, or line of a command, where a file has several jobs.
    for_: An existing profile of the network: only the plan is made, over its measured times.
    deadline: Stops the search for the best layout after this time [default: 10s] A number is in seconds.
    """
    return _calls.import_job(job, _calls.given(locals(), "job"))


def generate(
    model: PathLike,
    *,
    as_: Optional[str] = None,
    stack: Optional[str] = None,
    hardware: Optional[str] = None,
    sequence_length: Optional[Quantity] = None,
    micro_batch: Optional[Union[Count, str]] = None,
    tensor_degrees: Optional[Values] = None,
    element_bytes: Optional[Quantity] = None,
    mfu: Optional[Quantity] = None,
    tensor_overhead: Optional[Union[Count, str]] = None,
    tensor_bandwidth: Optional[Quantity] = None,
    state_bytes: Optional[Quantity] = None,
    activation_bytes: Optional[Values] = None,
    keep_attention_scores: bool = False,
    causal_credit: bool = False,
    sequence_parallel: bool = False,
    working_set: Optional[str] = None,
    devices: Optional[Union[Count, str]] = None,
    memory: Optional[Quantity] = None,
    microbatches: Optional[Union[Count, str]] = None,
    global_batch: Optional[Union[Count, str]] = None,
    bandwidth: Optional[Quantity] = None,
    batch: Optional[Union[Count, str]] = None,
    image: Optional[Union[Count, str]] = None,
    classes: Optional[Union[Count, str]] = None,
    vocabulary: Optional[Quantity] = None,
    hidden: Optional[Union[Count, str]] = None,
    layers: Optional[Union[Count, str]] = None,
    heads: Optional[Union[Count, str]] = None,
    feed_forward: Optional[Union[Count, str]] = None,
    flops: Optional[Quantity] = None,
    operators: Optional[str] = None,
    cpus: Optional[Union[Count, str]] = None,
    cpu_flops: Optional[Quantity] = None,
    cpu_memory_bandwidth: Optional[Quantity] = None,
    host_link: Optional[Quantity] = None,
    image_size: Optional[Union[Count, str]] = None,
    width: Optional[Union[Count, str]] = None,
    blocks: Optional[str] = None,
) -> Workload:
    """Make a workload from a model and a hardware preset.

    as_: Kind of workload [default: profile] One of: profile, training.
    stack: Source of times and memory: the model of real training for megatron-2025, nemo-24, torchtitan or
        plain, or piper-2021 (the published profile's constants) [default: megatron-2025; piper-2021 for the
        BERT presets and with any of its own options]
    hardware: Hardware preset: a100-40, a100-80, h100, h200, b200, and more with `stack` (see `plantui
        hardware`) [default: h100; a100-80 for piper-2021]
    sequence_length: Tokens in a sequence [default: the model's longest, at most 8192]
    micro_batch: Sequences in a microbatch [default: 1; 2 for the BERT presets]
    tensor_degrees: Tensor-parallel degrees, separated by commas [default: those of 1,2,4,8 that divide the
        model]
    element_bytes: Bytes of an activation element: scales transfers and activations, not the state
        (`state_bytes`) [default: 2]
    mfu: Fraction of the peak that training reaches at degree 1 [default: the hardware's: 0.5 on A100, 0.45
        later, 0.4 on V100]
    tensor_overhead: Overhead of tensor parallelism: time is T1/t * (1 + K * (t - 1)) [default: 0.204, fitted on
        the published profile]
    tensor_bandwidth: Overhead of tensor parallelism from all-reduces at this bandwidth instead (40GB/s fits the
        published profile) A number is in bytes per second.
    state_bytes: Bytes of state per parameter: 2 weights, 4 with gradients, 16 fp16 Adam, 18 Megatron bf16 Adam,
        distributed:REPLICAS [default: 18; 2 for the BERT presets]
    activation_bytes: Activations of a layer per token and hidden unit, FIXED + SPLIT/t bytes for any
        `element_bytes` [default, at 2 bytes an element: 10,8+4f/h; 4.86,33.7 for the BERT presets]
    keep_attention_scores: Keeps attention scores for the backward pass (no flash attention)
    causal_credit: Counts causal attention as half of its operations (decoders)
    sequence_parallel: Splits norms and dropouts along the sequence, and with them all activations of a layer.
    working_set: Recomputed activations that count as live [default: every-layer] One of: every-layer,
        one-layer.
    devices: Devices, written into the file [default: 64]
    memory: Memory per device, written into the file [default: the hardware's] A number is in bytes.
    microbatches: Microbatches in a batch, written into the file [default: 1920]
    global_batch: Sequences in a batch, written into the file (`as` training)
    bandwidth: Bandwidth between devices, written into the file [default: the hardware's link across nodes] A
        number is in bytes per second.
    batch: Samples in a batch [default: 128]
    image: Rows and columns of the image [default: 227; 299 for inception3]
    classes: Classes [default: 1000; 1024 for alexnet]
    vocabulary: Size of the vocabulary [default: 50000; 100000 for rnnlm]
    hidden: Features of a token [default: 512; 2048 for rnnlm]
    layers: Layers, of encoder and decoder each [default: 6; 2 for rnnlm]
    heads: Attention heads [default: 8]
    feed_forward: Features within a feed-forward layer [default: 2048]
    flops: Operations per second of a device, written into the file [default: 10e12]
    operators: Writes the graph of operators for device placement, for this pass: times on accelerators and
        CPUs, sizes, transfers. One of: training, inference.
    cpus: CPUs beside the accelerators, written into the file [default: 1]
    cpu_flops: FLOP/s of a CPU [default: 1e12]
    cpu_memory_bandwidth: Memory bandwidth of a CPU [default: 100GB/s] A number is in bytes per second.
    host_link: Bandwidth between an accelerator and its host [default: 16GB/s, half of PCIe 4.0 x16] A number is
        in bytes per second.
    image_size: Pixels per side of branching-cnn's images [default: 224]
    width: Channels of branching-cnn's first convolution [default: 64]
    blocks: Blocks of four branches in branching-cnn [default: 9]
    """
    return _calls.generate(model, _calls.given(locals(), "model"))


def planners(
) -> Table:
    """List the planners with their options."""
    return _calls.planners()


def hardware(
) -> Table:
    """List the hardware presets."""
    return _calls.hardware()


def topologies(
    topology: Optional[PathLike] = None,
    *,
    hardware: Optional[str] = None,
    nvlink_gbps: Optional[Quantity] = None,
    pcie: Optional[Union[Count, str]] = None,
) -> Table:
    """List the topology presets, or show one topology.

    hardware: Hardware of the devices; its data sheet gives the bandwidth of an NVLink.
    nvlink_gbps: GB/s of one NVLink (or xGMI link) each way, for tables without bandwidths [default: that of the
        hardware]
    pcie: PCIe of a device: gen3, gen4, gen5 or GB/s, for tables without bandwidths.
    """
    return _calls.topologies(topology, _calls.given(locals(), "topology"))


def terms(
    words: Sequence[str] = (),
) -> Table:
    """Explain bubble, microbatch, 1F1B, recompute and other words, each with a picture."""
    return _calls.terms(words)
