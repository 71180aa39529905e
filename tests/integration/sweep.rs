//! Sweeps: what a person writes for a range, what several numbers of devices in one run are worth, threads, stopping and
//! going on.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use crate::common::{
    answered::{answered, open},
    random_piper,
};
use plantui::{
    cluster::{GivenLimits, LimitKind, Limits},
    export::sweep_csv::{self, SweepContext, SweepTable},
    family,
    planner::{self, ManyRuns, Options, Outcome, Problem, Search, Status},
    run,
    study::sweep::{ChartFigure, LimitValues, PointResult, Series, Sweep, chart::Chart},
    units::GIB,
    workload::{self, Profile, Workload},
};

fn bert() -> Arc<Workload> {
    Arc::new(workload::builtin())
}

fn values(kind: LimitKind, text: &str) -> Vec<f64> {
    LimitValues::parse(kind, text).unwrap_or_else(|error| panic!("{text}: {error}")).values
}

#[test]
fn ranges_double_multiply_and_step_and_their_ends_belong_to_them() {
    use LimitKind::{Bandwidth, Cpus, Devices, Memory};
    assert_eq!(values(Devices, "8..64"), [8.0, 16.0, 32.0, 64.0]);
    assert_eq!(values(Devices, "8..2048:x4"), [8.0, 32.0, 128.0, 512.0, 2048.0]);
    assert_eq!(values(Devices, "8..32:+8"), [8.0, 16.0, 24.0, 32.0]);
    assert_eq!(values(Devices, "8..100"), [8.0, 16.0, 32.0, 64.0, 100.0]);
    assert_eq!(values(Devices, "3..8:x1.5"), [3.0, 5.0, 7.0, 8.0]);
    assert_eq!(values(Memory, "1e9..4GB"), [1e9, 2e9, 4e9]);
    assert_eq!(values(Devices, "2..8k:x4000"), [2.0, 8000.0]);
    assert_eq!(values(Devices, "64, 8..16:+4,12"), [8.0, 12.0, 16.0, 64.0]);
    assert_eq!(values(Devices, "8..8"), [8.0]);
    assert_eq!(values(Cpus, "0..3"), [0.0, 1.0, 2.0, 3.0]);
    assert_eq!(values(Memory, "1GiB,2GiB,80GiB"), [GIB, 2.0 * GIB, 80.0 * GIB]);
    assert_eq!(values(Memory, "4GiB..8GiB:+2GiB"), [4.0 * GIB, 6.0 * GIB, 8.0 * GIB]);
    assert_eq!(values(Bandwidth, "25GB/s..100GB/s"), [25e9, 50e9, 100e9]);
}

#[test]
fn bad_ranges_are_refused_in_one_sentence_that_says_what_to_write() {
    for (kind, text, part) in [
        (LimitKind::Devices, "64..8", "write 8..64"),
        (LimitKind::Devices, "8..16..32", "write the range 8..32 or the list 8,16,32"),
        (LimitKind::Devices, "8..16..32..64:x2", "write the range 8..64 or the list 8,16,32,64"),
        (LimitKind::Memory, "1GiB..80", "write 1GiB..80GiB"),
        (LimitKind::Memory, "1 .. 80 GiB", "write 1 GiB..80 GiB"),
        (LimitKind::Bandwidth, "25..100GB/s", "write 25GB/s..100GB/s"),
        (LimitKind::Devices, "8..64:x1", "write one such as :x2"),
        (LimitKind::Devices, "8..64:x-2", "write one such as :x2"),
        (LimitKind::Devices, "8..64:xx", "write one such as :x2"),
        (LimitKind::Devices, "8..64:+0", "write one such as :+8"),
        (LimitKind::Devices, "8..64:", "write :x2 or :+8"),
        (LimitKind::Devices, "8..64:8", "write :x2 or :+8"),
        (LimitKind::Devices, "8,,64", "a value is missing"),
        (LimitKind::Devices, "", "a value is missing"),
        (LimitKind::Devices, "..64", "a value is missing"),
        (LimitKind::Devices, "8..", "a value is missing"),
        (LimitKind::Devices, "8..1048577", "at most 1048576"),
        (LimitKind::Devices, "8..sixty", "sixty"),
        (LimitKind::Devices, "0..8", "0"),
        (LimitKind::Devices, "1..10000:+1", "take larger steps"),
        (LimitKind::Cpus, "0..8:x2", ":+1"),
        (LimitKind::Memory, "1GiB..8GiB:+1GB/s", "no step above 0"),
        (LimitKind::Memory, "1GiB..lots", "lots"),
        (LimitKind::Microbatches, "1..1000000:+1", "take larger steps"),
    ] {
        let error = LimitValues::parse(kind, text).expect_err(text);
        assert!(error.contains(part) && !error.contains('\n') && error.len() < 200, "{text}: {error}");
    }
}

