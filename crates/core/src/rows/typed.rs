//! A row as what it is, for whoever knows its key.

use super::{ApiKey, Attendee, Bits, Board, Edge, Job, Names, Object, Replay, Row, Score, Sketch, Subject, Used};
use crate::time::Timestamp;

/// A key says which kind of row it has, so that no other is found there.
macro_rules! typed {
    ($($case:ident: $by_ref:ident -> $type:ty, $owned:ident;)*) => {
        impl Row {
            $(
                #[doc = concat!("As a row of [`Row::", stringify!($case), "`].")]
                pub fn $by_ref(&self) -> Option<&$type> {
                    if let Self::$case(row) = self { Some(row) } else { None }
                }

                #[doc = concat!("The same, taken.")]
                pub fn $owned(self) -> Option<$type> {
                    if let Self::$case(row) = self { Some(row) } else { None }
                }
            )*
        }
    };
}

typed! {
    Edge: edge -> Edge, into_edge;
    Object: object -> Object, into_object;
    Subject: subject -> Subject, into_subject;
    Replay: replay -> Replay, into_replay;
    Job: job -> Job, into_job;
    Unique: unique -> Sketch, into_unique;
    Limit: limit -> Used, into_limit;
    Sheet: sheet -> u64, into_sheet;
    ApiKey: api_key -> ApiKey, into_api_key;
    Touched: touched_at -> Timestamp, into_touched;
    Day: day -> Vec<u64>, into_day;
    Chunk: chunk -> Bits, into_chunk;
    Attendee: attendee -> Attendee, into_attendee;
    Board: board -> Board, into_board;
    Score: score -> Score, into_score;
    Names: names -> Names, into_names;
}

impl Row {
    /// When a counter was last added to.
    pub fn touched(&self) -> Option<Timestamp> {
        if let Self::Touched(at) = self { Some(*at) } else { None }
    }
}
