//! From words of the command line to checked values, so that a wrong one is wrong usage.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use tally::core::meta::Meta;
use tally::core::rows::Role;

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
