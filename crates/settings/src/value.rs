//! The kinds of value that a setting may have, and how text becomes one.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::duration::{duration, duration_text};
use super::judge::Judge;

/// When an answered write is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// Before the answer: an answered write survives a power cut.
    Always,
    /// At most this long after the answer: a crash of the machine may lose this window.
    Every(Duration),
}

/// A text that neither a log nor an error ever repeats.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The text itself; for checking only.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("********")
    }
}

/// What a setting accepts.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// `IP:port`, or `localhost:port`.
    Address,
    /// A store's URL.
    Store,
    /// `"always"` or a duration.
    Sync,
    /// Any text but the empty one.
    Text,
    /// One text or a list of them.
    Texts,
    /// A secret: never shown again.
    Secret,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A whole number, both ends included.
    Integer(u64, u64),
    /// A duration with a unit, both ends included.
    Duration(Duration, Duration),
    /// On or off.
    Switch,
}

/// A value as someone wrote it, before its kind has judged it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Raw {
    /// A string of the file.
    Text(String),
    /// A whole number of the file; `None` when it does not fit.
    Integer(Option<i64>),
    /// A boolean of the file.
    Switch(bool),
    /// A list of strings of the file.
    Texts(Vec<String>),
    /// Anything else of the file, by the name of its type.
    Other(&'static str),
    /// A word of the environment or the command line, which have no types.
    Word(String),
}

/// A value that its kind has accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Of [`Kind::Address`].
    Address(SocketAddr),
    /// Of [`Kind::Sync`].
    Sync(Sync),
    /// Of [`Kind::Store`].
    Store {
        /// What opens it; it may carry a password.
        url: String,
        /// The same without it.
        shown: String,
    },
    /// Of [`Kind::Text`] and [`Kind::Word`].
    Text(String),
    /// Of [`Kind::Texts`].
    Texts(Vec<String>),
    /// Of [`Kind::Secret`].
    Secret(Secret),
    /// Of [`Kind::Integer`].
    Integer(u64),
    /// Of [`Kind::Duration`].
    Duration(Duration),
    /// Of [`Kind::Switch`].
    Switch(bool),
}

/// Why a kind refused a value, and what it would have taken.
pub(crate) struct Refused {
    pub(crate) what: String,
    pub(crate) hint: String,
}

impl Kind {
    /// Judges a value. The refusal never repeats a secret.
    pub(crate) fn accept(&self, raw: Raw, judge: &dyn Judge) -> Result<Value, Refused> {
        match (self, raw) {
            (Kind::Integer(min, max), Raw::Integer(Some(number))) => integer(number.into(), *min, *max),
            (Kind::Integer(min, max), Raw::Word(word)) => match word.trim().parse::<i128>() {
                Ok(number) => integer(number, *min, *max),
                Err(_) => Err(self.refuse(&format!("`{word}` is not a whole number"))),
            },
            (Kind::Integer(..), Raw::Integer(None)) => Err(self.refuse("the number is too large")),
            (Kind::Switch, Raw::Switch(on)) => Ok(Value::Switch(on)),
            (Kind::Switch, Raw::Word(word)) => match word.as_str() {
                "true" | "1" | "on" | "yes" => Ok(Value::Switch(true)),
                "false" | "0" | "off" | "no" => Ok(Value::Switch(false)),
                _ => Err(self.refuse(&format!("`{word}` is neither true nor false"))),
            },
            (Kind::Texts, Raw::Texts(texts)) => self.texts(texts),
            (Kind::Texts, Raw::Text(text)) => self.texts(vec![text]),
            (Kind::Texts, Raw::Word(word)) => self.texts(word.split(',').map(|part| part.trim().to_owned()).collect()),
            (Kind::Integer(..) | Kind::Switch | Kind::Texts, raw) => {
                Err(self.refuse(&format!("{} where {} belongs", raw.type_name(), self.noun())))
            }
            (_, Raw::Text(text) | Raw::Word(text)) => self.text(text, judge),
            (_, raw) => Err(self.refuse(&format!("{} where {} belongs", raw.type_name(), self.noun()))),
        }
    }

