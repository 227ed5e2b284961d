//! Text with one hole, such as `comment:{}:liked_by`.

use tally::core::ObjectId;

const HOLE: &str = "{}";

/// What stands before the hole, and what behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    before: String,
    after: String,
}

impl Pattern {
    /// Reads a pattern as it is written on the command line.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text.split_once(HOLE) {
            Some((before, after)) if !after.contains(HOLE) => Ok(Self { before: before.into(), after: after.into() }),
            Some(_) => Err(format!("`{text}` has more than one hole {HOLE}; exactly one is needed")),
            None => Err(format!("`{text}` has no hole {HOLE} for the id, as in 'comment:{{}}:liked_by'")),
        }
    }

    /// The object that keys like these are about: `comment:{}` for `comment:{}:liked_by`.
    /// Nothing where that would be a guess.
    pub(super) fn object(&self) -> Option<Self> {
        let kind = self.before.strip_suffix(':').filter(|kind| !kind.contains(':'))?;
        let ends_there = self.after.is_empty() || self.after.starts_with(':');
        let is_one = ends_there && ObjectId::new(&format!("{kind}:1")).is_ok();
        is_one.then(|| Self { before: self.before.clone(), after: String::new() })
    }

    /// The counters that people keep beside such sets: `likes_count` where this says `liked_by`.
    pub(super) fn counts(&self) -> Option<Self> {
        let replace = |text: &str| text.replace("liked_by", "likes_count");
        let other = Self { before: replace(&self.before), after: replace(&self.after) };
        (other != *self).then_some(other)
    }

    /// What stands in the hole, if the text is like this at all. An empty hole is no id.
    pub(super) fn id_in<'a>(&self, text: &'a [u8]) -> Option<&'a [u8]> {
        let id = text.strip_prefix(self.before.as_bytes())?.strip_suffix(self.after.as_bytes())?;
        (!id.is_empty()).then_some(id)
    }

    /// The text with an id in the hole.
    pub(super) fn with(&self, id: &str) -> String {
        format!("{}{id}{}", self.before, self.after)
    }

    /// The same for `SCAN … MATCH`, where only the hole stands for anything.
    pub(super) fn glob(&self) -> String {
        let literal = |text: &str| -> String {
            text.chars().flat_map(|c| "*?[]\\".contains(c).then_some('\\').into_iter().chain([c])).collect()
        };
        format!("{}*{}", literal(&self.before), literal(&self.after))
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.with(HOLE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::parse(text).unwrap()
    }

    #[test]
    fn a_pattern_has_exactly_one_hole() {
        for good in ["comment:{}:liked_by", "{}", "likes:{}", "comment:{{}}:liked_by"] {
            assert_eq!(pattern(good).to_string(), good);
        }
        for (bad, words) in [("comment:*:liked_by", "has no hole"), ("", "has no hole"), ("{}:{}", "more than one")] {
            assert!(Pattern::parse(bad).unwrap_err().contains(words), "{bad}");
        }
    }

    #[test]
    fn the_hole_holds_the_id() {
        let cases: [(&str, &str, Option<&str>); 8] = [
            ("comment:{}:liked_by", "comment:456:liked_by", Some("456")),
            ("comment:{}:liked_by", "comment:4:reply:5:liked_by", Some("4:reply:5")),
            ("comment:{}:liked_by", "comment::liked_by", None),
            ("comment:{}:liked_by", "comment:liked_by", None),
            ("comment:{}:liked_by", "comment:456:disliked_by", None),
            ("comment:{{}}:liked_by", "comment:{456}:liked_by", Some("456")),
            ("aa{}aa", "aaa", None),
            ("{}", "user:1", Some("user:1")),
        ];
        for (text, key, id) in cases {
            assert_eq!(pattern(text).id_in(key.as_bytes()), id.map(str::as_bytes), "{text} in {key}");
        }
    }

    #[test]
    fn the_object_is_what_stands_before_the_rest() {
        for (text, object) in [("comment:{}:liked_by", "comment:{}"), ("post:{}", "post:{}")] {
            assert_eq!(pattern(text).object(), Some(pattern(object)), "{text}");
        }
        for text in ["app:comment:{}:likes", "{}:likes", "likes{}", "Post:{}:likes", "post:{}-likes", "post:{{}}:l"] {
            assert_eq!(pattern(text).object(), None, "{text}");
        }
    }

    #[test]
    fn counters_are_looked_for_where_people_keep_them() {
        assert_eq!(pattern("comment:{}:liked_by").counts(), Some(pattern("comment:{}:likes_count")));
        assert_eq!(pattern("liked_by:{}").counts(), Some(pattern("likes_count:{}")));
        assert_eq!(pattern("comment:{}:likers").counts(), None);
    }

    #[test]
    fn only_the_hole_matches_anything() {
        assert_eq!(pattern("comment:{}:liked_by").glob(), "comment:*:liked_by");
        assert_eq!(pattern("a*[b]?:{}\\").glob(), "a\\*\\[b\\]\\?:*\\\\");
    }
}
