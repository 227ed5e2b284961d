//! The recount of everything that counts no edges: what rows of every kind say of each other, as it is declared.

use tally_core::Name;
use tally_core::rows::{Number, TotalKey};
use tally_engine::{StoreError, recount};

use crate::audit::Audit;
use crate::{codec, keys};

impl Audit<'_> {
    /// Gives every row and every number to whoever adds up what they say.
    pub(crate) fn rows_of_every_kind(&mut self) -> Result<(), StoreError> {
        let mut is_first = true;
        let wrong = recount::at_one_moment(|ledger| {
            for kind in ledger.kinds() {
                for row in self.table(kind.declared().letter) {
                    let (bytes, value) = row?;
                    self.read(1);
                    self.audited.rows += u64::from(is_first);
                    let key = keys::read_row(&bytes).ok_or_else(|| keys::unreadable(&bytes))?;
                    ledger.row(&key, &codec::read_row(&key, &value)?);
                }
            }
            for (_, letter, mark) in Number::UNLISTED {
                for row in self.table(letter) {
                    let (bytes, value) = row?;
                    let total = read_number(mark, &bytes).ok_or_else(|| keys::unreadable(&bytes))?;
                    let is_compared = ledger.total(&total, codec::read_total(&value)?);
                    self.audited.totals += u64::from(is_first && is_compared);
                }
            }
            is_first = false;
            Ok(())
        })?;
        recount::tell(wrong, self.tell);
        Ok(())
    }
}

fn read_number(mark: &str, bytes: &[u8]) -> Option<TotalKey> {
    let ([name], key) = keys::split::<1>(bytes)?;
    TotalKey::from_number(mark, Name::new(name).ok()?, std::str::from_utf8(key).ok()?)
}
