//! Terms of replicas, tensor splits, and communication between devices.

use super::Term;

pub(super) const TERMS: [Term; 9] = [
    Term {
        name: "data parallel",
        also: &["replica", "DP", "data parallelism"],
        text: "Several devices hold the same layers and each takes its share of the samples. It divides time by the number \
               of replicas, costs one exchange of gradients for each batch, and saves no memory.",
        picture: " samples 1-8    -> [ all layers ]  device 0 \\
                                             > sum of gradients
 samples 9-16   -> [ all layers ]  device 1 /",
    },
    Term {
        name: "tensor parallel",
        also: &["TP", "tensor degree", "tensor parallelism"],
        text: "The matrices of a layer are cut, and every device of the group computes its piece of the same layer \
            for the same sample. It divides time and memory, but every layer combines the pieces, which needs fast \
            links.",
        picture: "              [ W | W ]
 activation x [ W | W ]  ->  two halves, then an all-reduce
              dev0 dev1",
    },
    Term {
        name: "sequence parallel",
        also: &["SP"],
        text: "Norms and dropouts, which tensor parallelism leaves whole, are split along the tokens of the \
            sequence. It costs no time and divides activations that every device would keep in full.",
        picture: " tokens   1..1024 | 1025..2048
 norm      dev 0  |   dev 1",
    },
    Term {
        name: "context parallel",
        also: &["CP"],
        text: "Each device takes a part of the sequence through all layers, and attention exchanges keys and values among \
               them. It makes sequences possible whose activations would not fit on one device.",
        picture: " tokens 1..4096    -> dev 0 \\  keys and values
 tokens 4097..8192 -> dev 1 /  go round",
    },
    Term {
        name: "expert parallel",
        also: &["EP", "mixture of experts", "MoE"],
        text: "In a layer of many experts each device holds some of them, and tokens travel to the expert chosen for \
            them and back. It divides the memory of experts; the price is an all-to-all exchange in every such layer.",
        picture: " tokens a b c d   router   dev 0: experts 1-4   <- a, c
                  ------>  dev 1: experts 5-8   <- b, d",
    },
    Term {
        name: "all-reduce",
        also: &["sync", "gradient all-reduce", "reduce-scatter", "all-gather"],
        text: "Every device of a group brings a vector and gets the sum of all of them. Around a ring of n devices each \
               sends 2(n-1)/n of the vector's bytes, so the time hardly depends on how many take part.",
        picture: " dev 0   1 2 3                 9 9 9
 dev 1   3 3 3   all-reduce    9 9 9
 dev 2   5 4 3      --->       9 9 9",
    },
    Term {
        name: "transfer",
        also: &["edge", "communication", "send and receive"],
        text: "Data from one stage to another: activations forward, gradients of the same size back. Without overlap \
            with computation it adds to the stage's time.",
        picture: " stage 1  [ F1 ]==>       [ F2 ]==>
 stage 2           [ F1 ]          [ F2 ]      ==> is the transfer",
    },
    Term {
        name: "bandwidth",
        also: &["link"],
        text: "Bytes per second over a link: hundreds of GB/s within a machine, ten to fifty between machines. A \
            plan runs well if little of its traffic crosses slow links.",
        picture: " machine A  [0]=[1]=[2]=[3]        = fast, within
                   |
 machine B  [4]=[5]=[6]=[7]        | slow, between",
    },
    Term {
        name: "topology",
        also: &["mapping", "rank order"],
        text: "The links between devices. Mapping chooses the device of each part of a plan, so that neighbours in \
            the pipeline have fast links.",
        picture: " plan      s1 - s2 - s3 - s4
 devices    0 -  1 -  3 -  2       0-1, 1-3, 3-2 are the fast links",
    },
];
