//! Compound commands: conditions, loops, groups and functions' bodies.
//!
//! The first branch whose condition holds is taken. Under an unknown condition all branches are followed, and their
//! states are merged. A loop runs as often as its known words or conditions say, up to a limit.

use brush_parser::ast::{CaseClauseCommand, CompoundCommand, CompoundList, IfClauseCommand, UnexpandedArithmeticExpr};

use super::{Evaluator, Text, one_line, pattern};

impl Evaluator<'_> {
    pub(super) fn compound(&mut self, compound: &CompoundCommand, line: u32) -> Option<bool> {
        match compound {
            CompoundCommand::BraceGroup(group) => self.list(&group.list),
            CompoundCommand::Subshell(inner) => {
                let before = self.state.clone();
                let status = self.list(&inner.list);
                self.state = before;
                status
            }
            CompoundCommand::Arithmetic(expression) => {
                self.arithmetic(&expression.expr.value, line).ok().map(|value| value != 0)
            }
            CompoundCommand::IfClause(clause) => self.if_clause(clause, line),
            CompoundCommand::CaseClause(clause) => self.case_clause(clause, line),
            CompoundCommand::ForClause(clause) => {
                let values = match &clause.values {
                    Some(words) => words.iter().flat_map(|word| self.fields(&word.value, line)).collect(),
                    None => self.state.arguments.clone().unwrap_or_default(),
                };
                let before = self.maybe_left.take();
                for value in values.iter().take(256) {
                    let pass = |evaluator: &mut Self| {
                        evaluator.assign(&clause.variable_name, value.clone());
                        evaluator.list(&clause.body.list);
                    };
                    if self.pass(pass) {
                        break;
                    }
                }
                self.maybe_left = before;
                None
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                let until = matches!(compound, CompoundCommand::UntilClause(_));
                let before = self.maybe_left.take();
                for _ in 0..1000 {
                    match self.list(&clause.0) {
                        Some(holds) if holds != until => {
                            let left = self.pass(|evaluator| {
                                evaluator.list(&clause.1.list);
                            });
                            if left {
                                break;
                            }
                        }
                        Some(_) => break,
                        None => {
                            self.unknown_loop(&clause.0, &clause.1.list, line);
                            (self.state.leaving, self.state.continues) = (0, false);
                            break;
                        }
                    }
                }
                self.maybe_left = before;
                None
            }
            CompoundCommand::ArithmeticForClause(clause) => {
                let value = |expression: &Option<UnexpandedArithmeticExpr>| {
                    expression.as_ref().map_or_else(String::new, |expression| expression.value.clone())
                };
                let known = self.arithmetic(&value(&clause.initializer), line).is_ok();
                for _ in 0..1000 {
                    match self.arithmetic(&value(&clause.condition), line) {
                        Ok(holds) if known && holds != 0 => {
                            let left = self.pass(|evaluator| {
                                evaluator.list(&clause.body.list);
                            });
                            if left {
                                break;
                            }
                            let _ = self.arithmetic(&value(&clause.updater), line);
                        }
                        Ok(_) if known => break,
                        _ => {
                            self.uncertain(&format!("the loop in line {line}"), |evaluator| {
                                evaluator.list(&clause.body.list);
                            });
                            break;
                        }
                    }
                }
                None
            }
            CompoundCommand::Coprocess(_) => None,
        }
    }

    /// One pass of a loop; true if the loop is left behind it.
    pub(super) fn pass(&mut self, body: impl FnOnce(&mut Self)) -> bool {
        match self.maybe_left.clone() {
            Some(condition) => self.uncertain(&condition, body),
            None => body(self),
        }
        if self.state.leaving == 0 {
            return self.state.ended;
        }
        self.state.leaving -= 1;
        let goes_on = self.state.leaving == 0 && self.state.continues;
        if goes_on {
            self.state.continues = false;
        }
        !goes_on
    }

    /// Loop with an unknown condition. One over the script's arguments does nothing without arguments; another one runs
    /// once or never.
    pub(super) fn unknown_loop(&mut self, condition: &CompoundList, body: &CompoundList, line: u32) {
        let told = condition.to_string();
        if ["$#", "$1", "${1", "getopts"].iter().any(|word| told.contains(word)) {
            self.assume("$@", &Text::known("no arguments", line), line);
            return;
        }
        // Twice: what changes from one pass to the next depends on the number of passes.
        for _ in 0..2 {
            self.uncertain(&format!("the loop in line {line}"), |evaluator| {
                evaluator.list(body);
            });
        }
    }

    pub(super) fn if_clause(&mut self, clause: &IfClauseCommand, line: u32) -> Option<bool> {
        let empty = vec![];
        let elses = clause.elses.as_ref().unwrap_or(&empty);
        let mut branches = vec![(Some(&clause.condition), &clause.then)];
        branches.extend(elses.iter().map(|branch| (branch.condition.as_ref(), &branch.body)));
        self.branches(&branches, line)
    }

    /// Branches in order; the first whose condition holds is taken.
    pub(super) fn branches(&mut self, branches: &[(Option<&CompoundList>, &CompoundList)], line: u32) -> Option<bool> {
        let Some(((condition, body), rest)) = branches.split_first() else { return Some(true) };
        let status = condition.map_or(Some(true), |condition| self.list(condition));
        if self.state.ended {
            return None;
        }
        match status {
            Some(true) => self.list(body),
            Some(false) => self.branches(rest, line),
            None => {
                let told = condition.map_or_else(String::new, ToString::to_string);
                let shown = format!("the condition `{}` (line {line})", one_line(&told));
                self.either(
                    &shown,
                    |evaluator| {
                        evaluator.list(body);
                    },
                    |evaluator| {
                        evaluator.branches(rest, line);
                    },
                );
                None
            }
        }
    }

    /// Follows two branches of an unknown condition.
    pub(super) fn either(&mut self, condition: &str, first: impl FnOnce(&mut Self), second: impl FnOnce(&mut Self)) {
        let before = self.state.clone();
        self.conditions.push(condition.into());
        first(self);
        let after = std::mem::replace(&mut self.state, before);
        second(self);
        self.conditions.pop();
        self.merge(after, condition);
    }

    pub(super) fn case_clause(&mut self, clause: &CaseClauseCommand, line: u32) -> Option<bool> {
        let value = self.joined(&clause.value.value, line);
        let known = self.read(&value);
        let mut unknown = vec![];
        for case in &clause.cases {
            let Some(body) = &case.cmd else { continue };
            let patterns: Vec<Text> = case.patterns.iter().map(|word| self.joined(&word.value, line)).collect();
            let matched = known.as_ref().map(|text| patterns.iter().any(|p| pattern::matches(&p.shown(), text)));
            match matched {
                Some(true) => return self.list(body),
                Some(false) => {}
                None => unknown.push(body),
            }
        }
        if known.is_none() {
            let shown = format!("the case of `{}` (line {line})", one_line(&clause.value.value));
            for body in unknown {
                self.uncertain(&shown, |evaluator| {
                    evaluator.list(body);
                });
            }
            return None;
        }
        Some(true)
    }
}
