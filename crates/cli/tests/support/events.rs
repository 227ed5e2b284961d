//! Server-Sent Events as a client reads them.

use serde_json::Value;

use super::client::Client;

/// An open stream of live counts.
pub struct Events {
    response: reqwest::Response,
    text: String,
}

impl Events {
    /// Follows these objects and relations; the query string goes out as written.
    pub async fn open(client: &Client, query: &str) -> Self {
        let response = client.get(&format!("/v1/live?{query}")).open().await;
        assert_eq!(response.status(), 200, "{query}");
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new() }
    }

    /// The next count; `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            while let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                if let Some(data) = event.strip_prefix("event: count\ndata: ") {
                    return Some(told(data));
                }
                assert!(event.starts_with(':'), "{event}");
            }
            let chunk = self.response.chunk().await.ok()??;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// Reads on to the end that the server makes: not a lost connection, nor a client's patience. Gives what came before.
    pub async fn ended(&mut self) -> Vec<Value> {
        let mut before = Vec::new();
        loop {
            let mut events = self.text.split("\n\n").map(str::to_owned).collect::<Vec<_>>();
            self.text = events.pop().unwrap_or_default();
            let counts = events.iter().filter_map(|event| event.strip_prefix("event: count\ndata: "));
            before.extend(counts.map(told));
            match self.response.chunk().await.expect("the server ends the stream in order") {
                Some(chunk) => self.text.push_str(std::str::from_utf8(&chunk).unwrap()),
                None => return before,
            }
        }
    }

    /// Reads on until a count is this; each one on the way is checked.
    pub async fn until(&mut self, object: &str, count: i64, mut check: impl FnMut(&Value)) {
        loop {
            let event = self.next().await.expect("the stream goes on");
            check(&event);
            if event["object"] == object && event["count"] == count {
                return;
            }
        }
    }
}

/// A count without its time, which every one has.
fn told(data: &str) -> Value {
    let mut data: Value = serde_json::from_str(data).unwrap();
    let as_of = data.as_object_mut().and_then(|fields| fields.remove("as_of"));
    assert!(as_of.as_ref().and_then(Value::as_str).is_some_and(|as_of| as_of.ends_with('Z')), "{as_of:?}");
    data
}
