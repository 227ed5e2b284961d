//! What was ever declared. Forgetting looks there too: what is declared again must not bring anybody back.

use std::collections::BTreeSet;

use crate::catalog::Catalog;
use crate::decide::Context;
use crate::reply::Done;
use crate::rows::{Key, Names, Row};
use crate::view::{Stop, View};

/// Writes down what is declared now beside what was.
pub(super) fn declare(context: &Context<'_>, view: &mut View) -> Result<Done, Stop> {
    let before = written(view)?;
    let after = with_declared(before.clone(), context.catalog);
    let changed = after != before;
    if changed {
        view.set_uncounted(Key::Names, Some(Row::Names(after)))?;
    }
    Ok(Done { changed })
}

/// What is declared, and what was.
pub(crate) fn all(context: &Context<'_>, view: &mut View) -> Result<Names, Stop> {
    Ok(with_declared(written(view)?, context.catalog))
}

fn written(view: &mut View) -> Result<Names, Stop> {
    Ok(view.kept(&Key::Names, Row::into_names)?.unwrap_or_default())
}

fn with_declared(names: Names, catalog: &Catalog) -> Names {
    names.and(Names {
        counters: catalog.counters().map(|def| def.name.clone()).collect(),
        uniques: catalog.uniques().map(|def| def.name.clone()).collect(),
        sheets: catalog.sheets().map(|def| def.name.clone()).collect(),
        boards: catalog.boards().map(|def| def.name.clone()).collect(),
        // Rooms say themselves that they are there.
        rooms: BTreeSet::new(),
    })
}
