//! Commands that start a training program: the program with its flags, and the devices that the launcher gives it.

use super::{
    setting::{Place, Setting, Settings, Value},
    syntax::shell::{Invocation, Script, Text, Unknown},
};

/// Programs that are no Python file.
const PROGRAMS: [&str; 5] = ["swift", "megatron", "llamafactory-cli", "axolotl", "xtuner"];

/// Launchers.
const LAUNCHERS: [&str; 6] = ["torchrun", "srun", "mpirun", "deepspeed", "accelerate", "torch.distributed"];

/// Options of launchers without a value.
const BARE_OPTIONS: [&str; 22] = [
    "standalone",
    "no_python",
    "module",
    "use_env",
    "run_path",
    "multi_gpu",
    "no_local_rank",
    "use_fsdp",
    "use_deepspeed",
    "use_megatron_lm",
    "same_network",
    "exclusive",
    "unbuffered",
    "allow_run_as_root",
    "label",
    "l",
    "u",
    "m",
    "cpu",
    "tag_output",
    "enable_elastic_training",
    "no_ssh",
];

/// Launch of a program.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    /// Program: the file's name, or a module or command.
    pub(crate) program: String,
    /// Launchers in front of it.
    pub(crate) launchers: Vec<String>,
    /// Options of the launchers and of the batch system. Those that state the devices are read when they are needed.
    pub(crate) options: Settings,
    /// Flags of the program.
    pub(crate) flags: Settings,
    /// Words of the program that are no flags.
    pub(crate) positional: Vec<(String, Place)>,
    /// Words in the place of a flag that are not known, with the reason.
    pub(crate) unknown: Vec<(String, Place)>,
    /// Unset variables that stood in the place of flags, and were empty.
    pub(crate) empty: Vec<(String, Place)>,
    /// Line of the command.
    pub(crate) line: u32,
    /// Unknown conditions under which it runs.
    pub(crate) conditions: Vec<String>,
}

/// Launches in a script.
pub(crate) fn launches(script: &Script, source: &str) -> Vec<Launch> {
    script.commands.iter().filter_map(|command| launch(command, script, source)).collect()
}

fn launch(command: &Invocation, script: &Script, source: &str) -> Option<Launch> {
    let words = &command.words;
    let known: Vec<Option<String>> = words.iter().map(|word| word.read().ok()).collect();
    let base = |word: &str| word.rsplit('/').next().unwrap_or(word).to_string();
    let program = (0..words.len()).find(|&at| {
        // The folder of a program may be unknown.
        let shown = words[at].shown();
        let word = if shown.ends_with(".py") { &shown } else { known[at].as_ref().unwrap_or(&shown) };
        if known[at].is_none() && !shown.ends_with(".py") {
            return false;
        }
        let before = at.checked_sub(1).and_then(|at| known[at].as_deref());
        let is_module = matches!(before, Some("-m" | "--module")) && !word.starts_with("torch.distributed");
        let is_file = word.ends_with(".py") && !word.starts_with("--");
        is_module || is_file || PROGRAMS.contains(&base(word).as_str())
    });
    let bare = known.first().is_some_and(|word| word.as_ref().is_some_and(|word| word.starts_with("--")));
    let launchers: Vec<String> = known[..program.unwrap_or(words.len())]
        .iter()
        .flatten()
        .map(|word| base(word))
        .filter(|word| LAUNCHERS.iter().any(|launcher| word.starts_with(launcher)))
        .collect();
    if program.is_none() && !bare && launchers.is_empty() {
        return None;
    }
    let mut read = Launch {
        program: program.map(|at| words[at].shown()).unwrap_or_default(),
        launchers,
        options: Settings::default(),
        flags: Settings::default(),
        positional: vec![],
        unknown: vec![],
        empty: vec![],
        line: command.line,
        conditions: command.conditions.clone(),
    };
    for (name, value, line) in &script.batch {
        let value = if value.is_empty() { Value::Bool(true) } else { Value::Text(value.clone()) };
        let name = of_slurm(name);
        read.options.push(Setting::new(&format!("sbatch.{name}"), value, Place::new(source, *line)));
    }
    for (name, value) in &command.environment {
        let place = Place::new(source, value.line());
        read.options.push(Setting::new(&format!("env.{name}"), value_of(value), place));
    }
    let Some(at) = program else {
        // The program is not known: every flag of the command is read.
        let mut flags = Flags::new(source);
        flags.read(words, false);
        read.options = joined(read.options, &flags.settings);
        (read.flags, read.positional, read.unknown, read.empty) =
            (flags.settings, flags.positional, flags.unknown, flags.empty);
        return Some(read);
    };
    let mut options = Flags::new(source);
    options.read(&words[..at], true);
    read.options = joined(read.options, &options.settings);
    let mut flags = Flags::new(source);
    flags.read(&words[at + 1..], false);
    (read.flags, read.positional, read.unknown, read.empty) =
        (flags.settings, flags.positional, flags.unknown, flags.empty);
    Some(read)
}

fn joined(mut first: Settings, second: &Settings) -> Settings {
    second.iter().for_each(|setting| first.push(setting.clone()));
    first
}

fn value_of(text: &Text) -> Value {
    match text.read() {
        Ok(text) => Value::Text(text),
        Err(Unknown::Unset(name)) => Value::Unset(name.clone(), text.shown()),
        Err(unknown) => Value::Unknown(unknown.to_string()),
    }
}

/// Long name of an option of Slurm, whose letters differ in their case.
fn of_slurm(name: &str) -> &str {
    match name {
        "N" => "nodes",
        "n" => "ntasks",
        other => other,
    }
}

/// Flags as they are read from words.
struct Flags<'a> {
    source: &'a str,
    settings: Settings,
    positional: Vec<(String, Place)>,
    unknown: Vec<(String, Place)>,
    empty: Vec<(String, Place)>,
}

