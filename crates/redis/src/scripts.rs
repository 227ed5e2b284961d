//! Everything that runs inside Redis.

use crate::connection::Script;

const APPLY: &str = include_str!("scripts/apply.lua");
const BULK: &str = include_str!("scripts/bulk.lua");
const RING: &str = include_str!("scripts/ring.lua");
const OPENED: &str = include_str!("scripts/opened.lua");
const TIME: &str = include_str!("scripts/time.lua");
const RANK: &str = include_str!("scripts/rank.lua");
const FILL: &str = include_str!("scripts/fill.lua");
const TELL: &str = include_str!("scripts/tell.lua");
/// For what ends a commit: it takes no memory that is not taken already, and must not be held up.
const ALWAYS: &str = "#!lua flags=allow-oom\n";

/// Each script once, with its hash.
pub(crate) struct Scripts {
    pub(crate) load: Script,
    pub(crate) order: Script,
    pub(crate) list: Script,
    pub(crate) commit: Script,
    pub(crate) finish: Script,
    pub(crate) verdict: Script,
    pub(crate) opened: Script,
    pub(crate) peek: Script,
    pub(crate) now: Script,
    pub(crate) tick: Script,
    pub(crate) raise: Script,
    pub(crate) register: Script,
    pub(crate) fence: Script,
    pub(crate) stands: Script,
    pub(crate) off: Script,
    pub(crate) kinds: Script,
    pub(crate) kinds_parts: Script,
    pub(crate) ordered: Script,
    pub(crate) ordered_mend: Script,
}

impl Default for Scripts {
    fn default() -> Self {
        let writes = |source: &str| Script::new(source.to_owned(), true);
        let reads = |source: &str| Script::new(source.to_owned(), false);
        Self {
            load: reads(&[RANK, OPENED, TIME, include_str!("scripts/load.lua")].concat()),
            order: reads(&[RANK, OPENED, include_str!("scripts/order.lua")].concat()),
            list: reads(&[OPENED, include_str!("scripts/list.lua")].concat()),
            commit: writes(&[RANK, APPLY, FILL, TELL, RING, BULK, include_str!("scripts/commit.lua")].concat()),
            finish: writes(&[ALWAYS, APPLY, RING, include_str!("scripts/finish.lua")].concat()),
            verdict: writes(&[ALWAYS, RING, include_str!("scripts/verdict.lua")].concat()),
            opened: reads(&[OPENED, "return opened(KEYS[1], true)"].concat()),
            now: reads(&[TIME, include_str!("scripts/now.lua")].concat()),
            tick: writes(&[ALWAYS, TIME, include_str!("scripts/tick.lua")].concat()),
            peek: reads(include_str!("scripts/peek.lua")),
            raise: writes(include_str!("scripts/raise.lua")),
            register: writes(include_str!("scripts/register.lua")),
            stands: reads(include_str!("scripts/stands.lua")),
            off: reads(include_str!("scripts/off.lua")),
            kinds: reads(include_str!("scripts/kinds.lua")),
            kinds_parts: writes(include_str!("scripts/kinds.lua")),
            ordered: reads(include_str!("scripts/ordered.lua")),
            ordered_mend: writes(include_str!("scripts/ordered.lua")),
            fence: writes(include_str!("scripts/fence.lua")),
        }
    }
}

/// Work that one server at a time does for all.
pub(crate) fn here() -> Script {
    Script::new(include_str!("scripts/here.lua").to_owned(), true)
}

pub(crate) fn lease() -> Script {
    Script::new(include_str!("scripts/lease.lua").to_owned(), true)
}

/// Objects that are watched.
pub(crate) fn watch() -> Script {
    Script::new(include_str!("scripts/watch.lua").to_owned(), true)
}
