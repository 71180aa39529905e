//! Job of a training engine: facts with their places, what was assumed, and what was not used.

use std::collections::BTreeMap;

use plantui_core::{
    family::training::request::{Request, ResolvedRequest},
    source::LoadError,
    workload::training::Model,
};

use super::{
    effects::Effects,
    setting::{Fact, Place, Settings},
};

/// Largest degree, batch, length or number of devices that is read.
const MOST_OF_ANYTHING: u64 = 1 << 26;

/// Most microbatches of a replica in an iteration that are read.
const MOST_MICROBATCHES: u64 = 100_000;

/// Most layers that are read.
const MOST_LAYERS: u64 = 4096;

/// Value that a job does not state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assumption {
    /// The fact.
    pub name: String,
    /// The assumed value, with its reason.
    pub value: String,
    /// Flag of `plantui import` that sets it.
    pub flag: String,
}

/// Setting of a file that was not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unused {
    /// Name as the file writes it.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Its place.
    pub place: Place,
}

/// Measured iterations of a log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Median iteration time, seconds.
    pub iteration_s: f64,
    /// Peak memory of the fullest rank in the log, bytes.
    pub memory_bytes: Option<f64>,
    /// Number of iterations.
    pub iterations: usize,
}

/// Job as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Id of its format.
    pub format: &'static str,
    /// Title of its format.
    pub title: &'static str,
    /// Function, command or recipe of the file, if it has several.
    pub recipe: Option<String>,
    /// File as it is shown.
    pub source: String,
    /// Facts by the names of [`Request::set`].
    pub facts: BTreeMap<String, Fact>,
    /// The model, and where it is named.
    pub model: Option<Fact<Model>>,
    /// Name of a model that is not known here.
    pub model_name: Option<Fact>,
    /// Values that the file does not state.
    pub assumed: Vec<Assumption>,
    /// Settings that have no effect on time and memory.
    pub no_effect: Vec<Unused>,
    /// Settings that were not understood. None of them sounds as if it mattered.
    pub not_understood: Vec<Unused>,
    /// Facts that the prediction cannot express, and rules of the engine.
    pub notes: Vec<String>,
    /// Measured iterations.
    pub measured: Option<Measured>,
    /// Layers that recompute, if the job states them one by one.
    pub recomputed: Option<Vec<bool>>,
    /// Reason why the model's prediction cannot express the job; a plan over a profile may.
    pub refused: Option<LoadError>,
}

impl Job {
    /// Degree, batch or number of devices by its name in a request; 1 if it is not stated.
    pub fn degree(&self, name: &str) -> u32 {
        self.facts.get(name).and_then(|fact| fact.value.parse().ok()).unwrap_or(1)
    }

    /// Request of the job's run.
    ///
    /// # Errors
    /// [`LoadError`] that names the place of a value that no run can have.
    pub fn request(&self) -> Result<Request, LoadError> {
        let mut request = Request::default();
        for (name, fact) in &self.facts {
            request
                .set(name, &fact.value)
                .map_err(|problem| fact.place.error("", problem, "correct it, or use --with"))?;
        }
        Ok(request)
    }

    /// Run of the job with this model.
    ///
    /// # Errors
    /// [`LoadError`] if the facts contradict each other.
    pub fn resolve(&self, model: &Model) -> Result<ResolvedRequest, LoadError> {
        let refused = |refusal: plantui_core::family::training::check::Refusal| {
            LoadError::file(&self.source, refusal.problem, refusal.repair)
        };
        self.request()?.resolve(model).map_err(refused)
    }
}

/// Answers of the user to questions that a file leaves open.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// Format, in place of the one that is recognised.
    pub format: Option<&'static str>,
    /// Values of variables.
    pub defines: BTreeMap<String, String>,
    /// Settings that are added as if the file ended with them.
    pub with: Vec<(String, String)>,
    /// Settings that may be left out, in normal form.
    pub ignore: Vec<String>,
    /// Recipe, function or line of the command.
    pub recipe: Option<String>,
    /// Facts that flags state, by the names of [`Request::set`], each with its flag. They replace those of the file.
    pub flags: Vec<(String, String, String)>,
    /// Model of the command line.
    pub model: Option<Model>,
    /// Number of layers, if a profile of the network is given in place of a model.
    pub layers: Option<u64>,
}

