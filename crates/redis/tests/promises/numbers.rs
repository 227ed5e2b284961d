//! Numbers that are given at a commit which comes twice or late, or is left by its server.

use std::sync::{Arc, Mutex};

use tally_core::SubjectId;
use tally_core::room::rows::queue;
use tally_core::rows::{Changes, Key, Row, Seq, SequenceKey, Ticket, TicketKey, TicketState};
use tally_core::time::{Stamp, Timestamp};
use tally_core::view::{View, Wants};
use tally_engine::{CommitError, Engine, Mark, Seen};
use tally_redis::Redis;
use tally_testing::{Cluster, ClusterOptions, Cut};

use crate::late::{Heard, dead_server, open_keys, send};
use crate::lost::{is_commit, send_late};
use crate::network::proxied;
use crate::support::{blocking, engine, name, until};

/// These join, each in a room, in one commit. Gives the number of each.
async fn join<E: Engine>(engine: &E, who: &[(&str, &str)]) -> Result<Vec<u64>, CommitError> {
    let (mut view, mut taken) = (View::default(), Vec::new());
    for (room, who) in who {
        let seq = view.take_number(&queue(&name(room)));
        let who = SubjectId::new(who).unwrap();
        let row = Ticket::new(who, "t", TicketState::Waiting, Timestamp(1), Timestamp(2));
        view.set(Key::Ticket(TicketKey { room: name(room), seq }), Some(Row::Ticket(row))).unwrap();
        taken.push((queue(&name(room)), seq));
    }
    let changes = view.changes(Stamp(1));
    let committed = engine.commit(Seen { mark: Mark::default(), view: &view }, &changes).await?;
    let of = |sequence: &SequenceKey| changes.numbers.iter().position(|(taken, _)| taken == sequence).unwrap();
    Ok(taken.iter().map(|(sequence, seq)| seq.given(committed.numbers[of(sequence)])).collect())
}

