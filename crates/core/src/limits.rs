//! A limit on everything. Past one of these the caller gets a clear error and nothing is half done.

/// Bytes in the id part of an object, and in a subject.
pub const ID_BYTES_MAX: usize = 256;
/// Bytes in the type part of an object.
pub const TYPE_BYTES_MAX: usize = 32;
/// Bytes in the name of a relation or a kind.
pub const NAME_BYTES_MAX: usize = 64;
/// Items on one page of a list.
pub const PAGE_ITEMS_MAX: u32 = 100;
/// Items on a page when the caller does not say.
pub const PAGE_ITEMS_DEFAULT: u32 = 50;
/// Objects in one feed read.
pub const FEED_OBJECTS_MAX: usize = 200;
/// Relations in one feed read or live subscription.
pub const FEED_RELATIONS_MAX: usize = 16;
/// Commands in one atomic batch, and in one commit of a batch that is not atomic.
pub const ATOMIC_COMMANDS_MAX: usize = 500;
/// Commands in one batch that is not atomic.
pub const BATCH_COMMANDS_MAX: usize = 10_000;
/// Characters in an idempotency key.
pub const IDEMPOTENCY_KEY_CHARS_MAX: usize = 128;
/// Bytes of an answer that is remembered whole for an idempotency key: so many, and so many for each command.
/// What only gives back what was sent does not count.
pub const REMEMBERED_BYTES_MAX: usize = 1_024;
/// See [`REMEMBERED_BYTES_MAX`].
pub const REMEMBERED_COMMAND_BYTES_MAX: usize = 384;
/// Bytes of `meta` on an edge, and of `attributes` on an object, as JSON.
pub const META_BYTES_MAX: usize = 16 * 1024;
/// Levels of nesting inside `meta` and `attributes`.
pub const META_DEPTH_MAX: usize = 16;
/// Edges that one step of a job changes in one commit.
pub const SWEEP_EDGES_MAX: usize = 500;
/// Kinds in a relation's `one_of`.
pub const KINDS_MAX: usize = 32;
/// Characters in a condition.
pub const CONDITION_CHARS_MAX: usize = 2_000;
/// Members in one addition to a unique count.
pub const UNIQUE_MEMBERS_MAX: usize = 1_000;
/// Keys in one union.
pub const UNION_KEYS_MAX: usize = 400;
/// Scores are between plus and minus this, which every store and every client can hold exactly.
pub const SCORE_MAX: i64 = 1 << 53;
/// Neighbours on either side of a member.
pub const AROUND_MAX: u32 = 50;
/// The amount of a limit.
pub const LIMIT_AMOUNT_MAX: u64 = 1_000_000_000;
/// The amount of a limit that remembers every use.
pub const LIMIT_LOG_MAX: u64 = 1_000;
/// The time of a limit, in microseconds: 400 days.
pub const LIMIT_WINDOW_US_MAX: u64 = 400 * 86_400_000_000;
/// Bytes in an API key's name and in an object's status.
pub const LABEL_BYTES_MAX: usize = 128;
