//! The read side: gets what a question asks for, of one moment, and waits until what it saw is durable.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use tally_core::read::{Asked, Found, Halt, Seen as Sighted, Sight, TRIES_MAX};
use tally_core::rows::{Changes, Standing, TotalKey};
use tally_core::view::{View, Wants};
use tally_core::{Auth, Catalog, Stamp, Timestamp};
use tally_engine::{CommitError, Engine, Loaded, Page, Range, Seen, Together};

use crate::Error;

/// Questions that one query may ask of the store, those that are asked again included.
const ASKS_MAX: usize = 4 * TRIES_MAX;

/// Reads from a store for somebody.
pub(crate) struct Reader<'a, E> {
    pub(crate) engine: &'a E,
    pub(crate) catalog: &'a Catalog,
    pub(crate) auth: &'a Auth,
    pub(crate) now: Timestamp,
}

impl<E: Engine> Reader<'_, E> {
    /// Runs a question until it has all that it asks for.
    pub(crate) async fn read<T>(&mut self, question: impl Fn(&mut Sight<'_>) -> Result<T, Halt>) -> Result<T, Error> {
        if self.engine.is_shared() && self.catalog.reads_by_time() {
            // Servers' own clocks decide nothing.
            self.now = self.found(self.load(&Wants::default()).await?).now.time();
        }
        let mut seen = Vec::new();
        for _ in 0..ASKS_MAX {
            match question(&mut Sight::new(self.catalog, self.auth, self.now, &seen)) {
                Ok(answer) => return Ok(answer),
                Err(Halt::Refused(refusal)) => return Err(refusal.into()),
                Err(Halt::Moving) => return Err(Error::Overloaded),
                Err(Halt::Missing(asked)) => seen.push(self.find(&asked).await?),
            }
        }
        Err(Error::Overloaded)
    }

    async fn find(&self, asked: &Asked) -> Result<Sighted, Error> {
        Ok(match asked {
            Asked::Load(wants) => Sighted::Found(Arc::new(self.found(self.load(wants).await?))),
            Asked::LoadLoosely(wants) => Sighted::Found(Arc::new(self.found(self.load_settled(wants).await?))),
            Asked::Scan(range, limit) => {
                let Page { items, more, mark: _ } = self.scan(range, *limit).await?;
                Sighted::Page(Arc::new(tally_core::read::Page { items, more }))
            }
        })
    }

    fn found(&self, loaded: Loaded) -> Found {
        let now = loaded.now.unwrap_or(Stamp::at(self.now));
        Found { rows: loaded.rows, totals: loaded.totals, ranks: loaded.ranks, now }
    }

    /// Everything that is wanted, as of one moment.
    async fn load(&self, wants: &Wants) -> Result<Loaded, Error> {
        for _ in 0..TRIES_MAX {
            let loaded = self.load_settled(wants).await?;
            if loaded.of_one_moment || wants.rows.len() + wants.totals.len() + wants.ranks.len() < 2 {
                return Ok(loaded);
            }
            if let Some(checked) = self.checked(wants, loaded).await? {
                return Ok(checked);
            }
        }
        Err(Error::Overloaded)
    }

    /// What was read in several places, as it is at the moment of a commit that changes nothing: it checks the rows, and tells
    /// totals and ranks. Nothing if a row has moved.
    async fn checked(&self, wants: &Wants, mut loaded: Loaded) -> Result<Option<Loaded>, Error> {
        let mut view = View::default();
        for (key, row) in wants.rows.iter().zip(&loaded.rows) {
            view.fill_row(key.clone(), row.clone());
        }
        for (standing, before) in wants.ranks.iter().zip(&loaded.ranks) {
            view.fill_rank(standing.clone(), *before);
            view.tell_rank(standing);
        }
        let asked: BTreeSet<&TotalKey> = wants.totals.iter().collect();
        let adds = asked.iter().map(|key| ((*key).clone(), 0)).collect();
        let changes = Changes { adds, ..Changes::default() };
        let committed = match self.engine.commit(Seen { mark: loaded.mark, view: &view }, &changes).await {
            Ok(committed) => committed,
            Err(CommitError::Conflict) => return Ok(None),
            Err(CommitError::Store(error)) => return Err(error.into()),
        };
        let told: BTreeMap<&TotalKey, i64> = asked.into_iter().zip(committed.totals.unwrap_or_default()).collect();
        for (key, total) in wants.totals.iter().zip(&mut loaded.totals) {
            *total = told.get(key).copied().unwrap_or(*total);
        }
        let ranks = view.told_ranks().iter().zip(committed.ranks.unwrap_or_default());
        let ranks: HashMap<&Standing, u64> = ranks.collect();
        for (standing, rank) in wants.ranks.iter().zip(&mut loaded.ranks) {
            *rank = ranks.get(standing).copied().unwrap_or(*rank);
        }
        Ok(Some(loaded))
    }

    pub(crate) async fn load_settled(&self, wants: &Wants) -> Result<Loaded, Error> {
        let loaded = self.engine.load(wants).await?;
        match self.engine.settle(loaded.mark).await {
            Ok(()) => return Ok(loaded),
            // A failing disk took back what was read: what is left is the answer.
            Err(error) if error.is_transient() => {}
            Err(error) => return Err(error.into()),
        }
        let loaded = self.engine.load(wants).await?;
        self.engine.settle(loaded.mark).await?;
        Ok(loaded)
    }

    pub(crate) async fn scan(&self, range: &Range, limit: usize) -> Result<Page, Error> {
        let page = self.engine.scan(range, limit).await?;
        match self.engine.settle(page.mark).await {
            Ok(()) => return Ok(page),
            // As in `load`.
            Err(error) if error.is_transient() => {}
            Err(error) => return Err(error.into()),
        }
        let page = self.engine.scan(range, limit).await?;
        self.engine.settle(page.mark).await?;
        Ok(page)
    }
}
