//! A job outlives the server that carries it.

use crate::database::{On, on, servers};
use crate::support::*;

const EDGES: usize = 6_000;

on!(another_server_finishes_the_job_of_one_that_died: postgres redis cluster);
async fn another_server_finishes_the_job_of_one_that_died(on: On) {
    let mut servers: [Server; 3] = servers(&on.new_store(), "").await;
    let client = servers[0].client();
    let commands: Vec<Value> = (0..EDGES)
        .map(|n| json!({"op": "relate", "relation": "like", "object": format!("post:{n}"), "subject": "alice"}))
        .collect();
    for commands in commands.chunks(1_000) {
        client.post("/v1/batch").json(&json!({"atomic": false, "commands": commands})).ok().await;
    }
    client.like("post:1", "bob").await;
    let job = client.delete("/v1/subjects/alice").status(202).await;
    let begun = |server: &Server| server.log().contains("job begins or goes on");
    let carrier = until("a server begins", async || servers.iter().position(begun)).await;
    servers[carrier].kill();
    assert!(!servers[carrier].log().contains("job done"), "it ended before it could be killed");

    let other = &servers[(carrier + 1) % 3];
    assert_eq!(other.client().job_done(&job).await["edges"], EDGES);
    // Others see the end a moment before the one who brought it about says so.
    let said = |server: &&Server| server.log().contains("job done");
    until("one server says that it is done", async || (servers.iter().filter(said).count() == 1).then_some(())).await;
    assert_eq!(other.client().objects("like", "alice").await, Vec::<String>::new());
    assert_eq!(other.client().count("like", "post:1").await, 1);
    assert_eq!(other.client().verified().await, 1);
}

on!(the_metrics_say_who_carries_jobs_and_how_the_store_is: postgres redis cluster);
async fn the_metrics_say_who_carries_jobs_and_how_the_store_is(on: On) {
    let servers: [Server; 2] = servers(&on.new_store(), "").await;
    let figure = async |server: &Server, name: &str| {
        let text = server.client().get("/metrics").send().await.text();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("tally_{name} ")).map(str::to_owned));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).parse::<i64>().unwrap()
    };
    until("one of them carries jobs", async || {
        let carriers = figure(&servers[0], "carries_jobs").await + figure(&servers[1], "carries_jobs").await;
        assert!(carriers <= 1, "one at a time");
        (carriers == 1).then_some(())
    })
    .await;
    for server in &servers {
        server.client().like("post:1", "alice").await;
        assert_eq!(figure(server, "store_unfinished_slots").await, 0);
        if on != On::Postgres {
            continue;
        }
        let (open, in_use) =
            (figure(server, "store_connections").await, figure(server, "store_connections_in_use").await);
        assert!(open >= 1 && (0..=open).contains(&in_use), "{in_use} of {open}");
        assert_eq!(figure(server, "store_spread_totals").await, 0);
    }
}
