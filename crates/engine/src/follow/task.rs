//! The task: connects, listens, tells what gathers, beats, holds leases; and again when the connection is lost.
//!
//! What is due by the clock has a moment of its own that nothing moves, and comes before messages; what is asked is
//! looked at after every message. So neither a stream of changes nor one of messages keeps anything waiting.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};

use super::notes::{Ask, Shared, refuse};
use super::{Heard, Line, Wire, down};
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
        Self { wire, shared, leases: Vec::new(), gathers_anew }
    }

    pub(super) async fn run(mut self) {
        // Whoever still asks is not kept waiting, however this ends.
        let _closing = Closing(self.shared.clone());
        loop {
            let lost = match within(self.wire.connect()).await {
                Ok(mut line) => self.listen(&mut line).await,
                Err(error) => Err(error),
            };
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
                    Ask::Leave(_) => return Err(Closed),
                }
            }
        }
    }

    /// Works on one connection until it is lost, or nobody needs it any more.
    async fn listen(&mut self, line: &mut W::Line) -> Result<Closed, StoreError> {
        for work in std::mem::take(&mut self.leases) {
            if within(line.lease(work)).await? {
                self.leases.push(work);
            }
        }
        self.shared.forget_said();
        self.beat(line).await?;
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
                    let leased = within(line.lease(work)).await;
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
                        failed = within(line.release(work)).await.err();
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

    /// Says that this server is there, and notices those that are no more.
    async fn beat(&mut self, line: &mut W::Line) -> Result<(), StoreError> {
        let beat = within(line.beat(&self.shared.watching(), &self.leases)).await?;
        self.shared.set_watched(beat.watched);
        self.leases = beat.leases;
        if beat.missed {
            self.shared.hear(Heard::News(News::Anything));
        }
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
            self.shared.hear(Heard::News(News::Counts(new.into_iter().collect())));
        }
        let (changed, words) = self.shared.take_told();
        if changed.is_empty() && words.is_empty() {
            return Ok(());
        }
        let told = within(line.tell(&changed, &words)).await;
        if told.is_err() {
            self.shared.put_back(changed, words);
        }
        told
    }
}
