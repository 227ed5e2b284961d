//! The recount of everything that counts no edges: what rows of every kind say of each other, as it is declared.
//!
//! Rows are read part by part while servers write. So what does not agree is looked at again, with all that it takes in one script:
//! what belongs together is kept together. A bit of a day that nobody seems to own was there before everybody was looked at,
//! and still is: whoever owned it would have been found.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use futures_util::future::{join_all, try_join_all};
use tally_core::Name;
use tally_core::hash::fingerprint;
use tally_core::rows::{Key, Number, OrderKey, RowKind, TotalKey, TotalOf};
use tally_core::verify::{Ledger, Wrong};
use tally_engine::{Audited, Finding, StoreError, recount};

use crate::Redis;
use crate::audit::Tell;
use crate::places::{Hash, Listed, key_in};
use crate::rows;

/// Slots that are looked at together.
const SLOTS_AT_ONCE: usize = 256;
/// Hashes that are read side by side: most are small, and cost the way to Redis and back.
const HASHES_AT_ONCE: usize = 64;
/// Rows with keys of their own that are read together.
const ROWS_AT_ONCE: usize = 256;
/// Facts that are looked at again side by side.
const LOOKS_AT_ONCE: usize = 64;

/// One time over the rows.
struct Pass<'a> {
    ledger: &'a mut Ledger,
    kinds: Vec<RowKind>,
    audited: &'a mut Audited,
    is_first: bool,
    /// Orders whose rows were met.
    orders: BTreeSet<OrderKey>,
    /// Slots in which rows are that imply something.
    slots: BTreeSet<u16>,
}

impl Redis {
    /// Gives every row and every number to whoever adds up what they say, and looks again at what does not agree.
    pub(crate) async fn rows_of_every_kind(&self, audited: &mut Audited, tell: Tell<'_>) -> Result<(), StoreError> {
        let mut ledger = Ledger::default();
        let numbers = self.number_hashes().await?;
        let (mut orders, mut slots, mut is_first) = (BTreeSet::new(), self.used_slots().await?, true);
        loop {
            let kinds = ledger.kinds().collect();
            let (met, used) = (BTreeSet::new(), BTreeSet::new());
            let mut pass = Pass { ledger: &mut ledger, kinds, audited, is_first, orders: met, slots: used };
            for slots in slots.chunks(SLOTS_AT_ONCE) {
                self.go_over_homes(slots, &mut pass).await?;
                tell(Finding::Progress(pass.audited.rows));
            }
            self.go_over_hashes(&mut pass).await?;
            self.go_over_numbers(&numbers, &mut pass).await?;
            orders.append(&mut pass.orders);
            if is_first {
                slots = pass.slots.into_iter().collect();
            }
            is_first = false;
            if !ledger.again() {
                break;
            }
        }
        let mut disordered = BTreeSet::new();
        for order in orders {
            if !self.compare_order(&order, tell).await? {
                disordered.insert(order);
            }
        }
        let (first, others) = ledger.into_wrong().into_iter().partition(|wrong| wrong.fact.comes_first());
        let first = self.look_again(first).await?;
        // What is looked at by way of something that is wrong is told as it was read: it is put right by what it is then.
        let (unsettled, others): (Vec<Wrong>, Vec<Wrong>) = others.into_iter().partition(|wrong: &Wrong| {
            first.iter().any(|first| first.fact.unsettles(&wrong.fact))
                || wrong.fact.order().is_some_and(|order| disordered.contains(&order))
        });
        recount::tell(first, tell);
        recount::tell(self.look_again(others).await?, tell);
        unsettled.into_iter().for_each(|wrong| tell(Finding::Wrong(wrong)));
        Ok(())
    }

    /// Keeps what is wrong as of one moment.
    async fn look_again(&self, found: Vec<Wrong>) -> Result<Vec<Wrong>, StoreError> {
        let mut wrong = Vec::new();
        for found in found.chunks(LOOKS_AT_ONCE) {
            let looking = found.iter().map(|found| recount::look(self, &found.fact, found.who.as_ref()));
            for (found, looked) in found.iter().zip(join_all(looking).await) {
                if let Some(judged) = looked?.filter(|judged| judged.said != judged.counted) {
                    wrong.push(Wrong { judged, ..found.clone() });
                }
            }
        }
        Ok(wrong)
    }

