//! What handlers take from a request: who calls, path segments, the query, idempotency keys. Each is
//! refused with a problem document, never with a library's own words.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tally::core::catalog::ReadPolicy;
use tally::core::command::{Batch, Call, Command, Decided, Once, Rehearse};
use tally::core::hash::digest_text;
use tally::core::prints::{PARTS_MAX, prints};
use tally::core::query::Ask;
use tally::core::rows::ReplayKey;
use tally::core::{Auth, Code, KeyId, Name, ObjectId, Question, SubjectId, batch};

use super::body::{idempotency_key, unreadable};
use super::problem::Problem;
use super::reply;
use crate::app::App;
use crate::auth::Principal;
use crate::auth::policy::{Denied, Permission, authorize};
use crate::door::origin;

/// What a handler gives.
pub type Outcome = Result<Response, Problem>;

/// Who calls, and what they call. Whoever has not said who they are is refused before anything else is looked at.
pub struct Caller {
    /// The server.
    pub app: App,
    pub(super) principal: Principal,
}

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let header = parts.headers.get(header::AUTHORIZATION).map(|value| value.as_bytes());
        let principal = app.auth.authenticate(header).await?.ok_or(Denied::Unauthenticated)?;
        parts.extensions.insert(SignedIn);
        Ok(Self { app: app.clone(), principal: seen_from(principal, &parts.headers, app) })
    }
}

/// Marks a request whose caller is known. Bodies are read of no other.
#[derive(Clone, Copy)]
pub struct SignedIn;

/// Who calls, as a page in a browser may.
pub(super) fn seen_from(principal: Principal, headers: &HeaderMap, app: &App) -> Principal {
    match principal {
        Principal::Dev if origin::is_nameless(headers) => Principal::DevPage,
        Principal::Key { ref id, .. } if origin::is_foreign(headers) => {
            if app.metrics.browser_key() {
                tracing::warn!(
                    key = &**id,
                    "a page in a browser sent an API key; everybody who sees the page can take it: use users' tokens there, and revoke the key"
                );
            }
            principal
        }
        Principal::Key { .. } | Principal::User { .. } | Principal::Dev | Principal::DevPage | Principal::Nobody => {
            principal
        }
    }
}

impl Caller {
    /// Whether it is only because authentication is off that they are let in: also with a key that was made so.
    pub fn is_of_dev(&self) -> bool {
        match &self.principal {
            Principal::Dev | Principal::DevPage => true,
            Principal::Key { id, .. } => self.app.auth.keys.is_of_dev(id),
            Principal::User { .. } | Principal::Nobody => false,
        }
    }

    /// Passes, or refuses by the table of who may do what.
    pub fn may(
        &self,
        permission: Permission,
        target: Option<&SubjectId>,
        read: Option<ReadPolicy>,
    ) -> Result<(), Problem> {
        Ok(authorize(Some(&self.principal), permission, target.map(SubjectId::as_str), read)?)
    }

    /// Passes a command that the caller may send; those in a batch one by one.
    pub fn may_send(&self, command: &Command) -> Result<(), Problem> {
        if let Command::Batch(
            batch::Command::Batch(Batch { commands, .. }) | batch::Command::Rehearse(Rehearse { commands }),
        ) = command
        {
            return commands.iter().try_for_each(|command| self.may_send(command));
        }
        match command.permission() {
            Some((permission, about)) => self.may(permission, about, None),
            None => Err(Problem::new(Code::Forbidden, "this is for the server itself")),
        }
    }

    /// Has a command decided. The only way from a request to a write, so that none is made without permission.
    pub async fn apply(&self, command: impl Into<Command>, once: Option<Once>) -> Result<Decided, Problem> {
        let command = command.into();
        self.may_send(&command)?;
        Ok(self.app.tally.apply(Call { auth: self.facts(), command, once }).await?)
    }

