//! What was seen of an object that goes. A sketch knows nobody's name, so of a subject there is nothing to take out of it.

use super::Command;
use crate::decide::Context;
use crate::id::KeyId;
use crate::rows::{CountKey, Key, Names};
use crate::subject::{Counted, each, take_row};
use crate::view::{Stop, View};

impl Counted for Command {
    fn forget_object(key: &KeyId, names: &Names, _context: &Context<'_>, view: &mut View) -> Result<bool, Stop> {
        let of = |name| Key::Unique(CountKey { name, key: key.clone() });
        each(names.uniques.iter().cloned().map(|name| take_row(of(name), view)))
    }
}
