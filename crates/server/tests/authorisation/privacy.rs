//! What a user is told of others, and what is left of one that was forgotten.

use crate::support::tokens::*;
use crate::support::*;

#[tokio::test]
async fn a_suspended_user_is_suspended_after_forgetting_itself() {
    let issuer = Issuer::new();
    let server = Server::start(&issuer.config()).await;
    let (admin, alice) = (server.client(), server.client_as(Some(&user("alice"))));
    alice.put(&edge("like", "post:1", "me")).ok().await;
    admin.job_done(&admin.post("/v1/subjects/alice/suspend").status(202).await).await;
    let begun = alice.delete("/v1/subjects/me").status(202).await;
    alice.put(&edge("like", "post:2", "me")).problem(403, "forbidden").await;
    assert_eq!(admin.job_done(&begun).await["edges"], 1);
    alice.put(&edge("like", "post:2", "me")).problem(403, "forbidden").await;
    admin.post("/v1/subjects/alice/restore").status(202).await;
    assert_eq!(alice.put(&edge("like", "post:2", "me")).ok().await["count"], 1);
    assert_eq!(admin.verified().await, 1);
}

#[tokio::test]
async fn a_job_is_shown_to_whom_it_is_about() {
    let issuer = Issuer::new();
    let server = Server::start(&issuer.config()).await;
    let (alice, bob) = (server.client_as(Some(&user("alice"))), server.client_as(Some(&user("bob"))));
    let begun = alice.delete("/v1/subjects/me").status(202).await;
    let path = format!("/v1/jobs/{}", begun["job"].as_str().unwrap());
    assert_eq!(alice.job_done(&begun).await["job"], begun["job"]);
    bob.get(&path).problem(403, "forbidden").await;
    bob.get("/v1/jobs/job_0123456789abcdef").problem(403, "forbidden").await;
    assert_eq!(server.client().get(&path).ok().await["state"], "done");
    // However often it is asked for, it is one.
    for _ in 0..20 {
        assert_eq!(alice.delete("/v1/subjects/me").status(202).await["job"], begun["job"]);
    }
}
