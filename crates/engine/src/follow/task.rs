//! The task: connects, listens, tells what gathers, beats, holds leases; and again when the connection is lost.
//!
//! What is due by the clock has a moment of its own that nothing moves, and comes before messages; what is asked is
//! looked at after every message. So neither a stream of changes nor one of messages keeps anything waiting.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tally_core::rows::Partitions;
use tokio::time::{Instant, sleep_until, timeout};

use super::notes::{Ask, Shared, refuse};
use super::{Heard, Here, Line, Share, Wire, down};
use crate::{Lease, News, StoreError};

/// News that gathers within this goes out together.
const GATHER: Duration = Duration::from_millis(20);
/// How often a server says that it is there.
const BEAT: Duration = Duration::from_secs(2);
/// How soon a connection that was lost is tried again.
const RETRY: Duration = Duration::from_millis(500);
/// A call that takes longer has lost its connection. Stores have shorter ones of their own.
const CALL_WITHIN: Duration = Duration::from_secs(15);

pub(super) struct Task<W> {
    wire: W,
    shared: Arc<Shared>,
    /// Work that this server holds.
    leases: Vec<Lease>,
    /// Whether it takes part in what is due.
    shares: bool,
    /// Wrong on purpose: every event moves the moment at which what gathers goes out.
    gathers_anew: bool,
}

/// Why a task ends.
struct Closed;