impl<'a> Flags<'a> {
    fn new(source: &'a str) -> Self {
        Flags { source, settings: Settings::default(), positional: vec![], unknown: vec![], empty: vec![] }
    }

    /// Reads `--name value ..`, `--name=value` and `name=value`. Options of launchers have one value or none.
    fn read(&mut self, words: &[Text], of_launcher: bool) {
        let mut at = 0;
        while at < words.len() {
            let word = &words[at];
            at += 1;
            let place = Place::new(self.source, word.line());
            if let Some(name) = word.unset_name() {
                self.empty.push((name.into(), place));
                continue;
            }
            let shown = word.shown();
            let Some((name, inline)) = flag_name(&shown) else {
                match (word.read(), shown.split_once('=')) {
                    // Overrides of Hydra: `trainer.devices=8`, `++a.b=1`.
                    (_, Some((name, _))) if is_path(name) => {
                        let value = self.after_equals(word);
                        self.settings.push(Setting::new(name.trim_start_matches('+'), value, place));
                    }
                    (Ok(text), _) => self.positional.push((text, place)),
                    (Err(Unknown::Unset(name)), _) => self.empty.push((name.clone(), place)),
                    (Err(unknown), _) => self.unknown.push((unknown.to_string(), place)),
                }
                continue;
            };
            let name = if of_launcher { of_slurm(&name).to_string() } else { name };
            if inline {
                let value = self.after_equals(word);
                self.settings.push(Setting::new(&name, value, place));
                continue;
            }
            let mut values = vec![];
            let bare = of_launcher && BARE_OPTIONS.contains(&super::setting::normal(&name).as_str());
            while at < words.len() && !bare && !(of_launcher && values.len() == 1) {
                let next = words[at].shown();
                let override_ = next.split_once('=').is_some_and(|(name, _)| is_path(name) && name.contains('.'));
                // An unknown word behind a value may be anything.
                let unknown = !values.is_empty() && words[at].read().is_err();
                if flag_name(&next).is_some() || override_ || unknown {
                    break;
                }
                values.push(value_of(&words[at]));
                at += 1;
            }
            let value = match values.len() {
                0 => Value::Bool(true),
                1 => values.remove(0),
                _ => Value::List(values),
            };
            self.settings.push(Setting::new(&name, value, place));
        }
    }

    /// Value behind the first `=` of a word.
    fn after_equals(&self, word: &Text) -> Value {
        let behind = |text: &str| text.split_once('=').map_or(String::new(), |(_, value)| value.to_string());
        match word.read() {
            Ok(text) => Value::Text(behind(&text)),
            Err(Unknown::Unset(name)) => Value::Unset(name.clone(), behind(&word.shown())),
            Err(unknown) => Value::Unknown(unknown.to_string()),
        }
    }
}

/// Name of a flag, and true if its value follows an `=`. A negative number is no flag.
fn flag_name(word: &str) -> Option<(String, bool)> {
    let name = match word.strip_prefix("--") {
        Some(long) => long,
        None => word.strip_prefix('-').filter(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))?,
    };
    let (name, inline) = name.split_once('=').map_or((name, false), |(name, _)| (name, true));
    let valid = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    valid.then(|| (name.to_string(), inline))
}

/// True for a dotted path of names.
fn is_path(word: &str) -> bool {
    let word = word.trim_start_matches('+');
    word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "_.-/@".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::shell;

    fn read(text: &str) -> Vec<Launch> {
        launches(&shell::evaluate(text, "a.sh", &std::collections::BTreeMap::new(), &|_| None).unwrap(), "a.sh")
    }

    #[test]
    fn the_program_its_flags_and_its_devices_are_told_apart() {
        let all = read(
            "#SBATCH --gpus-per-node=8\ncd /x\nCUDA_X=1 srun -N 4 torchrun --nproc_per_node 8 --nnodes=4 --standalone pretrain_gpt.py data \\\n  --a 1 --b --c 1 2 --lr -1e-4 $MORE a.b=3 > log 2>&1\n",
        );
        let [launch] = &all[..] else { panic!("{all:?}") };
        assert_eq!(
            (launch.program.as_str(), launch.launchers.join(" ").as_str()),
            ("pretrain_gpt.py", "srun torchrun")
        );
        let option = |name: &str| launch.options.look(name).map(|setting| setting.value.text());
        assert_eq!(option("nproc_per_node").as_deref(), Some("8"));
        assert_eq!((option("nnodes").as_deref(), option("nodes").as_deref()), (Some("4"), Some("4")));
        assert_eq!(option("sbatch.gpus_per_node").as_deref(), Some("8"));
        let flag = |name: &str| launch.flags.look(name).map(|setting| setting.value.text());
        assert_eq!(
            (flag("a").as_deref(), flag("b").as_deref(), flag("c").as_deref()),
            (Some("1"), Some("true"), Some("[1, 2]"))
        );
        assert_eq!((flag("lr").as_deref(), flag("a.b").as_deref()), (Some("-1e-4"), Some("3")));
        assert_eq!(launch.empty[0].0, "MORE");
        assert_eq!(launch.positional[0].0, "data");
    }

    #[test]
    fn bare_flags_modules_and_other_commands() {
        assert_eq!(read("--a 2 --b")[0].flags.look("a").map(|setting| setting.value.text()), Some("2".into()));
        assert_eq!(
            read("python -m torch.distributed.run --nnodes 2 -m verl.trainer.main x.y=1")[0].program,
            "verl.trainer.main"
        );
        assert_eq!(read("NPROC_PER_NODE=4 swift sft --model X")[0].program, "swift");
        assert!(read("pip install x\nmkdir -p y").is_empty());
    }
}
