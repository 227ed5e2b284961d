//! Orders: sorted sets whose own order it is.

use tally_core::rows::{Among, OrderKey, Place, Standing};
use tally_engine::StoreError;

use crate::keys::Keys;
use crate::rows::unreadable;

impl Keys {
    /// Who stands where, beside the hash of the rows.
    pub(crate) fn order(&self, order: &OrderKey) -> String {
        format!("{}:order", self.hash_of(order))
    }
}

/// A point in an order, as scripts are asked for it.
pub(crate) fn point_words(standing: &Standing) -> [String; 3] {
    let (among, element) = match &standing.among {
        Among::First => ("f", String::new()),
        Among::Last => ("l", String::new()),
        Among::At { reached, id } => ("a", element_of(*reached, id)),
    };
    [among.into(), order_score(standing.score), element]
}

/// A row's element in an order: its id, behind the digits that break ties.
pub(crate) fn element(place: &Place) -> String {
    element_of(place.reached, &place.id)
}

fn element_of(reached: u64, id: &str) -> String {
    format!("{reached:016x}{id}")
}

/// The score of an element: the highest stands first.
pub(crate) fn order_score(score: i64) -> String {
    (-score).to_string()
}

/// And back again.
pub(crate) fn place_of(element: &str, order_score: &str) -> Result<Place, StoreError> {
    let wrong = || unreadable(element);
    let (reached, id) = element.split_at_checked(16).ok_or_else(wrong)?;
    let reached = u64::from_str_radix(reached, 16).map_err(|_| wrong())?;
    // Exact, since no score is larger than a floating-point number can tell.
    let score = -order_score.parse::<f64>().map_err(|_| wrong())? as i64;
    Ok(Place { score, reached, id: id.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_in_the_order_of_places_and_come_back() {
        let mut all: Vec<String> = Vec::new();
        for reached in [0, 9, 10, 255, 256, u64::MAX] {
            for id in ["!", "a", "a!", "b", "é"] {
                let place = Place { score: -(1 << 53), reached, id: id.into() };
                let element = element(&place);
                assert_eq!(place_of(&element, &order_score(place.score)).unwrap(), place);
                all.push(element);
            }
        }
        assert!(all.is_sorted());
    }
}
