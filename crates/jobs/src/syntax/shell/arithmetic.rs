//! Integer arithmetic of a shell.

use brush_parser::ast::{ArithmeticExpr, ArithmeticTarget, BinaryOperator, UnaryAssignmentOperator, UnaryOperator};

use super::{Evaluator, text::Text};

/// Deepest reference of a variable to another.
const DEEPEST: usize = 32;

impl Evaluator<'_> {
    /// Value of an expression, or the reason why it is not known. Assignments inside it take place.
    pub(super) fn arithmetic(&mut self, text: &str, line: u32) -> Result<i64, String> {
        self.arithmetic_at(text, line, 0)
    }

    fn arithmetic_at(&mut self, text: &str, line: u32, depth: usize) -> Result<i64, String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(0);
        }
        if depth > DEEPEST {
            return Err(format!("`{text}` refers to itself"));
        }
        // Expansions first, as the shell does.
        let text = if text.contains(['$', '`', '"', '\'']) {
            let expanded = self.joined(text, line);
            expanded.read().map_err(ToString::to_string)?
        } else {
            text.to_string()
        };
        let tree = brush_parser::arithmetic::parse(&text).map_err(|_| format!("`{text}` is no integer arithmetic"))?;
        self.tree(&tree, line, depth)
    }

    fn tree(&mut self, tree: &ArithmeticExpr, line: u32, depth: usize) -> Result<i64, String> {
        Ok(match tree {
            ArithmeticExpr::Literal(value) => *value,
            ArithmeticExpr::Reference(target) => self.reference(target, line, depth)?,
            ArithmeticExpr::UnaryOp(operator, inner) => {
                let value = self.tree(inner, line, depth)?;
                match operator {
                    UnaryOperator::UnaryPlus => value,
                    UnaryOperator::UnaryMinus => value.wrapping_neg(),
                    UnaryOperator::BitwiseNot => !value,
                    UnaryOperator::LogicalNot => i64::from(value == 0),
                }
            }
            ArithmeticExpr::BinaryOp(operator, left, right) => {
                let left = self.tree(left, line, depth)?;
                let right = self.tree(right, line, depth)?;
                binary(operator, left, right)?
            }
            ArithmeticExpr::Conditional(condition, then, otherwise) => {
                let chosen = if self.tree(condition, line, depth)? != 0 { then } else { otherwise };
                self.tree(chosen, line, depth)?
            }
            ArithmeticExpr::Assignment(target, value) => {
                let value = self.tree(value, line, depth)?;
                self.assign_number(target, value, line)?
            }
            ArithmeticExpr::BinaryAssignment(operator, target, value) => {
                let before = self.reference(target, line, depth)?;
                let value = self.tree(value, line, depth)?;
                self.assign_number(target, binary(operator, before, value)?, line)?
            }
            ArithmeticExpr::UnaryAssignment(operator, target) => {
                let before = self.reference(target, line, depth)?;
                let (after, result) = match operator {
                    UnaryAssignmentOperator::PrefixIncrement => (before.wrapping_add(1), before.wrapping_add(1)),
                    UnaryAssignmentOperator::PrefixDecrement => (before.wrapping_sub(1), before.wrapping_sub(1)),
                    UnaryAssignmentOperator::PostfixIncrement => (before.wrapping_add(1), before),
                    UnaryAssignmentOperator::PostfixDecrement => (before.wrapping_sub(1), before),
                };
                self.assign_number(target, after, line)?;
                result
            }
        })
    }

    fn reference(&mut self, target: &ArithmeticTarget, line: u32, depth: usize) -> Result<i64, String> {
        let value = match target {
            ArithmeticTarget::Variable(name) => self.scalar(name, line),
            ArithmeticTarget::ArrayElement(name, index) => {
                let index = self.tree(index, line, depth)?;
                self.element(name, index, line)
            }
        };
        let text = value.read().map_err(ToString::to_string)?;
        match text.trim().parse() {
            Ok(number) => Ok(number),
            Err(_) => self.arithmetic_at(&text, line, depth + 1),
        }
    }

    fn assign_number(&mut self, target: &ArithmeticTarget, value: i64, line: u32) -> Result<i64, String> {
        match target {
            ArithmeticTarget::Variable(name) => self.assign(name, Text::known(value.to_string(), line)),
            ArithmeticTarget::ArrayElement(..) => return Err("an array's element is assigned in arithmetic".into()),
        }
        Ok(value)
    }
}

fn binary(operator: &BinaryOperator, left: i64, right: i64) -> Result<i64, String> {
    let overflow = || "arithmetic overflows".to_string();
    Ok(match operator {
        BinaryOperator::Power => {
            left.checked_pow(u32::try_from(right).map_err(|_| overflow())?).ok_or_else(overflow)?
        }
        BinaryOperator::Multiply => left.checked_mul(right).ok_or_else(overflow)?,
        BinaryOperator::Divide => left.checked_div(right).ok_or("a division by zero")?,
        BinaryOperator::Modulo => left.checked_rem(right).ok_or("a division by zero")?,
        BinaryOperator::Comma => right,
        BinaryOperator::Add => left.checked_add(right).ok_or_else(overflow)?,
        BinaryOperator::Subtract => left.checked_sub(right).ok_or_else(overflow)?,
        BinaryOperator::ShiftLeft => left.checked_shl(u32::try_from(right).unwrap_or(64)).ok_or_else(overflow)?,
        BinaryOperator::ShiftRight => left.checked_shr(u32::try_from(right).unwrap_or(64)).ok_or_else(overflow)?,
        BinaryOperator::LessThan => i64::from(left < right),
        BinaryOperator::LessThanOrEqualTo => i64::from(left <= right),
        BinaryOperator::GreaterThan => i64::from(left > right),
        BinaryOperator::GreaterThanOrEqualTo => i64::from(left >= right),
        BinaryOperator::Equals => i64::from(left == right),
        BinaryOperator::NotEquals => i64::from(left != right),
        BinaryOperator::BitwiseAnd => left & right,
        BinaryOperator::BitwiseXor => left ^ right,
        BinaryOperator::BitwiseOr => left | right,
        BinaryOperator::LogicalAnd => i64::from(left != 0 && right != 0),
        BinaryOperator::LogicalOr => i64::from(left != 0 || right != 0),
    })
}
