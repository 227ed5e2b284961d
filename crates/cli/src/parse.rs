//! From words of the command line to checked values, so that a wrong one is wrong usage.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use tally::core::meta::Meta;
use tally::core::rows::Role;
use tally::core::{Day, Timestamp};

/// A JSON object.
pub(super) fn meta(text: &str) -> Result<Meta, String> {
    serde_json::from_str(text).map_err(|error| format!("not a JSON object such as '{{\"memo\":\"later\"}}': {error}"))
}

/// What a key may do.
pub(super) fn role() -> impl TypedValueParser<Value = Role> {
    PossibleValuesParser::new(["read", "service", "admin"]).map(|word| match word.as_str() {
        "admin" => Role::Admin,
        "service" => Role::Service,
        _ => Role::Read,
    })
}

/// A calendar day.
pub(super) fn day(text: &str) -> Result<Day, String> {
    text.parse().map_err(|error: tally::core::Refusal| error.to_string())
}

/// When a season began.
pub(super) fn time(text: &str) -> Result<Timestamp, String> {
    serde_json::from_value(text.into()).map_err(|_| "a time is written as 2026-01-31T00:00:00Z".to_owned())
}
