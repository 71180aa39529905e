//! `plantui terms`, `plantui help terms` and `plantui explain --why`: one source of words.

use super::{BERT, TINY, json, refusal, stdout};

#[test]
fn every_way_to_ask_gives_the_same_words() {
    let all = stdout(&["terms"], 0);
    assert_eq!(stdout(&["help", "terms"], 0), all);
    let bubble = stdout(&["help", "terms", "bubble"], 0);
    assert!(bubble.starts_with("bubble") && bubble.contains(". is the bubble") && all.contains(&bubble), "{bubble}");
    assert!(stdout(&["terms", "tensor", "parallel"], 0).starts_with("tensor parallel"));
    assert!(stdout(&["help", "terms", "bubble", "1F1B"], 0).contains("\n1F1B"));
    let parts = json(&["terms", "in flight", "--json"], 0);
    assert_eq!(parts[0]["name"], "in flight");
    // How the command is called is still there.
    assert!(stdout(&["terms", "--help"], 0).contains("Usage: plantui terms"));
    assert!(stdout(&["help", "plan"], 0).contains("Usage: plantui plan"));
}

#[test]
fn a_word_that_is_not_there_is_refused_with_the_nearest() {
    assert!(refusal(&["terms", "buble"]).contains("did you mean `bubble`?"));
    assert!(refusal(&["help", "terms", "quux"]).contains("lists all"));
}

#[test]
fn an_explanation_says_what_its_words_mean() {
    let plain = stdout(&["explain", TINY, "--each", "1s"], 0);
    let why = stdout(&["explain", TINY, "--each", "1s", "--why"], 0);
    let (before, words) = why.split_once("\nthe words\n").expect("the words stand below");
    assert_eq!(before.lines().next(), plain.lines().next());
    for word in ["\nbubble", "\nstage", "\nbandwidth"] {
        assert!(words.contains(word), "{word} is not explained\n{words}");
    }
    assert!(!words.contains("\nexpert parallel"), "what the explanation does not say is not explained");
    assert!(refusal(&["explain", BERT, "--why", "--json"]).contains("--why"));
}

#[test]
fn the_page_is_up_to_date() {
    let page = include_str!("../../docs/src/background/terms.md");
    assert!(page == stdout(&["terms", "--markdown"], 0), "plantui terms --markdown > docs/src/background/terms.md");
}
