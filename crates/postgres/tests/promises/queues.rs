//! A queue on PostgreSQL: its tree moves on with it.

use tally_core::rows::{Key, Row, Seq, Ticket, TicketKey, TicketState};
use tally_core::view::View;
use tally_core::{Stamp, SubjectId, Timestamp};
use tally_engine::{Engine, Mark, Seen};

use crate::support::{Outsider, Store, name, shared, until};

/// Nobody comes back to where a queue has been, so what it leaves behind must go by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_queue_leaves_no_tree_behind() {
    const TICKETS: u64 = 12_000;
    let url = shared("");
    let store = Store::open(&url).await;
    let outside = Outsider::of(&url).await;
    let ticket = |state| {
        let who = SubjectId::new("who").unwrap();
        Row::Ticket(Ticket::new(who, "", state, Timestamp(1), Timestamp(2)))
    };
    let commit = async |numbers: std::ops::Range<u64>, before: Option<Row>, after: Option<Row>| {
        let mut view = View::default();
        for seq in numbers {
            let key = Key::Ticket(TicketKey { room: name("sale"), seq: Seq::Given(seq) });
            view.fill_row(key.clone(), before.clone());
            view.set(key, after.clone()).unwrap();
        }
        let seen = Seen { mark: Mark::default(), view: &view };
        store.engine.commit(seen, &view.changes(Stamp(1))).await.unwrap();
    };
    let nodes =
        async |height| outside.number(&format!("SELECT count(*) FROM order_node WHERE height = {height}")).await;
    let (waiting, ready) = (ticket(TicketState::Waiting), ticket(TicketState::Ready));
    for first in (0..TICKETS).step_by(500) {
        commit(first..first + 500, None, Some(waiting.clone())).await;
    }
    until("it is cut", async || {
        commit(TICKETS..TICKETS + 1, None, Some(waiting.clone())).await;
        commit(TICKETS..TICKETS + 1, Some(waiting.clone()), None).await;
        (nodes(0).await > 90 && nodes(1).await > 1).then_some(())
    })
    .await;
    for first in (0..TICKETS).step_by(50) {
        commit(first..first + 50, Some(waiting.clone()), Some(ready.clone())).await;
    }
    until("it is joined", async || {
        commit(TICKETS..TICKETS + 1, None, Some(waiting.clone())).await;
        commit(TICKETS..TICKETS + 1, Some(waiting.clone()), None).await;
        (nodes(0).await < 9 && nodes(1).await < 4).then_some(())
    })
    .await;
    assert_eq!(outside.number("SELECT sum(n) FROM order_node").await, 0);
}
