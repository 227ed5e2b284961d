//! Where a case works: one place, and the engine that is opened there.

use std::sync::Arc;

use tally_engine::Engine;

use crate::EngineFactory;

/// One place for one store.
pub(crate) struct Stand<F: EngineFactory> {
    factory: Arc<F>,
    place: F::Place,
}

impl<F: EngineFactory> Stand<F> {
    pub(crate) fn new(factory: Arc<F>) -> Self {
        let place = factory.place();
        Self { factory, place }
    }

    /// Another place, with nothing in it.
    pub(crate) fn another(&self) -> Self {
        Self::new(self.factory.clone())
    }

    /// The same place, told otherwise.
    pub(crate) fn of(factory: Arc<F>, place: F::Place) -> Self {
        Self { factory, place }
    }

    pub(crate) fn factory(&self) -> &Arc<F> {
        &self.factory
    }

    pub(crate) fn place(&self) -> &F::Place {
        &self.place
    }

    /// Opens what is here.
    pub(crate) async fn open(&self) -> Arc<F::Engine> {
        let engine = self.factory.open(&self.place).await;
        engine.prepare().await.expect("an engine that was opened can be prepared");
        Arc::new(engine)
    }

    /// Whether it can be opened by several at once.
    pub(crate) fn servers(&self) -> bool {
        self.factory.servers()
    }

    pub(crate) fn reopens(&self) -> bool {
        self.factory.reopens()
    }

    /// Closes the engine and opens it again, where that keeps anything.
    pub(crate) async fn reopen(&self, engine: Arc<F::Engine>) -> Arc<F::Engine> {
        if !self.reopens() {
            return engine;
        }
        let engine = Arc::into_inner(engine).expect("nobody else holds the engine any more");
        drop(engine);
        self.open().await
    }

    /// Waits for indexes that follow behind.
    pub(crate) async fn drain(&self, engine: &F::Engine) {
        self.factory.drain(engine).await;
    }
}
