//! A runner on an engine, and its end.

use std::sync::Arc;

use tally_core::command::Decided;
use tally_core::reply::Reply;
use tally_core::{Catalog, Command};
use tally_engine::{Clock, Engine, Failure, Runner, RunnerOptions};
use tokio::task::JoinHandle;

use crate::sample::call;

/// A runner that is stopped when the case says so.
pub(crate) struct Running {
    pub(crate) runner: Runner,
    done: JoinHandle<()>,
}

impl Running {
    pub(crate) async fn start<E: Engine>(engine: &Arc<E>, catalog: &Arc<Catalog>, clock: impl Clock) -> Self {
        let (engine, options) = (engine.clone(), RunnerOptions::default());
        let started = Runner::start(engine, catalog.clone(), clock, options, Arc::new(|_| {})).await;
        let (runner, done) = started.expect("a runner starts on an engine that was prepared");
        Self { runner, done }
    }

    pub(crate) async fn apply(&self, command: Command) -> Result<Decided, Failure> {
        self.runner.apply(call(command)).await
    }

    /// Runs a command that must be answered and not be refused.
    pub(crate) async fn run(&self, command: Command) -> Reply {
        self.apply(command).await.expect("the store works").reply.expect("nothing here is to be refused")
    }

    /// Lets go, and waits until nothing holds the engine any more.
    pub(crate) async fn stop(self) {
        drop(self.runner);
        self.done.await.expect("a runner ends without a panic");
    }
}
