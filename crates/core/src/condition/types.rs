//! What kind of value a condition gives, as far as that can be told from its text: so that one that can never be true
//! is refused when it is read, and not when somebody stands before it.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, SelectExpr};

/// A kind of value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Type {
    Bool,
    Number,
    Text,
    Bytes,
    Time,
    Duration,
    Null,
    List,
    Map,
    /// Something with these fields and no others.
    Fields(&'static [(&'static str, Type)]),
    /// Whatever somebody put there.
    Any,
}

const AUTH: &[(&str, Type)] =
    &[("kind", Type::Text), ("subject", Type::Text), ("role", Type::Text), ("claims", Type::Map)];
const OBJECT: &[(&str, Type)] = &[
    ("id", Type::Text),
    ("type", Type::Text),
    ("exists", Type::Bool),
    ("status", Type::Text),
    ("attributes", Type::Map),
];

/// What each function gives.
const FUNCTIONS: &[(&str, Type)] = &[
    ("size", Type::Number),
    ("contains", Type::Bool),
    ("startsWith", Type::Bool),
    ("endsWith", Type::Bool),
    ("matches", Type::Bool),
    ("int", Type::Number),
    ("uint", Type::Number),
    ("double", Type::Number),
    ("string", Type::Text),
    ("bytes", Type::Bytes),
    ("bool", Type::Bool),
    ("timestamp", Type::Time),
    ("duration", Type::Duration),
    ("type", Type::Any),
    ("dyn", Type::Any),
    ("getDate", Type::Number),
    ("getDayOfMonth", Type::Number),
    ("getDayOfWeek", Type::Number),
    ("getDayOfYear", Type::Number),
    ("getFullYear", Type::Number),
    ("getHours", Type::Number),
    ("getMilliseconds", Type::Number),
    ("getMinutes", Type::Number),
    ("getMonth", Type::Number),
    ("getSeconds", Type::Number),
];

impl Type {
    fn phrase(self) -> &'static str {
        match self {
            Self::Bool => "true or false",
            Self::Number => "a number",
            Self::Text => "a text",
            Self::Bytes => "bytes",
            Self::Time => "a time",
            Self::Duration => "a length of time",
            Self::Null => "null",
            Self::List => "a list",
            Self::Map | Self::Fields(_) => "a map",
            Self::Any => "anything",
        }
    }

    fn may_be(self, other: Self) -> bool {
        self == other || matches!(self, Self::Any) || matches!(other, Self::Any)
    }
}

/// Refuses a condition that is not true or false, whatever it is asked about.
pub(super) fn check(node: &IdedExpr) -> Result<(), String> {
    match type_of(node)? {
        Type::Bool | Type::Any => Ok(()),
        other => Err(format!("a condition is true or false, and this is {}", other.phrase())),
    }
}

fn type_of(node: &IdedExpr) -> Result<Type, String> {
    match &node.expr {
        Expr::Literal(value) => Ok(literal(value)),
        Expr::Ident(name) => Ok(match name.as_str() {
            "auth" => Type::Fields(AUTH),
            "object" => Type::Fields(OBJECT),
            "subject" => Type::Text,
            "meta" => Type::Map,
            "now" => Type::Time,
            _ => Type::Any,
        }),
        Expr::Select(select) => field(select),
        Expr::Call(call) => result(call),
        Expr::List(list) => {
            list.elements.iter().try_for_each(|item| type_of(item).map(|_| ()))?;
            Ok(Type::List)
        }
        Expr::Map(_) => Ok(Type::Map),
        Expr::Unspecified | Expr::Struct(_) | Expr::Comprehension(_) => Ok(Type::Any),
    }
}

fn literal(value: &LiteralValue) -> Type {
    match value {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(_) => Type::Bytes,
        LiteralValue::Double(_) | LiteralValue::Int(_) | LiteralValue::UInt(_) => Type::Number,
        LiteralValue::Null => Type::Null,
        LiteralValue::String(_) => Type::Text,
    }
}

fn field(select: &SelectExpr) -> Result<Type, String> {
    let found = match type_of(&select.operand)? {
        Type::Fields(fields) => match fields.iter().find(|(name, _)| *name == select.field) {
            Some((_, found)) => *found,
            None => {
                let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
                return Err(format!("unknown field `{}`; there are {}", select.field, names.join(", ")));
            }
        },
        Type::Map | Type::Any => Type::Any,
        other => return Err(format!("{} has no field `{}`", other.phrase(), select.field)),
    };
    Ok(if select.test { Type::Bool } else { found })
}

/// What an operator or a function gives.
fn result(call: &CallExpr) -> Result<Type, String> {
    let mut types = Vec::new();
    for node in call.target.iter().map(|target| &**target).chain(&call.args) {
        types.push(type_of(node)?);
    }
    let name = call.func_name.as_str();
    let clash = |sign: &str| Err(format!("`{sign}` between {} and {}", types[0].phrase(), types[1].phrase()));
    match (name, &types[..]) {
        ("_&&_" | "_||_" | "!_", operands) => match operands.iter().find(|found| !found.may_be(Type::Bool)) {
            Some(found) => Err(format!("`{}` takes what is true or false, not {}", sign(name), found.phrase())),
            None => Ok(Type::Bool),
        },
        ("_?_:_", [condition, yes, no]) => match condition.may_be(Type::Bool) {
            true => Ok(if yes == no { *yes } else { Type::Any }),
            false => Err(format!("`? :` asks what is true or false, not {}", condition.phrase())),
        },
        ("_==_" | "_!=_", [left, right]) => {
            let fits = left.may_be(*right) || *left == Type::Null || *right == Type::Null || is_map(*left, *right);
            if fits { Ok(Type::Bool) } else { clash(sign(name)) }
        }
        ("_<_" | "_<=_" | "_>_" | "_>=_", [left, right]) => {
            if left.may_be(*right) {
                Ok(Type::Bool)
            } else {
                clash(sign(name))
            }
        }
        ("_+_" | "_-_", [Type::Time, Type::Duration]) => Ok(Type::Time),
        ("_+_", [Type::Duration, Type::Time]) => Ok(Type::Time),
        ("_-_", [Type::Time, Type::Time]) => Ok(Type::Duration),
        ("_+_" | "_-_" | "_*_" | "_/_" | "_%_", [left, right]) => match (left, right) {
            (Type::Any, _) | (_, Type::Any) => Ok(Type::Any),
            (left, right) if left == right => Ok(*left),
            _ => clash(sign(name)),
        },
        ("-_", [found]) => Ok(*found),
        ("@in", [_, Type::List | Type::Map | Type::Fields(_) | Type::Any]) => Ok(Type::Bool),
        ("@in", [_, other]) => Err(format!("`in` looks in a list or a map, not in {}", other.phrase())),
        ("_[_]", _) => Ok(Type::Any),
        _ if name.starts_with(['_', '@']) => Ok(Type::Any),
        _ => match FUNCTIONS.iter().find(|(known, _)| *known == name) {
            Some((_, gives)) => Ok(*gives),
            None => {
                let names: Vec<&str> = FUNCTIONS.iter().map(|(known, _)| *known).collect();
                Err(format!("unknown function `{name}`; there are {}", names.join(", ")))
            }
        },
    }
}

fn is_map(left: Type, right: Type) -> bool {
    let is = |found: Type| matches!(found, Type::Map | Type::Fields(_));
    is(left) && is(right)
}

/// An operator as it is written.
fn sign(name: &str) -> &str {
    name.trim_matches('_')
}