/// Who has the tickets from 1 on, and how many are given.
async fn queue_of<E: Engine>(engine: &E, room: &str) -> (Vec<String>, u64) {
    let ticket = |seq| Key::Ticket(TicketKey { room: name(room), seq: Seq::Given(seq) });
    let keys = (1..40).map(ticket).chain([queue(&name(room)).key()]).collect();
    let mut rows = engine.load(&Wants::rows(keys)).await.unwrap().rows;
    let last = SequenceKey::last(rows.pop().unwrap().as_ref());
    let whose = |row| match row {
        Some(Row::Ticket(ticket)) => Some(ticket.subject.as_str().to_owned()),
        _ => None,
    };
    (rows.into_iter().map(whose).take_while(Option::is_some).flatten().collect(), last)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_arrives_twice_is_told_the_same_numbers() {
    let (proxy, url, direct) = proxied("");
    let (near, other) = (engine(&url), engine(&direct));
    near.prepare().await.unwrap();
    assert_eq!(join(&*near, &[("sale", "ann")]).await, Ok(vec![1]));
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keep = kept.clone();
    proxy.cut_when(Cut::Before, move |direction, bytes| {
        if is_commit(direction, bytes) {
            keep.lock().unwrap().extend_from_slice(bytes);
        }
        false
    });
    assert_eq!(join(&*near, &[("sale", "bob"), ("sale", "eve")]).await, Ok(vec![2, 3]));
    proxy.pass();
    assert_eq!(join(&*other, &[("sale", "dan")]).await, Ok(vec![4]));
    let kept = kept.lock().unwrap().clone();
    for _ in 0..2 {
        let answer = send_late(&direct, &kept);
        assert!(answer.contains("done") && answer.contains("\r\n3\r\n"), "the last of its numbers is 3: {answer}");
    }
    let expected = ["ann", "bob", "eve", "dan"].map(str::to_owned).to_vec();
    assert_eq!(queue_of(&*other, "sale").await, (expected, 4));
}

/// A Cluster, a server on it, and everything that its nodes are asked.
async fn overheard() -> (Cluster, Arc<Redis>, Vec<Heard>) {
    let options = ClusterOptions { node_timeout_ms: 30_000, ..ClusterOptions::default() };
    let cluster = blocking(|| Cluster::start(options)).unwrap();
    let engine = engine(&cluster.url());
    engine.prepare().await.unwrap();
    let heard = (0..3).map(|node| Heard::at(cluster.node(node).address())).collect();
    (cluster, engine, heard)
}

/// The node of a share and its words, of the only commit so far.
async fn heard_one(heard: &[Heard], mode: &str) -> (usize, Vec<String>) {
    until("it was heard", async || {
        heard.iter().enumerate().find_map(|(node, heard)| Some((node, heard.commits(mode).pop()?)))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn shares_that_come_late_take_no_numbers_and_a_commit_tells_the_same() {
    let (cluster, engine, heard) = overheard().await;
    assert_eq!(join(&*engine, &[("sale", "ann"), ("gate", "bob"), ("sale", "eve")]).await, Ok(vec![1, 1, 2]));
    let ((share_at, share), (decided_at, decided)) =
        (heard_one(&heard, "prepare").await, heard_one(&heard, "commit").await);
    for _ in 0..2 {
        assert_eq!(send(&cluster, share_at, &share), "cancelled");
        let answer = send(&cluster, decided_at, &decided);
        assert!(["done\n0\n2", "done\n0\n1"].contains(&answer.as_str()), "{answer}");
    }
    assert_eq!(open_keys(&cluster), 0);
    assert_eq!(queue_of(&*engine, "sale").await, (vec!["ann".into(), "eve".into()], 2));
    assert_eq!(queue_of(&*engine, "gate").await, (vec!["bob".into()], 1));
}

/// A share of a server that is dead, with a number of a room where one has joined already. Nobody has sent it yet.
struct Left {
    cluster: Cluster,
    engine: Arc<Redis>,
    node: usize,
    share: Vec<String>,
    record: String,
    room: &'static str,
}

impl Left {
    async fn with_a_number() -> Self {
        let (cluster, engine, heard) = overheard().await;
        assert_eq!(join(&*engine, &[("sale", "ann"), ("gate", "ann")]).await, Ok(vec![1, 1]));
        let (node, words) = heard_one(&heard, "prepare").await;
        let share: Vec<String> = words.iter().map(|word| dead_server(word, &words).replace("ann", "dead")).collect();
        let record = share[5 + share[2].parse::<usize>().unwrap()].clone();
        let room = if words.iter().any(|word| word.contains("{gate}")) { "gate" } else { "sale" };
        Self { cluster, engine, node, share, record, room }
    }
}

/// Says of a commit that it was done.
fn decide(cluster: &Cluster, record: &str) {
    let at = cluster.master_of_slot(cluster.slot_of(record).unwrap()).unwrap();
    blocking(|| cluster.node(at).ask(&["SET", record, "done"])).unwrap();
}

/// Its answer was lost, so it is sent again: it is kept once, and tells the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_share_that_is_sent_again_is_kept_once_and_tells_the_same() {
    let Left { cluster, engine, node, share, record, room } = Left::with_a_number().await;
    for _ in 0..3 {
        assert_eq!(send(&cluster, node, &share), "done\n0\n1", "the last number before it");
        assert_eq!(open_keys(&cluster), 1);
    }
    decide(&cluster, &record);
    assert_eq!(join(&*engine, &[(room, "bob")]).await, Ok(vec![3]), "behind the one that it took");
    assert_eq!(open_keys(&cluster), 0);
    assert_eq!(send(&cluster, node, &share), "cancelled", "it is over");
    let expected = ["ann", "dead", "bob"].map(str::to_owned).to_vec();
    assert_eq!(queue_of(&*engine, room).await, (expected, 3));
}

/// A server died when it had prepared a share with a sequence: who comes after it waits, and is given the number of a commit that was
/// called off; of one that was done it is given the next.
#[tokio::test(flavor = "multi_thread")]
async fn a_share_that_a_server_left_is_called_off_without_a_hole_or_ended_with_its_numbers() {
    let Left { cluster, engine, node, share: dead, record, room } = Left::with_a_number().await;
    assert_eq!(send(&cluster, node, &dead), "done\n0\n1", "the last number before it");
    assert_eq!(open_keys(&cluster), 1);
    assert_eq!(join(&*engine, &[(room, "bob")]).await, Ok(vec![2]), "the dead one is called off");
    assert_eq!(open_keys(&cluster), 0);

    let done: Vec<String> = dead.iter().map(|word| word.replace("dead-", "gone-").replace(":dead", ":gone")).collect();
    let record = record.replace("dead", "gone");
    assert_eq!(send(&cluster, node, &done), "done\n0\n2");
    decide(&cluster, &record);
    // Nobody carries this one, so that nothing but the sequence itself is in its way.
    let changes = Changes { numbers: vec![(queue(&name(room)), 1)], ..Changes::default() };
    let taken = engine.commit(Seen { mark: Mark::default(), view: &View::default() }, &changes).await.unwrap();
    assert_eq!(taken.numbers, [4], "the other one is ended first");
    assert_eq!(open_keys(&cluster), 0);
    let expected = ["ann", "bob", "dead"].map(str::to_owned).to_vec();
    assert_eq!(queue_of(&*engine, room).await, (expected, 4));
}
