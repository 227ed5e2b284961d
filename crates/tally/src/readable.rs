//! Whether conditions let somebody read what is about to be told.

use std::collections::{BTreeMap, BTreeSet};

use tally_core::meta::Meta;
use tally_core::read::Sight;
use tally_core::relation::read::may_read;
use tally_core::rows::{EdgeKey, Key, Row};
use tally_core::view::Wants;
use tally_core::{Auth, Catalog, ObjectId, Stamp, Timestamp};
use tally_engine::Engine;

use crate::Error;
use crate::read::Reader;

/// An edge that somebody is about to be told of, with what is attached to it.
pub type Told = (EdgeKey, Option<Meta>);

/// Asks the condition of each: one load for all, at the time that it tells.
pub(crate) async fn readable<E: Engine>(
    engine: &E,
    catalog: &Catalog,
    told: &[Told],
    auth: &Auth,
    now: Timestamp,
) -> Result<Vec<bool>, Error> {
    let reader = Reader { engine, catalog, auth, now };
    let objects: BTreeSet<&ObjectId> = told.iter().map(|(edge, _)| &edge.object).collect();
    let wants = Wants::rows(objects.iter().map(|object| Key::Object((*object).clone())).collect());
    let loaded = reader.load_settled(&wants).await?;
    // As in every other read: where servers share a store, their own clocks decide nothing.
    let sight = Sight::new(catalog, auth, loaded.now.map_or(now, Stamp::time), &[]);
    let found: BTreeMap<&ObjectId, Option<Row>> = objects.into_iter().zip(loaded.rows).collect();
    let readable = |(edge, meta): &Told| {
        let object = found.get(&edge.object).and_then(|row| row.as_ref()?.object());
        let relation = catalog.relation(&edge.relation)?;
        may_read(relation, &edge.object, object, Some(&edge.subject), meta.as_ref(), &sight)
    };
    Ok(told.iter().map(|told| readable(told).is_ok()).collect())
}
