//! Following a sorted set, and comparing both sides.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tally::core::query::TicketQuery;
use tally::core::room::rows::TicketState;
use tally::core::room::{Leave, TicketReply};
use tokio::time::Instant;

use super::copy::Copying;
use super::pages::Walk;
use crate::failure::Failure;

/// How often those are looked for who came at the end.
const FOLLOW_EVERY: Duration = Duration::from_secs(1);
/// How often all of it is read, compared and reported.
const REPORT_EVERY: Duration = Duration::from_secs(3);
/// About how many positions are compared each time.
const SAMPLES: usize = 20;

/// A member that has a ticket.
struct Copied {
    ticket: String,
    /// The last pass that found it in the sorted set.
    pass: u64,
}

/// Both sides, side by side.
pub(super) struct Shadow<'s, 'a> {
    copying: &'s mut Copying<'a>,
    ends_at: Option<Instant>,
    json: bool,
    copied: HashMap<Vec<u8>, Copied>,
    /// Members that cannot be subjects, which were counted.
    refused: HashSet<Vec<u8>>,
    /// Members whose positions were not the same last time. Somebody may just have gone; twice is a difference.
    suspected: HashSet<Vec<u8>>,
    pass: u64,
}

impl<'s, 'a> Shadow<'s, 'a> {
    pub(super) fn new(copying: &'s mut Copying<'a>, lasting: Option<Duration>, json: bool) -> Self {
        let ends_at = lasting.map(|lasting| Instant::now() + lasting);
        let (copied, refused, suspected) = Default::default();
        Self { copying, ends_at, json, copied, refused, suspected, pass: 0 }
    }

    /// Goes on until Ctrl-C, or as long as was said.
    pub(super) async fn run(mut self) -> Result<(), Failure> {
        let stop = tokio::signal::ctrl_c();
        tokio::pin!(stop);
        let source = self.copying.source;
        let key = self.copying.key;
        let mut end = Walk::new(source, key);
        let mut report_at = Instant::now();
        loop {
            let round = async {
                self.follow(&mut end, report_at).await?;
                if Instant::now() < report_at {
                    return Ok(());
                }
                let sample = self.all().await?;
                self.compare(sample).await?;
                report_at = Instant::now() + REPORT_EVERY;
                self.copying.report.tell(self.json)
            };
            // What is cut off in the middle is a join or a look: both may be done again.
            tokio::select! {
                done = round => done?,
                _ = &mut stop => return Ok(()),
            }
            let next = Instant::now() + FOLLOW_EVERY;
            if self.ends_at.is_some_and(|ends_at| ends_at <= next) {
                let sample = self.all().await?;
                return self.compare(sample).await;
            }
            tokio::select! {
                () = tokio::time::sleep_until(next) => {}
                _ = &mut stop => return Ok(()),
            }
        }
    }

    /// Who came at the end since. Where they come faster than they are copied, there is a report in between.
    async fn follow(&mut self, end: &mut Walk<'_>, report_at: Instant) -> Result<(), Failure> {
        while let Some(members) = end.next().await? {
            for (member, _) in members {
                self.meet(member).await?;
            }
            if self.pass > 0 && Instant::now() >= report_at {
                break;
            }
        }
        Ok(())
    }

    /// Everybody: whoever came elsewhere joins, and whoever has gone leaves. Gives some, to be compared.
    async fn all(&mut self) -> Result<Vec<Vec<u8>>, Failure> {
        self.pass += 1;
        let stride = (self.copied.len() / SAMPLES).max(1);
        let (mut sample, mut index) = (Vec::new(), 0);
        // As many as there are now: whoever comes meanwhile is met later, or this would never end.
        let there: usize = self.copying.source.asked(redis::cmd("ZCARD").arg(self.copying.key)).await?;
        let mut walk = Walk::new(self.copying.source, self.copying.key);
        while index < there
            && let Some(members) = walk.next().await?
        {
            for (member, _) in members {
                if index % stride == 0 || self.suspected.contains(&member) {
                    sample.push(member.clone());
                }
                index += 1;
                self.meet(member).await?;
            }
        }
        let pass = self.pass;
        let missed = self.copied.iter().filter(|(_, copied)| copied.pass < pass).map(|(member, _)| member.clone());
        for member in missed.collect::<Vec<_>>() {
            // One whose score was lowered during the walk was walked past.
            if self.rank(&member).await?.is_none()
                && let Some(copied) = self.copied.remove(&member)
            {
                self.leave(copied.ticket).await?;
            }
        }
        Ok(sample)
    }

    /// A member that stands there.
    async fn meet(&mut self, member: Vec<u8>) -> Result<(), Failure> {
        if let Some(copied) = self.copied.get_mut(&member) {
            copied.pass = self.pass;
        } else if !self.refused.contains(&member) {
            match self.copying.copy(&member).await? {
                Some(TicketReply { ticket, .. }) => {
                    self.copied.insert(member, Copied { ticket, pass: self.pass });
                }
                None => {
                    self.refused.insert(member);
                }
            }
        }
        Ok(())
    }

    async fn leave(&mut self, ticket: String) -> Result<(), Failure> {
        // Whoever is inside by now, or over, is none of our business.
        let now = self.ticket(ticket.clone()).await?;
        if matches!(now.state, TicketState::Waiting | TicketState::BeforeOpen) {
            self.copying.target.write(&Leave { room: self.copying.room.clone(), ticket }).await?;
            self.copying.report.left += 1;
        }
        Ok(())
    }

    /// The places of some, on both sides.
    async fn compare(&mut self, sample: Vec<Vec<u8>>) -> Result<(), Failure> {
        let mut suspected = HashSet::new();
        for member in sample {
            let Some(copied) = self.copied.get(&member) else { continue };
            let before = self.rank(&member).await?;
            let ticket = self.ticket(copied.ticket.clone()).await?;
            let after = self.rank(&member).await?;
            let (Some(rank), true) = (before, before == after) else { continue };
            if ticket.state == TicketState::BeforeOpen {
                // It has no position yet.
                continue;
            }
            self.copying.report.compared += 1;
            if ticket.position == Some(rank + 1) {
                continue;
            }
            if self.suspected.contains(&member) {
                self.copying.report.different += 1;
            }
            suspected.insert(member);
        }
        self.suspected = suspected;
        Ok(())
    }

    /// How many stand before a member.
    async fn rank(&self, member: &[u8]) -> Result<Option<u64>, Failure> {
        self.copying.source.asked(redis::cmd("ZRANK").arg(self.copying.key).arg(member)).await
    }

    async fn ticket(&self, ticket: String) -> Result<TicketReply, Failure> {
        self.copying.target.read(&TicketQuery { room: self.copying.room.clone(), ticket }).await?.read()
    }
}
