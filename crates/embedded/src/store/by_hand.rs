//! A store whose log is written by hand: for tests of what meets a disk that fails.

use std::{path::Path, sync::Arc};

use super::{Options, Store, StoreError, log::LogWriter, open, shared::State, syncer};

/// What the sync thread would have.
pub(crate) struct ByHand {
    log: LogWriter,
    fresh: Option<LogWriter>,
}

impl ByHand {
    pub(crate) fn open(path: &Path) -> (Store, Self) {
        let (shared, log) = open::open(path, Options::default()).unwrap();
        (Store { shared: Arc::new(shared), threads: Default::default() }, Self { log, fresh: None })
    }

    /// Makes everything durable that was applied.
    pub(crate) fn sync(&mut self, store: &Store) {
        let (mut framed, last) = {
            let mut writer = store.shared.writer();
            (std::mem::take(&mut writer.pending), writer.last)
        };
        self.log.append(&store.shared.log, &mut framed).unwrap();
        syncer::publish(&store.shared, last);
    }

    /// The disk fails: what is not durable is refused.
    pub(crate) fn fail(&mut self, store: &Store) {
        let error = StoreError::Unavailable { why: "a test says so".into() };
        self.fresh = syncer::fail(&store.shared, &self.log, &error);
    }

    /// And works again.
    pub(crate) fn recover(&mut self, store: &Store) {
        self.log = syncer::recover(&store.shared, &self.log, self.fresh.take()).unwrap();
        assert_eq!(store.shared.writer().state, State::Running);
    }
}
