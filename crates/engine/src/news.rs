//! What servers on one store tell each other: that something about a topic has changed. Nothing else is told: whoever hears
//! it looks, so that a message may come late, twice, or in another order.

use std::collections::BTreeSet;
use std::fmt;

use tally_core::{Name, ObjectId};

/// What something can have changed about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Topic {
    /// The counts of an object.
    Counts(ObjectId),
    /// A room: positions in it have fallen, or it is set up in another way.
    Room(Name),
    /// What is due: something was made that is due sooner than whoever does it may look by itself.
    Due,
    /// API keys.
    Keys,
    /// Jobs: there is a new one.
    Jobs,
}

impl Topic {
    /// Whether every server is told of it. There is little to tell about such a topic; of the others there are many, and they
    /// are told to those who watch them.
    pub fn is_for_all(&self) -> bool {
        match self {
            Self::Counts(_) | Self::Room(_) => false,
            Self::Due | Self::Keys | Self::Jobs => true,
        }
    }

    /// As [`Topic`] is written.
    pub fn read(text: &str) -> Option<Self> {
        match text.split_once(' ') {
            Some(("counts", object)) => ObjectId::new(object).ok().map(Self::Counts),
            Some(("room", room)) => Name::new(room).ok().map(Self::Room),
            Some(_) => None,
            None if text == "due" => Some(Self::Due),
            None if text == "keys" => Some(Self::Keys),
            None if text == "jobs" => Some(Self::Jobs),
            None => None,
        }
    }
}

/// The same in every store.
impl fmt::Display for Topic {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counts(object) => write!(to, "counts {object}"),
            Self::Room(room) => write!(to, "room {room}"),
            Self::Due => to.write_str("due"),
            Self::Keys => to.write_str("keys"),
            Self::Jobs => to.write_str("jobs"),
        }
    }
}

/// What one server on a shared store tells the others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum News {
    /// Something about these has changed.
    Of(BTreeSet<Topic>),
    /// Something about anything may have: more than is told one by one, or some news may have been missed.
    Anything,
}

impl News {
    /// How it is said that anything may have changed.
    pub const ANYTHING: &'static str = "anything";

    /// News of some topics.
    pub fn of(topics: impl IntoIterator<Item = Topic>) -> Self {
        Self::Of(topics.into_iter().collect())
    }

    /// What was said of one topic. What cannot be read may have been anything: it is of a newer release.
    pub fn read(text: &str) -> Self {
        Topic::read(text).map_or(Self::Anything, |topic| Self::of([topic]))
    }

    /// Both.
    pub fn add(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::Of(topics), Self::Of(others)) => topics.extend(others),
            (Self::Anything, _) | (_, Self::Anything) => *self = Self::Anything,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Of(topics) if topics.is_empty())
    }

    /// No more topics than so many: of more it is said that anything may have changed.
    pub fn bound(&mut self, topics_max: usize) {
        if matches!(self, Self::Of(topics) if topics.len() > topics_max) {
            *self = Self::Anything;
        }
    }
}

impl Default for News {
    fn default() -> Self {
        Self::Of(BTreeSet::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(object: &str) -> Topic {
        Topic::Counts(ObjectId::new(object).unwrap())
    }

    #[test]
    fn a_topic_is_read_as_it_is_written() {
        let room = Topic::Room(Name::new("due").unwrap());
        for topic in [counts("post:1"), counts("post:keys"), room, Topic::Due, Topic::Keys, Topic::Jobs] {
            assert_eq!(Topic::read(&topic.to_string()), Some(topic));
        }
        for text in ["", "counts", "counts ", "room", "room ", "rooms sale", News::ANYTHING] {
            assert_eq!(News::read(text), News::Anything, "{text:?}");
        }
    }

    #[test]
    fn news_add_up_and_are_bounded() {
        let mut news = News::default();
        assert!(news.is_empty());
        news.add(News::of([Topic::Keys]));
        news.add(News::of([Topic::Jobs, Topic::Keys]));
        news.bound(2);
        assert_eq!(news, News::of([Topic::Keys, Topic::Jobs]));
        news.add(News::of([counts("post:1")]));
        news.bound(2);
        assert_eq!(news, News::Anything);
        news.add(News::of([Topic::Keys]));
        assert_eq!(news, News::Anything);
    }
}
