//! What a request says, field by field, as fingerprints: enough to see that it is another one, and where; nothing that
//! could be read back. They are taken while its JSON is read, so a large body takes no more room than it has.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::hash::{digest, fingerprint};

/// Parts of one field, such as the keys of `meta`, that are told apart. With more the field is one.
pub const PARTS_MAX: usize = 64;

/// A fingerprint for the call, and for each field of a body with its parts. A name is the field's, with its part's behind it: see
/// [`field`]. Nobody guesses what is behind one without the `salt`.
pub fn prints(salt: &str, call: &str, body: &[u8], parts_max: usize) -> Result<Vec<(String, u64)>, serde_json::Error> {
    let mut fields = Fields { salt, parts_max, found: Vec::new() };
    fields.note("the call".into(), fingerprint(&[call.as_bytes()]));
    let mut json = serde_json::Deserializer::from_slice(body);
    json.deserialize_map(&mut fields)?;
    json.end()?;
    Ok(fields.found)
}

/// The field that a name is about. It is a word of ours, as a body with any other field is refused; its part may be
/// anything that somebody wrote.
pub fn field(name: &str) -> &str {
    let Some(dot) = name.find('.') else { return name };
    name[dot + 1..].find(['.', '[']).map_or(name, |end| &name[..dot + 1 + end])
}

struct Fields<'a> {
    salt: &'a str,
    parts_max: usize,
    found: Vec<(String, u64)>,
}

impl Fields<'_> {
    fn note(&mut self, name: String, hash: u64) {
        // The name goes in, as only the field's is kept with it.
        let [print, _] = digest(&[self.salt, &name, &format!("{hash:x}")]);
        self.found.push((name, print));
    }
}

impl<'de> Visitor<'de> for &mut Fields<'_> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            let mut parts = Parts { max: self.parts_max, count: 0, found: Vec::new() };
            let hash = map.next_value_seed(Hash { parts: Some(&mut parts) })?;
            for (part, hash) in parts.found {
                self.note(format!("body.{name}{part}"), hash);
            }
            self.note(format!("body.{name}"), hash);
        }
        Ok(())
    }
}

/// The parts of a field: all of them, or none if they are too many.
struct Parts {
    max: usize,
    count: usize,
    found: Vec<(String, u64)>,
}

impl Parts {
    fn note(&mut self, name: impl FnOnce() -> String, hash: u64) {
        self.count += 1;
        if self.count <= self.max {
            self.found.push((name(), hash));
        } else {
            self.found = Vec::new();
        }
    }
}

/// Hashes a value as it is read, and its parts where they are asked for.
struct Hash<'a> {
    parts: Option<&'a mut Parts>,
}

impl<'de> DeserializeSeed<'de> for Hash<'_> {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<u64, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Hash<'_> {
    type Value = u64;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<u64, E> {
        Ok(fingerprint(&[b"null"]))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<u64, E> {
        Ok(fingerprint(&[b"bool", &[u8::from(value)]]))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<u64, E> {
        Ok(fingerprint(&[b"whole", &value.to_le_bytes()]))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<u64, E> {
        Ok(fingerprint(&[b"negative", &value.to_le_bytes()]))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<u64, E> {
        Ok(fingerprint(&[b"float", &value.to_bits().to_le_bytes()]))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<u64, E> {
        Ok(fingerprint(&[b"text", value.as_bytes()]))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<u64, A::Error> {
        let (mut hash, mut index) = (fingerprint(&[b"list"]), 0);
        while let Some(item) = items.next_element_seed(Hash { parts: None })? {
            hash = fingerprint(&[&hash.to_le_bytes(), &item.to_le_bytes()]);
            if let Some(parts) = &mut self.parts {
                parts.note(|| format!("[{index}]"), item);
            }
            index += 1;
        }
        Ok(hash)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<u64, A::Error> {
        let mut hash = fingerprint(&[b"object"]);
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value_seed(Hash { parts: None })?;
            // The same in whatever order the keys come.
            hash = hash.wrapping_add(fingerprint(&[key.as_bytes(), &value.to_le_bytes()]));
            if let Some(parts) = &mut self.parts {
                parts.note(|| format!(".{key}"), value);
            }
        }
        Ok(hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: &str) -> Vec<(String, u64)> {
        let mut found = prints("salt", "/call", body.as_bytes(), PARTS_MAX).unwrap();
        found.sort();
        found
    }

    #[test]
    fn the_same_is_the_same_however_it_is_written() {
        let plain = of(r#"{"meta":{"a":1,"b":{"c":[1,"x",null],"d":2.5}},"kind":"wow"}"#);
        assert_eq!(plain, of(r#" {"kind":"w\u006fw", "meta":{"b":{"d":2.50,"c":[1,"x",null]},"a":1}} "#));
        let names: Vec<&str> = plain.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["body.kind", "body.meta", "body.meta.a", "body.meta.b", "the call"]);
        let other = prints("pepper", "/call", br#"{"kind":"wow"}"#, PARTS_MAX).unwrap();
        assert!(plain.iter().all(|one| !other.contains(one)), "nobody compares it with a guess");
    }

    #[test]
    fn whatever_differs_is_seen() {
        let values = [
            "null",
            "false",
            "true",
            "0",
            "1",
            "-1",
            "1.0",
            "\"\"",
            "\"1\"",
            "[]",
            "[0]",
            "[0,0]",
            "[[0],0]",
            "[0,[0]]",
            "{}",
            r#"{"a":0}"#,
            r#"{"a":0,"b":0}"#,
            r#"{"a":{"b":0}}"#,
            r#"{"b":{"a":0}}"#,
        ];
        for one in values {
            for other in values {
                let body = |value: &str| of(&format!(r#"{{"meta":{{"x":{value}}}}}"#));
                assert_eq!(body(one) == body(other), one == other, "{one} and {other}");
            }
        }
        assert_ne!(of(r#"{"meta":{}}"#), of("{}"));
    }

    #[test]
    fn a_field_of_many_parts_is_one_whatever_their_order() {
        let meta = |keys: &mut dyn Iterator<Item = usize>| {
            let keys: Vec<String> = keys.map(|key| format!(r#""k{key}":{key}"#)).collect();
            of(&format!(r#"{{"meta":{{{}}}}}"#, keys.join(",")))
        };
        assert_eq!(meta(&mut (0..PARTS_MAX)).len(), 2 + PARTS_MAX);
        let many = meta(&mut (0..100_000));
        assert_eq!(many.len(), 2);
        assert_eq!(many, meta(&mut (0..100_000).rev()));
        assert_ne!(many, meta(&mut (1..100_001)));
    }

    #[test]
    fn the_name_of_a_part_is_left_out() {
        for (name, expected) in [
            ("the call", "the call"),
            ("body.meta", "body.meta"),
            ("body.meta.secret", "body.meta"),
            ("body.meta.a.b[0]", "body.meta"),
            ("body.commands[3]", "body.commands"),
            ("body.meta.", "body.meta"),
        ] {
            assert_eq!(field(name), expected, "{name}");
        }
    }
}