/// Job under construction.
pub(crate) struct Draft<'a> {
    pub(crate) source: &'a str,
    pub(crate) options: &'a ReadOptions,
    pub(crate) facts: BTreeMap<String, Fact>,
    pub(crate) model: Option<Fact<Model>>,
    pub(crate) model_name: Option<Fact>,
    /// Rows of the vocabulary in a comment.
    pub(crate) vocabulary: Option<u64>,
    /// True if the name of the model says that its weights are in 4 bits.
    pub(crate) four_bits: bool,
    /// Steps whose gradients are added.
    pub(crate) accumulation: Option<Fact<u64>>,
    /// Sequences of a data-parallel rank in an iteration.
    pub(crate) local_batch: Option<Fact<u64>>,
    /// Microbatches of a data-parallel rank in an iteration, which divide its batch.
    pub(crate) chunks: Option<Fact<u64>>,
    /// Replicas that hold whole copies of what is divided.
    pub(crate) copies: Option<Fact<u64>>,
    /// Weights are divided inside a machine and copied between machines.
    pub(crate) shards_in_machine: Option<Fact<()>>,
    /// Devices in a machine.
    pub(crate) per_machine: Option<Fact<u64>>,
    /// Machines.
    pub(crate) machines: Option<Fact<u64>>,
    /// Reason why the devices are not known, with its repair.
    pub(crate) unknown_devices: Option<LoadError>,
    pub(crate) assumed: Vec<Assumption>,
    pub(crate) notes: Vec<String>,
    pub(crate) measured: Option<Measured>,
    pub(crate) recomputed: Option<Vec<bool>>,
    pub(crate) refused: Option<LoadError>,
    pub(crate) unused: (Vec<Unused>, Vec<Unused>),
}

impl<'a> Draft<'a> {
    pub(crate) fn new(source: &'a str, options: &'a ReadOptions) -> Self {
        Draft {
            source,
            options,
            facts: BTreeMap::new(),
            model: None,
            model_name: None,
            vocabulary: None,
            four_bits: false,
            accumulation: None,
            local_batch: None,
            chunks: None,
            copies: None,
            shards_in_machine: None,
            per_machine: None,
            machines: None,
            unknown_devices: None,
            assumed: vec![],
            notes: vec![],
            measured: None,
            recomputed: None,
            refused: None,
            unused: (vec![], vec![]),
        }
    }

    /// Sets a fact by its name in a request.
    pub(crate) fn set<T: ToString>(&mut self, name: &str, fact: Fact<T>) {
        self.facts.insert(name.into(), fact.map(|value| value.to_string()));
    }

    /// Sets a fact if it is stated.
    pub(crate) fn maybe<T: ToString>(&mut self, name: &str, fact: Option<Fact<T>>) {
        if let Some(fact) = fact {
            self.set(name, fact);
        }
    }

    /// Sets a fact that the engine has without being told.
    #[expect(clippy::needless_pass_by_value, reason = "calls pass literals")]
    pub(crate) fn usual(&mut self, name: &str, value: impl ToString) {
        let place = Place::new("default of the engine", 0);
        self.facts.entry(name.into()).or_insert(Fact { value: value.to_string(), place });
    }

    /// Model of the command line, or of the file.
    pub(crate) fn known_model(&self) -> Option<&Model> {
        self.options.model.as_ref().or(self.model.as_ref().map(|model| &model.value))
    }

    /// Number of layers of the model or the profile.
    pub(crate) fn layers(&self) -> Option<u64> {
        self.options.layers.or(self.known_model().map(|model| model.layers.len() as u64))
    }

    pub(crate) fn degree(&self, name: &str) -> u64 {
        self.facts.get(name).and_then(|fact| fact.value.parse().ok()).unwrap_or(1)
    }

    pub(crate) fn note(&mut self, sentence: impl Into<String>) {
        let sentence = sentence.into();
        if !self.notes.contains(&sentence) {
            self.notes.push(sentence);
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "calls pass literals")]
    pub(crate) fn assume(&mut self, name: &str, value: impl ToString, flag: &str) {
        let assumption = Assumption { name: name.into(), value: value.to_string(), flag: flag.into() };
        if !self.assumed.iter().any(|known| known.name == assumption.name) {
            self.assumed.push(assumption);
        }
    }

    /// Sorts the settings that were not taken.
    ///
    /// # Errors
    /// [`LoadError`] that names those that may change the model, the layout, the memory or the precision.
    pub(crate) fn leave(&mut self, settings: &Settings, effects: &Effects) -> Result<(), LoadError> {
        let mut blocking = vec![];
        for setting in settings.untaken() {
            let unused =
                Unused { name: setting.written.clone(), value: setting.value.text(), place: setting.place.clone() };
            if effects.has_none(&setting.name) || self.options.ignore.contains(&setting.name) {
                self.unused.0.push(unused);
            } else if effects.matters(&setting.name) && !setting.value.is_off() {
                blocking.push(setting);
            } else {
                self.unused.1.push(unused);
            }
        }
        let Some(first) = blocking.first() else { return Ok(()) };
        let names: Vec<String> =
            blocking.iter().map(|setting| format!("{} ({})", setting.written, setting.place)).collect();
        let ignore: Vec<String> = blocking.iter().map(|setting| format!("--ignore {}", setting.name)).collect();
        let (problem, repair) = if blocking.len() == 1 {
            (
                "is not understood, and may change the model, the layout, the memory or the precision".to_string(),
                format!("leave it out with {}", ignore[0]),
            )
        } else {
            (
                format!(
                    "and {} more are not understood, and may change the model, the layout, the memory or the precision: {}",
                    blocking.len() - 1,
                    names.join(", ")
                ),
                format!("leave them out with {}", ignore.join(" ")),
            )
        };
        Err(first.error(problem, repair))
    }

