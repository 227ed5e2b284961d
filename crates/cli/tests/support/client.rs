//! A small HTTP client: one credential, one server, answers that can be asserted on.

use std::fmt::Write as _;
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder};
use serde_json::Value;

/// A client of one server with one credential. Clones share connections.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    token: Option<String>,
}

/// A request on its way.
pub struct Asked(RequestBuilder);

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// The path of an edge, each part percent-encoded.
pub fn edge(relation: &str, object: &str, subject: &str) -> String {
    format!("/v1/relations/{relation}/{}/{}", encode(object), encode(subject))
}

/// Percent-encodes everything but letters and digits, `-` and `_`.
pub fn encode(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => out.push(char::from(byte)),
            _ => write!(out, "%{byte:02X}").unwrap(),
        }
        out
    })
}

impl Client {
    pub fn new(base: &str, token: Option<&str>) -> Self {
        let http = reqwest::Client::builder()
            .no_proxy()
            // What a test's server shows is not the test of it, except where it is.
            .tls_danger_accept_invalid_certs(true)
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_secs(60))
            .build()
            .unwrap();
        Self { http, base: base.to_owned(), token: token.map(str::to_owned) }
    }

    pub fn request(&self, method: Method, path: &str) -> Asked {
        let request = self.http.request(method, format!("{}{path}", self.base));
        Asked(match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        })
    }

    pub fn get(&self, path: &str) -> Asked {
        self.request(Method::GET, path)
    }

    pub fn put(&self, path: &str) -> Asked {
        self.request(Method::PUT, path)
    }

    pub fn post(&self, path: &str) -> Asked {
        self.request(Method::POST, path)
    }

    pub fn delete(&self, path: &str) -> Asked {
        self.request(Method::DELETE, path)
    }

    /// Likes, and gives the answer.
    pub async fn like(&self, object: &str, subject: &str) -> Value {
        self.put(&edge("like", object, subject)).ok().await
    }

    /// Unlikes, and gives the answer.
    pub async fn unlike(&self, object: &str, subject: &str) -> Value {
        self.delete(&edge("like", object, subject)).ok().await
    }

    /// An object's count.
    pub async fn count(&self, relation: &str, object: &str) -> i64 {
        let answer = self.get(&format!("/v1/relations/{relation}/{}", encode(object))).ok().await;
        answer["count"].as_i64().unwrap()
    }

    /// Every item of a list, page by page.
    pub async fn list(&self, path: &str) -> Vec<Value> {
        let mut items = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = self.get(&format!("{path}?limit=100{cursor}")).ok().await;
            items.extend(page["items"].as_array().unwrap().iter().cloned());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return items,
            }
        }
    }

    /// Who has edges to an object, newest first.
    pub async fn subjects(&self, relation: &str, object: &str) -> Vec<String> {
        let items = self.list(&format!("/v1/relations/{relation}/{}/subjects", encode(object))).await;
        items.iter().map(|item| item["subject"].as_str().unwrap().to_owned()).collect()
    }

    /// What a subject has edges to, newest first.
    pub async fn objects(&self, relation: &str, subject: &str) -> Vec<String> {
        let items = self.list(&format!("/v1/subjects/{}/relations/{relation}", encode(subject))).await;
        items.iter().map(|item| item["object"].as_str().unwrap().to_owned()).collect()
    }

    /// Waits for a job's end, and gives it.
    pub async fn job_done(&self, begun: &Value) -> Value {
        let path = format!("/v1/jobs/{}", begun["job"].as_str().unwrap());
        super::until("the job ends", async || {
            let job = self.get(&path).ok().await;
            (job["state"] == "done").then_some(job)
        })
        .await
    }

    /// Recounts everything, and gives the report.
    pub async fn verify(&self, repair: bool) -> Value {
        let begun = self.post("/v1/verify").json(&serde_json::json!({"repair": repair})).status(202).await;
        assert_eq!((&begun["kind"], &begun["state"]), (&"verify".into(), &"running".into()), "{begun}");
        self.job_done(&begun).await["report"].clone()
    }

    /// Recounts everything; what does not add up fails the test. Gives how many edges there are.
    pub async fn verified(&self) -> u64 {
        let report = self.verify(false).await;
        assert_eq!(report["drifted"], 0, "{report}");
        assert_eq!(report["strays"], serde_json::json!([]), "{report}");
        report["edges"].as_u64().unwrap()
    }
}

impl Asked {
    pub fn json(self, body: &Value) -> Self {
        Self(self.0.json(body))
    }

    pub fn header(self, name: &str, value: &str) -> Self {
        Self(self.0.header(name, value))
    }

    pub fn body(self, kind: &str, body: impl Into<reqwest::Body>) -> Self {
        Self(self.0.header("content-type", kind).body(body))
    }

    /// Sends it; an error is one of the connection.
    pub async fn try_send(self) -> reqwest::Result<Answer> {
        let response = self.0.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(Answer { status, headers, body: response.bytes().await?.to_vec() })
    }

    /// Sends it without waiting for the whole answer.
    pub async fn open(self) -> reqwest::Response {
        self.0.send().await.unwrap()
    }

    pub async fn send(self) -> Answer {
        self.try_send().await.unwrap()
    }

    /// Sends it, and wants a 200 with JSON.
    pub async fn ok(self) -> Value {
        self.status(200).await
    }

    /// Sends it, and wants this status with JSON.
    pub async fn status(self, status: u16) -> Value {
        let answer = self.send().await;
        assert_eq!(answer.status, status, "{}", answer.text());
        answer.json()
    }

    /// Sends it, and wants this problem.
    pub async fn problem(self, status: u16, code: &str) -> Value {
        self.send().await.problem(status, code)
    }
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Checks that this is a whole problem document with this status and code, and gives it.
    pub fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{}", self.text());
        let problem = self.json();
        assert_eq!(problem["status"], status, "{problem}");
        assert_eq!(problem["code"], code, "{problem}");
        for field in ["type", "title", "detail"] {
            assert!(problem[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {problem}");
        }
        problem
    }

    /// `(reads, writes)` of `Tally-Cost`.
    pub fn cost(&self) -> (u32, u32) {
        let text = self.header("tally-cost").unwrap_or_else(|| panic!("no Tally-Cost: {self:?}"));
        let numbers = text.strip_prefix("reads=").and_then(|rest| rest.split_once(", writes="));
        let (reads, writes) = numbers.unwrap_or_else(|| panic!("{text}"));
        (reads.parse().unwrap(), writes.parse().unwrap())
    }
}
