//! A sorted set in pages, in its own order: score, then member.
//!
//! Others write to it meanwhile, so a page begins at the score where the one before ended, and leaves out what was read: equal
//! scores stand in the order of their members. Where more members share a score than fit on a page, it begins some places
//! later, and goes back where it finds that it went too far. Scores go back to Redis as the text that it wrote: no digit is lost.

use crate::failure::Failure;
use crate::import::Source;

/// About how many members are read at once.
const PAGE: usize = 1_000;

/// A member, and its score as Redis writes it.
pub(super) type Scored = (Vec<u8>, String);

/// A walk through a sorted set. One that has ended may go on: it finds what came behind its end since.
pub(super) struct Walk<'a> {
    source: &'a Source,
    key: &'a str,
    place: Place,
}

/// Where a walk is.
#[derive(Debug)]
struct Place {
    /// The score of the last member that was read.
    score: String,
    /// That member.
    last: Option<Vec<u8>>,
    /// How many places behind the first of this score the next page begins.
    skip: usize,
}

/// What a page tells.
#[derive(Debug, PartialEq)]
enum Found {
    /// Members that were not read before.
    New(Vec<Scored>),
    /// Nothing new there; the place has moved.
    Again,
    /// There is nothing behind it.
    End,
}

impl<'a> Walk<'a> {
    pub(super) fn new(source: &'a Source, key: &'a str) -> Self {
        Self { source, key, place: Place { score: "-inf".to_owned(), last: None, skip: 0 } }
    }

    /// The next members; none at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Scored>>, Failure> {
        loop {
            let Place { score, skip, .. } = &self.place;
            let mut cmd = redis::cmd("ZRANGEBYSCORE");
            cmd.arg(self.key).arg(score).arg("+inf").arg("WITHSCORES").arg("LIMIT").arg(*skip).arg(PAGE);
            let page: Vec<Scored> = self.source.asked(&cmd).await?;
            match self.place.turn(page, PAGE) {
                Found::New(members) => return Ok(Some(members)),
                Found::Again => {}
                Found::End => return Ok(None),
            }
        }
    }
}

impl Place {
    /// Moves behind a page.
    fn turn(&mut self, page: Vec<Scored>, full: usize) -> Found {
        let (Some(first), Some(end)) = (page.first(), page.last()) else {
            return if self.skip == 0 { Found::End } else { self.go_back() };
        };
        if self.skip > 0 && self.is_new(first) {
            // Members before it have gone, so some between may not have been read.
            return self.go_back();
        }
        let same = |one: &Scored, score: &str| is_equal(&one.1, score);
        let length = page.len();
        if !self.is_new(end) {
            if length < full {
                return Found::End;
            }
            // The last of this page is the first of the next: where they do not meet, somebody has gone.
            self.skip += length - 1;
            return Found::Again;
        }
        self.skip = match same(end, &self.score) {
            true => self.skip + length - 1,
            false => page.iter().rev().take_while(|one| same(one, &end.1)).count() - 1,
        };
        let (last, score) = end.clone();
        let new = page.into_iter().filter(|one| self.is_new(one)).collect();
        (self.last, self.score) = (Some(last), score);
        Found::New(new)
    }

    fn go_back(&mut self) -> Found {
        self.skip = 0;
        Found::Again
    }

    fn is_new(&self, (member, score): &Scored) -> bool {
        self.last.as_ref().is_none_or(|last| !is_equal(score, &self.score) || member > last)
    }
}

/// Whether Redis takes two scores for equal: -0 is 0.
fn is_equal(a: &str, b: &str) -> bool {
    a == b || a.parse::<f64>().is_ok_and(|a| b.parse() == Ok(a))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sorted set as Redis keeps it.
    struct Set(Vec<(f64, Vec<u8>)>);

    impl Set {
        fn page(&self, place: &Place, full: usize) -> Vec<Scored> {
            let from: f64 = place.score.parse().unwrap();
            let behind = self.0.iter().filter(|(score, _)| *score >= from).skip(place.skip).take(full);
            behind.map(|(score, member)| (member.clone(), score.to_string())).collect()
        }

        fn add(&mut self, score: f64, member: &str) {
            self.0.push((score, member.into()));
            self.0.sort_by(|a, b| a.partial_cmp(b).unwrap());
        }
    }

    /// Walks to the end, with something done to the set after every page.
    fn walked(set: &mut Set, full: usize, mut meanwhile: impl FnMut(&mut Set, usize)) -> Vec<String> {
        let mut place = Place { score: "-inf".to_owned(), last: None, skip: 0 };
        let mut all = Vec::new();
        for step in 0..10_000 {
            match place.turn(set.page(&place, full), full) {
                Found::New(members) => all.extend(members.into_iter().map(|it| String::from_utf8(it.0).unwrap())),
                Found::Again => {}
                Found::End => return all,
            }
            meanwhile(set, step);
        }
        panic!("it does not end");
    }

    fn set(members: usize, ties: usize) -> Set {
        let mut set = Set(Vec::new());
        (0..members).for_each(|n| set.add((n / ties) as f64, &format!("m{n:05}")));
        set
    }

    #[test]
    fn every_member_once_in_order_however_many_share_a_score() {
        for (members, ties) in [(0, 1), (1, 1), (10, 1), (40, 4), (41, 7), (100, 100), (99, 33)] {
            let mut set = set(members, ties);
            let expected: Vec<String> = (0..members).map(|n| format!("m{n:05}")).collect();
            assert_eq!(walked(&mut set, 5, |_, _| {}), expected, "{members} by {ties}");
        }
    }

    #[test]
    fn who_goes_meanwhile_hides_nobody_and_who_comes_behind_is_found() {
        for ties in [1, 3, 200] {
            let mut set = set(200, ties);
            let seen = walked(&mut set, 5, |set, step| {
                if step < 60 {
                    set.0.remove(0);
                    set.add(1_000.0, &format!("n{step:05}"));
                }
            });
            let mut sorted = seen.clone();
            sorted.sort();
            sorted.dedup();
            assert_eq!(seen, sorted, "in order, nobody twice");
            let missed = set.0.iter().filter(|(_, member)| !seen.iter().any(|it| it.as_bytes() == member.as_slice()));
            assert_eq!(missed.count(), 0, "{ties}");
        }
    }

    #[test]
    fn minus_zero_is_zero() {
        assert!(is_equal("-0", "0") && is_equal("inf", "inf") && !is_equal("1.0000000000000002", "1"));
    }
}
