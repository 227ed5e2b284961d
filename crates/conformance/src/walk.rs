//! Walks a list page by page, and holds every page to its promises.

use tally_core::rows::{Edge, EdgeKey, Key, ListKey, Row};
use tally_engine::memory::place_order;
use tally_engine::{Engine, Page, Place, Range};

/// The edges of a page.
pub(crate) fn edges(page: Page) -> Vec<(EdgeKey, Edge)> {
    let edge = |(key, row)| match (key, row) {
        (Key::Edge(key), Row::Edge(edge)) => (key, edge),
        other => panic!("a list holds edges, and this is {other:?}"),
    };
    page.items.into_iter().map(edge).collect()
}

/// One page, checked: of this list only, in order, behind its start, and no longer than asked.
pub(crate) async fn page<E: Engine>(
    engine: &E,
    list: &ListKey,
    after: Option<Place>,
    limit: usize,
) -> (Vec<(EdgeKey, Edge)>, bool) {
    let range = Range::List { list: list.clone(), after: after.clone() };
    let page = engine.scan(&range, limit).await.expect("a scan works");
    let more = page.more;
    let items = edges(page);
    assert!(items.len() <= limit, "{} items on a page of {limit}", items.len());
    assert!(items.len() == limit || !more, "a page with more behind it is full");
    let mut last = after;
    for (key, edge) in &items {
        assert_eq!(key.end(list.side), list.id, "an edge of another list");
        assert_eq!(edge.hidden, list.hidden, "hidden edges stand in lists of their own");
        assert!(list.relation.as_ref().is_none_or(|relation| *relation == key.relation), "another relation");
        let place = Place::of(list, key, edge);
        assert!(last.is_none_or(|last| place_order(&last, &place).is_lt()), "out of order at {key:?}");
        last = Some(place);
    }
    (items, more)
}

/// The whole list, so many at a time.
pub(crate) async fn all<E: Engine>(engine: &E, list: &ListKey, limit: usize) -> Vec<(EdgeKey, Edge)> {
    let mut found = Vec::new();
    loop {
        let after = found.last().map(|(key, edge)| Place::of(list, key, edge));
        let (items, more) = page(engine, list, after, limit).await;
        assert!(!more || !items.is_empty(), "a page that says more and holds nothing");
        found.extend(items);
        if !more {
            return found;
        }
    }
}

/// The ids across, which is what a reader of a list sees.
pub(crate) async fn others<E: Engine>(engine: &E, list: &ListKey) -> Vec<String> {
    all(engine, list, 3).await.iter().map(|(key, _)| key.other(list.side).to_owned()).collect()
}