    fn text(&self, text: String, judge: &dyn Judge) -> Result<Value, Refused> {
        match self {
            Kind::Address => address(&text)
                .map(Value::Address)
                .ok_or_else(|| self.refuse(&format!("`{text}` is not an address to listen on"))),
            Kind::Store => match judge.store(&text) {
                Ok(shown) => Ok(Value::Store { url: text, shown }),
                Err(why) => Err(self.refuse(&why)),
            },
            Kind::Sync if text == "always" => Ok(Value::Sync(Sync::Always)),
            Kind::Sync => match duration(&text) {
                Some(window) if !window.is_zero() && window <= SYNC_WINDOW_MAX => Ok(Value::Sync(Sync::Every(window))),
                _ => Err(self.refuse(&format!("`{text}` does not say when to sync"))),
            },
            Kind::Secret if text.is_empty() => Err(self.refuse("it is empty")),
            Kind::Secret => Ok(Value::Secret(Secret(text))),
            Kind::Word(words) if words.contains(&text.as_str()) => Ok(Value::Text(text)),
            Kind::Word(_) => Err(self.refuse(&format!("`{text}` is not a choice here"))),
            Kind::Duration(min, max) => match duration(&text) {
                Some(length) if (*min..=*max).contains(&length) => Ok(Value::Duration(length)),
                Some(_) => Err(self.refuse(&format!("`{text}` is out of range"))),
                None => Err(self.refuse(&format!("`{text}` is not a duration"))),
            },
            _ if text.trim().is_empty() => Err(self.refuse("it is empty")),
            _ => Ok(Value::Text(text)),
        }
    }

    fn texts(&self, texts: Vec<String>) -> Result<Value, Refused> {
        if texts.is_empty() || texts.iter().any(|text| text.trim().is_empty()) {
            return Err(self.refuse("it is empty"));
        }
        Ok(Value::Texts(texts))
    }

    fn refuse(&self, what: &str) -> Refused {
        Refused { what: what.to_owned(), hint: self.example() }
    }

    fn noun(&self) -> &'static str {
        match self {
            Kind::Integer(..) => "a whole number",
            Kind::Switch => "true or false",
            Kind::Texts => "a string or a list of strings",
            _ => "a string",
        }
    }

    fn example(&self) -> String {
        match self {
            Kind::Address => "write an IP and a port, such as \"127.0.0.1:7700\"".into(),
            Kind::Store => {
                "write \"embedded:PATH\", such as \"embedded:./tally-data\", \"postgres://user@host/database\" or \"redis://host\""
                    .into()
            }
            Kind::Sync => "write \"always\", or up to ten seconds such as \"100ms\"".into(),
            Kind::Text | Kind::Secret => "write a string, or leave it out".into(),
            Kind::Texts => "write \"one\", or [\"one\", \"another\"]".into(),
            Kind::Word(words) => format!("write one of {}", quoted(words)),
            Kind::Integer(min, max) => format!("write a number from {min} to {max}"),
            Kind::Duration(min, max) => format!(
                "write a number with ms, s, m, h or d, from \"{}\" to \"{}\"",
                duration_text(*min),
                duration_text(*max)
            ),
            Kind::Switch => "write true or false".into(),
        }
    }
}

impl Raw {
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Raw::Text(_) | Raw::Word(_) => "a string",
            Raw::Integer(_) => "a number",
            Raw::Switch(_) => "a boolean",
            Raw::Texts(_) => "a list",
            Raw::Other(name) => name,
        }
    }
}

