//! Edges go into Tally through the same commands as everybody's, in batches of which each command stands alone.

use std::time::Duration;

use tally::Error;
use tally::core::command::{Batch, Command, Rehearse, Relate, Unrelate};
use tally::core::limits::{ATOMIC_COMMANDS_MAX, FEED_OBJECTS_MAX};
use tally::core::query::{FeedAnswer, FeedQuery};
use tally::core::reply::{EdgeReply, Reply};
use tally::core::{Name, ObjectId, Refusal, SubjectId};
use tally_client::{BatchItem, is_not_now};

use crate::failure::Failure;
use crate::target::{Local, Remote, Target};

/// Commands in one request, one after the other, so that order is kept.
pub(super) const BATCH_EDGES: usize = ATOMIC_COMMANDS_MAX;
/// A server that is busy is asked again after a while, that many times.
const TRIES: u32 = 8;
const PAUSE_FIRST: Duration = Duration::from_millis(50);
/// An import waits for that one, as for all that says "not now"; a dry run need not.
pub(super) const RATE_LIMITED: &str = "rate_limited";

/// One relation of the target.
pub(super) struct Edges<'a> {
    target: &'a Target,
    relation: Name,
    kind: Option<Name>,
    /// Nothing is written; what would be is asked for.
    dry_run: bool,
}

/// What became of a command.
pub(super) type Outcome = Result<EdgeReply, No>;

/// A definite no.
#[derive(Debug, Clone)]
pub(super) struct No {
    pub(super) code: String,
    pub(super) reason: String,
}

impl From<&Refusal> for No {
    fn from(refusal: &Refusal) -> Self {
        Self { code: refusal.code().name().into(), reason: refusal.to_string() }
    }
}

/// Why a batch has no outcomes.
enum Trouble {
    NotNow(Failure),
    TooLarge(Failure),
    Failed(Failure),
}

impl<'a> Edges<'a> {
    pub(super) fn new(target: &'a Target, relation: Name, kind: Option<Name>, dry_run: bool) -> Self {
        Self { target, relation, kind, dry_run }
    }

    /// Refuses a relation that does not exist, before anything is read.
    pub(super) async fn check_relation(&self) -> Result<(), Failure> {
        self.counts(&[probe()?.0]).await.map(|_| ())
    }

    /// Refuses a key that may not write: otherwise every single member would be refused for it.
    /// Taking away what is not there writes nothing.
    pub(super) async fn check_key(&self) -> Result<(), Failure> {
        let (object, subject) = probe()?;
        let command = Command::from(Unrelate { relation: self.relation.clone(), object, subject });
        match self.send(&[command]).await?.pop() {
            Some(Err(no)) if no.code == "forbidden" => Err(Failure::problem(&no.code, &no.reason)),
            _ => Ok(()),
        }
    }

    /// Makes sure that the edges are there; an outcome for each, in order.
    pub(super) async fn relate(&self, edges: &[(ObjectId, SubjectId)]) -> Result<Vec<Outcome>, Failure> {
        let command = |(object, subject): &(ObjectId, SubjectId)| {
            Command::from(Relate {
                relation: self.relation.clone(),
                object: object.clone(),
                subject: subject.clone(),
                kind: self.kind.clone(),
                meta: None,
            })
        };
        self.send(&edges.iter().map(command).collect::<Vec<_>>()).await
    }

    /// Whether an edge is there; one that may not be looked at counts as one that is not.
    pub(super) async fn has(&self, object: &ObjectId, subject: &SubjectId) -> Result<bool, Failure> {
        let ask = FeedQuery {
            viewer: Some(subject.clone()),
            objects: vec![object.clone()],
            relations: vec![self.relation.clone()],
            counters: Vec::new(),
        };
        let feed: FeedAnswer = self.target.read(&ask).await?.read()?;
        let seen = feed.items.first().and_then(|item| item.relations.get(&self.relation)?.active);
        Ok(seen.unwrap_or_default())
    }

    /// How many edges each object has now, where that may be known.
    pub(super) async fn counts(&self, objects: &[ObjectId]) -> Result<Vec<Option<i64>>, Failure> {
        let mut counts = Vec::with_capacity(objects.len());
        for some in objects.chunks(FEED_OBJECTS_MAX) {
            let ask = FeedQuery {
                viewer: None,
                objects: some.to_vec(),
                relations: vec![self.relation.clone()],
                counters: Vec::new(),
            };
            let feed: FeedAnswer = self.target.read(&ask).await?.read()?;
            counts.extend(feed.items.iter().map(|item| item.relations.get(&self.relation).map(|found| found.count)));
        }
        Ok(counts)
    }

