//! Terms of device memory.

use super::Term;

pub(super) const TERMS: [Term; 5] = [
    Term {
        name: "activations",
        also: &["activation memory"],
        text: "Outputs of layers that the backward pass needs again. They are kept for every microbatch in flight, and grow \
               with the microbatch and the length of the sequence.",
        picture: " forward    x -> [1] -a-> [2] -b-> [3] -> loss
 kept            x        a        b       until backward",
    },
    Term {
        name: "recompute",
        also: &["recomputation", "activation checkpointing", "activation recomputation", "gradient checkpointing"],
        text: "A layer drops its activations after the forward pass and computes them again when the backward needs them. \
               It frees most of a layer's activation memory for about a third more of its time.",
        picture: " keeps        F ............ BB
 recomputes   F ............ FBB      the second F is the price",
    },
    Term {
        name: "optimizer state",
        also: &["weights", "parameters", "gradients", "state", "Adam"],
        text: "What a parameter costs beside its own value: its gradient, and for Adam two running averages and a copy in \
               full precision. Together they are 16 to 18 bytes for each parameter, where the weight alone is 2.",
        picture: " bytes    2 weight | 4 gradient | 4 copy | 4 mean | 4 variance
          = 18 for every parameter",
    },
    Term {
        name: "distributed optimizer",
        also: &["ZeRO", "FSDP", "sharded optimizer"],
        text: "Replicas share the optimizer's state in place of each keeping all of it; ZeRO goes on to share gradients and \
               weights. It divides that memory by the number of replicas and turns the all-reduce into two halves.",
        picture: " replica 0   weights  gradients  state 1/4
 replica 1   weights  gradients  state 2/4
 replica 2   weights  gradients  state 3/4
 replica 3   weights  gradients  state 4/4",
    },
    Term {
        name: "memory limit",
        also: &["peak memory", "memory"],
        text: "What a device can hold; the highest point that a simulated iteration reaches must stay below it. Where it binds, \
               a plan recomputes, splits tensors, or uses more stages.",
        picture: " 80 GiB  ------------------ limit
          state  |activations
         #########+++++++..
         #########+++++++++ <- peak",
    },
];
