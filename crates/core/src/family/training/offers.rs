//! Choices of layers of a model to be trained: none by themselves, because the configuration holds for all layers.

use crate::{family::offers::NodeOffers, workload::TrainingProfile};

impl NodeOffers for TrainingProfile {}
