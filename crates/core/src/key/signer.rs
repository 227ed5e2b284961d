//! The keys that sign admissions: one row for all of them, which every server reads.
//!
//! Who checks admissions offline keeps the public keys for a while, and servers hear of a new key a little later. So a key that
//! replaces another is shown before it signs, and the other is shown until what it signed has ended.

use serde::{Deserialize, Serialize};

use super::PutSigner;
use crate::decide::Context;
use crate::error::Refusal;
use crate::limits::LABEL_BYTES_MAX;
use crate::reply::Done;
use crate::rows::{Key, Kind, Row, declare, documents, kind};
use crate::time::Timestamp;
use crate::view::{Stop, View};

/// How long a key is shown before it signs: longer than the set is kept by who has read it.
pub const SHOWN_BEFORE_MS: u64 = 600_000;
/// How long it is shown after it has signed for the last time: as long as the longest admission, and a day.
const SHOWN_AFTER_MS: u64 = 2_678_400_000 + 86_400_000;
/// Most bytes of a part of a key.
const PART_BYTES_MAX: usize = 1_024;
/// Most keys at once. Whoever replaces one more often than that loses the oldest.
const SIGNERS_MAX: usize = 16;

/// A key that signs admissions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Signer {
    /// What it is called: `kid`.
    pub kid: String,
    /// The public part, in base64url.
    pub public: String,
    /// The private part, as the server has sealed it.
    pub private: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it signs, until the next one does.
    pub signs_from: Timestamp,
}

/// All of them, the newest last.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Signers {
    /// The keys.
    pub items: Vec<Signer>,
}

impl Signers {
    /// The one that signs what begins at this time.
    pub fn at(&self, time: Timestamp) -> Option<&Signer> {
        let begun = self.items.iter().rev().find(|signer| signer.signs_from <= time);
        begun.or_else(|| self.items.first())
    }
}

documents!(Signers);

impl Kind for kind::Signers {
    declare!(Signers = b'X' "signers" in "key"
        ("id" Text) => ("items" Json)
        Changed Store);
}

/// Adds a key, unless another one has come first.
pub(super) fn put(command: &PutSigner, context: &Context<'_>, view: &mut View) -> Result<Done, Stop> {
    let Signer { kid, public, private, .. } = &command.signer;
    let fits =
        |text: &String, max: usize| (1..=max).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    if !fits(kid, LABEL_BYTES_MAX) || !fits(public, PART_BYTES_MAX) || !fits(private, PART_BYTES_MAX) {
        return Err(Refusal::bad_request("a signing key has an id, a public and a private part").into());
    }
    let mut signers = view.row(&Key::Signers)?.and_then(Row::into_signers).unwrap_or_default();
    if signers.items.last().map(|last| &last.kid) != command.after.as_ref() {
        return Ok(Done { changed: false });
    }
    let now = context.now();
    if command.at_once {
        signers.items.clear();
    }
    let waits = if signers.items.is_empty() { 0 } else { SHOWN_BEFORE_MS };
    // A key has ended when the next one began to sign.
    let ends: Vec<Timestamp> = signers.items.iter().skip(1).map(|next| next.signs_from).collect();
    let over = ends.iter().filter(|end| end.plus_ms(SHOWN_AFTER_MS) <= now).count();
    signers.items.drain(..over.max((signers.items.len() + 1).saturating_sub(SIGNERS_MAX)));
    let signs_from = if waits == 0 { Timestamp(0) } else { now.plus_ms(waits) };
    signers.items.push(Signer { created_at: now, signs_from, ..command.signer.clone() });
    view.set(Key::Signers, Some(Row::Signers(signers)))?;
    Ok(Done { changed: true })
}
