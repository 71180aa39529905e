//! Conditions of a shell: `[ .. ]` and `[[ .. ]]`. A result of `None` is not known.

use brush_parser::ast::{BinaryPredicate, ExtendedTestExpr, UnaryPredicate};

use super::{Evaluator, pattern, text::Text};

impl Evaluator<'_> {
    /// `[ .. ]` with its words.
    pub(super) fn test(&mut self, words: &[Text]) -> Option<bool> {
        let words = match words.last() {
            Some(last) if last.shown() == "]" => &words[..words.len() - 1],
            _ => words,
        };
        // `-o` binds weaker than `-a`.
        for (operator, any) in [("-o", true), ("-a", false)] {
            if let Some(at) = words.iter().position(|word| word.shown() == operator).filter(|at| *at > 0) {
                let (left, right) = (self.test(&words[..at]), self.test(&words[at + 1..]));
                return joined(left, right, any);
            }
        }
        match words {
            [] => Some(false),
            [not, rest @ ..] if not.shown() == "!" => self.test(rest).map(|holds| !holds),
            [value] => self.read(value).map(|text| !text.is_empty()),
            // An unquoted unset variable leaves the operator alone: `[ -z $X ]`.
            [operator, value] => self.unary(&operator.shown(), value),
            [left, operator, right] => {
                let operator = operator.shown();
                let (left, right) = (self.read(left)?, self.read(right)?);
                match operator.as_str() {
                    "=" | "==" => Some(left == right),
                    "!=" => Some(left != right),
                    "<" => Some(left < right),
                    ">" => Some(left > right),
                    _ => compared(&operator, self.whole(&left)?, self.whole(&right)?),
                }
            }
            _ => None,
        }
    }

    fn unary(&mut self, operator: &str, value: &Text) -> Option<bool> {
        match operator {
            "-z" => self.read(value).map(|text| text.is_empty()),
            "-n" => self.read(value).map(|text| !text.is_empty()),
            "-v" => Some(self.state.variables.contains_key(&value.shown())),
            _ => None,
        }
    }

    /// Whole number in a comparison.
    fn whole(&mut self, text: &str) -> Option<i64> {
        text.trim().parse().ok().or_else(|| self.arithmetic(text, 0).ok())
    }

    /// `[[ .. ]]`.
    pub(super) fn extended(&mut self, test: &ExtendedTestExpr, line: u32) -> Option<bool> {
        match test {
            ExtendedTestExpr::And(left, right) => {
                let (left, right) = (self.extended(left, line), self.extended(right, line));
                joined(left, right, false)
            }
            ExtendedTestExpr::Or(left, right) => {
                let (left, right) = (self.extended(left, line), self.extended(right, line));
                joined(left, right, true)
            }
            ExtendedTestExpr::Not(inner) => self.extended(inner, line).map(|holds| !holds),
            ExtendedTestExpr::Parenthesized(inner) => self.extended(inner, line),
            ExtendedTestExpr::UnaryTest(predicate, word) => {
                let value = self.joined(&word.value, line);
                match predicate {
                    UnaryPredicate::StringHasZeroLength => self.unary("-z", &value),
                    UnaryPredicate::StringHasNonZeroLength => self.unary("-n", &value),
                    UnaryPredicate::ShellVariableIsSetAndAssigned => self.unary("-v", &value),
                    _ => None,
                }
            }
            ExtendedTestExpr::BinaryTest(predicate, left, right) => {
                let (left, right) = (self.joined(&left.value, line), self.joined(&right.value, line));
                let (left, right) = (self.read(&left)?, self.read(&right)?);
                use BinaryPredicate as Test;
                match predicate {
                    Test::StringExactlyMatchesString | Test::StringExactlyMatchesPattern => {
                        Some(pattern::matches(&right, &left))
                    }
                    Test::StringDoesNotExactlyMatchString | Test::StringDoesNotExactlyMatchPattern => {
                        Some(!pattern::matches(&right, &left))
                    }
                    Test::StringContainsSubstring => Some(left.contains(&right)),
                    // The common patterns of numbers; others are not evaluated.
                    Test::StringMatchesRegex if ["^[0-9]+$", "^[0-9]*$"].contains(&right.as_str()) => Some(
                        left.bytes().all(|byte| byte.is_ascii_digit()) && (!left.is_empty() || right == "^[0-9]*$"),
                    ),
                    Test::LeftSortsBeforeRight => Some(left < right),
                    Test::LeftSortsAfterRight => Some(left > right),
                    Test::ArithmeticEqualTo => compared("-eq", self.whole(&left)?, self.whole(&right)?),
                    Test::ArithmeticNotEqualTo => compared("-ne", self.whole(&left)?, self.whole(&right)?),
                    Test::ArithmeticLessThan => compared("-lt", self.whole(&left)?, self.whole(&right)?),
                    Test::ArithmeticLessThanOrEqualTo => compared("-le", self.whole(&left)?, self.whole(&right)?),
                    Test::ArithmeticGreaterThan => compared("-gt", self.whole(&left)?, self.whole(&right)?),
                    Test::ArithmeticGreaterThanOrEqualTo => compared("-ge", self.whole(&left)?, self.whole(&right)?),
                    _ => None,
                }
            }
        }
    }
}

fn compared(operator: &str, left: i64, right: i64) -> Option<bool> {
    Some(match operator {
        "-eq" => left == right,
        "-ne" => left != right,
        "-lt" => left < right,
        "-le" => left <= right,
        "-gt" => left > right,
        "-ge" => left >= right,
        _ => return None,
    })
}

/// Conjunction or disjunction, of which one side may be enough.
fn joined(left: Option<bool>, right: Option<bool>, any: bool) -> Option<bool> {
    match (left, right) {
        (Some(side), _) | (_, Some(side)) if side == any => Some(any),
        (Some(_), Some(_)) => Some(!any),
        _ => None,
    }
}
