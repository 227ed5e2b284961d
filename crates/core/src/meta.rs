//! Declared shapes of `meta`, and the bounds that every free-form map keeps.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::error::Refusal;
use crate::limits::{META_BYTES_MAX, META_DEPTH_MAX};

/// A free-form JSON object, shared rather than copied.
pub type Meta = Arc<Map<String, Value>>;

/// What one field of `meta` holds. A field is optional unless its type ends in `!`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MetaType {
    /// The kind of value.
    pub kind: MetaKind,
    /// Whether every edge must have it.
    pub required: bool,
}

/// The kinds of value that a `meta` field may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetaKind {
    /// `string(500)`: at most so many characters; `string` alone is bounded by the size of meta.
    Text(usize),
    /// `int`: a 64-bit integer.
    Int,
    /// `float`: any number.
    Float,
    /// `bool`.
    Bool,
    /// `timestamp`: RFC 3339.
    Timestamp,
}

impl MetaType {
    /// Reads `string(500)`, `int`, `float`, `bool` or `timestamp`, with `!` for required.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (body, required) = text.strip_suffix('!').map_or((text, false), |body| (body, true));
        let kind = match body {
            "string" => MetaKind::Text(META_BYTES_MAX),
            "int" => MetaKind::Int,
            "float" => MetaKind::Float,
            "bool" => MetaKind::Bool,
            "timestamp" => MetaKind::Timestamp,
            other => other
                .strip_prefix("string(")
                .and_then(|rest| rest.strip_suffix(')'))
                .and_then(|digits| digits.parse().ok())
                .filter(|chars| (1..=META_BYTES_MAX).contains(chars))
                .map(MetaKind::Text)
                .ok_or_else(|| {
                    format!("`{text}` is not a type; use string(500), int, float, bool or timestamp, with ! at the end if required")
                })?,
        };
        Ok(Self { kind, required })
    }

    fn check(&self, field: &str, value: &Value) -> Result<(), Refusal> {
        let fits = match (self.kind, value) {
            (MetaKind::Text(chars_max), Value::String(text)) => {
                if text.chars().count() > chars_max {
                    return Err(Refusal::bad_request(format!("meta.{field} has at most {chars_max} characters")));
                }
                true
            }
            (MetaKind::Int, Value::Number(number)) => number.is_i64(),
            (MetaKind::Float, Value::Number(_)) | (MetaKind::Bool, Value::Bool(_)) => true,
            (MetaKind::Timestamp, Value::String(text)) => text.parse::<jiff::Timestamp>().is_ok(),
            _ => false,
        };
        if fits {
            return Ok(());
        }
        Err(Refusal::bad_request(format!("meta.{field} is not {}", self.kind.phrase())))
    }
}

impl MetaKind {
    fn phrase(self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Int => "an integer",
            Self::Float => "a number",
            Self::Bool => "true or false",
            Self::Timestamp => "an RFC 3339 time",
        }
    }
}

/// The declared fields of a relation's `meta`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MetaShape(pub BTreeMap<String, MetaType>);

impl MetaShape {
    /// Refuses a meta with unknown, missing or ill-typed fields.
    pub fn check(&self, meta: Option<&Meta>) -> Result<(), Refusal> {
        let empty = Map::new();
        let meta = meta.map_or(&empty, |meta| &**meta);
        for (field, value) in meta {
            match self.0.get(field) {
                Some(shape) => shape.check(field, value)?,
                None => return Err(Refusal::bad_request(format!("meta.{field} is not declared for this relation"))),
            }
        }
        for (field, shape) in &self.0 {
            if shape.required && !meta.contains_key(field) {
                return Err(Refusal::bad_request(format!("meta.{field} is required")));
            }
        }
        Ok(())
    }
}

/// Refuses a map that is too large or too deep, or that holds a character no database takes in a text, whatever its
/// shape.
pub fn check_bounds(map: &Map<String, Value>, what: &str) -> Result<(), Refusal> {
    if map.values().any(|value| depth(value) >= META_DEPTH_MAX) {
        return Err(Refusal::bad_request(format!("{what} is nested at most {META_DEPTH_MAX} deep")));
    }
    if map.iter().any(|(key, value)| key.contains('\0') || has_null(value)) {
        return Err(Refusal::bad_request(format!("{what} has no character U+0000")));
    }
    let mut counter = Counter(0);
    let too_long = serde_json::to_writer(&mut counter, map).is_err();
    if too_long {
        return Err(Refusal::TooLarge(format!("{what} has at most {META_BYTES_MAX} bytes as JSON")));
    }
    Ok(())
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(map) => map.iter().any(|(key, value)| key.contains('\0') || has_null(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Counts bytes and stops at the limit, so that a large map is not written out to be measured.
struct Counter(usize);

impl std::io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        if self.0 > META_BYTES_MAX {
            return Err(std::io::Error::other("too large"));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shape(fields: &[(&str, &str)]) -> MetaShape {
        MetaShape(fields.iter().map(|(name, text)| ((*name).into(), MetaType::parse(text).unwrap())).collect())
    }

    fn check(shape: &MetaShape, meta: Value) -> Result<(), Refusal> {
        let Value::Object(map) = meta else { panic!("an object") };
        shape.check(Some(&Arc::new(map)))
    }

    #[test]
    fn meta_is_held_to_its_shape() {
        let bookmark =
            shape(&[("memo", "string(5)"), ("notify", "bool"), ("at", "timestamp"), ("n", "int"), ("x", "float")]);
        for good in [
            json!({}),
            json!({"memo": "12345"}),
            json!({"memo": "가나다라마"}),
            json!({"notify": true, "n": -3, "x": 1.5}),
            json!({"at": "2026-01-01T00:00:00Z"}),
        ] {
            assert!(check(&bookmark, good.clone()).is_ok(), "{good}");
        }
        for bad in [
            json!({"memo": "123456"}),
            json!({"memo": 1}),
            json!({"memo": null}),
            json!({"other": 1}),
            json!({"n": 1.5}),
            json!({"notify": "yes"}),
            json!({"at": "yesterday"}),
        ] {
            assert!(check(&bookmark, bad.clone()).is_err(), "{bad}");
        }
        assert!(shape(&[("memo", "string!")]).check(None).is_err());
    }

    #[test]
    fn types_that_do_not_exist_are_named() {
        for bad in ["text", "string()", "string(0)", "string(x)", "String", ""] {
            assert!(MetaType::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn maps_are_bounded_in_size_and_depth() {
        let big = json!({"a": "x".repeat(META_BYTES_MAX)});
        assert!(check_bounds(big.as_object().unwrap(), "meta").is_err());
        let mut deep = json!(1);
        for _ in 0..META_DEPTH_MAX {
            deep = json!([deep]);
        }
        assert!(check_bounds(json!({"a": deep}).as_object().unwrap(), "meta").is_err());
        assert!(check_bounds(json!({"a": [1]}).as_object().unwrap(), "meta").is_ok());
        for bad in
            [json!({"a": "x\u{0}"}), json!({"a\u{0}": 1}), json!({"a": [{"b": ["\u{0}"]}]}), json!({"a": {"\u{0}": 1}})]
        {
            assert!(check_bounds(bad.as_object().unwrap(), "meta").is_err(), "{bad}");
        }
        assert!(check_bounds(json!({"a": "\u{1}\n"}).as_object().unwrap(), "meta").is_ok());
    }
}
