//! Whether boards are ranked as they were filled. `dense` ranks count the different scores, which are kept only while a
//! board is declared so: with the other kind of rows in it, ranks would be wrong.

use tally_core::Catalog;
use tally_core::catalog::{BoardDef, Ties};
use tally_core::rows::{BoardKey, Key, Row};
use tally_core::time::Timestamp;
use tally_core::view::Wants;
use tally_engine::{BoardFrom, Engine, Range, StoreError};

use crate::Error;

/// Refuses a board whose `ties` became `dense`, or no longer are, since it got its members.
pub(crate) async fn refuse_changed<E: Engine>(engine: &E, catalog: &Catalog) -> Result<(), Error> {
    for def in catalog.counting.boards() {
        for season in seasons(engine, def).await? {
            let members = BoardKey { board: def.name.clone(), season, levels: false };
            let levels = BoardKey { levels: true, ..members.clone() };
            let (used, was_dense) = (has_rows(engine, members).await?, has_rows(engine, levels).await?);
            let is_dense = def.ties == Ties::Dense;
            if used && is_dense != was_dense {
                let (was, advice) = match is_dense {
                    true => ("not `dense` when it got its members, and now they are", "take `dense` back"),
                    false => ("`dense` when it got its members, and now they are not", "make them `dense` again"),
                };
                let name = &def.name;
                return Err(Error::Open(format!(
                    "the `ties` of the board `{name}` were {was}: ranks would be wrong; {advice}, or declare a board of \
                     another name"
                )));
            }
        }
    }
    Ok(())
}

/// When each of a board's seasons began; 0 for what it got while it had none.
async fn seasons<E: Engine>(engine: &E, def: &BoardDef) -> Result<Vec<Timestamp>, StoreError> {
    let wants = Wants::rows(vec![Key::Board(def.name.clone())]);
    let mut seasons = match engine.load(&wants).await?.rows.pop().flatten() {
        Some(Row::Board(seasons)) => seasons,
        _ => Vec::new(),
    };
    seasons.push(Timestamp(0));
    Ok(seasons)
}

async fn has_rows<E: Engine>(engine: &E, board: BoardKey) -> Result<bool, StoreError> {
    let range = Range::Board { board, from: BoardFrom::Rank(0) };
    Ok(!engine.scan(&range, 1).await?.items.is_empty())
}
