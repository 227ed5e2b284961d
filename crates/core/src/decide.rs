//! The one place that knows which rule decides which command.

use crate::catalog::Catalog;
use crate::command::{Auth, Call, Command, Decided, Reply};
use crate::error::Refusal;
use crate::time::{Stamp, Timestamp};
use crate::view::{Stop, View};
use crate::{
    attendance, batch, board, counter, job, key, limit, names, object, relation, replay, subject, unique, verify,
};

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

/// The only match on [`Command`] that leads to a rule.
fn run(command: &Command, context: &Context<'_>, view: &mut View) -> Result<Reply, Stop> {
    subject::check_name(command)?;
    match command {
        Command::Relate { relation, object, subject, kind, meta } => {
            let edge = relation::edge_key(relation, object, subject);
            relation::relate(&edge, kind.as_ref(), meta.as_ref(), context, view)
        }
        Command::Unrelate { relation, object, subject } => {
            relation::unrelate(&relation::edge_key(relation, object, subject), context, view)
        }
        Command::Toggle { relation, object, subject, kind, meta } => {
            let edge = relation::edge_key(relation, object, subject);
            relation::toggle(&edge, kind.as_ref(), meta.as_ref(), context, view)
        }
        Command::Count { counter, key, by } => counter::count(counter, key, *by, context, view),
        Command::Observe { unique, key, members } => unique::observe(unique, key, members, context, view),
        Command::Attend { sheet, day, subject, present } => {
            attendance::attend(sheet, *day, subject, *present, context, view)
        }
        Command::Score { board, member, change } => board::score(board, member, *change, context, view),
        Command::Take { limit, key, cost } => limit::take(limit, key, *cost, context, view),
        Command::Batch { atomic, commands } => batch::decide(*atomic, commands, context, view),
        Command::Rehearse { commands } => batch::rehearse(commands, context, view),
        Command::PutObject { object, status, attributes } => {
            object::put(object, status.as_deref(), attributes, context, view)
        }
        Command::DeleteObject { object } => object::delete(object, context, view),
        Command::Forget { subject } => subject::begin_forgetting(subject, context, view),
        Command::Suspend { subject } => subject::suspend(subject, context, view),
        Command::Restore { subject } => subject::restore(subject, context, view),
        Command::Declare => names::declare(context, view),
        Command::RankAnew { board, dense } => board::rank_anew(board, *dense, view),
        Command::Sweep { job, before, edges } => job::sweep(*job, *before, edges, context, view),
        Command::Verify { repair } => verify::begin(*repair, context, view),
        Command::Recount { of, step } => verify::recount(*of, step, context, view),
        Command::Repair { found_in, total, by } => verify::repair(*found_in, total, *by, view),
        Command::PutRight { found_in, fact, who } => verify::put_right(*found_in, fact, who.as_ref(), view),
        Command::PutApiKey { id, key } => key::put(id, key, context, view),
        Command::RevokeApiKey { id } => key::revoke(id, context, view),
        Command::Expire { replays } => replay::expire(replays, context, view),
        Command::ExpireJobs { jobs } => job::expire(jobs, context, view),
        Command::ExpireLimits { limits } => limit::expire(limits, context, view),
    }
}
