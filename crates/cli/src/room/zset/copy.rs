//! Members of a sorted set get tickets, in their order.

use std::time::Duration;

use indicatif::ProgressBar;
use tally::core::room::{Join, TicketReply};
use tally::core::{Name, SubjectId};
use tally_client::is_not_now;

use super::pages::Walk;
use super::report::Report;
use crate::failure::Failure;
use crate::import::Source;
use crate::target::Target;

/// A server that is busy is asked again after a while, that many times.
const TRIES: u32 = 8;
const PAUSE_FIRST: Duration = Duration::from_millis(50);

/// An import on its way.
pub(super) struct Copying<'a> {
    pub(super) source: &'a Source,
    pub(super) target: &'a Target,
    pub(super) key: &'a str,
    pub(super) room: &'a Name,
    pub(super) token: String,
    pub(super) report: Report,
    pub(super) bar: ProgressBar,
}

impl Copying<'_> {
    /// Everybody who stands there, once.
    pub(super) async fn pass(&mut self) -> Result<(), Failure> {
        let mut walk = Walk::new(self.source, self.key);
        while let Some(members) = walk.next().await? {
            for (member, _) in members {
                self.copy(&member).await?;
            }
        }
        Ok(())
    }

    /// Gives a member its ticket; nothing where it cannot be a subject, or nothing is to be written.
    pub(super) async fn copy(&mut self, member: &[u8]) -> Result<Option<TicketReply>, Failure> {
        self.report.members += 1;
        self.bar.set_position(self.report.members);
        let subject = match std::str::from_utf8(member).map(SubjectId::new) {
            Ok(Ok(subject)) => subject,
            Ok(Err(error)) => {
                self.report.refuse(member, &error.to_string());
                return Ok(None);
            }
            Err(_) => {
                self.report.refuse(member, "not UTF-8");
                return Ok(None);
            }
        };
        if self.report.dry_run {
            return Ok(None);
        }
        // One after the other: the order in which joins are committed is the order in which people stand.
        let (ticket, is_new) = self.join(subject).await?;
        *(if is_new { &mut self.report.joined } else { &mut self.report.present }) += 1;
        Ok(Some(ticket))
    }

    async fn join(&self, subject: SubjectId) -> Result<(TicketReply, bool), Failure> {
        let join = Join {
            room: self.room.clone(),
            subject: Some(subject),
            token: Some(self.token.clone()),
            fresh: String::new(),
            ip: None,
        };
        let mut pause = PAUSE_FIRST;
        for _ in 1..TRIES {
            match self.target.join(&join).await {
                Err(failure) if failure.text().split(':').next().is_some_and(is_not_now) => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                other => return other,
            }
        }
        self.target.join(&join).await
    }
}
