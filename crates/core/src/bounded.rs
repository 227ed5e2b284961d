//! Reading what clients send no further than anybody may send: values take many times the room of their text, and what is
//! refused in the end need not be built first.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::limits::{META_BYTES_MAX, META_DEPTH_MAX};
use crate::meta::{Meta, check_bounds};

/// A free-form map. Of one that is too large or too deep only so much is there that [`check_bounds`] refuses it.
#[derive(Clone, Default, Debug)]
pub struct BoundedMeta(pub Meta);

impl<'de> Deserialize<'de> for BoundedMeta {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut budget = Budget { bytes: 0, is_over: false };
        let map = from.deserialize_map(Top(&mut budget))?;
        // A key that came twice took more than it left.
        if budget.is_over && check_bounds(&map, "it").is_ok() {
            return Err(D::Error::custom(format!("more than {META_BYTES_MAX} bytes, with a key that comes twice")));
        }
        Ok(Self(Arc::new(map)))
    }
}

/// A list that is read up to one more than `MAX`: so many are refused by their number, whoever looks at them.
#[derive(Clone, Debug)]
pub struct AtMost<T, const MAX: usize>(pub Vec<T>);

impl<T, const MAX: usize> Default for AtMost<T, MAX> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for AtMost<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Items<T, const MAX: usize>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for Items<T, MAX> {
            type Value = Vec<T>;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
                let mut found = Vec::new();
                while found.len() <= MAX {
                    match items.next_element()? {
                        Some(item) => found.push(item),
                        None => return Ok(found),
                    }
                }
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(found)
            }
        }
        from.deserialize_seq(Items::<T, MAX>(PhantomData)).map(Self)
    }
}

/// About as many bytes as a free-form map holds in memory.
pub fn held_bytes(map: &Map<String, Value>) -> usize {
    let entry = |(key, value): (&String, &Value)| size_of::<(String, Value)>() + key.len() + behind(value);
    map.iter().map(entry).sum()
}

/// What a value holds besides itself.
fn behind(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| size_of::<Value>() + behind(item)).sum(),
        Value::Object(map) => held_bytes(map),
    }
}

/// What is left to read. It is counted so that no map comes out shorter than it is as JSON.
struct Budget {
    bytes: usize,
    is_over: bool,
}

impl Budget {
    fn take(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.is_over |= self.bytes > META_BYTES_MAX;
    }
}

struct Top<'a>(&'a mut Budget);

impl<'de> Visitor<'de> for Top<'_> {
    type Value = Map<String, Value>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        object(map, self.0, 0)
    }
}

/// Reads an object whose values are one level further in. What is past the budget is passed over.
fn object<'de, A: MapAccess<'de>>(
    mut from: A,
    budget: &mut Budget,
    level: usize,
) -> Result<Map<String, Value>, A::Error> {
    let mut map = Map::new();
    while !budget.is_over {
        let Some(key) = from.next_key::<String>()? else { return Ok(map) };
        // Two quotes, a colon, and a comma or a brace.
        budget.take(key.len() + 4);
        let value = from.next_value_seed(Node { budget, level: level + 1 })?;
        map.insert(key, value);
    }
    while from.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(map)
}

/// A value so many levels inside the map.
struct Node<'a> {
    budget: &'a mut Budget,
    level: usize,
}

impl Node<'_> {
    /// Whether this list or object is further in than there may be any. What is in it is not read.
    fn is_too_deep(&mut self) -> bool {
        let is_too_deep = self.level >= META_DEPTH_MAX;
        self.budget.is_over |= is_too_deep;
        is_too_deep
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.budget.take("null".len());
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.budget.take("true".len());
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.budget.take(1);
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.budget.take(1);
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.budget.take(1);
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.budget.take(value.len() + 2);
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut from: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        self.is_too_deep();
        while !self.budget.is_over {
            let Some(item) = from.next_element_seed(Node { budget: self.budget, level: self.level + 1 })? else {
                return Ok(Value::Array(items));
            };
            // With the comma or the bracket.
            self.budget.take(1);
            items.push(item);
        }
        while from.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, from: A) -> Result<Value, A::Error> {
        self.is_too_deep();
        object(from, self.budget, self.level).map(Value::Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Map<String, Value> {
        let BoundedMeta(map) = serde_json::from_str(text).unwrap();
        Arc::unwrap_or_clone(map)
    }

    fn nested(depth: usize) -> String {
        format!(r#"{{"a":{}{}}}"#, "[".repeat(depth), "]".repeat(depth))
    }

    fn wide(items: usize) -> String {
        format!(r#"{{"a":[{}0]}}"#, "0,".repeat(items - 1))
    }

    #[test]
    fn what_may_be_sent_is_read_whole_and_nothing_else_passes() {
        let keys = |count: usize| {
            let keys: Vec<String> = (0..count).map(|n| format!(r#""{n}":{{"x":null,"y":[true,-1.5]}}"#)).collect();
            format!("{{{}}}", keys.join(","))
        };
        let texts = (0..40)
            .map(|n| nested(n + 1))
            .chain((0..40).map(|n| keys(n * 20)))
            .chain([1, 100, 8_000, 8_180, 8_188, 8_189, 8_190, 8_191, 8_192, 8_193, 8_200, 20_000].map(wide));
        let (mut good, mut bad) = (0, 0);
        for text in texts.chain((16_370..16_390).map(|n| format!(r#"{{"a":"{}"}}"#, "x".repeat(n)))) {
            let whole: Map<String, Value> = serde_json::from_str(&text).unwrap();
            let (said, found) = (check_bounds(&whole, "meta"), read(&text));
            assert_eq!(check_bounds(&found, "meta"), said, "{} bytes", text.len());
            match said {
                Ok(()) => assert_eq!(found, whole),
                Err(_) => bad += 1,
            }
            good += usize::from(check_bounds(&found, "meta").is_ok());
        }
        assert!(good > 40 && bad > 40, "{good} good, {bad} bad");
    }

    #[test]
    fn a_large_map_is_refused_while_it_is_read() {
        let megabyte = 1 << 20;
        let of_keys =
            format!(r#"{{"a":{{{}"z":0}}}}"#, (0..60_000).map(|n| format!(r#""{n:x}":0,"#)).collect::<String>());
        let of_lists = format!(r#"{{"a":[{}[]]}}"#, "[],".repeat(megabyte / 3));
        for text in [wide(megabyte / 2), of_lists, of_keys, nested(100_000)] {
            let found = read(&text);
            assert!(check_bounds(&found, "meta").is_err());
            assert!(held_bytes(&found) < 40 * META_BYTES_MAX, "{} bytes are held", held_bytes(&found));
        }
    }

    #[test]
    fn a_key_that_comes_twice_makes_nothing_pass_that_was_not_read() {
        let half = "x".repeat(META_BYTES_MAX / 2 + 1);
        let text = format!(r#"{{"a":"{half}","a":"{half}","b":1}}"#);
        assert!(serde_json::from_str::<BoundedMeta>(&text).is_err());
        assert_eq!(Value::Object(read(r#"{"a":1,"a":2,"b":3}"#)), serde_json::json!({"a": 2, "b": 3}));
    }

    #[test]
    fn lists_are_read_up_to_one_too_many() {
        let list = |text: &str| serde_json::from_str::<AtMost<u8, 2>>(text).map(|list| list.0).ok();
        assert_eq!(list("[]"), Some(vec![]));
        assert_eq!(list("[1,2]"), Some(vec![1, 2]));
        assert_eq!(list("[1,2,3,\"what\",5]"), Some(vec![1, 2, 3]));
        assert_eq!(list("[1,\"what\"]"), None);
    }
}
