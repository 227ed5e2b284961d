//! Why a call has no answer that was hoped for.

use std::path::PathBuf;

use serde::Deserialize;

use crate::follow::FailedJob;

/// Why a client was not made, or a call did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not a URL that a server can have.
    #[error("`{0}` is not a server; use a URL such as {url}", url = crate::DEFAULT_URL)]
    NotAServer(String),
    /// A URL with a user or a password in it.
    #[error("a URL is shown in messages, so it holds no secret")]
    SecretInUrl,
    /// A key that no header can carry.
    #[error("a key is visible ASCII characters, without spaces")]
    BadKey,
    /// A certificate to trust that cannot be used.
    #[error(transparent)]
    Ca(#[from] CaError),
    /// The HTTP client of this machine cannot be set up.
    #[error("no HTTP client: {0}")]
    Setup(String),
    /// An id that means something else in a URL.
    #[error("the id `{0}` cannot stand in a URL")]
    NotInAUrl(String),
    /// A command that is not for batches.
    #[error("a batch has no place for {0}")]
    NotInABatch(String),
    /// Nobody answers there.
    #[error("cannot reach {base}: {why}")]
    Unreachable {
        /// The server's address.
        base: String,
        /// What the system said.
        why: String,
    },
    /// It does not answer in time. A write may have taken effect or not.
    #[error("{base} did not answer in time; whether a write took effect is seen by reading")]
    TimedOut {
        /// The server's address.
        base: String,
    },
    /// Its certificate is not trusted.
    #[error("cannot trust {base}: {} ({why}); {}", reason.words(), reason.advice())]
    NotTrusted {
        /// The server's address.
        base: String,
        /// In short.
        reason: Unsigned,
        /// At length.
        why: String,
    },
    /// It refused, in the words of the contract.
    #[error(transparent)]
    Problem(Problem),
    /// It refused in other words.
    #[error("{base} answered {status} in other words: is it a Tally server?")]
    OtherWords {
        /// The server's address.
        base: String,
        /// The HTTP status.
        status: String,
    },
    /// It answered something else than the contract promises.
    #[error("the answer is not what this release expects ({0}): are both of one version?")]
    NotUnderstood(serde_json::Error),
    /// A job that was waited for has failed.
    #[error(transparent)]
    Failed(#[from] FailedJob),
}

/// What is wrong with a file of certificates to trust.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CaError {
    /// It is absent, may not be read, or is not PEM.
    #[error("cannot read {}: {reason}; name a PEM file that can be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system, or the PEM parser, said.
        reason: String,
    },
    /// It holds no certificate.
    #[error("{} holds no certificate; it should have -----BEGIN CERTIFICATE-----", .0.display())]
    Empty(PathBuf),
    /// Its certificates cannot be used.
    #[error("{} cannot be used: {reason}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What the library said.
        reason: String,
    },
}

/// Why a certificate is not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsigned {
    /// It is for another name.
    OtherName,
    /// It is too old.
    Expired,
    /// Nobody who is trusted has signed it.
    Unknown,
}

impl Unsigned {
    /// What is wrong.
    pub fn words(self) -> &'static str {
        match self {
            Self::OtherName => "its certificate is for another name",
            Self::Expired => "its certificate has expired",
            Self::Unknown => "nobody that this machine trusts has signed its certificate",
        }
    }

    /// What a person can do about it.
    pub fn advice(self) -> &'static str {
        match self {
            Self::OtherName => "call the server as its certificate does",
            Self::Expired => "give the server a new one",
            Self::Unknown => "if it is yours, name the certificate, or the authority's that signed it",
        }
    }
}

/// A refusal as the server writes it (RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, thiserror::Error)]
#[error("{code}: {detail}")]
pub struct Problem {
    /// The stable code to decide on.
    pub code: String,
    /// What is wrong here.
    pub detail: String,
    /// The HTTP status.
    #[serde(default)]
    pub status: u16,
    /// The place of the refused command in its batch.
    #[serde(default)]
    pub index: Option<usize>,
    /// The refused command's own code.
    #[serde(default)]
    pub cause: Option<String>,
}

impl Problem {
    /// Whether it says "not now" rather than "no".
    pub fn is_not_now(&self) -> bool {
        is_not_now(&self.code)
    }
}

/// Whether a code says "not now" rather than "no".
pub fn is_not_now(code: &str) -> bool {
    matches!(code, "overloaded" | "store_unavailable" | "rate_limited")
}

/// The last cause is what the system said; what stands above it is how the library came there.
pub(crate) fn root(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
