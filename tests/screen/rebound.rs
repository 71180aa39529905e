//! Keys that a configuration has changed.

use plantui::config::Config;
use ratatui::crossterm::event::{KeyCode, KeyModifiers};

use crate::{line, press, request, screen, tiny};

const REBOUND: &str = "
[keys.everywhere]
export = [\"x\", \"ctrl-e\"]
next-theme = []
help = \"f12\"
[keys.panel]
increase = \"+\"
";

#[test]
fn help_palette_and_bottom_line_show_the_keys_in_force() {
    let mut request = request(tiny());
    request.keymap = Config::parse(REBOUND, "test").expect("it is valid").keymap;
    let mut screen = screen(request);
    let bottom = screen.text().lines().last().expect("there are lines").to_string();
    assert!(bottom.contains("◂+ change") && bottom.contains("F12 help") && bottom.contains("x export"), "{bottom}");

    screen.keys("e?");
    assert!(!screen.text().contains("Keys") && !screen.text().contains("Export"), "{}", screen.text());
    screen.keys("x");
    assert!(screen.text().contains("preview"), "{}", screen.text());
    press(&mut screen, KeyCode::Esc);
    screen.key(KeyCode::Char('e'), KeyModifiers::CONTROL);
    assert!(screen.text().contains("preview"), "{}", screen.text());
    press(&mut screen, KeyCode::Esc);

    press(&mut screen, KeyCode::F(12));
    screen.keys("write the plan");
    assert!(line(&screen.text(), "write the plan to a file").contains("x Ctrl-E"), "{}", screen.text());
    press(&mut screen, KeyCode::Esc);
    screen.keys(":next theme");
    let unbound = line(&screen.text(), "change the colours");
    assert!(!unbound.contains(" t "), "{unbound}");
    press(&mut screen, KeyCode::Enter);
    assert!(screen.text().contains("theme light"), "what has no key is found by its name: {}", screen.text());
}
