//! Waiting for a position to become durable, on any executor.

use std::{
    pin::Pin,
    sync::Mutex,
    task::{Context, Poll, Waker},
};

use super::error::Result;

/// The tasks that wait for something, each for a number to be reached.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    waiting: Mutex<Vec<(u64, Waker)>>,
}

impl Waiters {
    /// Resolves when `outcome` has one. Whoever changes the outcome calls [`Waiters::wake`] afterwards.
    pub(super) fn wait<F>(&self, position: u64, outcome: F) -> Wait<'_, F>
    where
        F: FnMut() -> Option<Result<()>> + Unpin,
    {
        Wait { waiters: self, position, outcome, registered: None }
    }

    /// Wakes those who wait for `reached` or less.
    pub(super) fn wake(&self, reached: u64) {
        let mut woken = Vec::new();
        self.lock().retain(|(position, waker)| {
            let waits = *position > reached;
            if !waits {
                woken.push(waker.clone());
            }
            waits
        });
        woken.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(u64, Waker)>> {
        self.waiting.lock().expect("no holder of this lock panics")
    }
}

/// See [`Waiters::wait`].
#[derive(Debug)]
pub(super) struct Wait<'a, F> {
    waiters: &'a Waiters,
    position: u64,
    outcome: F,
    registered: Option<Waker>,
}

impl<F> Future for Wait<'_, F>
where
    F: FnMut() -> Option<Result<()>> + Unpin,
{
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(outcome) = (self.outcome)() {
            return Poll::Ready(outcome);
        }
        {
            let mut waiting = self.waiters.lock();
            // A wake since the last poll took the entry out, so it is put in again each time.
            let position = self.position;
            let known = self.registered.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()))
                && waiting.iter().any(|(at, waker)| *at == position && waker.will_wake(cx.waker()));
            if !known {
                waiting.push((position, cx.waker().clone()));
            }
        }
        self.registered = Some(cx.waker().clone());
        // The outcome may have come between the first look and the registration.
        match (self.outcome)() {
            Some(outcome) => Poll::Ready(outcome),
            None => Poll::Pending,
        }
    }
}

/// Waits on a thread that may block.
pub(super) fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);

    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(std::sync::Arc::new(Unpark(std::thread::current())));
    let mut cx = Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
        std::thread::park();
    }
}
