//! Sweeps that several machines share: `--shard`, and `--resume` of several tables.

use std::{fs, process::Stdio};

use super::{BERT, Folder, argument, plantui, refusal, stdout};

const SHARES: usize = 16;

/// Two planners over two axes: 40 points, so that shares are of different sizes.
const QUESTION: [&str; 11] = [
    "sweep",
    BERT,
    "--devices",
    "8..44:+4",
    "--memory",
    "4GiB,8GiB",
    "--planner",
    "piper",
    "--planner",
    "equal-partition",
    "--no-seconds",
];

fn with(more: &[&str]) -> Vec<String> {
    QUESTION.iter().chain(more).map(|&word| word.to_string()).collect()
}

fn run(more: &[&str]) -> String {
    let call = with(more);
    stdout(&call.iter().map(String::as_str).collect::<Vec<_>>(), 0)
}

#[test]
fn sixteen_shares_of_which_two_were_killed_are_joined_to_the_table_of_one_run() {
    let folder = Folder::new();
    let whole = argument(&folder.path("whole.csv"));
    run(&["--output", &whole]);
    let whole = fs::read_to_string(whole).unwrap();
    assert_eq!(whole.lines().count(), 1 + 40);

    let part = |index: usize| argument(&folder.path(&format!("part-{index}.csv")));
    let shard = |index: usize| format!("{index}/{SHARES}");
    for index in 1..=SHARES {
        run(&["--shard", &shard(index), "--resume", &part(index)]);
    }
    let rows: usize = (1..=SHARES).map(|index| fs::read_to_string(part(index)).unwrap().lines().count() - 1).sum();
    assert_eq!(rows, 40, "every point is in one share");

    // One was killed before it wrote anything, one after its first rows.
    fs::remove_file(part(5)).unwrap();
    let mut killed = std::process::Command::new(assert_cmd::cargo::cargo_bin!("plantui"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(with(&["--shard", &shard(5), "--resume", &part(5)]))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    killed.kill().unwrap();
    killed.wait().unwrap();
    let begun: Vec<String> = fs::read_to_string(part(3)).unwrap().lines().take(2).map(String::from).collect();
    fs::write(part(3), begun.join("\n") + "\n").unwrap();

    let files: Vec<String> = (1..=SHARES).map(part).collect();
    let resume: Vec<&str> = files.iter().flat_map(|file| ["--resume", file.as_str()]).collect();
    // The join answers what nobody did.
    let text = run(&[&resume[..], &["--csv"]].concat());
    assert_eq!(text, whole);
    // So does taking the shares up again.
    for index in [3, 5] {
        run(&["--shard", &shard(index), "--resume", &part(index)]);
    }
    let joined = argument(&folder.path("joined.csv"));
    let text = run(&[&resume[..], &["--output", &joined]].concat());
    assert!(text.contains("40 points, 40 of them from the file"), "{text}");
    assert_eq!(fs::read_to_string(joined).unwrap(), whole);
}

#[test]
fn files_that_are_joined_stay_as_they_are_and_a_missing_one_is_told() {
    let folder = Folder::new();
    let (one, two) = (argument(&folder.path("one.csv")), argument(&folder.path("two.csv")));
    run(&["--shard", "1/40", "--resume", &one]);
    let before = fs::read_to_string(&one).unwrap();
    let call = with(&["--resume", &one, "--resume", &two, "--csv"]);
    let output = plantui().args(call).assert().code(0).get_output().clone();
    assert!(String::from_utf8_lossy(&output.stderr).contains("two.csv does not exist"));
    assert_eq!(fs::read_to_string(&one).unwrap(), before);
    assert!(!folder.path("two.csv").exists());
}

#[test]
fn a_share_may_be_empty_and_wrong_ones_are_refused() {
    assert_eq!(run(&["--shard", "41/50", "--csv"]).lines().count(), 1);
    let wrong = |shard: &str| {
        let call = with(&["--shard", shard]);
        refusal(&call.iter().map(String::as_str).collect::<Vec<_>>())
    };
    assert!(wrong("0/16").contains("from 1"));
    assert!(wrong("17/16").contains("3/16"));
}
