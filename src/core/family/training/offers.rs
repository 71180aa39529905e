//! What layers of a model that is to be trained offer a plan: nothing by themselves, the configuration holds for all.

use crate::{family::offers::Offers, workload::TrainingProfile};

impl Offers for TrainingProfile {}
