//! The waiting page, as browsers see it: with scripts, without them, and with a cookie that they keep.

use crate::support::*;
use crate::world::*;

/// A browser: it keeps its ticket.
struct Browser {
    client: Client,
    ticket: Option<String>,
}

impl Browser {
    fn new(server: &Server) -> Self {
        Self { client: server.client_as(None), ticket: None }
    }

    async fn go(&mut self, path: &str) -> Answer {
        let mut asked = self.client.get(path);
        if let Some(ticket) = &self.ticket {
            asked = asked.header("cookie", &format!("tally_ticket_sale={ticket}"));
        }
        let answer = asked.send().await;
        if let Some((ticket, rest)) = cookie(&answer, "tally_ticket_sale") {
            assert!(rest.contains("HttpOnly") && rest.contains("SameSite=Lax"), "{rest}");
            self.ticket = Some(ticket.to_owned());
        }
        answer
    }
}

#[tokio::test]
async fn a_place_is_kept_and_leads_in() {
    let server = Server::start("").await;
    let client = server.client();
    let mut settings = held();
    settings["return_hosts"] = json!(["shop.example"]);
    room(&client, "sale", settings).await;
    let (mut first, mut second) = (Browser::new(&server), Browser::new(&server));
    let address = "/wait/sale?return=https%3A%2F%2Fshop.example%2Fcart";
    first.go(address).await;
    let page = second.go(address).await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let text = page.text();
    assert!(text.contains("id=\"position\">2<") && text.contains("1 before you"), "{text}");
    assert!(text.contains("<noscript><meta http-equiv=\"refresh\""), "{text}");
    assert!(text.contains("url=/wait/sale?return=https%3A%2F%2Fshop.example%2Fcart"), "{text}");
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert!(!text.contains("http://") && !text.contains("src="), "nothing from elsewhere: {text}");
    let ticket = second.ticket.clone();
    assert!(!text.contains(ticket.as_deref().unwrap().split('.').next().unwrap()), "no script sees the ticket");
    second.go(address).await;
    assert_eq!(second.ticket, ticket, "a second look is the same place");
    assert_eq!(client.get("/v1/rooms/sale").ok().await["waiting"], 2);
    let status = second.go("/wait/sale/status").await.json();
    assert_eq!((&status["position"], &status["state"], status.get("ticket")), (&json!(2), &json!("WAITING"), None));
    client.post("/v1/rooms/sale/admit").json(&json!({"count": 2})).ok().await;
    let entered = second.go(address).await;
    assert_eq!((entered.status, entered.header("location")), (303, Some("https://shop.example/cart")));
    let (admission, rest) = cookie(&entered, "tally_sale").unwrap();
    assert!(rest.contains("Path=/;") && rest.contains("HttpOnly") && !rest.contains("Secure"), "{rest}");
    let check = || client.get("/v1/rooms/sale/check").header("cookie", &format!("tally_sale={admission}")).send();
    assert_eq!(check().await.status, 200);
    let again = second.go(address).await;
    assert_eq!(cookie(&again, "tally_sale").unwrap().0, admission, "the same admission");
    let name = ticket.unwrap().split('.').next().unwrap().to_owned();
    client.post(&format!("/v1/rooms/sale/tickets/{name}/done")).ok().await;
    assert_eq!(check().await.status, 401);
    let over = second.go(address).await.text();
    assert!(over.contains("again=1"), "{over}");
    let anew = second.go("/wait/sale?again=1").await.text();
    assert!(anew.contains("id=\"position\">1<"), "{anew}");
    second.go("/wait/sale?again=1").await;
    assert_eq!(client.get("/v1/rooms/sale").ok().await["waiting"], 1, "once");
}

#[tokio::test]
async fn the_page_says_what_it_cannot_do() {
    let server = Server::start("[http]\ntrusted_proxies = \"127.0.0.1\"\n").await;
    let (client, anybody) = (server.client(), server.client_as(None));
    room(&client, "sale", json!({})).await;
    for path in ["/wait/sale", "/wait/none"] {
        let page = anybody.get(path).send().await;
        assert_eq!(page.status, 403, "{path}");
        assert!(page.text().contains("cannot be joined from this page"), "{}", page.text());
    }
    assert_eq!(anybody.get("/wait/No").send().await.status, 404);
    anybody.get("/wait/sale/status").problem(404, "ticket_not_found").await;
    anybody.get("/wait/sale/events").problem(404, "ticket_not_found").await;
    room(&client, "sale", json!({"mode": "drain", "join": "any"})).await;
    let closed = anybody.get("/wait/sale").header("accept-language", "ko-KR,ko;q=0.9").send().await;
    assert_eq!(closed.status, 409);
    assert!(closed.text().contains("lang=\"ko\""), "{}", closed.text());
    room(&client, "sale", open()).await;
    let secure = anybody.get("/wait/sale").header("x-forwarded-proto", "https").send().await;
    assert!(cookie(&secure, "tally_sale").unwrap().1.ends_with("; Secure"), "{secure:?}");
}
