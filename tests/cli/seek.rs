//! `plantui seek`.

use super::{BERT, TINY, json, refusal, stdout};

#[test]
fn the_answer_comes_first_with_the_limit_below_it_and_its_plan() {
    let text =
        stdout(&["seek", BERT, "--planner", "piper", "--least", "devices", "--until", "time_per_sample<=25ms"], 0);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].ends_with("Piper, least devices for planned time per sample at most 25.00 ms/sample"), "{text}");
    assert_eq!(lines[1], "52 devices: 24.21 ms/sample; with 51 devices it is 25.06 ms/sample");
    assert_eq!(lines[2], "proven: no plan reaches the goal with less");
    assert!(lines[3].starts_with("by bisection, ") && lines[3].contains("never worse"), "{text}");
    assert!(text.contains("the plan: --devices 52\n") && text.contains("8 stages on 52 of 52 devices"), "{text}");
}

#[test]
fn an_answer_is_proven_among_the_plans_that_options_leave() {
    let greedy = ["--set", "knapsack=greedy", "--least", "devices", "--until", "time_per_sample<=25ms"];
    let text = stdout(&[&["seek", BERT, "--planner", "piper"], &greedy[..]].concat(), 0);
    let told =
        "proven for plans with recomputation as the published greedy rule picks it: none reaches the goal with less";
    assert!(text.contains(told), "{text}");
}

#[test]
fn the_document_has_the_plan_that_its_flags_give() {
    let until = ["--until", "time_per_sample<=25ms", "--json"];
    for least in ["devices", "memory", "bandwidth"] {
        let document = json(&[&["seek", BERT, "--planner", "piper", "--least", least][..], &until[..]].concat(), 0);
        assert_eq!((&document["schema"], &document["monotone"]), (&"plantui.seek/1".into(), &true.into()));
        assert_eq!((&document["method"], &document["certainty"]), (&"bisection".into(), &"proven".into()));
        let flags = document["flags"].as_str().unwrap().to_string();
        let mut arguments = vec!["plan", BERT, "--planner", "piper", "--json"];
        arguments.extend(flags.split(' '));
        let planned = json(&arguments, 0);
        assert_eq!(planned["objective"]["value"], document["figure"], "{flags}");
        assert_eq!(planned["stages"], document["plan"]["stages"], "{flags}");
        let (answer, below) = (document["answer"].as_f64().unwrap(), document["below"].as_f64().unwrap());
        assert!(below < answer && document["figure"].as_f64().unwrap() <= 0.025);
        let curve = document["curve"].as_array().unwrap();
        for step in curve {
            assert_eq!(step["reaches"].as_bool().unwrap(), step["value"].as_f64().unwrap() >= answer, "{step}");
        }
    }
}

#[test]
fn the_default_planner_is_asked_by_the_time_of_a_batch() {
    let text = stdout(&["seek", TINY, "--least", "devices", "--until", "iteration_time<=400ms"], 0);
    assert!(text.contains("Joint, least devices for planned iteration time at most 400.0 ms/iteration"), "{text}");
    assert!(text.contains("\n4 devices: 321.0 ms/iteration; with 3 devices it is 510.0 ms/iteration\n"), "{text}");
}

#[test]
fn simulated_goals_are_swept_and_say_why() {
    let document = json(&["seek", TINY, "--least", "devices", "--until", "batch_time<=1h", "--json"], 0);
    assert_eq!((&document["method"], &document["monotone"]), (&"sweep".into(), &false.into()));
    assert!(document["objection"].as_str().unwrap().contains("does not optimise"));
    assert_eq!(document["goal"]["simulated"], true);
}

#[test]
fn rates_are_told_in_the_unit_of_the_limit_and_asked_as_they_are_told() {
    let text = stdout(&["seek", BERT, "--least", "bandwidth", "--until", "time_per_sample<=25ms"], 0);
    assert!(text.contains(" GB/s") && !text.contains("GiB/s"), "{text}");
    let flag = text.split("--bandwidth ").nth(1).and_then(|rest| rest.split_whitespace().next()).expect("it is told");
    assert!(text.contains(&format!("\n{}: ", flag.replace("GB/s", " GB/s"))), "{flag} in\n{text}");
    assert!(stdout(&["seek", TINY, "--least", "devices", "--until", "time_per_batch<=400ms"], 0).contains("4 devices"));
}

#[test]
fn a_goal_out_of_reach_names_the_nearest_and_exits_1() {
    let text = stdout(&["seek", BERT, "--planner", "piper", "--least", "memory", "--until", "time_per_sample<=1us"], 1);
    assert!(text.contains("out of reach: of") && text.contains("proven: no plan reaches the goal\n"), "{text}");
    assert!(text.contains("the nearest plan"), "{text}");
    let document = json(
        &["seek", BERT, "--planner", "piper", "--least", "memory", "--until", "time_per_sample<=1us", "--json"],
        1,
    );
    assert!(document["answer"].is_null() && document["nearest"].is_f64() && document["plan"].is_object());
    let call =
        ["seek", BERT, "--planner", "piper", "--least", "devices", "--until", "throughput>=1e9", "--among", "4,8"];
    assert!(stdout(&call, 1).contains("out of reach: of 4 devices to 8 devices"));
}

#[test]
fn what_is_no_question_is_refused_with_the_repair() {
    let seek = |rest: &[&str]| refusal(&[&["seek", BERT][..], rest].concat());
    assert!(seek(&["--least", "devices", "--until", "25ms"]).contains("`iteration_time<=2s`"));
    assert!(seek(&["--least", "devices", "--until", "latency<=25ms"]).contains("throughput"));
    assert!(seek(&["--least", "cpus", "--until", "time_per_sample<=25ms"]).contains("ignores CPUs"));
    assert!(seek(&["--least", "devices", "--until", "bubble<=5%", "--among", "9..4"]).contains("runs backwards"));
    assert!(seek(&["--least", "weight", "--until", "bubble<=5%"]).contains("possible values"));
}

#[test]
fn a_deadline_before_any_answer_exits_3() {
    let call = ["seek", BERT, "--least", "devices", "--until", "time_per_sample<=25ms", "--deadline", "1ns"];
    assert!(stdout(&call, 3).contains("no tried value has a plan"));
}
