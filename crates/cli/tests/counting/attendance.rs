//! Attendance: who was there on which day?

use jiff::ToSpan;
use jiff::civil::Date;

use crate::support::*;

fn path(day: &str, subject: &str) -> String {
    format!("/v1/attendance/daily/{day}/{subject}")
}

#[tokio::test]
async fn being_there_is_a_state() {
    let server = Server::start("").await;
    let client = server.client();
    let there = client.put(&path("2026-01-01", "alice")).ok().await;
    let expected = json!({"sheet": "daily", "day": "2026-01-01", "subject": "alice", "present": true, "changed": true, "count": 1, "streak": 1});
    assert_eq!(there, expected);
    let again = client.put(&path("2026-01-01", "alice")).ok().await;
    assert_eq!((&again["changed"], &again["count"]), (&json!(false), &json!(1)));
    assert_eq!(client.put(&path("2026-01-01", "17")).ok().await["count"], 2, "ids that are numbers too");
    assert_eq!(client.get("/v1/attendance/daily/2026-01-01").ok().await, json!({"day": "2026-01-01", "count": 2}));
    assert_eq!(client.get(&path("2026-01-01", "alice")).ok().await["present"], true);
    assert_eq!(client.get(&path("2026-01-02", "alice")).ok().await["present"], false);
    let gone = client.delete(&path("2026-01-01", "alice")).ok().await;
    assert_eq!((&gone["present"], &gone["changed"], &gone["count"]), (&json!(false), &json!(true), &json!(1)));
    assert_eq!(client.delete(&path("2026-01-01", "alice")).ok().await["changed"], false);
    for day in ["yesterday", "2026-02-30", "2026-1-1", "1969-12-31", "20260101"] {
        client.put(&path(day, "alice")).problem(400, "bad_request").await;
    }
    client.verified().await;
}

#[tokio::test]
async fn a_streak_grows_and_breaks() {
    let server = Server::start("").await;
    let client = server.client();
    for (day, streak) in [("2026-02-27", 1), ("2026-02-28", 2), ("2026-03-01", 3), ("2026-03-05", 1)] {
        assert_eq!(client.put(&path(day, "alice")).ok().await["streak"], streak, "{day}");
    }
    let days = async |query: &str| client.get(&format!("/v1/subjects/alice/attendance/daily{query}")).ok().await;
    let all = days("").await;
    assert_eq!(all["days"], json!(["2026-02-27", "2026-02-28", "2026-03-01", "2026-03-05"]));
    assert_eq!((&all["count"], &all["current_streak"], &all["longest_streak"]), (&json!(4), &json!(0), &json!(3)));
    let part = days("?from=2026-02-28&to=2026-03-01").await;
    assert_eq!((&part["count"], &part["current_streak"], &part["longest_streak"]), (&json!(2), &json!(3), &json!(2)));
    client.get("/v1/subjects/alice/attendance/daily?from=2026-02-28&to=2026-01-01").problem(400, "bad_request").await;
    client.get("/v1/subjects/alice/attendance/daily?from=soon").problem(400, "bad_request").await;
}

#[tokio::test]
async fn the_time_zone_says_which_day_it_is() {
    // 25 hours apart, so it is never the same day in both.
    let config = "[attendance.early]\ntime_zone = \"Pacific/Kiritimati\"\n[attendance.late]\ntime_zone = \"Pacific/Pago_Pago\"\n";
    let server = Server::start(config).await;
    let client = server.client();
    let today = async |sheet: &str| -> Date {
        let marked = client.put(&format!("/v1/attendance/{sheet}/today/alice")).ok().await;
        marked["day"].as_str().unwrap().parse().unwrap()
    };
    let (late, early) = (today("late").await, today("early").await);
    assert!(early > late, "{early} {late}");
    for back in [1, 2] {
        let day = early.checked_sub(back.days()).unwrap();
        client.put(&format!("/v1/attendance/early/{day}/alice")).ok().await;
    }
    // Right also when a day ends meanwhile: today may be missing still.
    let days = client.get("/v1/subjects/alice/attendance/early").ok().await;
    assert_eq!((&days["current_streak"], &days["longest_streak"]), (&json!(3), &json!(3)), "{days}");
}

#[tokio::test]
async fn who_came_on_any_or_on_all_of_the_days() {
    let server = Server::start("").await;
    let client = server.client();
    for (day, subjects) in
        [("2026-01-01", vec!["alice", "bob", "7"]), ("2026-01-02", vec!["alice", "7"]), ("2026-01-04", vec!["carol"])]
    {
        for subject in subjects {
            client.put(&path(day, subject)).ok().await;
        }
    }
    let count = async |query: &str| client.get(&format!("/v1/attendance/daily?{query}")).ok().await;
    let any = count("days=2026-01-01,2026-01-02").await;
    let days = json!([{"day": "2026-01-01", "count": 3}, {"day": "2026-01-02", "count": 2}]);
    assert_eq!(any, json!({"count": 3, "match": "any", "days": days}));
    assert_eq!(count("days=2026-01-01,2026-01-02&match=all").await["count"], 2);
    assert_eq!(count("days=2026-01-01,2026-01-03&match=all").await["count"], 0);
    let range = count("from=2026-01-01&to=2026-01-04").await;
    assert_eq!((&range["count"], range["days"].as_array().unwrap().len()), (&json!(4), 4));
    assert_eq!(count("from=2025-01-01&to=2026-02-04").await["count"], 4, "400 days");
    for wrong in [
        "",
        "days=",
        "days=2026-01-01&from=2026-01-01&to=2026-01-02",
        "from=2026-01-01",
        "from=2026-01-02&to=2026-01-01",
        "from=2025-01-01&to=2026-02-05",
        "from=1970-01-01&to=9999-12-31",
        "days=2026-01-01&match=some",
    ] {
        client.get(&format!("/v1/attendance/daily?{wrong}")).problem(400, "bad_request").await;
    }
}

#[tokio::test]
async fn me_is_the_tokens_subject() {
    let issuer = tokens::Issuer::new();
    let server = Server::start(&issuer.config()).await;
    let (admin, alice) = (server.client(), server.client_as(Some(&tokens::user("alice"))));
    assert_eq!(alice.put(&path("2026-01-01", "me")).ok().await["subject"], "alice");
    assert_eq!(alice.get(&path("2026-01-01", "me")).ok().await["present"], true);
    assert_eq!(alice.get("/v1/subjects/me/attendance/daily").ok().await["count"], 1);
    assert_eq!(admin.get(&path("2026-01-01", "alice")).ok().await["present"], true);
    admin.put("/v1/boards/points/alice").json(&json!({"score": 5})).ok().await;
    assert_eq!(alice.get("/v1/boards/points/me").ok().await["score"], 5);
    alice.put("/v1/boards/points/me").json(&json!({"score": 6})).problem(403, "forbidden").await;
    alice.get(&path("2026-01-01", "bob")).problem(403, "forbidden").await;
    // An API key is nobody in particular.
    admin.put(&path("2026-01-01", "me")).problem(400, "bad_request").await;
    admin.get("/v1/boards/points/me").problem(400, "bad_request").await;
}
