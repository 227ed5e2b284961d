//! Many sorted sources read as one: of rows with the same key the newest wins, deleted ones vanish.

use byteview::ByteView;

use super::{error::Result, overlay::Change};

/// A row: key and value.
pub type Row = (ByteView, ByteView);

pub(super) type Source<'a> = Box<dyn Iterator<Item = Result<Change>> + 'a>;

/// Merges sources that are given newest first and all run in the same direction.
pub(super) struct Merge<'a> {
    sources: Vec<Source<'a>>,
    heads: Vec<Option<Change>>,
    reverse: bool,
    failed: bool,
}

impl<'a> Merge<'a> {
    pub(super) fn new(mut sources: Vec<Source<'a>>, reverse: bool) -> Result<Self> {
        let heads = sources.iter_mut().map(|source| source.next().transpose()).collect::<Result<_>>()?;
        Ok(Self { sources, heads, reverse, failed: false })
    }

    /// The next key that any source has, deleted or not.
    pub(super) fn next_change(&mut self) -> Result<Option<Change>> {
        let mut best: Option<usize> = None;
        for (at, head) in self.heads.iter().enumerate() {
            let Some((key, _)) = head else { continue };
            let sooner = match best.and_then(|best| self.heads[best].as_ref()) {
                None => true,
                Some((other, _)) if self.reverse => key > other,
                Some((other, _)) => key < other,
            };
            if sooner {
                best = Some(at);
            }
        }
        let Some(best) = best else { return Ok(None) };
        let next = self.advance(best)?;
        // Only older sources come after the chosen one.
        for at in best + 1..self.heads.len() {
            let same = |head: &Option<Change>| head.as_ref().map(|(key, _)| key) == next.as_ref().map(|(key, _)| key);
            if same(&self.heads[at]) {
                self.advance(at)?;
            }
        }
        Ok(next)
    }

    fn advance(&mut self, at: usize) -> Result<Option<Change>> {
        let next = self.sources[at].next().transpose()?;
        Ok(std::mem::replace(&mut self.heads[at], next))
    }
}

impl Iterator for Merge<'_> {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.failed {
            match self.next_change() {
                Ok(Some((key, Some(value)))) => return Some(Ok((key, value))),
                Ok(Some((_, None))) => {}
                Ok(None) => return None,
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}
