//! Why a copy was not begun, or is not whole, and what to do then.

/// Why there is no copy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CopyError {
    /// Source and target are one.
    #[error("both URLs name the same store; name another one to copy to")]
    SameStore,
    /// The target is in use.
    #[error("the store to copy to holds rows already; name an empty one")]
    NotEmpty,
    /// The target has servers.
    #[error("a server has the store to copy to open; stop it first, or name another store")]
    Served,
    /// The target is being filled from somewhere else.
    #[error("the store to copy to is a half-made copy of {from}; go on from there, or name an empty one")]
    OtherSource {
        /// Where its rows come from.
        from: String,
    },
    /// The source is not whole.
    #[error("the store to copy from is itself a half-made copy of {from}; finish that copy first")]
    SourceUnfinished {
        /// Where its rows come from.
        from: String,
    },
    /// The source is not what it was when the copy began.
    #[error(
        "the store to copy from has changed since the copy began; stop its servers, empty the store to copy to, \
         and copy again"
    )]
    SourceChanged,
    /// The target is not what was copied.
    #[error("something else has written to the store to copy to; stop its servers, empty it, and copy again")]
    TargetChanged,
    /// The target's counts are wrong.
    #[error(
        "the copy does not add up: {drifted} totals and {strays} lists; empty the store to copy to, and copy again"
    )]
    Unsound {
        /// Totals that are not what their edges say.
        drifted: u64,
        /// Edges and list entries that do not belong together.
        strays: u64,
    },
    /// A store that nobody may use yet.
    #[error("this store is a half-made copy; finish it with: tally copy --from {from} --to the URL of this store")]
    HalfMade {
        /// Where its rows come from.
        from: String,
    },
}
