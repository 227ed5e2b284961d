//! The tables of what is counted, and their keys.

/// A table of declared things, for the reader and for `config defaults`.
pub(crate) struct Table {
    /// Its name.
    pub(crate) name: &'static str,
    /// What one of them is called.
    pub(super) noun: &'static str,
    /// What it is about.
    pub(crate) doc: &'static str,
    /// The name in the example.
    pub(crate) example: &'static str,
    /// Its keys, each with an example and what it is for.
    pub(crate) keys: &'static [(&'static str, &'static str, &'static str)],
}

const RATE_LIMIT_KEY: &str = "A limit to pass first, decided with the write: a rate, or a declared limit's name, and \"per key\"\n(the default) or \"in all\".";

/// All of them, in the order of the default file.
pub(crate) const TABLES: &[Table] = &[
    Table {
        name: "counters",
        noun: "a counter",
        doc: "Counters: how many times? Without any here, `views` exists.",
        example: "views",
        keys: &[
            (
                "requires",
                "\"object.status == 'published'\"",
                "A condition (CEL) over auth, object and now. The key is the object then.",
            ),
            ("last_at", "true", "Whether it keeps when it was last added to, to the second."),
            ("rate_limit", "\"600/min per key\"", RATE_LIMIT_KEY),
        ],
    },
    Table {
        name: "uniques",
        noun: "a unique count",
        doc: "Unique counts: how many different ones? Without any here, `dau` exists.",
        example: "dau",
        keys: &[("rate_limit", "\"600/min per key\"", RATE_LIMIT_KEY)],
    },
    Table {
        name: "attendance",
        noun: "an attendance sheet",
        doc: "Attendance: who was there on which day? Without any here, `daily` exists.",
        example: "daily",
        keys: &[
            ("time_zone", "\"Asia/Seoul\"", "Where its days end. Default: UTC."),
            (
                "rate_limit",
                "\"10/min per subject\"",
                "A limit to pass first, \"per subject\" (the default) or \"in all\".",
            ),
        ],
    },
    Table {
        name: "boards",
        noun: "a board",
        doc: "Boards: who leads? Without any here, `points` exists.",
        example: "weekly",
        keys: &[
            (
                "ties",
                "\"shared\"",
                "Ranks of equal scores: \"first_to_reach\" is 1, 2, 3, 4 (the default), \"shared\" 1, 2, 2, 4, \"dense\"\n1, 2, 2, 3.",
            ),
            (
                "season",
                "\"0 0 * * MON\"",
                "When it begins anew, as a crontab; in UTC, unless a time zone stands behind it. Closed seasons are kept.",
            ),
            ("best_of", "true", "Whether a score that is set counts only where it is higher than the one before."),
            (
                "rate_limit",
                "\"10/min per member\"",
                "A limit to pass first, \"per member\" (the default) or \"in all\".",
            ),
        ],
    },
    Table {
        name: "limits",
        noun: "a limit",
        doc: "Limits of your own: may this happen now? They stand beside the server's own [limits], so none can have\nthe name of one of those settings.",
        example: "posting",
        keys: &[
            ("rate", "\"100/min\"", "How much in how long: 100/min, 5/10s, 1000/day."),
            (
                "algorithm",
                "\"token_bucket\"",
                "\"sliding_log\" is exact and remembers every use (up to 1000), \"sliding_window\" remembers two numbers,\n\"token_bucket\" lets a burst through and then an even flow. Default: \"sliding_log\", unless the amount\nis too large for it.",
            ),
        ],
    },
];
