//! Who is forgotten was never there, and what is deleted was never counted.

use crate::support::*;

#[tokio::test]
async fn a_forgotten_subject_is_on_no_day_and_no_board() {
    let server = Server::start("[boards.yearly]\nties = \"dense\"\nseason = \"0 0 1 1 *\"\n").await;
    let client = server.client();
    for who in ["alice", "bob"] {
        for day in ["2026-01-01", "2026-01-02"] {
            client.put(&format!("/v1/attendance/daily/{day}/{who}")).ok().await;
        }
        for board in ["points", "yearly"] {
            client.put(&format!("/v1/boards/{board}/{who}")).json(&json!({"score": 5})).ok().await;
        }
    }
    let job = client.delete("/v1/subjects/alice").status(202).await;
    client.job_done(&job).await;
    let all = client.get("/v1/attendance/daily?days=2026-01-01,2026-01-02").ok().await;
    assert_eq!((&all["count"], &all["days"][0]["count"]), (&json!(1), &json!(1)));
    assert_eq!(client.get("/v1/subjects/alice/attendance/daily").ok().await["count"], 0);
    for board in ["points", "yearly"] {
        let page = client.get(&format!("/v1/boards/{board}")).ok().await;
        assert_eq!(page["items"], json!([{"member": "bob", "score": 5, "rank": 1}]), "{board}");
    }
    assert_eq!(client.put("/v1/attendance/daily/2026-01-02/alice").ok().await["streak"], 1, "a new life");
    client.verified().await;
}

#[tokio::test]
async fn a_deleted_object_begins_at_zero() {
    let server = Server::start("").await;
    let client = server.client();
    client.put("/v1/objects/post:1").ok().await;
    client.post("/v1/counters/views/post:1").json(&json!({"by": 5})).ok().await;
    client.post("/v1/counters/views/post:2").ok().await;
    client.post("/v1/uniques/dau/post:1").json(&json!({"members": ["alice"]})).ok().await;
    let job = client.delete("/v1/objects/post:1").status(202).await;
    client.job_done(&job).await;
    assert_eq!(client.get("/v1/counters/views/post:1").ok().await["value"], 0);
    assert_eq!(client.get("/v1/counters/views/post:2").ok().await["value"], 1);
    assert_eq!(client.get("/v1/uniques/dau/post:1").ok().await["estimate"], 0);
    client.verified().await;
}
