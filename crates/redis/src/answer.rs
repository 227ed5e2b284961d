//! Reading what Redis answers.

use redis::Value;
use tally_engine::StoreError;

use crate::rows::unreadable;

pub(crate) fn items(value: Value) -> Result<Vec<Value>, StoreError> {
    match value {
        Value::Array(items) | Value::Set(items) => Ok(items),
        Value::Nil => Ok(Vec::new()),
        other => Err(unreadable(&format!("{other:?}"))),
    }
}

pub(crate) fn text(value: Value) -> Result<Option<String>, StoreError> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes).map(Some).map_err(|error| unreadable(&error.to_string())),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Ok(Some(text)),
        Value::Int(number) => Ok(Some(number.to_string())),
        Value::Okay => Ok(Some("OK".into())),
        Value::Nil => Ok(None),
        other => Err(unreadable(&format!("{other:?}"))),
    }
}

/// A text that must be there.
pub(crate) fn some_text(value: Option<Value>) -> Result<String, StoreError> {
    text(value.unwrap_or(Value::Nil))?.ok_or_else(|| unreadable("nothing"))
}

pub(crate) fn number(value: Option<Value>) -> Result<i64, StoreError> {
    match value {
        Some(Value::Int(number)) => Ok(number),
        other => {
            let text = some_text(other)?;
            text.parse().map_err(|_| unreadable(&text))
        }
    }
}

pub(crate) fn texts(value: Value) -> Result<Vec<String>, StoreError> {
    items(value)?.into_iter().map(|item| some_text(Some(item))).collect()
}
