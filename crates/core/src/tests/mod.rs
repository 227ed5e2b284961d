//! The promises of the product, as short scripts over the rules alone: no store, no clock.
//!
//! A script is lines of `command -> answer`; [`check`] runs them in order on one small world. After
//! every line the world is recounted, so each script also proves that counts equal their edges, that
//! a refusal writes nothing, and that an answer without `changed` wrote nothing.

mod condition;
mod cost;
pub(crate) mod counting;
mod meta;
pub(crate) mod script;
pub(crate) mod world;

use world::World;

/// Runs a script on the usual relations, see [`world::catalog`].
pub(crate) fn check(text: &str) {
    script::run(&mut World::new(), text);
}
