//! The one place that knows which rule decides which command.

use crate::catalog::Catalog;
use crate::command::{Auth, Call, Command, Decided};
use crate::error::Refusal;
use crate::reply::Reply;
use crate::time::{Stamp, Timestamp};
use crate::view::{Stop, View};
use crate::{replay, subject};

/// What comes with a command from outside: its time, a fresh id, what is declared, who asks.
pub struct Context<'a> {
    /// Unique, and later than that of every command before it: what comes later stands later in lists.
    pub stamp: Stamp,
    /// What time it is: mostly the stamp. Where rows were stamped by a clock that was wrong, stamps go on from those, and
    /// the time does not: see [`Stamp::time_at`].
    pub time: Stamp,
    /// A fresh random number, for rows that need a name.
    pub id: u64,
    /// What is declared.
    pub catalog: &'a Catalog,
    /// Who asks.
    pub auth: &'a Auth,
}

impl Context<'_> {
    /// What time it is, to the millisecond.
    pub fn now(&self) -> Timestamp {
        self.time.time()
    }
}

/// Decides one call. Its outcome counts only if nothing was missed, see [`View::misses`]. A miss that stops it leaves the view as it was; so does a refusal, but for the
/// remembered answer of a call that is to be answered once.
pub fn decide(
    call: &Call,
    stamp: Stamp,
    time: Stamp,
    id: u64,
    catalog: &Catalog,
    view: &mut View,
) -> Result<Decided, Stop> {
    let context = Context { stamp, time, id, catalog, auth: &call.auth };
    let start = view.savepoint();
    let outcome = match &call.once {
        Some(once) => replay::decide(once, &call.command, &context, view),
        None => attempt(&call.command, &context, view).map(|reply| (reply, false)),
    };
    match outcome {
        Ok((reply, replayed)) => {
            let cost = view.cost_since(start);
            view.end_command(start, reply.is_ok());
            Ok(Decided { reply, cost, replayed })
        }
        Err(stop) => {
            view.rollback(start);
            view.forget_command();
            Err(stop)
        }
    }
}

/// Runs a rule; a refusal becomes an answer, with everything it touched put back.
pub(crate) fn attempt(
    command: &Command,
    context: &Context<'_>,
    view: &mut View,
) -> Result<Result<Reply, Refusal>, Stop> {
    let start = view.savepoint();
    match run(command, context, view) {
        Ok(reply) => Ok(Ok(reply)),
        Err(Stop::Refused(refusal)) => {
            view.rollback(start);
            Ok(Err(refusal))
        }
        Err(Stop::Miss) => Err(Stop::Miss),
    }
}

fn run(command: &Command, context: &Context<'_>, view: &mut View) -> Result<Reply, Stop> {
    subject::check_name(command)?;
    command.decide(context, view)
}
