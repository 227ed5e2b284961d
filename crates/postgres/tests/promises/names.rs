//! Who was forgotten and what was deleted is named nowhere: not in any column of any table.

use tally_core::command::{Add, Attend, ChangeScore, Command, DeleteObject, Forget, Observe, ScoreChange, Sweep};
use tally_core::reply::Reply;
use tally_core::rows::{EdgeKey, JobId, TotalKey};
use tally_core::time::Stamp;
use tally_core::{KeyId, ObjectId, SubjectId};

use crate::support::{Outsider, Store, name, relate, shared, total, until};

/// The tables in which a name stands.
async fn tables_with(outside: &Outsider, name: &str) -> Vec<String> {
    let tables = "SELECT c.relname::text FROM pg_class c
                  WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' ORDER BY 1";
    let mut found = Vec::new();
    for row in outside.0.query(tables, &[]).await.unwrap() {
        let table: String = row.get(0);
        let rows = format!("SELECT count(*) FROM {table} t WHERE t::text LIKE '%{name}%'");
        if outside.number(&rows).await > 0 {
            found.push(table);
        }
    }
    found
}

/// Begins a job, and carries it to its end.
async fn carry_out(store: &Store, command: Command, edges: Vec<EdgeKey>) {
    let begun = store.apply(command).await.unwrap();
    let Reply::Job(begun) = begun else { panic!("{begun:?} is not a job") };
    let (job, before) = (JobId::parse(&begun.job).unwrap(), Stamp(u64::MAX));
    for edges in [edges, Vec::new()] {
        let swept = store.apply(Command::from(Sweep { job, before, edges })).await.unwrap();
        let Reply::Job(swept) = swept else { panic!("{swept:?} is not a job") };
        if swept.state == "done" {
            return;
        }
    }
    panic!("the job does not end");
}

fn edge(to: &str, relation: &str, who: &str) -> EdgeKey {
    EdgeKey { object: ObjectId::new(to).unwrap(), relation: name(relation), subject: SubjectId::new(who).unwrap() }
}

/// Also one with whom a node of the board's tree begins.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_names_a_subject_that_was_forgotten() {
    let url = shared("");
    let store = Store::open(&url).await;
    let outside = Outsider::of(&url).await;
    let score = |member: &str| {
        let (board, member) = (name("points"), SubjectId::new(member).unwrap());
        Command::from(ChangeScore { board, member, change: ScoreChange::To(5) })
    };
    store.apply(score("first")).await.unwrap();
    // Many at once, as a restored backup would look whose tree is one node.
    outside
        .run(
            "INSERT INTO score SELECT 'points', 'epoch', false, 'one-' || n || '-of', n, n FROM generate_series(1, 9000) n;
             UPDATE order_node SET n = (SELECT count(*) FROM score)",
        )
        .await;
    store.apply(score("second")).await.unwrap();
    let nodes = "SELECT count(*) FROM order_node WHERE height = 1";
    until("the tree is cut", async || (outside.number(nodes).await > 1).then_some(())).await;
    // The first member of an upper node is the first of a lower one too.
    let first = "SELECT s.score FROM score s JOIN order_node n ON n.down = ~s.score AND n.reached = s.reached_us
                 WHERE n.height = 1 LIMIT 1";
    let gone = format!("one-{}-of", outside.number(first).await);
    let day = Some("2026-02-28".parse().unwrap());
    let subject = SubjectId::new(&gone).unwrap();
    store
        .apply(Command::from(Attend { sheet: name("daily"), day, subject: subject.clone(), present: true }))
        .await
        .unwrap();
    for relation in ["like", "shelf"] {
        store.apply(relate(relation, "post:1", &gone)).await.unwrap();
    }
    assert_eq!(tables_with(&outside, &gone).await, ["attendee", "edge", "score", "subject_total"]);
    let edges = ["like", "shelf"].map(|relation| edge("post:1", relation, &gone)).to_vec();
    carry_out(&store, Command::from(Forget { subject }), edges).await;
    assert_eq!(tables_with(&outside, &gone).await, Vec::<String>::new());
    store.assert_sound().await;
}

/// Also its totals that were spread over several rows, each of which may be anything.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_names_an_object_that_was_deleted() {
    let url = shared("");
    let store = Store::open(&url).await;
    let outside = Outsider::of(&url).await;
    let gone = ObjectId::new("post:gone").unwrap();
    let fans: Vec<String> = (0..40).map(|fan| format!("fan-{fan}")).collect();
    store.like("post:gone", "first").await.unwrap();
    store.engine.resize(&total("post:gone"), 10).await.unwrap();
    for fan in &fans {
        store.like("post:gone", fan).await.unwrap();
        store.like("post:stays", fan).await.unwrap();
    }
    let key = KeyId::new("post:gone").unwrap();
    store.apply(Command::from(Add { counter: name("views"), key: key.clone(), by: 3 })).await.unwrap();
    let members = vec!["fan-1".to_owned()];
    store.apply(Command::from(Observe { unique: name("dau"), key, members })).await.unwrap();
    assert_eq!(tables_with(&outside, "post:gone").await, ["edge", "object_total", "unique_count"]);
    let edges = fans.iter().map(String::as_str).chain(["first"]).map(|fan| edge("post:gone", "like", fan)).collect();
    carry_out(&store, Command::from(DeleteObject { object: gone.clone() }), edges).await;
    assert_eq!(tables_with(&outside, "post:gone").await, Vec::<String>::new());
    // What this server believed of its rows does not keep it from beginning anew.
    for fan in &fans[..3] {
        store.like("post:gone", fan).await.unwrap();
    }
    assert_eq!(store.count("post:gone").await.unwrap(), 3);
    assert_eq!(store.count("post:stays").await.unwrap(), 40);
    store.engine.resize(&TotalKey::Object { object: gone, relation: name("like") }, 1).await.unwrap();
    store.assert_sound().await;
}
