//! The read side: loads and scans, then waits until what it saw is durable.

mod boards;
mod counting;
mod readable;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use tally_core::command::JobReply;
use tally_core::condition::Facts;
use tally_core::limits::{FEED_OBJECTS_MAX, FEED_RELATIONS_MAX, PAGE_ITEMS_MAX};
use tally_core::meta::Meta;
use tally_core::object;
use tally_core::query::{
    ApiKeyItem, ApiKeysAnswer, CountAnswer, EdgeAnswer, FeedAnswer, FeedItem, ListAnswer, ListItem,
};
use tally_core::rows::{Changes, CountKey, Edge, EdgeKey, Key, ListKey, Object, Row, Side, Standing, TotalKey, Work};
use tally_core::view::{View, Wants};
use tally_core::{
    Answer, Auth, Catalog, Cursor, KeyId, Name, ObjectId, Query, Refusal, RelationDef, SubjectId, Timestamp,
};
use tally_engine::{CommitError, Engine, Loaded, Page, Place, Range, Seen, Together};

use crate::Error;

pub use readable::Told;
pub(crate) use readable::readable;

/// API keys shown at once.
const API_KEYS_MAX: usize = 10_000;
/// How often something is read anew because it has moved meanwhile. Past it, too many write.
const TRIES_MAX: usize = 64;

pub(crate) async fn answer<E: Engine>(
    engine: &E,
    catalog: &Catalog,
    query: Query,
    auth: &Auth,
    now: Timestamp,
) -> Result<Answer, Error> {
    let mut reader = Reader { engine, catalog, auth, now };
    if engine.is_shared() && catalog.reads_by_time() {
        reader.now = reader.store_time().await?;
    }
    match query {
        Query::Edge { relation, object, subject } => {
            reader.edge(EdgeKey { object, relation, subject }).await.map(Answer::Edge)
        }
        Query::Count { relation, object, viewer } => {
            let relation = catalog.relation(&relation)?.clone();
            let mut items = reader.counts(&[object], &[relation], &[], viewer.as_ref(), true).await?;
            let counts = items.pop().and_then(|item| item.relations.into_values().next());
            Ok(Answer::Count(counts.unwrap_or_default()))
        }
        Query::List { side, relation, id, limit, cursor } => {
            reader.list(side, relation, id, limit, cursor.as_deref()).await.map(Answer::List)
        }
        Query::Counting(query) => reader.counting(query).await.map(Answer::Counting),
        Query::Feed { viewer, objects, relations, counters } => {
            if objects.len() > FEED_OBJECTS_MAX || relations.len().max(counters.len()) > FEED_RELATIONS_MAX {
                let text = format!(
                    "a read has at most {FEED_OBJECTS_MAX} objects and {FEED_RELATIONS_MAX} relations and counters"
                );
                return Err(Refusal::bad_request(text).into());
            }
            let found = relations.iter().map(|name| catalog.relation(name).cloned());
            let relations: Vec<Arc<RelationDef>> = found.collect::<Result<_, _>>()?;
            for counter in &counters {
                catalog.counter(counter)?;
            }
            let items = reader.counts(&objects, &relations, &counters, viewer.as_ref(), false).await?;
            Ok(Answer::Feed(FeedAnswer { items }))
        }
        Query::Object(id) => reader.object(id).await,
        Query::Job(id) => match reader.row(Key::Job(id)).await? {
            Some(Row::Job(job)) if !matches!(job.work, Work::Verifying { .. }) => {
                Ok(Answer::Job(JobReply::new(id, &job)))
            }
            _ => Err(Refusal::NotFound(format!("there is no job `{}`", id.text())).into()),
        },
        Query::ApiKeys => reader.api_keys().await,
    }
}

struct Reader<'a, E> {
    engine: &'a E,
    catalog: &'a Catalog,
    auth: &'a Auth,
    now: Timestamp,
}

