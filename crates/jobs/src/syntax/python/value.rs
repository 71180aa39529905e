//! Values of Python expressions, as far as constants go.
//!
//! `O(expression)`.

use ruff_python_ast::{BoolOp, CmpOp, Expr, Number, Operator, UnaryOp};

use super::{super::MOST_SETTINGS, Constants, DEEPEST, Reader};
use crate::setting::Value;

impl Reader<'_> {
    /// Truth of a condition; `None` if it depends on what the file does not hold.
    pub(super) fn truth(&mut self, test: &Expr, constants: &Constants) -> Option<bool> {
        match test {
            Expr::UnaryOp(not) if not.op == UnaryOp::Not => self.truth(&not.operand, constants).map(|holds| !holds),
            Expr::BoolOp(both) => {
                let any = both.op == BoolOp::Or;
                let sides: Vec<Option<bool>> = both.values.iter().map(|side| self.truth(side, constants)).collect();
                if sides.contains(&Some(any)) {
                    return Some(any);
                }
                sides.iter().all(Option::is_some).then_some(!any)
            }
            Expr::Compare(compare) => {
                let ([operator], [right]) = (&compare.ops[..], &compare.comparators[..]) else { return None };
                // A field of a configuration has a value that is set elsewhere.
                if [&*compare.left, right].iter().any(|side| matches!(side, Expr::Attribute(_) | Expr::Subscript(_))) {
                    return None;
                }
                let left = self.value(&compare.left, constants);
                let right = self.value(right, constants);
                // The usual guard of a script.
                if left == Value::Text("__name__".into()) {
                    return Some(true);
                }
                if matches!(left, Value::Unknown(_)) || matches!(right, Value::Unknown(_)) {
                    return None;
                }
                let numbers = || Some((left.text().parse::<f64>().ok()?, right.text().parse::<f64>().ok()?));
                match operator {
                    CmpOp::Eq | CmpOp::Is => Some(left == right),
                    CmpOp::NotEq | CmpOp::IsNot => Some(left != right),
                    CmpOp::Lt => numbers().map(|(a, b)| a < b),
                    CmpOp::LtE => numbers().map(|(a, b)| a <= b),
                    CmpOp::Gt => numbers().map(|(a, b)| a > b),
                    CmpOp::GtE => numbers().map(|(a, b)| a >= b),
                    CmpOp::In | CmpOp::NotIn => match &right {
                        Value::List(list) => Some(list.contains(&left) == (*operator == CmpOp::In)),
                        _ => None,
                    },
                }
            }
            Expr::Attribute(_) | Expr::Subscript(_) => None,
            other => match self.value(other, constants) {
                Value::Unknown(_) => None,
                value => Some(!value.is_off()),
            },
        }
    }

    /// Value of an expression.
    pub(super) fn value(&mut self, expression: &Expr, constants: &Constants) -> Value {
        self.depth += 1;
        let value = if self.depth > 4 * DEEPEST {
            Value::Unknown("an expression that is nested too deep".into())
        } else {
            self.value_of(expression, constants)
        };
        self.depth -= 1;
        value
    }

    pub(super) fn value_of(&mut self, expression: &Expr, constants: &Constants) -> Value {
        let unknown = |what: &str| Value::Unknown(format!("{what} is computed when the job starts"));
        match expression {
            Expr::NoneLiteral(_) => Value::Null,
            Expr::BooleanLiteral(literal) => Value::Bool(literal.value),
            Expr::StringLiteral(literal) => Value::Text(literal.value.to_str().into()),
            Expr::NumberLiteral(literal) => match &literal.value {
                Number::Int(number) => Value::Text(number.to_string()),
                Number::Float(number) => Value::Text(number.to_string()),
                Number::Complex { .. } => unknown("a complex number"),
            },
            Expr::Name(name) => match constants.get(name.id.as_str()) {
                Some(value) => value.clone(),
                None if name.id.as_str() == "__name__" => Value::Text("__name__".into()),
                None => Value::Unknown(format!("`{0}` is no constant of the file (--define {0}=VALUE)", name.id)),
            },
            Expr::Attribute(_) => path_of(expression).map_or_else(|| unknown("an attribute"), Value::Text),
            Expr::List(list) => Value::List(list.elts.iter().map(|value| self.value(value, constants)).collect()),
            Expr::Tuple(list) => Value::List(list.elts.iter().map(|value| self.value(value, constants)).collect()),
            Expr::Set(list) => Value::List(list.elts.iter().map(|value| self.value(value, constants)).collect()),
            Expr::UnaryOp(negative) if negative.op == UnaryOp::USub => match self.value(&negative.operand, constants) {
                Value::Text(text) => Value::Text(format!("-{text}")),
                other => other,
            },
            Expr::BinOp(both) => {
                let (left, right) = (self.value(&both.left, constants), self.value(&both.right, constants));
                combined(both.op, left, right)
            }
            Expr::If(choice) => match self.truth(&choice.test, constants) {
                Some(true) => self.value(&choice.body, constants),
                Some(false) => self.value(&choice.orelse, constants),
                None => unknown("a conditional value"),
            },
            Expr::Compare(_) | Expr::BoolOp(_) | Expr::UnaryOp(_) => match self.truth(expression, constants) {
                Some(holds) => Value::Bool(holds),
                None => unknown("a condition"),
            },
            Expr::Call(call) => match path_of(&call.func) {
                Some(name) => Value::Unknown(format!("`{name}(..)` is computed when the job starts")),
                None => unknown("a call"),
            },
            _ => unknown("an expression"),
        }
    }
}