#[test]
fn series_have_names_planners_and_settings() {
    let common = ["recompute=never".to_string(), "variant=general".to_string()];
    let plain = Series::parse("piper", &[]).unwrap();
    assert_eq!((plain.label.as_str(), plain.settings().as_str()), ("piper", ""));
    let set = Series::parse("piper,tensor_parallel=false", &common).unwrap();
    assert_eq!(set.label, "piper recompute=never tensor_parallel=false");
    let named = Series::parse("all kept:piper, recompute=never", &[]).unwrap();
    assert_eq!((named.label.as_str(), named.settings().as_str()), ("all kept", "recompute=never"));
    assert_eq!(Series::parse("equal-partition", &common).unwrap().settings(), "variant=general");
    assert_eq!(Series::parse("\u{1b}[31mred\u{7}:piper", &[]).unwrap().label, "[31mred");
    let error = Series::parse("pi\u{1b}[2Jper", &[]).unwrap_err().to_string();
    assert!(!error.chars().any(char::is_control), "{error:?}");
    for (text, part) in [
        ("pipper", "no planner `pipper`"),
        ("", "no planner"),
        ("piper,recompute=perhaps", "recompute"),
        ("piper,speed=9", "no option `speed`"),
        ("piper,recompute", "write name=value"),
    ] {
        let error = Series::parse(text, &[]).expect_err(text).to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

/// Takes what comes of many runs.
#[derive(Default)]
struct Taken(Vec<(u32, Outcome)>);

impl ManyRuns for Taken {
    fn begin(&mut self, _: u32) -> Search {
        Search::default()
    }

    fn end(&mut self, devices: u32, outcome: Outcome) {
        self.0.push((devices, outcome));
    }
}

fn many(problem: &Problem, devices: &[u32]) -> Vec<(u32, Outcome)> {
    let piper = planner::find("piper").unwrap();
    assert!(piper.answers_many(problem));
    let mut taken = Taken::default();
    piper.plan_many(problem, devices, &mut taken);
    taken.0
}

fn alone(problem: &Problem, devices: u32) -> Outcome {
    let limits = problem.limits.with(LimitKind::Devices, f64::from(devices));
    run::plan(planner::find("piper").unwrap(), &Problem { limits, ..problem.clone() }, &Search::default()).unwrap().0
}

fn problem(workload: &Arc<Workload>, limits: Limits, settings: &[&str]) -> Problem {
    let piper = planner::find("piper").unwrap();
    let options = Options::parse("piper", piper.options(), settings.iter().copied()).unwrap();
    Problem { workload: Arc::clone(workload), limits, options }
}

const SETTINGS: [&[&str]; 6] = [
    &[],
    &["knapsack=greedy"],
    &["data_parallel=false"],
    &["tensor_parallel=false"],
    &["recompute=never"],
    &["recompute=all-or-none"],
];

/// One run for all numbers of devices is worth what single runs are, number by number.
fn assert_equals_single_runs(problem: &Problem, devices: &[u32]) {
    let found = many(problem, devices);
    assert_eq!(found.iter().map(|(count, _)| *count).collect::<Vec<_>>(), devices);
    for (count, outcome) in found {
        let single = alone(problem, count);
        assert_eq!(outcome.status, single.status, "{count} devices");
        assert_eq!(outcome.infeasible, single.infeasible, "{count} devices");
        let both = outcome.objective.zip(single.objective);
        assert_eq!(both.is_some(), single.plan.is_some(), "{count} devices");
        if let Some((one, other)) = both {
            assert!((one - other).abs() <= 1e-9 * other, "{count} devices: {one} and {other}");
            assert!(outcome.lower_bound.is_some_and(|bound| bound <= one && bound >= one * (1.0 - 1e-9)));
            let plan = outcome.plan.unwrap();
            assert!(plan.devices_used() <= count);
            let limits = problem.limits.with(LimitKind::Devices, f64::from(count));
            let score = plantui::family::check(&problem.workload, &limits, &plan);
            assert!(score.is_valid() && (score.value - one).abs() <= 1e-12 * one);
        }
    }
}

#[test]
fn many_numbers_of_devices_in_one_run_equal_single_runs() {
    let workload = bert();
    for (memory, settings) in [8.0, 1.0].into_iter().flat_map(|gib| SETTINGS.map(|settings| (gib, settings))) {
        let limits = family::resolve(&workload, &GivenLimits::default()).unwrap().with(LimitKind::Memory, memory * GIB);
        assert_equals_single_runs(&problem(&workload, limits, settings), &[8, 300, 128, 9, 64, 129, 1]);
    }
}

#[test]
fn random_workloads_have_the_same_value_in_one_run_and_in_single_ones() {
    for seed in 0..60 {
        let mut random = random_piper::Random(seed);
        let flavour = random_piper::Flavour {
            whole: random.chance(50),
            uniform: random.chance(60),
            all_recompute: random.chance(60),
            most_modes: 3,
        };
        let n = 2 + random.below(6);
        let edges = random_piper::edges(&mut random, n);
        let workload = Arc::new(random_piper::workload(&mut random, n, edges, flavour));
        let limits = Limits {
            devices: 1,
            memory_bytes: Some(random.amount(60, true) + 1.0),
            microbatches: random.pick(&[1, 4, 6, 12]),
            bandwidth_bytes_per_s: Some(random.pick(&[1.0, 5.0, 1e9])),
            ..Limits::NEUTRAL
        };
        let settings = random.pick(&SETTINGS);
        assert_equals_single_runs(&problem(&workload, limits, settings), &[1, 12, 6, 3, 4, 9, 2, 5, 7]);
    }
}

#[test]
fn a_plan_does_not_depend_on_what_else_was_asked() {
    let workload = bert();
    let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
    let problem = problem(&workload, limits, &[]);
    let plans = |devices: &[u32]| -> BTreeMap<u32, _> {
        many(&problem, devices).into_iter().map(|(count, outcome)| (count, outcome.plan)).collect()
    };
    let all = plans(&[8, 512, 64, 32, 256, 40, 41, 42, 43]);
    for devices in [&[43, 42, 41, 40, 32, 8][..], &[512, 256, 64], &[42]] {
        for (count, plan) in plans(devices) {
            assert_eq!(plan, all[&count], "{count} devices");
        }
    }
}

/// Devices against memory for two planners; some points have no plan.
fn grid() -> Sweep {
    let series = ["piper", "equal-partition"].map(|line| Series::parse(line, &[]).unwrap()).to_vec();
    let axes = [
        LimitValues::parse(LimitKind::Devices, "8..128:x2").unwrap(),
        LimitValues::parse(LimitKind::Memory, "1GiB,8GiB").unwrap(),
    ];
    Sweep::grid(vec![bert()], series, &axes, &GivenLimits::default()).unwrap()
}

fn timeless(answers: &[Option<PointResult>]) -> Vec<Option<PointResult>> {
    answers.iter().map(|answer| answer.clone().map(|answer| PointResult { seconds: 0.0, ..answer })).collect()
}

/// The first seed, and all the time there is.
fn unlimited(sweep: &Sweep) -> SweepContext {
    SweepContext::new(sweep, 0, None)
}

#[test]
fn points_are_the_same_for_any_number_of_threads() {
    let sweep = grid();
    let one = answered(&sweep, open(&sweep), 1, |_| false);
    let many = answered(&sweep, open(&sweep), 4, |_| false);
    assert!(one.iter().all(Option::is_some));
    assert_eq!(timeless(&one), timeless(&many));
    let without = one.iter().flatten().filter(|answer| !answer.has_plan()).collect::<Vec<_>>();
    assert!(!without.is_empty() && without.iter().all(|a| a.status == Status::Infeasible && !a.why.is_empty()));
}

#[test]
fn a_stopped_sweep_goes_on_from_its_table_to_the_same_end() {
    let sweep = grid();
    let whole = answered(&sweep, open(&sweep), 2, |_| false);
    for enough in [1, 3, 7] {
        let part = answered(&sweep, open(&sweep), 2, |count| count >= enough);
        let count = part.iter().flatten().count();
        assert!(count >= enough && count < whole.len(), "{count} of {}", whole.len());
        for (part, whole) in timeless(&part).iter().zip(&timeless(&whole)).filter(|(part, _)| part.is_some()) {
            assert_eq!(part, whole);
        }
        let file = sweep_csv::to_csv(&sweep, &unlimited(&sweep), &part, &SweepTable::default());
        let table = sweep_csv::read(&file).unwrap();
        assert_eq!(
            table.answers(&sweep, &unlimited(&sweep)),
            part,
            "the table gives back what was written, to the last bit"
        );
        let rest = answered(&sweep, table.answers(&sweep, &unlimited(&sweep)), 2, |_| false);
        assert_eq!(timeless(&rest), timeless(&whole));
    }
}

#[test]
fn rows_of_other_sweeps_stay_in_the_table() {
    let sweep = grid();
    let whole = answered(&sweep, open(&sweep), 2, |_| false);
    let other = Sweep::grid(
        vec![bert()],
        vec![Series { label: "odd, \"name\"\nof two lines".into(), ..Series::parse("piper", &[]).unwrap() }],
        &[LimitValues::parse(LimitKind::Devices, "8,16").unwrap()],
        &GivenLimits::default(),
    )
    .unwrap();
    let others = answered(&other, open(&other), 1, |_| false);
    let first =
        sweep_csv::read(&sweep_csv::to_csv(&sweep, &unlimited(&sweep), &whole, &SweepTable::default())).unwrap();
    let both = sweep_csv::read(&sweep_csv::to_csv(&other, &unlimited(&other), &others, &first)).unwrap();
    assert_eq!(both.answers(&sweep, &unlimited(&sweep)), whole);
    assert_eq!(both.answers(&other, &unlimited(&other)), others);
    assert!(first.answers(&other, &unlimited(&other)).iter().all(Option::is_none), "other settings are other points");
}

#[test]
fn rows_count_only_for_the_workload_seed_and_deadline_they_were_made_with() {
    let sweep = grid();
    let whole = answered(&sweep, open(&sweep), 2, |_| false);
    let run = unlimited(&sweep);
    let table = sweep_csv::read(&sweep_csv::to_csv(&sweep, &run, &whole, &SweepTable::default())).unwrap();
    assert_eq!(table.answers(&sweep, &run), whole);
    let mut profiled = Workload::clone(&sweep.workloads[0]);
    let Profile::Piper(profile) = &mut profiled.profile else { panic!("BERT is a Piper profile") };
    profile.nodes[3].degrees[0].modes[0].time_s *= 1.5;
    let profiled = Sweep { workloads: vec![Arc::new(profiled)], ..sweep.clone() };
    for (sweep, run) in [
        (&profiled, unlimited(&profiled)),
        (&sweep, SweepContext::new(&sweep, 1, None)),
        (&sweep, SweepContext::new(&sweep, 0, Some(Duration::from_secs(5)))),
    ] {
        assert!(table.answers(sweep, &run).iter().all(Option::is_none));
        let both = sweep_csv::read(&sweep_csv::to_csv(sweep, &run, &whole, &table)).unwrap();
        assert_eq!(both.answers(sweep, &run), whole);
        assert_eq!(both.answers(&grid(), &unlimited(&grid())), whole, "the rows that were there stay");
    }
}

#[test]
fn a_stopped_point_keeps_its_plan_until_it_has_a_newer_answer() {
    let sweep = grid();
    let run = unlimited(&sweep);
    let mut whole = answered(&sweep, open(&sweep), 2, |_| false);
    whole[0].as_mut().unwrap().status = Status::Cancelled;
    let file = sweep_csv::to_csv(&sweep, &run, &whole, &SweepTable::default());
    let table = sweep_csv::read(&file).unwrap();
    let open = table.answers(&sweep, &run);
    assert!(open[0].is_none() && open[1..] == whole[1..], "it is asked again");
    let rows = |text: &str| text.lines().map(String::from).collect::<BTreeSet<_>>();
    assert_eq!(rows(&sweep_csv::to_csv(&sweep, &run, &open, &table)), rows(&file));
    let mut newer = open;
    newer[0] = Some(PointResult { status: Status::Optimal, ..whole[0].clone().unwrap() });
    let after = sweep_csv::read(&sweep_csv::to_csv(&sweep, &run, &newer, &table)).unwrap();
    assert_eq!(after.answers(&sweep, &run), newer);
    assert!(!sweep_csv::to_csv(&sweep, &run, &newer, &table).contains("cancelled"));
}

#[test]
fn tables_that_are_none_are_refused_by_line() {
    let sweep = grid();
    let part = answered(&sweep, open(&sweep), 1, |count| count >= 2);
    let good = sweep_csv::to_csv(&sweep, &unlimited(&sweep), &part, &SweepTable::default());
    assert!(sweep_csv::read("").unwrap().answers(&sweep, &unlimited(&sweep)).iter().all(Option::is_none));
    assert!(sweep_csv::read("a,b\n1,2\n").unwrap_err().to_string().contains("line 1"));
    let first = sweep_csv::COLUMNS.into_iter().filter(|c| !["seed", "deadline_s", "workload_hash"].contains(c));
    let error = sweep_csv::read(&first.collect::<Vec<_>>().join(",")).unwrap_err().to_string();
    assert!(error.contains("lacks seed, deadline_s, workload_hash"), "{error}");
    let broken = good.replacen(",optimal,", ",perfect,", 1);
    let error = sweep_csv::read(&broken).unwrap_err().to_string();
    assert!(error.starts_with("line ") && error.contains("perfect"), "{error}");
    let error = sweep_csv::read(&format!("{good}one,two\n")).unwrap_err().to_string();
    assert!(error.contains("has 2 fields in place of 31"), "{error}");
}

#[test]
fn charts_break_where_there_is_no_plan_and_share_axes_only_with_equal_units() {
    let sweep = grid();
    let answers = answered(&sweep, open(&sweep), 2, |_| false);
    let chart = Chart::new(&sweep, &answers, ChartFigure::Objective);
    assert_eq!(chart.lines.len(), 4);
    assert!(chart.x.logarithmic && chart.y.logarithmic && chart.x_ticks(8) == [8.0, 16.0, 32.0, 64.0, 128.0]);
    assert_eq!(chart.y_title(), "time per sample");
    let tight = chart.lines.iter().find(|line| line.label == "piper, 1 GiB").unwrap();
    assert!(tight.marks[0].y.is_none() && tight.marks[4].y.is_some(), "{tight:?}");
    let svg = plantui::export::sweep_svg::to_svg(&chart, "a <title> & more");
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n") && svg.contains("a &lt;title&gt; &amp; more"));
    assert!(svg.matches("no plan at").count() >= 2 && svg.matches("<polyline").count() == 2);
    for (at, answer) in answers.iter().enumerate() {
        assert!(answer.as_ref().is_some_and(|a| (ChartFigure::Objective.of(a).is_some()) == a.has_plan()), "{at}");
    }
    // Of many points the round ones are told.
    let axis = |text: &str, most| {
        let values = [LimitValues::parse(LimitKind::Devices, text).unwrap()];
        let series = vec![Series::parse("piper", &[]).unwrap()];
        let sweep = Sweep::grid(vec![bert()], series, &values, &GivenLimits::default()).unwrap();
        Chart::new(&sweep, &open(&sweep), ChartFigure::Objective).x_ticks(most)
    };
    assert_eq!(axis("1,2,3,4,6,8,11,16,23,32,45,64,91,128", 7), [1.0, 4.0, 16.0, 64.0]);
    assert_eq!(axis("1..2048:+1", 5), [500.0, 1000.0, 1500.0, 2000.0]);
    assert_eq!(axis("56..72:+1", 9), [56.0, 58.0, 60.0, 62.0, 64.0, 66.0, 68.0, 70.0, 72.0]);
    // Nothing answered yet is a chart as well.
    let empty = Chart::new(&sweep, &open(&sweep), ChartFigure::Throughput);
    assert!(plantui::export::sweep_svg::to_svg(&empty, "").contains("</svg>"));
}
