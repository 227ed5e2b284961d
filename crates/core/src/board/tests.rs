//! Boards.

use serde_json::json;

use crate::command::{Command, Forget, RankAnew, Sweep};
use crate::reply::{Done, Reply};
use crate::rows::{Key, Row};
use crate::tests::counting::{code, name, told, world};
use crate::time::Stamp;

/// However many there have been.
#[test]
fn forgetting_finds_the_scores_of_every_season() {
    let mut world = world();
    for season in 1..=1_200 {
        world.now_ms = season * 60_000;
        told(&mut world, json!({"op": "score", "board": "round", "member": "bob", "score": 5}));
        if season % 100 == 1 {
            told(&mut world, json!({"op": "score", "board": "round", "member": "ann", "score": 5}));
        }
    }
    let forget = Command::from(Forget { subject: crate::SubjectId::new("ann").unwrap() });
    let Ok(Reply::Job(job)) = world.apply(forget, None).reply else { panic!() };
    let job = crate::rows::JobId::parse(&job.job).unwrap();
    let sweep = Command::from(Sweep { job, before: Stamp(u64::MAX), edges: Vec::new() });
    let Ok(Reply::Job(swept)) = world.apply(sweep, None).reply else { panic!() };
    assert!(swept.finished_at.is_some());
    let of_ann = |key: &&Key| matches!(key, Key::Score(key) if key.member.as_str() == "ann");
    assert_eq!(world.rows.keys().filter(of_ann).count(), 0);
}

#[test]
fn a_board_begins_anew_with_its_season_and_keeps_the_best() {
    let mut world = world();
    let score = |to: i64| json!({"op": "score", "board": "round", "member": "ann", "score": to});
    world.now_ms = 60_000;
    assert_eq!(told(&mut world, score(5))["score"], 5);
    let worse = told(&mut world, score(3));
    assert_eq!((&worse["score"], &worse["changed"]), (&json!(5), &json!(false)));
    assert_eq!(code(&mut world, json!({"op": "score", "board": "round", "member": "ann", "by": 1})), "bad_request");
    world.now_ms = 120_000;
    let anew = told(&mut world, score(3));
    assert_eq!((&anew["score"], &anew["season"]), (&json!(3), &json!("1970-01-01T00:02:00.000Z")));
    let seasons = world.rows.get(&Key::Board(name("round"))).cloned();
    assert!(matches!(&seasons, Some(Row::Board(board)) if board.seasons.len() == 2), "{seasons:?}");
}

#[test]
fn scores_stay_within_what_every_store_can_hold() {
    let mut world = world();
    let most = crate::limits::SCORE_MAX;
    let set = |to: i64| json!({"op": "score", "board": "points", "member": "ann", "score": to});
    assert_eq!(code(&mut world, set(most + 1)), "bad_request");
    assert_eq!(told(&mut world, set(most))["score"], most);
    assert_eq!(code(&mut world, json!({"op": "score", "board": "points", "member": "ann", "by": 1})), "conflict");
    assert_eq!(told(&mut world, set(-most))["score"], -most);
}

#[test]
fn a_board_is_ranked_in_the_way_in_which_it_was_filled_whatever_a_server_was_told() {
    let mut world = world();
    let score = |board: &str, member: &str| json!({"op": "score", "board": board, "member": member, "score": 5});
    for board in ["points", "dense"] {
        told(&mut world, score(board, "ann"));
        // As if another server had been told otherwise.
        let row = world.rows.get_mut(&Key::Board(name(board))).unwrap();
        let Row::Board(known) = row else { panic!("{row:?}") };
        assert_eq!(known.dense, board == "dense");
        known.dense = !known.dense;
        assert_eq!(code(&mut world, score(board, "bob")), "conflict");
        let anew = Command::from(RankAnew { board: name(board), dense: board == "dense" });
        assert_eq!(world.apply(anew.clone(), None).reply, Ok(Reply::Done(Done { changed: true })));
        assert_eq!(world.apply(anew, None).reply, Ok(Reply::Done(Done { changed: false })));
        told(&mut world, score(board, "bob"));
    }
}
