//! Stamps as PostgreSQL keeps them: microseconds, as a time with a zone.

use std::error::Error;

use tally_core::time::Stamp;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

/// PostgreSQL counts from 2000, stamps count from 1970.
const EPOCH_US: i64 = 946_684_800_000_000;

/// A stamp in a column of type `timestamptz`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct At(pub(crate) Stamp);

impl ToSql for At {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        // What lies behind the end of PostgreSQL's time is as good as its end.
        let us = i64::try_from(self.0.0).unwrap_or(i64::MAX) - EPOCH_US;
        out.extend_from_slice(&us.to_be_bytes());
        Ok(IsNull::No)
    }

    accepts!(TIMESTAMPTZ);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for At {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        let us = i64::from_be_bytes(raw.try_into()?).saturating_add(EPOCH_US);
        Ok(Self(Stamp(u64::try_from(us)?)))
    }

    accepts!(TIMESTAMPTZ);
}
