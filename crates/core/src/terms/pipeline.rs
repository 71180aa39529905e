//! Terms of stages, microbatches and schedules.

use super::Term;

pub(super) const TERMS: [Term; 13] = [
    Term {
        name: "stage",
        also: &["pipeline stage", "pipeline parallel", "PP"],
        text: "Consecutive layers on one group of devices; each stage sends its output to the next one. The slowest \
            stage limits the pipeline, so a good split makes stages equally long.",
        picture: " layers   1  2  3  4 | 5  6  7  8 | 9 10 11 12
          stage 1    |  stage 2   |  stage 3
          device 0  -->  device 1  -->  device 2",
    },
    Term {
        name: "batch",
        also: &["global batch", "iteration", "step", "mini-batch"],
        text: "The samples between two updates of the weights. An iteration takes one batch through the pipeline and updates \
               the weights; `s/iteration` is its time, with warm-up, drain and gradient exchange.",
        picture: " |<--------- one iteration --------->|
 [ mb 1 ][ mb 2 ][ mb 3 ] .. [ mb 12 ] update [ mb 1 ] ..",
    },
    Term {
        name: "microbatch",
        also: &["MBS"],
        text: "A part of the batch that goes through the pipeline on its own, so that all stages work at once. More \
            microbatches mean less idle time; each must still be large enough to keep a device busy.",
        picture: " stage 1   1 2 3 4
 stage 2     1 2 3 4          time -->
 stage 3       1 2 3 4        the numbers are microbatches",
    },
    Term {
        name: "forward",
        also: &["backward", "forward pass", "backward pass"],
        text: "Forward computes a layer's output, backward the gradients, in the opposite order and for about twice the \
               time. Backward needs what forward computed, which is why activations are kept in memory between the two.",
        picture: " stage 1   F . . . . BB
 stage 2     F . . BB         time -->
 stage 3       F BB           F forward, BB backward",
    },
    Term {
        name: "bubble",
        also: &["pipeline bubble", "fill and drain", "warm-up and drain"],
        text: "Idle time during warm-up and drain, as a share of the iteration. With p equal stages and m microbatches it \
               is (p - 1) of m + p - 1 parts: more microbatches or fewer stages make it smaller.",
        picture: " stage 1   F F F F . . . . B B B B
 stage 2   . F F F F . . B B B B .      . is the bubble
 stage 3   . . F F F F B B B B . .",
    },
    Term {
        name: "imbalance",
        also: &["unbalanced stages"],
        text: "Idle time of the other stages while the slowest stage works, as a share of the iteration. Moving layers away \
               from the slowest stage makes it smaller.",
        picture: " stage 1   FFBBBB..FFBBBB..
 stage 2   FFFBBBBBFFFBBBBB   the slowest; . is the imbalance",
    },
    Term {
        name: "idle",
        also: &["idle time"],
        text: "Share of the devices' time without computation: the bubble, the imbalance, and the waits for transfers and \
               all-reduces. Reports list its parts in brackets, the largest first.",
        picture: " stage 1   FFBBBB..FFBBBB..    imbalance
 stage 2   ..FFFBBBBBFFFBB..   bubble at both ends",
    },
    Term {
        name: "GPipe",
        also: &["gpipe schedule"],
        text: "The schedule that runs all forwards of a batch first and then all backwards (Huang et al., 2019). It is \
               simple, but every microbatch's activations are in memory at once.",
        picture: " stage 1   F1 F2 F3 F4 .  .  .  .  B4 B3 B2 B1
 stage 2   .  F1 F2 F3 F4 .  .  B4 B3 B2 B1 .",
    },
    Term {
        name: "1F1B",
        also: &["one forward one backward", "PipeDream-flush"],
        text: "The schedule in which a stage, once the pipeline is full, alternates one forward and one backward \
               (Narayanan et al., 2021). It takes as long as GPipe but holds activations of only as many microbatches as there \
               are stages behind it.",
        picture: " stage 1   F1 F2 F3 .  .  B1 F4 B2 F5 B3 ..
 stage 2   .  F1 F2 .  B1 F3 B2 F4 B3 ..
 stage 3   .  .  F1 B1 F2 B2 F3 B3 ..",
    },
    Term {
        name: "virtual stage",
        also: &["interleaved", "VPP", "interleaved 1F1B"],
        text: "One of several smaller parts of the model on the same device, so that a microbatch passes each device more \
               than once. The bubble shrinks by the number of virtual stages; transfers grow by the same number.",
        picture: " device 0   layers 1-2   layers 7-8
 device 1   layers 3-4   layers 9-10       two virtual stages
 device 2   layers 5-6   layers 11-12      on each device",
    },
    Term {
        name: "zero bubble",
        also: &["zb-h1", "zb-v", "interleaved-zb", "weight gradient"],
        text: "Schedules that split a backward into the gradient of the input, which the stage before waits for, and \
            that of the weights, for which no stage waits (Qi et al., 2024). The second fills the bubble.",
        picture: " stage 2   F F .  B B B          B whole backward
 stage 2   F F b  b b w w w      b input, w weights: moved into the gap",
    },
    Term {
        name: "in flight",
        also: &["microbatches in flight", "stash"],
        text: "The microbatches whose forward has run on a stage and whose backward has not, so that their activations must \
               be kept. Early stages have the most of them, which is why memory runs out there first.",
        picture: " stage 1   F1 F2 F3 | B1         3 in flight at |
 stage 2      F1 F2 | B1         2
 stage 3         F1 | B1         1",
    },
    Term {
        name: "bottleneck",
        also: &["slowest stage", "limited by"],
        text: "The stage or link that everything else waits for. Only what makes it faster makes the plan faster: more \
               replicas there, fewer layers, or a quicker link.",
        picture: " stage 1   ######....
 stage 2   ##########   <- all wait for this one
 stage 3   #######...",
    },
];
