//! What is signed: a JSON Web Token that says who was let into which room, and until when.

use jsonwebtoken::{Algorithm, Header, Validation, decode, decode_header, encode};
use serde::{Deserialize, Serialize};
use tally::core::reply::TicketReply;
use tally::core::room::seal;
use tally::core::{Name, SubjectId, Timestamp};

use super::signing::SigningKey;

/// Who signs.
const ISSUER: &str = "tally";

/// What an admission says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admitted {
    iss: String,
    /// The room.
    pub aud: String,
    /// Who was let in.
    pub sub: String,
    /// A hash of the ticket.
    pub tid: String,
    /// The ticket's number.
    pub seq: u64,
    /// The admission's own id.
    pub jti: String,
    /// From when on it is good, in seconds since 1970.
    pub nbf: u64,
    /// Until when.
    pub exp: u64,
}

/// The seconds of a time that is a whole one, or before it.
fn floor_s(time: Timestamp) -> u64 {
    time.0 / 1_000
}

/// The same, or after it.
pub fn ceil_s(time: Timestamp) -> u64 {
    time.0.div_ceil(1_000)
}

impl Admitted {
    /// The admission of a ticket that was claimed.
    pub fn of(ticket: &TicketReply) -> Self {
        Self::new(
            &ticket.room,
            &ticket.subject,
            &ticket.ticket,
            ticket.seq,
            ticket.jti(),
            (ticket.facts.since, ticket.facts.until),
        )
    }

    fn new(
        room: &Name,
        subject: &SubjectId,
        ticket: &str,
        seq: u64,
        jti: String,
        (since, until): (Timestamp, Timestamp),
    ) -> Self {
        Self {
            iss: ISSUER.into(),
            aud: room.as_str().into(),
            sub: subject.as_str().into(),
            tid: seal::ticket_hash(ticket),
            seq,
            jti,
            nbf: floor_s(since),
            exp: ceil_s(until),
        }
    }

    /// The same until a later time.
    pub fn until(&self, until: Timestamp) -> Self {
        Self { exp: ceil_s(until), ..self.clone() }
    }

    /// From when on it is good: also what decides which key signs it.
    pub fn since(&self) -> Timestamp {
        Timestamp(self.nbf.saturating_mul(1_000))
    }

    /// Signs it. The same admission has the same text.
    pub fn sign(&self, key: &SigningKey) -> Result<String, String> {
        let header = Header { kid: Some(key.kid.clone()), ..Header::new(Algorithm::EdDSA) };
        encode(&header, self, &key.private).map_err(|error| error.to_string())
    }
}

/// Which key a token says that it is signed with, where it looks like an admission at all.
pub fn kid(token: &str) -> Option<String> {
    let header = decode_header(token).ok()?;
    header.kid.filter(|_| header.alg == Algorithm::EdDSA)
}

/// What a token says, if the key signed it for this room. Whether it is good now says its ticket, by the store's time: this server's
/// clock may be wrong.
pub fn check(token: &str, key: &SigningKey, room: &Name) -> Option<Admitted> {
    let mut validation = Validation::new(Algorithm::EdDSA);
    validation.validate_exp = false;
    validation.set_audience(&[room.as_str()]);
    validation.set_issuer(&[ISSUER]);
    validation.set_required_spec_claims(&["exp", "nbf", "aud", "iss", "sub"]);
    decode::<Admitted>(token, &key.checking, &validation).ok().map(|token| token.claims)
}