/// Dotted path of names; string and number subscripts are parts of it.
pub(super) fn path_of(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Name(name) => Some(name.id.to_string()),
        Expr::Attribute(attribute) => Some(format!("{}.{}", path_of(&attribute.value)?, attribute.attr)),
        Expr::Subscript(subscript) => {
            let key = match &*subscript.slice {
                Expr::StringLiteral(literal) => literal.value.to_str().to_string(),
                Expr::NumberLiteral(literal) => match &literal.value {
                    Number::Int(number) => number.to_string(),
                    _ => return None,
                },
                _ => return None,
            };
            Some(format!("{}.{key}", path_of(&subscript.value)?))
        }
        // `AutoBridge.from_hf_pretrained("name").to_megatron_provider()`
        Expr::Call(call) => path_of(&call.func),
        _ => None,
    }
}

/// Result of an operator; unknown for other operands than numbers, texts and lists.
pub(super) fn combined(operator: Operator, left: Value, right: Value) -> Value {
    match (operator, left, right) {
        (_, Value::Unknown(reason), _) | (_, _, Value::Unknown(reason)) => Value::Unknown(reason),
        (Operator::Mult, Value::List(list), Value::Text(times))
        | (Operator::Mult, Value::Text(times), Value::List(list)) => {
            let times = times.parse::<usize>().unwrap_or(0).min(4096);
            Value::List(std::iter::repeat_n(list, times).flatten().take(MOST_SETTINGS).collect())
        }
        (Operator::Add, Value::List(left), Value::List(right)) => Value::List(left.into_iter().chain(right).collect()),
        (operator, Value::Text(left), Value::Text(right)) => {
            let whole = || Some((left.parse::<i64>().ok()?, right.parse::<i64>().ok()?));
            if let Some((a, b)) = whole() {
                let value = match operator {
                    Operator::Add => a.checked_add(b),
                    Operator::Sub => a.checked_sub(b),
                    Operator::Mult => a.checked_mul(b),
                    Operator::FloorDiv => a.checked_div_euclid(b),
                    Operator::Mod => a.checked_rem_euclid(b),
                    Operator::Pow => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
                    Operator::Div if b != 0 && a % b == 0 => a.checked_div(b),
                    _ => None,
                };
                return value
                    .map_or_else(|| Value::Unknown("arithmetic".into()), |value| Value::Text(value.to_string()));
            }
            match (operator, left.parse::<f64>(), right.parse::<f64>()) {
                (Operator::Mult, Ok(a), Ok(b)) => Value::Text((a * b).to_string()),
                (Operator::Div, Ok(a), Ok(b)) if b != 0.0 => Value::Text((a / b).to_string()),
                (Operator::Add, Err(_), _) | (Operator::Add, _, Err(_)) => Value::Text(left + &right),
                _ => Value::Unknown("arithmetic".into()),
            }
        }
        _ => Value::Unknown("an operation".into()),
    }
}