/// Says that the task is no more, also after a panic.
struct Closing(Arc<Shared>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

async fn within<T>(call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    timeout(CALL_WITHIN, call).await.unwrap_or_else(|_| Err(down()))
}

impl<W: Wire> Task<W> {
    pub(super) fn new(wire: W, shared: Arc<Shared>, gathers_anew: bool) -> Self {
        Self { wire, shared, leases: Vec::new(), shares: false, gathers_anew }
    }

    pub(super) async fn run(mut self) {
        // Whoever still asks is not kept waiting, however this ends.
        let _closing = Closing(self.shared.clone());
        loop {
            let lost = match within(self.wire.connect()).await {
                Ok(mut line) => self.listen(&mut line).await,
                Err(error) => Err(error),
            };
            // Another server may have them soon.
            self.shared.hold(Partitions::NONE);
            let Err(error) = lost else { break };
            tracing::warn!(%error, "listening to other servers failed; it is tried again");
            if self.rest().await.is_err() {
                break;
            }
        }
    }

    /// Waits before the next attempt.
    async fn rest(&mut self) -> Result<(), Closed> {
        let until = Instant::now() + RETRY;
        loop {
            tokio::select! {
                biased;
                () = sleep_until(until) => return Ok(()),
                () = self.shared.asked.notified() => {}
            }
            for ask in self.shared.asks().ok_or(Closed)? {
                match ask {
                    Ask::Lease(_, answer) => refuse(answer),
                    Ask::Release(work) => self.leases.retain(|held| *held != work),
                    Ask::Share => self.shares = true,
                    Ask::Leave(_) => return Err(Closed),
                }
            }
        }
    }

    /// Works on one connection until it is lost, or nobody needs it any more.
    async fn listen(&mut self, line: &mut W::Line) -> Result<Closed, StoreError> {
        let leases = self.leases.clone();
        self.shared.forget_said();
        self.beat(line).await?;
        // What lapsed meanwhile and nobody took. Partitions are shared anew with every beat.
        let lapsed = |work: &Lease| work.partition().is_none() && !self.leases.contains(work);
        let lapsed: Vec<Lease> = leases.into_iter().filter(lapsed).collect();
        if !lapsed.is_empty() {
            self.leases.extend(within(line.lease(&lapsed, lapsed.len())).await?);
        }
        // What was said while nobody listened is lost.
        self.shared.hear(Heard::News(News::Anything));
        let mut beat_at = Instant::now() + BEAT;
        let mut flush_at: Option<Instant> = None;
        loop {
            if (flush_at.is_none() || self.gathers_anew) && self.shared.is_due() {
                flush_at = Some(Instant::now() + GATHER);
            }
            tokio::select! {
                biased;
                () = sleep_until(flush_at.map_or(beat_at, |at| at.min(beat_at))) => {
                    if flush_at.is_some_and(|at| at <= Instant::now()) {
                        flush_at = None;
                        self.flush(line).await?;
                    }
                    if beat_at <= Instant::now() {
                        self.beat(line).await?;
                        beat_at = Instant::now() + BEAT;
                    }
                }
                heard = line.hear() => self.shared.hear(heard.ok_or_else(down)?),
                () = self.shared.asked.notified() => {}
            }
            if self.answer(line).await?.is_some() {
                return Ok(Closed);
            }
        }
    }

    async fn answer(&mut self, line: &mut W::Line) -> Result<Option<Closed>, StoreError> {
        let Some(asks) = self.shared.asks() else { return Ok(Some(self.leave(line).await)) };
        let mut failed = None;
        for ask in asks {
            match ask {
                Ask::Lease(_, answer) if failed.is_some() => refuse(answer),
                Ask::Lease(work, answer) => {
                    let leased = within(line.lease(&[work], 1)).await.map(|held| held.contains(&work));
                    if matches!(leased, Ok(true)) && !self.leases.contains(&work) {
                        self.leases.push(work);
                    }
                    failed = leased.as_ref().err().cloned();
                    // Whoever asked may have gone; the lease stays until it is released.
                    let _ = answer.send(leased);
                }
                Ask::Release(work) => {
                    self.leases.retain(|held| *held != work);
                    if failed.is_none() {
                        failed = within(line.release(&[work])).await.err();
                    }
                }
                Ask::Share => {
                    self.shares = true;
                    if failed.is_none() {
                        failed = self.beat(line).await.err();
                    }
                }
                Ask::Leave(left) => {
                    let closed = self.leave(line).await;
                    drop(left);
                    return Ok(Some(closed));
                }
            }
        }
        failed.map_or(Ok(None), Err)
    }

    async fn leave(&mut self, line: &mut W::Line) -> Closed {
        if let Err(error) = within(line.leave(&std::mem::take(&mut self.leases))).await {
            tracing::debug!(%error, "could not say good-bye to the other servers");
        }
        Closed
    }

    /// Says that this server is there, notices those that are no more, and comes to its share of what is due.
    async fn beat(&mut self, line: &mut W::Line) -> Result<(), StoreError> {
        let watching = self.shared.watching();
        let here = Here { watching: &watching, leases: &self.leases, shares: self.shares };
        let beat = within(line.beat(&here)).await?;
        self.shared.set_watched(beat.watched);
        self.leases = beat.leases;
        if beat.missed {
            self.shared.hear(Heard::News(News::Anything));
        }
        self.share(line, beat.share).await
    }

    fn held(&self) -> Partitions {
        self.leases.iter().filter_map(|work| work.partition()).collect()
    }

    /// Gives back what it has too many of, or takes what it has too few of, as far as it is free.
    async fn share(&mut self, line: &mut W::Line, share: Share) -> Result<(), StoreError> {
        if !self.shares {
            return Ok(());
        }
        let too_many = share.too_many(self.held());
        if !too_many.is_empty() {
            self.leases.retain(|work| work.partition().is_none_or(|partition| !too_many.contains(partition)));
            // Nothing more is begun in them before another server may.
            self.shared.hold(self.held());
            let work: Vec<Lease> = Lease::of(too_many).collect();
            within(line.release(&work)).await?;
        }
        let (wanted, count) = share.too_few(self.held());
        if count > 0 {
            let wanted: Vec<Lease> = wanted.into_iter().map(Lease::Due).collect();
            let taken = within(line.lease(&wanted, count)).await?;
            self.leases.extend(taken);
        }
        self.shared.hold(self.held());
        Ok(())
    }

    /// Says what gathered: what is watched here, and what has changed.
    async fn flush(&mut self, line: &mut W::Line) -> Result<(), StoreError> {
        if let Some((watching, new)) = self.shared.take_watching() {
            // After a failure everything is said anew.
            within(line.watch(&watching, &new)).await?;
            if !watching.is_empty() {
                self.shared.set_watched(true);
            }
            // Whoever watches has read already; what changed before the others knew is read again.
            self.shared.hear(Heard::News(News::Of(new)));
        }
        let news = self.shared.take_told();
        if news.is_empty() {
            return Ok(());
        }
        let told = within(line.tell(&news)).await;
        if told.is_err() {
            self.shared.put_back(news);
        }
        told
    }
}
