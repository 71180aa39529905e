//! Terms of the claims in a plan's report.

use super::Term;

pub(super) const TERMS: [Term; 4] = [
    Term {
        name: "proven",
        also: &["optimal", "proof"],
        text: "No plan in the planner's search space is better in the planner's model. The proof does not cover \
            plans outside that space or effects outside that model, so reports add the simulated figure.",
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
        text: "One iteration played event by event: computation of each device, transfers on each link, memory over \
            time. It scores the plans of all planners alike, with effects that their formulas leave out.",
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
