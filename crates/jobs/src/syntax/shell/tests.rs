use super::*;

fn script(text: &str) -> Script {
    evaluate(text, "a.sh", &BTreeMap::new(), &|_| None).unwrap()
}

/// Words of all commands, with the lines of the words.
fn words(script: &Script) -> Vec<Vec<(String, u32)>> {
    let of = |command: &Invocation| command.words.iter().map(|word| (word.shown(), word.line())).collect();
    script.commands.iter().map(of).collect()
}

fn shown(text: &str) -> Vec<String> {
    let all = script(text);
    all.commands.iter().map(|c| c.words.iter().map(Text::shown).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn variables_arrays_and_blocks_expand_with_their_lines() {
    let all = script(
        "TP=2\nARGS=(\n  --a 1 # why\n  --b \"x y\"\n)\nBLOCK=\" \\\n  --c ${TP} \\\n  --d 4\n  --e\"\nrun $BLOCK \"${ARGS[@]}\" --f='5' \\\n  --g\n",
    );
    let line = |word: &str, line: u32| (word.to_string(), line);
    assert_eq!(
        words(&all)[0],
        [
            line("run", 10),
            line("--c", 7),
            line("2", 1),
            line("--d", 8),
            line("4", 8),
            line("--e", 9),
            line("--a", 3),
            line("1", 3),
            line("--b", 4),
            line("x y", 4),
            line("--f=5", 10),
            line("--g", 11),
        ]
    );
}

#[test]
fn arithmetic_and_defaults_are_worked_out() {
    assert_eq!(
        shown("A=8\nB=$(($A*4))\nrun $(((B * 1) / (2 * 2) * 16)) $((B > 3 ? 1 : 0)) $(expr $A \\* 2)"),
        ["run 128 1 16"]
    );
    let all = script("N=${SLURM_NNODES:-4}\nrun ${N} ${M:-\"3\"} ${N%4}x ${F##*/}");
    assert_eq!(all.commands[0].words[..3].iter().map(Text::shown).collect::<Vec<_>>(), ["run", "4", "3"]);
    assert_eq!(
        all.defaults.iter().map(|d| (d.name.as_str(), d.line)).collect::<Vec<_>>(),
        [("SLURM_NNODES", 1), ("M", 2)]
    );
    assert_eq!(shown("#SBATCH --nodes=16\nrun ${SLURM_NNODES:-4} ${X,,} $((SLURM_NNODES*8))")[0], "run 16 $X 128");
}

#[test]
fn known_conditions_choose_and_unknown_ones_leave_both() {
    let switch =
        "SIZE=${SIZE:-small}\nif [ \"$SIZE\" = \"small\" ]; then L=16\nelif [[ $SIZE == l* ]]; then L=80; fi\nrun $L";
    assert_eq!(shown(switch), ["run 16"]);
    let large = BTreeMap::from([("SIZE".to_string(), "large".to_string())]);
    let all = evaluate(switch, "a.sh", &large, &|_| None).unwrap();
    assert_eq!(all.commands[0].words[1].shown(), "80");
    assert_eq!(shown("case 7B in 7[bB]) L=32;; *) L=1;; esac\nrun $L"), ["run 32"]);
    let unknown = script("if [ -d /data ]; then L=1; else L=2; fi\nrun $L");
    let told = unknown.commands[0].words[1].read().unwrap_err().to_string();
    assert!(told.contains("`2` or `1`") && told.contains("--define L=VALUE") && told.contains("-d /data"), "{told}");
    assert_eq!(shown("if [ $# -lt 1 ]; then echo usage; exit 1; fi\nrun a"), ["run a"]);
    assert_eq!(shown("[ -z \"$X\" ] && X=3\nrun $X"), ["run 3"]);
    assert_eq!(shown("while [[ $# -gt 0 ]]; do L=$1; shift; done\nL=${L:-5}\nrun $L"), ["run 5"]);
}

#[test]
fn functions_loops_documents_and_texts_are_followed() {
    assert_eq!(shown("f() { run $1 \"$@\"; }\nf a b"), ["run a a b"]);
    assert_eq!(shown("for i in {1..2} x; do run $i; done"), ["run 1", "run 2", "run x"]);
    assert_eq!(shown("C=\"run --a 1\"\n$C --b\neval $C"), ["run --a 1 --b", "run --a 1"]);
    assert_eq!(
        shown("srun -N 2 bash -c \"torchrun --a $((1+1)); other\""),
        ["srun -N 2 torchrun --a 2", "srun -N 2 other"]
    );
    let all = script("S=1\ncat > ds.json <<EOT\n{\n \"stage\": $S }\nEOT\n");
    let (text, line) = &all.files["ds.json"];
    assert!(text.contains("\"stage\": 1") && *line == 2, "{text} {line}");
    let given = |name: &str| (name == "env.sh").then(|| "N=7".to_string());
    let all = evaluate("source env.sh\n. other.sh\nrun $N", "a.sh", &BTreeMap::new(), &given).unwrap();
    assert_eq!(all.commands[0].words[1].shown(), "7");
    assert_eq!(all.missing, [("other.sh".to_string(), 2)]);
}

#[test]
fn what_only_a_running_shell_knows_stays_unknown() {
    let all = script("H=$(hostname)\nrun $H $(cat args) $MISSING ${1:-x} $(nproc)");
    let reasons: Vec<String> =
        all.commands[0].words.iter().map(|word| word.read().unwrap_or_else(ToString::to_string)).collect();
    assert!(reasons[1].contains("hostname") && reasons[2].contains("cat args"), "{reasons:?}");
    assert!(reasons[3].contains("--define MISSING=VALUE") && reasons[4] == "x", "{reasons:?}");
}

#[test]
fn nothing_makes_it_stop_or_panic() {
    for text in [
        "",
        "$",
        "${",
        "a=(",
        "if",
        "\"",
        "$((",
        "for ((;;)); do a; done",
        "while true; do a=$a$a; done",
        "f() { f; }\nf",
        "x=$x${x:-${y:=${x}}}",
        "eval eval eval $a",
        "case",
        "a[",
        "${a[}",
        "[ -z ]",
        "[",
        "[[ a",
        "A=([0]=x [k]=y)\nrun ${A[k]}",
        "é=ü\nrun ${é}",
        "a=1; ((a/=0)); run $((a))",
        "eval \"$(x)\"",
    ] {
        let _ = evaluate(text, "a.sh", &BTreeMap::new(), &|_| None);
    }
    let deep = "(".repeat(100_000);
    assert!(evaluate(&deep, "a.sh", &BTreeMap::new(), &|_| None).is_err());
    let deep = format!("a=\"{}\"", "$(".repeat(5_000));
    let _ = evaluate(&deep, "a.sh", &BTreeMap::new(), &|_| None);
}

#[test]
fn what_the_parser_could_not_end_is_refused() {
    for (text, line) in [
        (format!("TP=2\n{}run", "(".repeat(17)), 2),
        (format!("run {}", "a(".repeat(201)), 1),
        ("run\nrun\nrun 99999999999>out".into(), 3),
    ] {
        let error = evaluate(&text, "a.sh", &BTreeMap::new(), &|_| None).unwrap_err().to_string();
        assert!(error.contains(&format!("a.sh:{line}")), "{error}");
    }
}
