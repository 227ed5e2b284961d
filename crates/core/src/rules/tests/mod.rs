//! The promises of the product, as short scripts over the rules alone: no store, no clock.
//!
//! A script is lines of `command -> answer`; [`check`] runs them in order on one small world. After
//! every line the world is recounted, so each script also proves that counts equal their edges, that
//! a refusal writes nothing, and that an answer without `changed` wrote nothing.

mod batch;
mod condition;
mod cost;
mod counting;
mod job;
mod key;
mod limit;
mod meta;
mod object;
mod once;
mod relation;
mod script;
mod subject;
mod verify;
mod world;

use world::World;

/// Runs a script on the usual relations, see [`world::catalog`].
fn check(text: &str) {
    script::run(&mut World::new(), text);
}