    /// Finishes the job: devices and batch follow from what is stated.
    pub(crate) fn finish(
        mut self,
        format: (&'static str, &'static str),
        recipe: Option<String>,
    ) -> Result<Job, LoadError> {
        self.of_machines();
        for (name, value, flag) in &self.options.flags {
            let place = match self.facts.get(name.as_str()).filter(|fact| fact.value != *value) {
                Some(before) => Place::new(&format!("{flag}, in place of {} in {}", before.value, before.place), 0),
                None => Place::new(flag, 0),
            };
            self.facts.insert(name.clone(), Fact { value: value.clone(), place });
        }
        self.possible()?;
        self.devices()?;
        self.batch()?;
        self.hybrid();
        if let Some(model) = &self.options.model {
            if let Some(own) = &self.model
                && (own.value.layers.len() != model.layers.len() || own.value.hidden != model.hidden)
            {
                let problem = format!(
                    "has {} layers of width {}, and {} has {} of {}",
                    own.value.layers.len(),
                    own.value.hidden,
                    model.name,
                    model.layers.len(),
                    model.hidden
                );
                return Err(own.place.error("the model", problem, "leave MODEL out, or give the model of the job"));
            }
            self.model = Some(Fact { value: model.clone(), place: Place::new("MODEL", 0) });
        }
        let Draft { source, facts, model, model_name, assumed, notes, measured, unused, recomputed, refused, .. } =
            self;
        Ok(Job {
            format: format.0,
            title: format.1,
            recipe,
            source: source.into(),
            facts,
            model,
            model_name,
            assumed,
            no_effect: unused.0,
            not_understood: unused.1,
            notes,
            measured,
            recomputed,
            refused,
        })
    }

    /// Refuses degrees and batches that no job has.
    fn possible(&self) -> Result<(), LoadError> {
        let names = ["tp", "pp", "vp", "cp", "ep", "etp", "dp", "mbs", "devices", "global_batch", "sequence_length"];
        for name in names {
            let Some(fact) = self.facts.get(name) else { continue };
            let value = fact.value.parse::<u64>();
            if value.as_ref().is_ok_and(|value| *value == 0 || *value > MOST_OF_ANYTHING) {
                let problem = format!("is {}, must be from 1 to {MOST_OF_ANYTHING}", fact.value);
                return Err(fact.place.error(name, problem, "correct it, or use --with"));
            }
        }
        let size = self.degree("mbs").saturating_mul(self.degree("dp"));
        if self.degree("global_batch") / size > MOST_MICROBATCHES {
            let fact = &self.facts["global_batch"];
            let problem = format!("is {}: more than {MOST_MICROBATCHES} microbatches of an iteration", fact.value);
            return Err(fact.place.error("the global batch", problem, "correct it, or use --with"));
        }
        if let Some(layers) = self.layers().filter(|layers| *layers > MOST_LAYERS) {
            let problem = format!("has {layers} layers, and at most {MOST_LAYERS} are read");
            return Err(LoadError::file(self.source, problem, "correct the number of layers"));
        }
        Ok(())
    }

    /// Devices of a replica.
    fn parts(&self) -> u64 {
        ["tp", "pp", "cp"].iter().fold(1, |product: u64, name| product.saturating_mul(self.degree(name)))
    }

    /// Devices of all machines.
    fn of_machines(&mut self) {
        if let Some(each) = self.per_machine.as_ref().filter(|_| !self.facts.contains_key("devices")) {
            let machines = self.machines.as_ref().map_or(1, |fact| fact.value);
            let place = self.machines.as_ref().map_or(&each.place, |machines| &machines.place).clone();
            let devices = each.value.saturating_mul(machines);
            self.set("devices", Fact { value: devices, place });
        }
    }

