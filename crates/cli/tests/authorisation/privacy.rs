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

const RELATIONS: &str = r#"
[relations.secret]
read = "none"
[relations.vote.when]
read = 'object.status == "closed"'
[relations.note]
read = "public"
[relations.note.when]
read = 'object.attributes.owner == auth.subject || auth.kind == "key"'
relate = 'object.status == "open"'
[relations.diary]
read = "public"
[relations.diary.when]
read = '!has(meta.private)'
"#;

#[tokio::test]
async fn an_answer_to_a_write_tells_no_count_that_may_not_be_read() {
    let issuer = Issuer::new();
    let server = Server::start(&format!("{}{RELATIONS}", issuer.config())).await;
    let (admin, alice) = (server.client(), server.client_as(Some(&user("alice"))));
    for relation in ["secret", "vote"] {
        admin.put(&edge(relation, "post:1", "bob")).ok().await;
        let body = json!({"meta": {"memo": "mine"}});
        let made = alice.put(&edge(relation, "post:1", "me")).json(&body).ok().await;
        assert_eq!((&made["changed"], &made["active"], made.get("count")), (&json!(true), &json!(true), None));
        assert_eq!(made.get("created_at"), None, "it may have been there for long");
        let same = alice.put(&edge(relation, "post:1", "me")).ok().await;
        assert_eq!(same["changed"], false);
        for hidden in ["count", "created_at", "meta"] {
            assert_eq!(same.get(hidden), None, "{relation} {hidden}");
        }
        for _ in 0..2 {
            let toggle = alice.post(&format!("{}/toggle", edge(relation, "post:1", "me")));
            let toggled = toggle.header("idempotency-key", relation).ok().await;
            assert_eq!((&toggled["active"], toggled.get("count")), (&json!(false), None));
        }
        assert_eq!(alice.delete(&edge(relation, "post:1", "me")).ok().await.get("count"), None);
        for atomic in [true, false] {
            let command = json!({"op": "relate", "relation": relation, "object": "post:1", "subject": "me"});
            let batch = json!({"atomic": atomic, "commands": [command]});
            let answer = alice.post("/v1/batch").json(&batch).ok().await;
            assert_eq!(answer["results"][0].get("count"), None, "{answer}");
        }
    }
    // A server may read what is nobody's to read; a condition holds for servers too.
    assert_eq!(admin.put(&edge("secret", "post:1", "carol")).ok().await["count"], 3);
    assert_eq!(admin.put(&edge("vote", "post:1", "carol")).ok().await.get("count"), None);
    admin.put("/v1/objects/post:1").json(&json!({"status": "closed"})).ok().await;
    assert_eq!(alice.put(&edge("vote", "post:1", "me")).ok().await["count"], 3);
}

#[tokio::test]
async fn a_condition_over_what_is_attached_holds_wherever_the_edge_is_told() {
    let issuer = Issuer::new();
    let server = Server::start(&format!("{}{RELATIONS}", issuer.config())).await;
    let (admin, alice) = (server.client(), server.client_as(Some(&user("alice"))));
    let meta = |text: &str| json!({"meta": {(text): "mine"}});
    admin.put(&edge("diary", "post:1", "bob")).json(&meta("shared")).ok().await;
    let made = admin.put(&edge("diary", "post:1", "carol")).json(&meta("private")).ok().await;
    assert_eq!((&made["changed"], made.get("count")), (&json!(true), None));
    for (who, is_told) in [("bob", true), ("carol", false)] {
        for path in [edge("diary", "post:1", who), format!("/v1/relations/diary/post:1?viewer={who}")] {
            let read = alice.get(&path);
            if is_told {
                assert_eq!(read.ok().await["active"], true, "{path}");
            } else {
                read.problem(403, "condition_failed").await;
            }
        }
        let feed = json!({"viewer": who, "objects": ["post:1"], "relations": ["diary"]});
        let shown = alice.post("/v1/read").json(&feed).ok().await["items"][0]["relations"]["diary"]["active"].clone();
        assert_eq!(shown, if is_told { json!(true) } else { Value::Null }, "{who}");
        // The same again changes nothing, and tells nothing that reading would not.
        let relate = json!({"op": "relate", "relation": "diary", "object": "post:1", "subject": who});
        let batch = json!({"commands": [relate]});
        let in_batch = admin.post("/v1/batch").json(&batch).ok().await["results"][0].clone();
        for same in [admin.put(&edge("diary", "post:1", who)).ok().await, in_batch] {
            assert_eq!((&same["changed"], &same["active"]), (&json!(false), &json!(true)));
            for field in ["count", "created_at", "meta"] {
                assert_eq!(same.get(field).is_some(), is_told, "{who} {field} in {same}");
            }
        }
    }
    // Of others, and of no one, the count is told.
    assert_eq!(alice.get("/v1/relations/diary/post:1").ok().await["count"], 2);
    assert_eq!(alice.subjects("diary", "post:1").await, ["bob"]);
}