    /// Sends commands, in smaller parts where the server wants so, and again where it is busy.
    async fn send(&self, commands: &[Command]) -> Result<Vec<Outcome>, Failure> {
        let mut outcomes = Vec::with_capacity(commands.len());
        let (mut part, mut tries) = (commands.len().min(BATCH_EDGES), 0);
        while outcomes.len() < commands.len() {
            let rest = &commands[outcomes.len()..];
            match self.send_once(&rest[..part.min(rest.len())]).await {
                Ok(some) => {
                    tries = 0;
                    outcomes.extend(some);
                }
                Err(Trouble::TooLarge(_)) if part > 1 => part /= 2,
                Err(Trouble::NotNow(_)) if tries < TRIES => {
                    tokio::time::sleep(PAUSE_FIRST * 2_u32.pow(tries)).await;
                    tries += 1;
                }
                Err(Trouble::NotNow(failure) | Trouble::TooLarge(failure) | Trouble::Failed(failure)) => {
                    return Err(failure);
                }
            }
        }
        Ok(outcomes)
    }

    async fn send_once(&self, commands: &[Command]) -> Result<Vec<Outcome>, Trouble> {
        let outcomes = match self.target {
            Target::Local(local) => applied(local, commands, self.dry_run).await,
            Target::Remote(remote) => posted(remote, commands, self.dry_run).await,
        }?;
        if outcomes.len() != commands.len() {
            let text = "the batch was answered with another number of results: are both of one version?";
            return Err(Trouble::Failed(Failure::new(text)));
        }
        // Done again as a whole: what took effect already changes nothing the second time.
        let not_now = |no: &&No| is_not_now(&no.code) && !(self.dry_run && no.code == RATE_LIMITED);
        match outcomes.iter().find_map(|outcome| outcome.as_ref().err().filter(not_now)) {
            Some(no) => Err(Trouble::NotNow(Failure::problem(&no.code, &no.reason))),
            None => Ok(outcomes),
        }
    }
}

async fn applied(local: &Local, commands: &[Command], dry_run: bool) -> Result<Vec<Outcome>, Trouble> {
    let commands = commands.to_vec();
    let decided = match dry_run {
        true => local.tally().ask(Rehearse { commands }).await,
        false => local.tally().ask(Batch { atomic: false, commands }).await,
    };
    let outcome = |reply| match reply {
        Ok(reply) => edge(reply).map(Ok),
        Err(refusal) => Ok(Err(No::from(&refusal))),
    };
    match decided {
        Ok(replies) => replies.into_iter().map(outcome).collect(),
        Err(error @ Error::Overloaded) => Err(Trouble::NotNow(error.into())),
        Err(Error::Store(error)) if error.is_transient() => Err(Trouble::NotNow(error.into())),
        Err(error) => Err(Trouble::Failed(error.into())),
    }
}

/// What a command about an edge is answered with.
fn edge(reply: Reply) -> Result<EdgeReply, Trouble> {
    reply.try_into().map_err(|other| Trouble::Failed(Failure::new(format!("an edge was answered with {other:?}"))))
}

async fn posted(remote: &Remote, commands: &[Command], dry_run: bool) -> Result<Vec<Outcome>, Trouble> {
    let client = remote.client();
    let call = if dry_run { client.rehearse(commands) } else { client.batch_each(commands) };
    let outcome = |item| match item {
        BatchItem::Reply(reply) => edge(*reply).map(Ok),
        BatchItem::Problem(problem) => Ok(Err(No { code: problem.code, reason: problem.detail })),
    };
    call.await.map_err(sorted)?.results.into_iter().map(outcome).collect()
}

fn sorted(error: tally_client::Error) -> Trouble {
    match &error {
        tally_client::Error::Problem(problem) if problem.code == "too_large" => Trouble::TooLarge(error.into()),
        tally_client::Error::Problem(problem) if problem.is_not_now() => Trouble::NotNow(error.into()),
        _ => Trouble::Failed(error.into()),
    }
}

/// An edge that nobody has.
fn probe() -> Result<(ObjectId, SubjectId), Failure> {
    Ok((ObjectId::new("tally-import:probe")?, SubjectId::new("tally-import-probe")?))
}
