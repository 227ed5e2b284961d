//! One call: made, then sent.

use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{RequestBuilder, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Problem, Unsigned, root};

/// A call that is not sent yet. `.await` sends it and reads the answer as a `T`.
#[must_use = "nothing is sent until it is awaited"]
pub struct Call<T> {
    request: Result<RequestBuilder, Error>,
    base: Url,
    timeout: Option<Duration>,
    answer: PhantomData<fn() -> T>,
}

/// What a server answered, word for word.
#[derive(Debug, Clone)]
pub struct Answer {
    status: u16,
    text: String,
    headers: HeaderMap,
}

impl Answer {
    /// The HTTP status: 201 where something was made.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The body.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The body, to keep.
    pub fn into_text(self) -> String {
        self.text
    }

    /// A header, such as `tally-cost` or `date`.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body, understood.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_str(&self.text).map_err(Error::NotUnderstood)
    }
}

impl<T> Call<T> {
    pub(crate) fn new(request: Result<RequestBuilder, Error>, base: Url, timeout: Option<Duration>) -> Self {
        Self { request, base, timeout, answer: PhantomData }
    }

    pub(crate) fn json(self, body: &impl Serialize) -> Self {
        Self { request: self.request.map(|request| request.json(body)), ..self }
    }

    /// For what takes as long as it takes.
    pub(crate) fn patient(self) -> Self {
        Self { timeout: None, ..self }
    }

    pub(crate) fn refused(self, error: Error) -> Self {
        Self { request: Err(error), ..self }
    }

    /// Longest time for this answer.
    pub fn timeout(self, longest: Duration) -> Self {
        Self { timeout: Some(longest), ..self }
    }

    /// Makes a write safe to send again: the same key gets the same answer, and nothing is done twice. 1 to 128 visible
    /// ASCII characters.
    pub fn idempotency_key(self, key: &str) -> Self {
        Self { request: self.request.map(|request| request.header("idempotency-key", key)), ..self }
    }

    /// Sends it, and gives the answer word for word.
    pub async fn answer(self) -> Result<Answer, Error> {
        let request = match self.timeout {
            Some(longest) => self.request?.timeout(longest),
            None => self.request?,
        };
        let unreachable = |error: reqwest::Error| unreachable(&self.base, &error);
        let response = request.send().await.map_err(unreachable)?;
        let (status, headers) = (response.status(), response.headers().clone());
        if status.is_success() {
            let status = status.as_u16();
            return Ok(Answer { status, text: response.text().await.map_err(unreachable)?, headers });
        }
        let body = response.bytes().await.unwrap_or_default();
        Err(match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) => Error::Problem(problem),
            Err(_) => Error::OtherWords { base: self.base.to_string(), status: status.to_string() },
        })
    }
}

impl<T: DeserializeOwned + 'static> IntoFuture for Call<T> {
    type Output = Result<T, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.answer().await?.read() })
    }
}

/// Why no answer came.
fn unreachable(base: &Url, error: &reqwest::Error) -> Error {
    let base = base.as_str().trim_end_matches('/').to_owned();
    if error.is_timeout() && !error.is_connect() {
        return Error::TimedOut { base };
    }
    let why = root(error);
    if !why.contains("certificate") {
        return Error::Unreachable { base, why };
    }
    let has = |words: [&str; 2]| words.iter().any(|word| why.contains(word));
    let reason = if has(["NotValidForName", "not valid for name"]) {
        Unsigned::OtherName
    } else if has(["Expired", "expired"]) {
        Unsigned::Expired
    } else {
        Unsigned::Unknown
    };
    Error::NotTrusted { base, reason, why }
}

#[cfg(test)]
mod tests {
    use tally_core::{KeyId, Name};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::Client;

    /// Asks one question of a server that answers so; gives what was asked and what came of it.
    async fn asked(status: &str, body: &str) -> (String, Result<i64, Error>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let reply = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let served = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"}") {
                assert!(stream.read_buf(&mut request).await.unwrap() > 0, "the body ends with a brace");
            }
            stream.write_all(reply.as_bytes()).await.unwrap();
            String::from_utf8(request).unwrap()
        });
        let client = Client::builder(url).key("a-key").build().unwrap();
        let (views, post) = (Name::new("views").unwrap(), KeyId::new("post:4/2").unwrap());
        let answer = client.add(&views, &post, 3).idempotency_key("once").await;
        (served.await.unwrap(), answer.map(|count| count.value))
    }

    #[tokio::test]
    async fn a_call_is_what_the_contract_says() {
        let answer = r#"{"counter": "views", "key": "post:4/2", "value": 3, "changed": true}"#;
        let (request, value) = asked("200 OK", answer).await;
        assert_eq!(value.unwrap(), 3);
        assert!(request.starts_with("POST /v1/counters/views/post:4%2F2 HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("authorization: Bearer a-key\r\n"), "{request}");
        assert!(request.contains("idempotency-key: once\r\n"), "{request}");
        assert!(request.ends_with(r#"{"by":3}"#), "{request}");
    }

    #[tokio::test]
    async fn refusals_are_told_apart() {
        let problem = r#"{"type": "urn:tally:problem:overloaded", "title": "Overloaded", "status": 503, "detail": "busy", "code": "overloaded"}"#;
        match asked("503 Service Unavailable", problem).await.1 {
            Err(Error::Problem(problem)) => {
                assert_eq!((problem.code.as_str(), problem.status), ("overloaded", 503));
                assert!(problem.is_not_now());
                assert_eq!(problem.to_string(), "overloaded: busy");
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(asked("502 Bad Gateway", "<html>").await.1, Err(Error::OtherWords { .. })));
        assert!(matches!(asked("200 OK", "{}").await.1, Err(Error::NotUnderstood(_))));
    }

    #[tokio::test]
    async fn nobody_there_is_said_so() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let client = Client::builder(&url).build().unwrap();
        // It listens and never answers.
        let late = client.healthz().timeout(Duration::from_millis(20)).answer().await;
        assert!(matches!(late, Err(Error::TimedOut { .. })), "{late:?}");
        drop(listener);
        let nobody = client.healthz().answer().await;
        assert!(matches!(&nobody, Err(Error::Unreachable { base, .. }) if *base == url), "{nobody:?}");
    }
}
