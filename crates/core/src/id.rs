//! Names and ids: checked once, on the way in; cheap to clone afterwards.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, de};

use crate::error::Refusal;
use crate::limits::{ID_BYTES_MAX, NAME_BYTES_MAX, TYPE_BYTES_MAX};

/// Declares a string that is only ever built through its check.
macro_rules! checked_text {
    ($(#[$doc:meta])* $name:ident, $check:path) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks the text and takes it.
            pub fn new(text: &str) -> Result<Self, Refusal> {
                $check(text)?;
                Ok(Self(text.into()))
            }

            /// The text itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The text itself, shared.
            pub fn shared(&self) -> Arc<str> {
                self.0.clone()
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_str(Checked($name::new))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }
    };
}

checked_text!(
    /// The name of a relation or of a kind within it: `[a-z][a-z0-9_-]{0,63}`.
    Name,
    check_name
);
checked_text!(
    /// What is acted on, `type:id`, such as `post:42`.
    ObjectId,
    check_object
);
checked_text!(
    /// Who acts: an opaque user id.
    SubjectId,
    check_subject
);
checked_text!(
    /// What is counted or limited: any text, such as an object, a day or an address.
    KeyId,
    check_key
);

impl SubjectId {
    /// Stands for whoever asks, in paths and in bodies: nobody's name, as nobody could be reached under it.
    pub const ME: &str = "me";

    /// Whether it is that word.
    pub fn is_me(&self) -> bool {
        self.as_str() == Self::ME
    }
}

impl ObjectId {
    /// The part before the colon.
    pub fn kind(&self) -> &str {
        self.0.split_once(':').map_or("", |(kind, _)| kind)
    }

    /// The part after the first colon.
    pub fn id(&self) -> &str {
        self.0.split_once(':').map_or("", |(_, id)| id)
    }
}

/// Reads a text straight into its checked form, without a `String` on the way: batches hold thousands.
struct Checked<T>(fn(&str) -> Result<T, Refusal>);

impl<T> de::Visitor<'_> for Checked<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.0)(text).map_err(E::custom)
    }
}

fn is_word(text: &str, bytes_max: usize) -> bool {
    let mut bytes = text.bytes();
    text.len() <= bytes_max
        && bytes.next().is_some_and(|b| b.is_ascii_lowercase())
        && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
}

fn check_name(text: &str) -> Result<(), Refusal> {
    if is_word(text, NAME_BYTES_MAX) {
        return Ok(());
    }
    Err(Refusal::bad_request(format!(
        "a name is a lower-case letter followed by up to {} of a-z, 0-9, _ and -",
        NAME_BYTES_MAX - 1
    )))
}

/// Ids may hold anything but control characters. Stores rely on it: a zero byte ends an id
/// inside a composite key, so `a_b` with `c` never meets `a` with `b_c`.
fn check_id(text: &str, what: &str) -> Result<(), Refusal> {
    if text.is_empty() || text.len() > ID_BYTES_MAX {
        return Err(Refusal::bad_request(format!("{what} has 1 to {ID_BYTES_MAX} bytes")));
    }
    // Only ASCII and the two-byte block behind it hold control characters.
    if text.bytes().any(|b| b < 0x20 || b == 0x7f || b == 0xc2) && text.chars().any(char::is_control) {
        return Err(Refusal::bad_request(format!("{what} has no control characters")));
    }
    Ok(())
}

fn check_subject(text: &str) -> Result<(), Refusal> {
    check_id(text, "a subject")
}

fn check_key(text: &str) -> Result<(), Refusal> {
    check_id(text, "a key")
}

fn check_object(text: &str) -> Result<(), Refusal> {
    match text.split_once(':') {
        Some((kind, id)) if is_word(kind, TYPE_BYTES_MAX) => check_id(id, "an object's id"),
        _ => Err(Refusal::bad_request("an object is written type:id, such as post:42; the type is a lower-case word")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_checked_as_the_contract_says() {
        let long = "é".repeat(128);
        for good in ["post:42", "post:a_b", "post:a:b", "post:/%/", "p:👍", &format!("post:{long}")] {
            assert!(ObjectId::new(good).is_ok(), "{good}");
        }
        for bad in ["", "post", "post:", ":42", "Post:1", "9p:1", "post:\n", "post:\u{85}", &format!("post:{long}x")] {
            assert!(ObjectId::new(bad).is_err(), "{bad:?}");
        }
        assert!(SubjectId::new("a\u{0}b").is_err());
        assert!(SubjectId::new(&long).is_ok());
        assert!(Name::new(&format!("a{}", "b".repeat(63))).is_ok());
        assert!(Name::new(&format!("a{}", "b".repeat(64))).is_err());
        assert!(Name::new("Like").is_err());
    }
}