    /// Has a question answered, if the caller is allowed all that it asks.
    pub async fn ask<Q: Question>(&self, question: &Q) -> Result<Q::Answer, Problem> {
        let mut allowed = Ok(());
        question.asks(&mut |ask| {
            if allowed.is_ok() {
                allowed = self.may_see(ask);
            }
        });
        allowed?;
        Ok(self.app.tally.query(question, &self.facts()).await?)
    }

    /// Answers with what a command is answered with.
    pub async fn reply(&self, command: impl Into<Command>, once: Option<Once>) -> Outcome {
        reply::decided(StatusCode::OK, self.apply(command, once).await?)
    }

    /// Answers with the job that a command begins.
    pub async fn begin(&self, command: impl Into<Command>) -> Outcome {
        reply::decided(StatusCode::ACCEPTED, self.apply(command, None).await?)
    }

    /// Answers with the answer to a question.
    pub async fn answer<Q: Question<Answer: Serialize>>(&self, question: Q) -> Outcome {
        Ok(reply::json(StatusCode::OK, &self.ask(&question).await?))
    }

    fn may_see(&self, ask: Ask<'_>) -> Result<(), Problem> {
        let read = match ask.relation {
            Some(relation) => Some(self.app.tally.catalog().relation(relation).map_err(Problem::from)?.read),
            None => None,
        };
        self.may(ask.permission, ask.subject, read)
    }

    /// A subject that the caller names, in a path, a query or a body; `me` is the token's own, and nobody else's name.
    pub fn subject(&self, segment: &str) -> Result<SubjectId, Problem> {
        match (segment, self.own_subject()) {
            (SubjectId::ME, Some(own)) => Ok(own.clone()),
            (SubjectId::ME, None) => Err(Problem::bad_request(
                "`me` stands for the subject of a user's token, and is no subject's name; an API key has none",
            )),
            _ => Ok(SubjectId::new(segment)?),
        }
    }

    /// What two segments of a path name.
    pub fn two<A: Named, B: Named>(&self, (a, b): &Pair) -> Result<(A, B), Problem> {
        Ok((A::named(a, self)?, B::named(b, self)?))
    }

    /// What three segments of a path name.
    pub fn three<A: Named, B: Named, C: Named>(&self, (a, b, c): &Triple) -> Result<(A, B, C), Problem> {
        Ok((A::named(a, self)?, B::named(b, self)?, C::named(c, self)?))
    }

    /// The token's own subject.
    pub fn own_subject(&self) -> Option<&SubjectId> {
        self.principal.subject()
    }

    /// The subject that is looked for: the one that is named, or the token's own.
    pub fn viewer(&self, named: Option<&str>) -> Result<Option<SubjectId>, Problem> {
        match named {
            Some(named) => self.subject(named).map(Some),
            None => Ok(self.own_subject().cloned()),
        }
    }

    /// Who calls, as conditions see it.
    pub fn facts(&self) -> Auth {
        self.principal.auth()
    }

    /// Whose idempotency keys these are.
    pub(super) fn name(&self) -> String {
        match &self.principal {
            // Not by name: what is remembered outlives who is forgotten.
            Principal::User { subject, .. } => format!("user:{}", digest_text(&[subject.as_str()])),
            Principal::Key { id, .. } => format!("key:{id}"),
            Principal::Dev => "dev".into(),
            Principal::DevPage => "page".into(),
            Principal::Nobody => "nobody".into(),
        }
    }

    /// How much is remembered for them in an hour: a server's key may ask for more than a user.
    fn remembered_bytes_max(&self) -> u64 {
        let remembered = self.app.settings.remembered;
        match &self.principal {
            Principal::User { .. } | Principal::Nobody => remembered.user_bytes_max,
            Principal::Key { .. } | Principal::Dev | Principal::DevPage => remembered.key_bytes_max,
        }
    }