impl fmt::Display for Value {
    /// As it would be written in the file; a secret as stars, and a store without its password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Address(address) => write!(f, "\"{address}\""),
            Value::Sync(Sync::Always) => f.write_str("\"always\""),
            Value::Sync(Sync::Every(window)) => write!(f, "\"{}\"", duration_text(*window)),
            Value::Store { shown, .. } => f.write_str(&quote(shown)),
            Value::Text(text) => f.write_str(&quote(text)),
            Value::Texts(texts) if texts.len() == 1 => f.write_str(&quote(&texts[0])),
            Value::Texts(texts) => {
                let texts: Vec<_> = texts.iter().map(|text| quote(text)).collect();
                write!(f, "[{}]", texts.join(", "))
            }
            Value::Secret(_) => f.write_str("\"********\""),
            Value::Integer(number) => write!(f, "{number}"),
            Value::Duration(length) => write!(f, "\"{}\"", duration_text(*length)),
            Value::Switch(on) => write!(f, "{on}"),
        }
    }
}

const SYNC_WINDOW_MAX: Duration = Duration::from_secs(10);

fn integer(number: i128, min: u64, max: u64) -> Result<Value, Refused> {
    match u64::try_from(number) {
        Ok(number) if (min..=max).contains(&number) => Ok(Value::Integer(number)),
        _ => Err(Kind::Integer(min, max).refuse(&format!("{number} is out of range"))),
    }
}

fn address(text: &str) -> Option<SocketAddr> {
    match text.strip_prefix("localhost:") {
        Some(port) => Some((Ipv4Addr::LOCALHOST, port.parse().ok()?).into()),
        None => text.parse().ok(),
    }
}

/// A TOML string.
pub(crate) fn quote(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Unjudged;

    #[test]
    fn kinds_accept_and_refuse() {
        let word = |text: &str| Raw::Word(text.into());
        let cases: &[(Kind, Raw, Option<&str>)] = &[
            (Kind::Address, word("localhost:80"), Some("\"127.0.0.1:80\"")),
            (Kind::Address, word("[::1]:80"), Some("\"[::1]:80\"")),
            (Kind::Address, word("7700"), None),
            (Kind::Address, word("example.org:80"), None),
            (Kind::Store, word("embedded:./x"), Some("\"embedded:./x\"")),
            (Kind::Sync, word("always"), Some("\"always\"")),
            (Kind::Sync, word("100ms"), Some("\"100ms\"")),
            (Kind::Sync, word("0ms"), None),
            (Kind::Sync, word("1h"), None),
            (Kind::Integer(1, 9), Raw::Integer(Some(9)), Some("9")),
            (Kind::Integer(1, 9), Raw::Integer(Some(0)), None),
            (Kind::Integer(1, 9), Raw::Integer(Some(-1)), None),
            (Kind::Integer(1, 9), Raw::Integer(None), None),
            (Kind::Integer(1, 9), Raw::Text("5".into()), None),
            (Kind::Integer(1, 9), word("5"), Some("5")),
            (Kind::Integer(1, 9), word("five"), None),
            (Kind::Word(&["text", "json"]), word("json"), Some("\"json\"")),
            (Kind::Word(&["text", "json"]), word("xml"), None),
            (Kind::Switch, word("true"), Some("true")),
            (Kind::Switch, word("maybe"), None),
            (Kind::Switch, Raw::Text("true".into()), None),
            (Kind::Texts, word("a, b"), Some("[\"a\", \"b\"]")),
            (Kind::Texts, Raw::Text("a, b".into()), Some("\"a, b\"")),
            (Kind::Texts, Raw::Texts(vec![]), None),
            (Kind::Text, Raw::Text(" ".into()), None),
            (Kind::Text, Raw::Other("a date"), None),
            (Kind::Secret, word("hush"), Some("\"********\"")),
        ];
        for (kind, raw, expected) in cases {
            let got = kind.accept(raw.clone(), &Unjudged);
            assert_eq!(got.ok().map(|v| v.to_string()).as_deref(), *expected, "{kind:?} {raw:?}");
        }
    }
}
