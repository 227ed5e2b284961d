//! What was seen of an object that goes. A sketch knows nobody's name, so of a subject there is nothing to take out of it.

use super::Command;
use crate::id::KeyId;
use crate::rows::{CountKey, Key};
use crate::subject::{Counted, Going, each, take_row};
use crate::view::{Stop, View};

impl Counted for Command {
    fn forget_object(going: &Going<'_, KeyId>, view: &mut View) -> Result<bool, Stop> {
        let of = |name| Key::Unique(CountKey { name, key: going.who.clone() });
        each(going.names.uniques.iter().cloned().map(|name| take_row(of(name), view)))
    }
}
