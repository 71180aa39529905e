//! Terms of the claims in a plan's report.

use super::Term;

pub(super) const TERMS: [Term; 4] = [
    Term {
        name: "proven",
        also: &["optimal", "proof"],
        text: "No plan of the planner's search space is better by the planner's own reckoning. It says nothing of plans \
               outside that space or of what the reckoning leaves out, which is why a simulated figure stands beside it.",
        picture: " plan      20.06 ms/sample
 bound     20.06 ms/sample     equal: proven",
    },
    Term {
        name: "lower bound",
        also: &["bound", "gap"],
        text: "A value that no plan can go below, found without knowing the best plan. The gap between it and a plan is the \
               most that could still be gained.",
        picture: " |-----bound=====plan-----> time
            the gap",
    },
    Term {
        name: "simulated",
        also: &["simulation", "simulator"],
        text: "One batch run through event by event: which device computes what and when, which link carries what, how full \
               memory is. It scores plans of all planners alike, and knows what their formulas leave out.",
        picture: " t=0    stage 1 starts F1
 t=6    F1 done, transfer begins
 t=8    stage 2 starts F1 ..",
    },
    Term {
        name: "MFU",
        also: &["model FLOPs utilization", "HFU"],
        text: "The share of the devices' peak speed that goes into the model's own arithmetic. HFU counts recomputation as \
               well; 40 to 55 % is what good runs of dense models attain.",
        picture: " peak    ####################  989 TFLOP/s
 model   ##########            511 TFLOP/s  =  52 %",
    },
];
