//! Every name that was ever declared.

pub mod rows;
mod rule;

use crate::decide::Context;
use crate::operation::{Operation, operations};
use crate::reply::Done;
use crate::view::{Stop, View};

pub(crate) use rule::all;

/// Writes down which names are declared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Declare;

operations!(Names: Declare; counts nothing);

impl Operation for Declare {
    type Reply = Done;

    fn decide(&self, context: &Context<'_>, view: &mut View) -> Result<Done, Stop> {
        rule::declare(context, view)
    }
}
