//! Whether boards are ranked as they were filled. `dense` ranks count the different scores, which are kept only while a
//! board is declared so: with the other kind of rows in it, ranks would be wrong.

use std::sync::Arc;

use tally_core::catalog::{BoardDef, Ties};
use tally_core::command::{Call, Command, RankAnew};
use tally_core::rows::{Board, BoardKey, Key, Row};
use tally_core::time::Timestamp;
use tally_core::view::Wants;
use tally_core::{Catalog, board};
use tally_engine::{Engine, OrderFrom, Range, Runner, StoreError};

use crate::Error;

/// Refuses a board whose `ties` became `dense`, or no longer are, since it got its members. Gives those that have none any
/// more: they may be ranked anew.
pub(crate) async fn refuse_changed<E: Engine>(engine: &E, catalog: &Catalog) -> Result<Vec<Arc<BoardDef>>, Error> {
    let mut emptied = Vec::new();
    for def in catalog.boards() {
        let Some(known) = known(engine, def).await? else { continue };
        if board::check_ties(def, Some(&known)).is_ok() {
            continue;
        }
        for season in seasons(&known) {
            if has_rows(engine, def, season, false).await? {
                return Err(refused(def));
            }
        }
        emptied.push(def.clone());
    }
    Ok(emptied)
}

/// Ranks boards without members as they are declared now. From here on other servers are refused that would do it otherwise;
/// if one of them came first, it stays as it was.
pub(crate) async fn rank_anew<E: Engine>(
    engine: &E,
    runner: &Runner,
    emptied: Vec<Arc<BoardDef>>,
) -> Result<(), Error> {
    for def in emptied {
        let dense = def.ties == Ties::Dense;
        let say = async |dense| {
            let command = Command::from(RankAnew { board: def.name.clone(), dense });
            runner.apply(Call::system(command)).await.map_err(Error::from)?.reply.map_err(Error::from)
        };
        say(dense).await?;
        for season in known(engine, &def).await?.iter().flat_map(seasons) {
            let has_levels = has_rows(engine, &def, season, true).await?;
            if has_rows(engine, &def, season, false).await? && has_levels != dense {
                say(!dense).await?;
                return Err(refused(&def));
            }
        }
    }
    Ok(())
}

fn refused(def: &BoardDef) -> Error {
    let (name, is_dense) = (&def.name, def.ties == Ties::Dense);
    let (was, advice) = match is_dense {
        true => ("not `dense` when it got its members, and now they are", "take `dense` back"),
        false => ("`dense` when it got its members, and now they are not", "make them `dense` again"),
    };
    Error::Open(format!(
        "the `ties` of the board `{name}` were {was}: ranks would be wrong; {advice}, or declare a board of another name"
    ))
}

async fn known<E: Engine>(engine: &E, def: &BoardDef) -> Result<Option<Board>, StoreError> {
    let wants = Wants::rows(vec![Key::Board(def.name.clone())]);
    Ok(match engine.load(&wants).await?.rows.pop().flatten() {
        Some(Row::Board(known)) => Some(known),
        _ => None,
    })
}

/// When each of a board's seasons began; 0 for what it got while it had none.
fn seasons(known: &Board) -> Vec<Timestamp> {
    known.seasons.iter().copied().chain([Timestamp(0)]).collect()
}

async fn has_rows<E: Engine>(engine: &E, def: &BoardDef, season: Timestamp, levels: bool) -> Result<bool, StoreError> {
    let board = BoardKey { board: def.name.clone(), season, levels };
    let range = Range::Order { order: board.into(), from: OrderFrom::Rank(0) };
    Ok(!engine.scan(&range, 1).await?.items.is_empty())
}