#[tokio::test]
async fn a_condition_over_the_object_is_asked_of_every_item_of_a_list() {
    let issuer = Issuer::new();
    let server = Server::start(&format!("{}{RELATIONS}", issuer.config())).await;
    let (admin, alice) = (server.client(), server.client_as(Some(&user("alice"))));
    for (object, owner) in [("post:1", "alice"), ("post:2", "bob"), ("post:3", "alice")] {
        let body = json!({"status": "open", "attributes": {"owner": owner}});
        admin.put(&format!("/v1/objects/{object}")).json(&body).ok().await;
        admin.put(&edge("note", object, "carol")).ok().await;
    }
    assert_eq!(admin.objects("note", "carol").await, ["post:3", "post:2", "post:1"]);
    assert_eq!(alice.objects("note", "carol").await, ["post:3", "post:1"]);
    let page = alice.get("/v1/subjects/carol/relations/note?limit=2").ok().await;
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
    assert!(page["next_cursor"].is_string(), "there is more behind what was left out");
    alice.get("/v1/relations/note/post:2/subjects").problem(403, "condition_failed").await;
    let refused = admin.put(&edge("note", "post:9", "carol")).problem(403, "condition_failed").await;
    assert!(!refused.to_string().contains("object"), "{refused} shows the condition");
}

#[tokio::test]
async fn names_that_mean_something_mean_it_everywhere() {
    let issuer = Issuer::new();
    let server = Server::start(&issuer.config()).await;
    let (admin, alice) = (server.client(), server.client_as(Some(&user("alice"))));
    let relate = |who: &str| json!({"op": "relate", "relation": "like", "object": "post:1", "subject": who});
    let batch = |command: Value| json!({"commands": [command]});
    let done = alice.post("/v1/batch").json(&batch(relate("me"))).ok().await;
    assert_eq!(done["results"][0]["subject"], "alice");
    admin.put(&edge("like", "post:1", "me")).problem(400, "bad_request").await;
    admin.get("/v1/relations/like/post:1?viewer=me").problem(400, "bad_request").await;
    let refused = admin.post("/v1/batch").json(&batch(relate("me"))).problem(409, "batch_refused").await;
    assert_eq!(refused["cause"], "bad_request");
    let feed = json!({"viewer": "me", "objects": ["post:1"], "relations": ["like"]});
    assert_eq!(alice.post("/v1/read").json(&feed).ok().await["items"][0]["relations"]["like"]["active"], true);
    admin.post("/v1/read").json(&feed).problem(400, "bad_request").await;

    admin.put(&edge("like", "post:1", "subjects")).ok().await;
    assert_eq!(admin.subjects("like", "post:1").await, ["subjects", "alice"], "always the list");
    assert_eq!(admin.get("/v1/relations/like/post:1/%73ubjects").ok().await["active"], true);
    assert_eq!(admin.get("/v1/relations/like/post:1?viewer=subjects").ok().await["active"], true);
    assert_eq!(admin.delete(&edge("like", "post:1", "subjects")).ok().await["changed"], true);

    let today = json!({"op": "attend", "sheet": "daily", "subject": "alice", "day": "today"});
    let marked = admin.post("/v1/batch").json(&batch(today)).ok().await;
    let day = marked["results"][0]["day"].as_str().unwrap().to_owned();
    assert_eq!(admin.get(&format!("/v1/attendance/daily/{day}/alice")).ok().await["present"], true);
}

#[tokio::test]
async fn a_text_that_no_database_takes_is_refused() {
    let server = Server::start("").await;
    let client = server.client();
    for meta in [json!({"memo": "a\u{0}b"}), json!({"a\u{0}": 1}), json!({"list": [{"deep": "\u{0}"}]})] {
        client.put(&edge("like", "post:1", "alice")).json(&json!({"meta": meta})).problem(400, "bad_request").await;
        client.put("/v1/objects/post:1").json(&json!({"attributes": meta})).problem(400, "bad_request").await;
    }
    client.put(&edge("like", "post:1", "alice")).json(&json!({"meta": {"memo": "line\none"}})).ok().await;
}
