//! What to import, and what the names in Redis mean.

use tally::core::{ObjectId, SubjectId};

use super::pattern::Pattern;

/// Bytes of a member that is shown. One may be half a gigabyte.
const SHOWN_BYTES: usize = 300;

/// What to import.
pub(super) struct Plan {
    pub(super) sets: Pattern,
    pub(super) object: Pattern,
    pub(super) subject: Pattern,
    pub(super) counts: Option<Pattern>,
    pub(super) dry_run: bool,
}

impl Plan {
    /// The id in a key's hole, and the object that it makes; or why it makes none.
    pub(super) fn object_of(&self, id: &[u8]) -> Result<(String, ObjectId), String> {
        let id = std::str::from_utf8(id).map_err(|_| "the object's id is not UTF-8".to_owned())?;
        let object = ObjectId::new(&self.object.with(id)).map_err(|refusal| refusal.to_string())?;
        Ok((id.to_owned(), object))
    }

    /// Who a member is; or why it is nobody.
    pub(super) fn subject_of(&self, member: &[u8]) -> Result<SubjectId, String> {
        let subject = &self.subject;
        if member.is_empty() {
            return Err("it is empty".into());
        }
        let id = subject.id_in(member).ok_or_else(|| format!("it is not like {subject}"))?;
        let id = std::str::from_utf8(id).map_err(|_| "it is not UTF-8".to_owned())?;
        SubjectId::new(id).map_err(|refusal| refusal.to_string())
    }

    /// The key of the old counter, if there are any.
    pub(super) fn counter_of(&self, id: &str) -> Option<String> {
        self.counts.as_ref().map(|counts| counts.with(id))
    }
}

/// Bytes as a person can read them.
pub(super) fn shown(bytes: &[u8]) -> String {
    let some = &bytes[..bytes.len().min(SHOWN_BYTES)];
    let cut = if some.len() < bytes.len() { "…" } else { "" };
    let text = match std::str::from_utf8(some) {
        Ok(text) => text.to_owned(),
        // The cut may have gone through a character.
        Err(error) if error.error_len().is_none() && !cut.is_empty() => String::from_utf8_lossy(some).into_owned(),
        Err(_) => some.escape_ascii().to_string(),
    };
    format!("{text}{cut}")
}
