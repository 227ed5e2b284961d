//! What an import of a sorted set has done so far.

use serde::Serialize;

use super::Way;
use crate::failure::Failure;
use crate::output::{Json, printable, say, table};

/// How many refused members are named.
const NAMED_MAX: usize = 20;

/// What became of the members.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    /// The room.
    pub(super) room: String,
    /// The sorted set.
    pub(super) key: String,
    /// What was asked for.
    pub(super) mode: Way,
    /// Whether nothing was written.
    pub(super) dry_run: bool,
    /// Members that were read, each once.
    pub(super) members: u64,
    /// Those that got a ticket.
    pub(super) joined: u64,
    /// Those that had one already.
    pub(super) present: u64,
    /// Those that went from the sorted set, and so from the room.
    pub(super) left: u64,
    /// Those that cannot be subjects.
    pub(super) refused: u64,
    /// Some of them.
    pub(super) refusals: Vec<String>,
    /// Positions that were compared.
    pub(super) compared: u64,
    /// Positions that were not the same, twice in a row.
    pub(super) different: u64,
    /// How long it took.
    pub(super) elapsed_ms: u64,
}

impl Report {
    /// Takes note of a member that cannot be a subject.
    pub(super) fn refuse(&mut self, member: &[u8], why: &str) {
        self.refused += 1;
        if self.refusals.len() < NAMED_MAX {
            self.refusals.push(format!("{}: {why}", String::from_utf8_lossy(member)));
        }
    }

    /// Prints all of it.
    pub(super) fn show(&self, json: bool) -> Result<(), Failure> {
        if json {
            return Json::of(self)?.show(true, |_: ()| String::new());
        }
        let number = |name: &str, count: u64| [name.to_owned(), count.to_string()];
        let mut rows = vec![number("members", self.members)];
        if !self.dry_run {
            rows.extend([number("joined", self.joined), number("had a ticket", self.present)]);
        }
        if self.mode == Way::Shadow {
            rows.extend([
                number("went, and left the room", self.left),
                number("positions compared", self.compared),
                number("different", self.different),
            ]);
        }
        rows.push(number("refused", self.refused));
        let refusals = self.refusals.iter().map(|refusal| format!("\nrefused {}", printable(refusal)));
        say(&format!("{}{}\n{}", table([&self.key, ""], rows), refusals.collect::<String>(), self.advice()))
    }

    /// One line while it goes on.
    pub(super) fn tell(&self, json: bool) -> Result<(), Failure> {
        if json {
            return Json::of(self)?.show(true, |_: ()| String::new());
        }
        say(&format!(
            "{} members, {} joined, {} left; {} positions compared, {} different",
            self.members, self.joined, self.left, self.compared, self.different
        ))
    }

    /// What to do next.
    fn advice(&self) -> String {
        let Self { room, key, .. } = self;
        if self.dry_run {
            return "Nothing was written.".to_owned();
        }
        match self.mode {
            Way::Once => format!(
                "Whoever stands in {key} by now stands in `{room}`, in the same order. Again is harmless, and takes \
                 who came since."
            ),
            Way::Shadow => {
                format!("Nothing was taken from {key}. When the positions agree, end it: --mode only")
            }
            Way::Only => format!(
                "The switch is done: join people to `{room}` only, and let them in with `tally room open {room}`. \
                 {key} is as it was; --mode off says how to go back."
            ),
            Way::Off => String::new(),
        }
    }
}