    fn devices(&mut self) -> Result<(), LoadError> {
        let parts = self.parts();
        if self.facts.contains_key("devices") {
            return Ok(());
        }
        if let Some(data) = self.facts.get("dp").cloned() {
            let devices = parts.saturating_mul(data.value.parse().unwrap_or(1));
            self.set("devices", data.with(devices));
            return Ok(());
        }
        // A batch that states all but the number of replicas.
        if let (Some(global), Some(steps), Some(size)) =
            (self.facts.get("global_batch").cloned(), &self.accumulation, self.facts.get("mbs"))
        {
            let each = steps.value * size.value.parse::<u64>().unwrap_or(1);
            let global_batch = global.value.parse::<u64>().unwrap_or(0);
            if each > 0 && global_batch.is_multiple_of(each) {
                self.set("devices", global.with(global_batch / each * parts));
                return Ok(());
            }
        }
        if let Some(error) = self.unknown_devices.take() {
            return Err(error);
        }
        let ranks = (self.degree("ep") * self.degree("etp")).div_ceil(self.degree("tp") * self.degree("cp"));
        // Copies of what is divided are replicas.
        let copies = self.copies.as_ref().map_or(1, |copies| copies.value);
        let devices = parts.saturating_mul(ranks.max(copies).max(1));
        self.assume("devices", format!("{devices}: one replica"), "--devices");
        self.facts.insert("devices".into(), Fact { value: devices.to_string(), place: Place::new("assumed", 0) });
        Ok(())
    }

    /// Ranks that share one copy of the weights.
    fn hybrid(&mut self) {
        let model = self.degree("tp") * self.degree("pp");
        let ranks = self.degree("devices") / model.max(1);
        if let Some(copies) = self.copies.take().filter(|copies| copies.value > 1) {
            let shards = ranks / copies.value.max(1);
            if shards > 1 {
                self.set("hsdp", copies.with(shards));
            }
        } else if let Some(fact) = self.shards_in_machine.take() {
            let each = self.per_machine.as_ref().map_or(8, |each| each.value) / self.degree("tp").max(1);
            if each > 1 && each < ranks {
                self.set("hsdp", fact.with(each));
            }
        }
    }

    fn batch(&mut self) -> Result<(), LoadError> {
        let parts = self.parts();
        let devices = self.degree("devices");
        if parts == 0 || !devices.is_multiple_of(parts) {
            let fact = &self.facts["devices"];
            let problem = format!("{devices} devices are no multiple of tp x pp x cp = {parts}, one replica");
            return Err(fact.place.error("", problem, "correct the degrees, or give the number with --devices"));
        }
        let data = devices / parts;
        if let Some(stated) = self.facts.remove("dp")
            && stated.value != data.to_string()
        {
            self.note(format!("{} states {} replicas; {devices} devices give {data}", stated.place, stated.value));
        }
        let usual = Place::new("follows", 0);
        let stated = self.facts.get("global_batch").cloned();
        let size = self.facts.get("mbs").and_then(|fact| fact.value.parse::<u64>().ok());
        match (&stated, size) {
            (Some(global), None) => {
                let each = global.value.parse::<u64>().unwrap_or(0) / data;
                let chunks = self.chunks.as_ref().or(self.accumulation.as_ref());
                match chunks {
                    Some(chunks) => {
                        let size = (each / chunks.value.max(1)).max(1);
                        self.set("mbs", chunks.clone().with(size));
                    }
                    None => {
                        self.assume("micro_batch", "1 sequence", "--parallel mbs=N");
                        self.facts.insert("mbs".into(), Fact { value: "1".into(), place: Place::new("assumed", 0) });
                    }
                }
            }
            (None, size) => {
                let size = size.unwrap_or(1);
                if !self.facts.contains_key("mbs") {
                    self.assume("micro_batch", "1 sequence", "--parallel mbs=N");
                }
                let global = match (&self.local_batch, &self.accumulation, &self.chunks) {
                    (Some(local), steps, _) => {
                        let steps = steps.as_ref().map_or(1, |steps| steps.value);
                        Some(local.with(local.value * data * steps))
                    }
                    (None, Some(steps), _) | (None, None, Some(steps)) => Some(steps.with(steps.value * size * data)),
                    _ => None,
                };
                match global {
                    Some(global) => self.set("global_batch", global),
                    None => {
                        let global = size * data;
                        self.assume("global_batch", format!("{global}: one microbatch per replica"), "--global-batch");
                        self.set("global_batch", Fact { value: global, place: usual });
                    }
                }
            }
            (Some(global), Some(size)) => {
                // A file that states all of them must agree with itself.
                if let Some(steps) = &self.accumulation {
                    let product = size * steps.value * data;
                    if global.value != product.to_string() {
                        let problem = format!(
                            "is {}, and {size} sequences x {} steps x {data} replicas are {product}",
                            global.value, steps.value
                        );
                        return Err(global.place.error(
                            "the batch",
                            problem,
                            "give the devices with --devices, or correct it",
                        ));
                    }
                }
            }
        }
        Ok(())
    }
}