    /// The call's idempotency key, with a fingerprint of all that the call says in its body of so many commands. Only of a
    /// body that was read already: of one with fields that nobody knows, their names would be kept.
    pub fn once(&self, headers: &HeaderMap, call: &str, body: &[u8], commands: usize) -> Result<Option<Once>, Problem> {
        let Some(key) = idempotency_key(headers)? else { return Ok(None) };
        let fields = prints(key, call, body, PARTS_MAX.max(commands)).map_err(|error| unreadable(&error))?;
        let once = Once { key: ReplayKey { caller: self.name(), key: digest_text(&[key]) }, fields: Arc::new(fields) };
        let bytes = once.bytes_max(commands) as u64;
        self.app.allowance.take(&self.name(), key, bytes, self.remembered_bytes_max())?;
        Ok(Some(once))
    }
}

/// Segments of the path, percent-decoded.
pub struct Segments<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for Segments<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let wrong = || Problem::bad_request("the path is not percent-encoded UTF-8");
        // The router would take `%zz` for itself, and so give one id two spellings.
        if !is_percent_encoded(parts.uri.path()) {
            return Err(wrong());
        }
        Path::<T>::from_request_parts(parts, app).await.map(|Path(segments)| Self(segments)).map_err(|_| wrong())
    }
}

/// Two segments.
pub type Pair = (String, String);
/// Three segments.
pub type Triple = (String, String, String);

/// What a segment of a path may name.
pub trait Named: Sized {
    /// Reads it, for who calls.
    fn named(segment: &str, caller: &Caller) -> Result<Self, Problem>;
}

impl Named for Name {
    fn named(segment: &str, _caller: &Caller) -> Result<Self, Problem> {
        Ok(Self::new(segment)?)
    }
}

impl Named for KeyId {
    fn named(segment: &str, _caller: &Caller) -> Result<Self, Problem> {
        Ok(Self::new(segment)?)
    }
}

impl Named for ObjectId {
    fn named(segment: &str, _caller: &Caller) -> Result<Self, Problem> {
        Ok(Self::new(segment)?)
    }
}

impl Named for SubjectId {
    fn named(segment: &str, caller: &Caller) -> Result<Self, Problem> {
        caller.subject(segment)
    }
}

/// The query string.
pub struct Params<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        // The parser would put a replacement character where there is no UTF-8.
        if !is_percent_encoded(parts.uri.query().unwrap_or_default()) {
            return Err(Problem::bad_request("the query string is not percent-encoded UTF-8"));
        }
        match axum::extract::Query::<T>::from_request_parts(parts, app).await {
            Ok(axum::extract::Query(params)) => Ok(Self(params)),
            Err(error) => Err(Problem::bad_request(format!("the query string is wrong: {}", error.body_text()))),
        }
    }
}

fn is_percent_encoded(text: &str) -> bool {
    !text.contains('%') || percent_decode(text).is_some()
}

/// The text behind percent-encoding, or `None` where that is broken or not UTF-8.
pub fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        if *first == b'%' {
            let digit = |at: usize| char::from(*tail.get(at)?).to_digit(16);
            bytes.push(u8::try_from(digit(0)? * 16 + digit(1)?).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok()
}

/// The values of a parameter: repeated, or separated by commas, decoded after they are separated.
pub fn listed(query: &str, name: &str) -> Result<Vec<String>, Problem> {
    let values = query.split('&').filter_map(|pair| pair.split_once('=')).filter(|(key, _)| *key == name);
    let parts = values.flat_map(|(_, value)| value.split(',')).filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let plain = part.replace('+', " ");
            percent_decode(&plain).ok_or_else(|| Problem::bad_request("the query string is not percent-encoded UTF-8"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_with_commas_survive_the_query_string() {
        let query = "objects=post:a%2Cb,post%3Ac&x=1&objects=post:d+e&relations=like";
        assert_eq!(listed(query, "objects").unwrap(), ["post:a,b", "post:c", "post:d e"]);
        assert_eq!(listed(query, "relations").unwrap(), ["like"]);
        assert!(listed("objects=%zz", "objects").is_err());
        assert!(listed("objects=%ff", "objects").is_err());
        assert!(listed("objects=%f", "objects").is_err());
    }
}