impl<E: Engine> Reader<'_, E> {
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

    async fn load_settled(&self, wants: &Wants) -> Result<Loaded, Error> {
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

    async fn scan(&self, range: &Range, limit: usize) -> Result<Page, Error> {
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

    async fn row(&self, key: Key) -> Result<Option<Row>, Error> {
        let loaded = self.load(&Wants::rows(vec![key])).await?;
        Ok(loaded.rows.into_iter().next().flatten())
    }

    async fn edge(&self, key: EdgeKey) -> Result<EdgeAnswer, Error> {
        let relation = self.catalog.relation(&key.relation)?.clone();
        let rows = vec![Key::Edge(key.clone()), Key::Object(key.object.clone())];
        let loaded = self.load(&Wants::rows(rows)).await?;
        let object = object::facts(&key.object, as_object(&loaded.rows[1]));
        let found = as_edge(&loaded.rows[0]);
        let meta = found.and_then(|edge| edge.meta.as_ref());
        self.check_facts(&relation, object, Some(key.subject.as_str()), meta)?;
        Ok(match found {
            Some(edge) => EdgeAnswer {
                active: true,
                created_at: Some(edge.created.time()),
                kind: edge.kind.clone(),
                meta: edge.meta.clone(),
            },
            None => EdgeAnswer { active: false, created_at: None, kind: None, meta: None },
        })
    }

    /// Counts of many objects in many relations, with the viewer's own edges: one load for all.
    /// A relation whose condition says no is left out of an item, or refused where it was `the_one`
    /// asked for.
    async fn counts(
        &self,
        objects: &[ObjectId],
        relations: &[Arc<RelationDef>],
        counters: &[Name],
        viewer: Option<&SubjectId>,
        the_one: bool,
    ) -> Result<Vec<FeedItem>, Error> {
        let mut wants = Wants::default();
        let asks_object = relations.iter().any(|relation| relation.when.read.is_some());
        for object in objects {
            wants.totals.extend(counters.iter().filter_map(|name| counter_of(object, name)));
            if asks_object {
                wants.rows.push(Key::Object(object.clone()));
            }
            for relation in relations {
                wants.totals.extend(totals_of(object, relation));
                if let Some(subject) = viewer {
                    let (object, relation) = (object.clone(), relation.name.clone());
                    wants.rows.push(Key::Edge(EdgeKey { object, relation, subject: subject.clone() }));
                }
            }
        }
        let loaded = self.load(&wants).await?;
        let (mut rows, mut totals) = (loaded.rows.into_iter(), loaded.totals.into_iter());
        let mut items = Vec::with_capacity(objects.len());
        for object in objects {
            let registered = if asks_object { rows.next().flatten() } else { None };
            let values = counters.iter().filter(|name| counter_of(object, name).is_some());
            let values = values.map(|name| (name.clone(), totals.next().unwrap_or_default())).collect();
            let mut counts = BTreeMap::new();
            for relation in relations {
                let edge = viewer.map(|_| rows.next().flatten());
                let meta = edge.as_ref().and_then(as_edge).and_then(|edge| edge.meta.clone());
                let answer = count_answer(relation, edge, &mut totals);
                match self.check(relation, object, as_object(&registered), viewer, meta.as_ref()) {
                    Ok(()) => counts.insert(relation.name.clone(), answer),
                    Err(refusal) if the_one => return Err(refusal.into()),
                    Err(_) => None,
                };
            }
            items.push(FeedItem { object: object.clone(), relations: counts, counters: values });
        }
        Ok(items)
    }

    async fn list(
        &self,
        side: Side,
        name: Name,
        id: String,
        limit: u32,
        cursor: Option<&str>,
    ) -> Result<ListAnswer, Error> {
        let relation = self.catalog.relation(&name)?.clone();
        if limit == 0 || limit > PAGE_ITEMS_MAX {
            return Err(Refusal::bad_request(format!("limit is 1 to {PAGE_ITEMS_MAX}")).into());
        }
        let per_item = self.check_list(&relation, side, &id).await?;
        let list = ListKey { side, id, relation: Some(name.clone()), hidden: false };
        let after = cursor.map(|text| Cursor::decode(text, &list)).transpose()?;
        let range = Range::List { after: after.map(|cursor| Place { relation: name, cursor }), list: list.clone() };
        let page = self.scan(&range, limit as usize).await?;
        let last = page.items.last().filter(|_| page.more);
        let next_cursor = last.and_then(|(key, row)| match (key, row) {
            (Key::Edge(key), Row::Edge(edge)) => Some(Place::of(&list, key, edge).cursor.encode(&list)),
            _ => None,
        });
        let edges = page.items.into_iter().filter_map(|(key, row)| match (key, row) {
            (Key::Edge(key), Row::Edge(edge)) => Some((key, edge)),
            _ => None,
        });
        let mut edges: Vec<(EdgeKey, Edge)> = edges.collect();
        if per_item {
            edges = self.readable_edges(&relation, edges).await?;
        }
        let items = edges.into_iter().map(|(key, edge)| list_item(side, key, edge));
        Ok(ListAnswer { items: items.collect(), next_cursor })
    }

    /// Those edges of a page that the relation's condition lets whoever asks read.
    async fn readable_edges(
        &self,
        relation: &RelationDef,
        edges: Vec<(EdgeKey, Edge)>,
    ) -> Result<Vec<(EdgeKey, Edge)>, Error> {
        let Some(condition) = &relation.when.read else { return Ok(edges) };
        let wants = Wants::rows(edges.iter().map(|(key, _)| Key::Object(key.object.clone())).collect());
        // The page was another question, so these need not be of one moment.
        let objects = self.load_settled(&wants).await?.rows;
        let readable = |((key, edge), object): ((EdgeKey, Edge), Option<Row>)| {
            let object = object::facts(&key.object, as_object(&object));
            let (subject, meta) = (Some(key.subject.as_str()), edge.meta.as_deref());
            let facts = Facts { auth: self.auth, object, subject, meta, now: self.now };
            condition.holds(facts).then_some((key, edge))
        };
        Ok(edges.into_iter().zip(objects).filter_map(readable).collect())
    }

    async fn object(&self, id: ObjectId) -> Result<Answer, Error> {
        match self.row(Key::Object(id.clone())).await? {
            Some(Row::Object(found)) => Ok(Answer::Object(object::show(&id, found))),
            _ => Err(Refusal::ObjectNotFound(id).into()),
        }
    }

    async fn api_keys(&self) -> Result<Answer, Error> {
        let page = self.engine.scan(&Range::API_KEYS, API_KEYS_MAX).await?;
        let items = page.items.into_iter().filter_map(|(key, row)| match (key, row) {
            (Key::ApiKey(id), Row::ApiKey(key)) => Some(ApiKeyItem {
                id,
                name: key.name,
                role: key.role,
                created_at: key.created_at,
                revoked_at: key.revoked_at,
            }),
            _ => None,
        });
        Ok(Answer::ApiKeys(ApiKeysAnswer { items: items.collect() }))
    }

    /// Asks a list's condition: of the object whose list it is, or of the subject. One that is about what differs from
    /// item to item is asked of each, see [`Self::readable_edges`]: true.
    async fn check_list(&self, relation: &RelationDef, side: Side, id: &str) -> Result<bool, Error> {
        let Some(condition) = &relation.when.read else { return Ok(false) };
        let per_item = match side {
            Side::Object => condition.reads_subject(),
            Side::Subject => condition.reads_object(),
        };
        if per_item || condition.reads_meta() {
            return Ok(true);
        }
        match side {
            Side::Object => {
                let id = ObjectId::new(id)?;
                let row = self.row(Key::Object(id.clone())).await?;
                self.check(relation, &id, as_object(&row), None, None)?;
            }
            Side::Subject => self.check_facts(relation, serde_json::Value::Null, Some(id), None)?,
        }
        Ok(false)
    }

    fn check(
        &self,
        relation: &RelationDef,
        id: &ObjectId,
        found: Option<&Object>,
        subject: Option<&SubjectId>,
        meta: Option<&Meta>,
    ) -> Result<(), Refusal> {
        match &relation.when.read {
            Some(_) => self.check_facts(relation, object::facts(id, found), subject.map(SubjectId::as_str), meta),
            None => Ok(()),
        }
    }

    fn check_facts(
        &self,
        relation: &RelationDef,
        object: serde_json::Value,
        subject: Option<&str>,
        meta: Option<&Meta>,
    ) -> Result<(), Refusal> {
        let Some(condition) = &relation.when.read else { return Ok(()) };
        let meta = meta.map(|meta| &**meta);
        condition.check(Facts { auth: self.auth, object, subject, meta, now: self.now })
    }
}

/// A counter of an object, whose id is the key. A key is no longer than an id, so the longest objects have none.
fn counter_of(object: &ObjectId, counter: &Name) -> Option<TotalKey> {
    let key = KeyId::new(object.as_str()).ok()?;
    Some(TotalKey::Counter(CountKey { name: counter.clone(), key }))
}

/// The count first, then a total for each kind.
fn totals_of<'a>(object: &'a ObjectId, relation: &'a RelationDef) -> impl Iterator<Item = TotalKey> + 'a {
    let count = TotalKey::Object { object: object.clone(), relation: relation.name.clone() };
    let kinds = relation.one_of.iter().map(|kind| TotalKey::Kind {
        object: object.clone(),
        relation: relation.name.clone(),
        kind: kind.clone(),
    });
    std::iter::once(count).chain(kinds)
}

fn count_answer(
    relation: &RelationDef,
    edge: Option<Option<Row>>,
    totals: &mut impl Iterator<Item = i64>,
) -> CountAnswer {
    let count = totals.next().unwrap_or_default();
    let kinds: BTreeMap<Name, i64> =
        relation.one_of.iter().map(|kind| (kind.clone(), totals.next().unwrap_or_default())).collect();
    CountAnswer {
        count,
        active: edge.as_ref().map(|row| as_edge(row).is_some()),
        kind: edge.as_ref().and_then(as_edge).and_then(|edge| edge.kind.clone()),
        kinds: (!relation.one_of.is_empty()).then_some(kinds),
    }
}

fn list_item(side: Side, key: EdgeKey, edge: Edge) -> ListItem {
    let other = Some(key.other(side).to_owned());
    let (subject, object) = match side {
        Side::Object => (other, None),
        Side::Subject => (None, other),
    };
    ListItem { subject, object, created_at: edge.created.time(), kind: edge.kind, meta: edge.meta }
}

/// A visible edge.
fn as_edge(row: &Option<Row>) -> Option<&Edge> {
    match row {
        Some(Row::Edge(edge)) if !edge.hidden => Some(edge),
        _ => None,
    }
}

fn as_object(row: &Option<Row>) -> Option<&Object> {
    match row {
        Some(Row::Object(object)) => Some(object),
        _ => None,
    }
}
