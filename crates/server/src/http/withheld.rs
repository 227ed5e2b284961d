//! The answer to a write tells nothing that its caller may not read: neither the count of a relation that is nobody's to
//! read, nor what an edge that was there already holds.

use serde::Serialize;
use serde_json::{Map, Value};
use tally::Told;
use tally::core::catalog::ReadPolicy;
use tally::core::reply::{EdgeReply, Reply};
use tally::core::rows::EdgeKey;

use super::request::Caller;

/// A reply as its caller sees it.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Shown {
    /// All of it.
    Whole(Reply),
    /// Without what is withheld.
    Part(Map<String, Value>),
}

/// Leaves out of each what the caller may not read.
pub async fn withhold<'a>(caller: &Caller, all: impl Iterator<Item = &'a mut Shown>) {
    let mut asked: Vec<(&mut Shown, Told)> = Vec::new();
    for shown in all {
        let Shown::Whole(Reply::Relation(edge)) = shown else { continue };
        let Ok(def) = caller.app.tally.catalog().relation(&edge.relation) else { continue };
        if def.read == ReadPolicy::None && caller.own_subject().is_some() {
            *shown = part(edge);
        } else if def.when.read.is_some() {
            let (object, relation, subject) = (edge.object.clone(), edge.relation.clone(), edge.subject.clone());
            // As the answer shows it, which may be one that was remembered.
            let meta = edge.meta.clone().flatten();
            asked.push((shown, (EdgeKey { object, relation, subject }, meta)));
        }
    }
    if asked.is_empty() {
        return;
    }
    let (asked, told): (Vec<&mut Shown>, Vec<Told>) = asked.into_iter().unzip();
    // The write is done, so a store that cannot tell now is no reason to refuse it: nothing is told.
    let readable = caller.app.tally.readable(&told, &caller.facts()).await.unwrap_or_default();
    for (place, shown) in asked.into_iter().enumerate() {
        if let Shown::Whole(Reply::Relation(edge)) = shown
            && !readable.get(place).copied().unwrap_or(false)
        {
            *shown = part(edge);
        }
    }
}

fn part(edge: &EdgeReply) -> Shown {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(edge) else { return Shown::Part(Map::new()) };
    // What was changed may have been there for long.
    fields.remove("count");
    fields.remove("created_at");
    if !edge.changed {
        for field in ["kind", "meta"] {
            fields.remove(field);
        }
    }
    Shown::Part(fields)
}