    /// Rows that are kept with something, in some slots.
    async fn go_over_homes(&self, slots: &[u16], pass: &mut Pass<'_>) -> Result<(), StoreError> {
        // In the order in which they are wanted: what others are judged by comes first.
        let (mut keys, mut hashes): (Vec<Key>, BTreeMap<RowKind, Vec<Hash>>) = (Vec::new(), BTreeMap::new());
        let entries = try_join_all(slots.iter().map(|slot| self.entries_of(*slot, None))).await?;
        for (slot, entries) in slots.iter().zip(entries) {
            for entry in entries {
                match self.keys.kind_of(&entry) {
                    Some(kind) if pass.kinds.contains(&kind) => {
                        if kind.implies() {
                            pass.slots.insert(*slot);
                        }
                        match self.keys.listed(&entry)? {
                            Listed::Row(key) => keys.push(key),
                            Listed::Hash(hash) => {
                                pass.orders.extend(hash.order());
                                hashes.entry(kind).or_default().push(hash);
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        for keys in keys.chunks(ROWS_AT_ONCE) {
            for (key, row) in self.rows_of(keys.to_vec()).await? {
                pass.audited.rows += u64::from(pass.is_first);
                pass.ledger.row(&key, &row);
            }
        }
        let (implying, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
            hashes.into_iter().partition(|(kind, _)| kind.implies());
        let others: Vec<Hash> = others.into_values().flatten().collect();
        for hashes in others.chunks(HASHES_AT_ONCE) {
            let reading = hashes.iter().map(|hash| self.rows_in(&hash.key, |field| hash.key_of(field)));
            pass.audited.rows += try_join_all(reading).await?.into_iter().sum::<u64>();
        }
        for hash in implying.into_values().flatten() {
            self.go_over(&hash.key, |field| hash.key_of(field), pass).await?;
        }
        Ok(())
    }

    /// Rows that are not kept with anything.
    async fn go_over_hashes(&self, pass: &mut Pass<'_>) -> Result<(), StoreError> {
        for kind in pass.kinds.clone() {
            for hash in self.keys.hashes(kind) {
                self.go_over(&hash, |field| key_in(kind, field), pass).await?;
            }
        }
        Ok(())
    }

    /// The rows of a hash.
    async fn go_over(
        &self,
        hash: &str,
        key_of: impl Fn(&str) -> Option<Key>,
        pass: &mut Pass<'_>,
    ) -> Result<(), StoreError> {
        self.settle_slot(hash).await?;
        self.fields_of(hash, |field, text| {
            let key = key_of(field).ok_or_else(|| rows::unreadable(field))?;
            pass.audited.rows += u64::from(pass.is_first);
            pass.ledger.row(&key, &rows::row(&key, text)?);
            Ok(())
        })
        .await
    }

    /// How many rows there are in a hash, each of which can be read.
    async fn rows_in(&self, hash: &str, key_of: impl Fn(&str) -> Option<Key>) -> Result<u64, StoreError> {
        let mut read = 0;
        self.settle_slot(hash).await?;
        self.fields_of(hash, |field, text| {
            let key = key_of(field).ok_or_else(|| rows::unreadable(field))?;
            read += 1;
            rows::row(&key, text).map(drop)
        })
        .await?;
        Ok(read)
    }

    /// The fields of a hash, each once.
    async fn fields_of(
        &self,
        hash: &str,
        mut take: impl FnMut(&str, &str) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        // What is there all the time is given once or more.
        let mut seen: HashSet<u64> = HashSet::new();
        let mut cursor = "0".to_owned();
        loop {
            let page;
            (cursor, page) = self.scan_pairs(hash, "HSCAN", &cursor).await?;
            for (field, text) in page.iter().filter(|(field, _)| seen.insert(fingerprint(&[field.as_bytes()]))) {
                take(field, text)?;
            }
            if cursor == "0" {
                return Ok(());
            }
        }
    }

    /// The hashes of numbers that are no rows, and what they count.
    async fn number_hashes(&self) -> Result<BTreeSet<(String, &'static str)>, StoreError> {
        let mut hashes = BTreeSet::new();
        for (table, _, mark) in Number::UNLISTED {
            for node in self.masters().await? {
                let mut cursor = "0".to_owned();
                loop {
                    let keys;
                    (cursor, keys) = self.scan_keys(node.as_ref(), &cursor, table).await?;
                    hashes.extend(keys.into_iter().map(|key| (key, mark)));
                    if cursor == "0" {
                        break;
                    }
                }
            }
        }
        Ok(hashes)
    }

    async fn go_over_numbers(
        &self,
        hashes: &BTreeSet<(String, &'static str)>,
        pass: &mut Pass<'_>,
    ) -> Result<(), StoreError> {
        for (hash, mark) in hashes {
            self.settle_slot(hash).await?;
            self.fields_of(hash, |field, text| {
                let total = self.number_in(hash, mark, field).ok_or_else(|| rows::unreadable(hash))?;
                let is_compared = pass.ledger.total(&total, text.parse().map_err(|_| rows::unreadable(text))?);
                pass.audited.totals += u64::from(pass.is_first && is_compared);
                Ok(())
            })
            .await?;
        }
        Ok(())
    }

    /// The number in a field: its home is its name or its key.
    fn number_in(&self, hash: &str, mark: &str, field: &str) -> Option<TotalKey> {
        let (_, home) = hash.strip_prefix(&self.keys.prefix)?.strip_suffix('}')?.split_once(":{")?;
        let home = home.strip_prefix('%').unwrap_or(home);
        [(home, field), (field, home)].into_iter().find_map(|(name, key)| {
            let total = TotalKey::from_number(mark, Name::new(name).ok()?, key)?;
            let TotalOf::Number(number) = total.of() else { return None };
            let at = self.keys.number(&number);
            (at.hash == hash && at.field == field).then(|| total.clone())
        })
    }
}
