//! Who may do what: one table, and the one function that reads it.

use tally::core::SubjectId;
use tally::core::catalog::ReadPolicy;
use tally::core::command::Command;
use tally::core::rows::Role;

use super::Principal;

/// Everything that can be asked for, as far as permission goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// Make an edge of a subject.
    Relate,
    /// Remove an edge of a subject.
    Unrelate,
    /// Flip an edge of a subject.
    Toggle,
    /// Whether a subject has an edge.
    ReadEdge,
    /// An object's count, and whether a viewer is in it. A user who names no viewer is the viewer.
    ReadObject,
    /// Counts of many objects, and whether a viewer is in each; asked once for every relation.
    ReadFeed,
    /// Who has edges to an object.
    ListSubjects,
    /// What a subject has edges to.
    ListObjects,
    /// Counts as they change.
    Live,
    /// Add to a counter.
    Count,
    /// A counter's value.
    ReadCounter,
    /// Note who was seen.
    Observe,
    /// How many different ones there were.
    ReadUnique,
    /// Say that a subject was there on a day, or was not.
    Attend,
    /// How many were there on a day, or on several.
    ReadDay,
    /// On which days a subject was there.
    ReadAttendance,
    /// Change a member's score.
    Score,
    /// Who leads, and where a member stands.
    ReadBoard,
    /// Use some of a limit.
    Take,
    /// How a limit stands.
    ReadLimit,
    /// Remove everything of a subject.
    ForgetSubject,
    /// Hide everything of a subject.
    SuspendSubject,
    /// Show it again.
    RestoreSubject,
    /// Register an object.
    PutObject,
    /// What an object was registered with.
    GetObject,
    /// Remove an object with its edges.
    DeleteObject,
    /// How far a job is; the subject is whom the job is about.
    ReadJob,
    /// Recount, and repair.
    Verify,
    /// Copy the store.
    Backup,
    /// Make, list and revoke API keys.
    ManageKeys,
    /// Figures about the server.
    Metrics,
    /// Whether the server is alive and ready.
    Health,
    /// OpenAPI, the readable page, the console's own files.
    Docs,
}

impl Permission {
    /// What a command needs, and about whom it is; nothing of what no caller may send. A new command has to say it here.
    pub fn of(command: &Command) -> Option<(Self, Option<&SubjectId>)> {
        Some(match command {
            Command::Relate { subject, .. } => (Self::Relate, Some(subject)),
            Command::Unrelate { subject, .. } => (Self::Unrelate, Some(subject)),
            Command::Toggle { subject, .. } => (Self::Toggle, Some(subject)),
            Command::Count { .. } => (Self::Count, None),
            Command::Observe { .. } => (Self::Observe, None),
            Command::Attend { subject, .. } => (Self::Attend, Some(subject)),
            Command::Score { member, .. } => (Self::Score, Some(member)),
            Command::Take { .. } => (Self::Take, None),
            Command::PutObject { .. } => (Self::PutObject, None),
            Command::DeleteObject { .. } => (Self::DeleteObject, None),
            Command::Forget { subject } => (Self::ForgetSubject, Some(subject)),
            Command::Suspend { subject } => (Self::SuspendSubject, Some(subject)),
            Command::Restore { subject } => (Self::RestoreSubject, Some(subject)),
            Command::Verify { .. } => (Self::Verify, None),
            Command::PutApiKey { .. } | Command::RevokeApiKey { .. } => (Self::ManageKeys, None),
            // Each command in it is asked about.
            Command::Batch { .. } | Command::Rehearse { .. } => return None,
            Command::Declare
            | Command::RankAnew { .. }
            | Command::Sweep { .. }
            | Command::Recount { .. }
            | Command::Repair { .. }
            | Command::PutRight { .. }
            | Command::Expire { .. }
            | Command::ExpireJobs { .. }
            | Command::ExpireLimits { .. } => return None,
        })
    }
}

/// The columns of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Nobody,
    ReadKey,
    ServiceKey,
    AdminKey,
    Dev,
    /// A page in a browser that says nothing of where it is from, where authentication is off.
    DevPage,
    /// A user, asking about itself.
    UserSelf,
    /// A user, asking about someone else or about no subject at all.
    UserOther,
}

/// What the table says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Allow,
    /// Refused until they say who they are.
    SignIn,
    Forbid,
    /// Where the relation is `read = "public"`.
    IfPublic,
    /// Where it is `public` or `own`, so not where it is `none`.
    IfReadable,
}

const YES: Verdict = Verdict::Allow;
const WHO: Verdict = Verdict::SignIn;
const NO_: Verdict = Verdict::Forbid;
const PUB: Verdict = Verdict::IfPublic;
const OWN: Verdict = Verdict::IfReadable;

/// The table. A column each for [`Who`], in its order; a row each for [`Permission`], in its order.
#[rustfmt::skip]
const TABLE: [(Permission, [Verdict; 8]); 33] = [
    //                      nobody read  serv. admin dev   page  self  other
    (Permission::Relate,         [WHO,   NO_,  YES,  YES,  YES,  YES,  YES,  NO_]),
    (Permission::Unrelate,       [WHO,   NO_,  YES,  YES,  YES,  YES,  YES,  NO_]),
    (Permission::Toggle,         [WHO,   NO_,  YES,  YES,  YES,  YES,  YES,  NO_]),
    (Permission::ReadEdge,       [WHO,   YES,  YES,  YES,  YES,  YES,  OWN,  PUB]),
    (Permission::ReadObject,     [WHO,   YES,  YES,  YES,  YES,  YES,  OWN,  PUB]),
    (Permission::ReadFeed,       [WHO,   YES,  YES,  YES,  YES,  YES,  OWN,  PUB]),
    (Permission::ListSubjects,   [WHO,   YES,  YES,  YES,  YES,  YES,  PUB,  PUB]),
    (Permission::ListObjects,    [WHO,   YES,  YES,  YES,  YES,  YES,  OWN,  PUB]),
    (Permission::Live,           [WHO,   YES,  YES,  YES,  YES,  YES,  OWN,  OWN]),
    (Permission::Count,          [WHO,   NO_,  YES,  YES,  YES,  YES,  NO_,  NO_]),
    (Permission::ReadCounter,    [WHO,   YES,  YES,  YES,  YES,  YES,  YES,  YES]),
    (Permission::Observe,        [WHO,   NO_,  YES,  YES,  YES,  YES,  NO_,  NO_]),
    (Permission::ReadUnique,     [WHO,   YES,  YES,  YES,  YES,  YES,  YES,  YES]),
    (Permission::Attend,         [WHO,   NO_,  YES,  YES,  YES,  YES,  YES,  NO_]),
    (Permission::ReadDay,        [WHO,   YES,  YES,  YES,  YES,  YES,  YES,  YES]),
    (Permission::ReadAttendance, [WHO,   YES,  YES,  YES,  YES,  YES,  YES,  NO_]),
    (Permission::Score,          [WHO,   NO_,  YES,  YES,  YES,  YES,  NO_,  NO_]),
    (Permission::ReadBoard,      [WHO,   YES,  YES,  YES,  YES,  YES,  YES,  YES]),
    (Permission::Take,           [WHO,   NO_,  YES,  YES,  YES,  YES,  NO_,  NO_]),
    (Permission::ReadLimit,      [WHO,   YES,  YES,  YES,  YES,  YES,  NO_,  NO_]),
    (Permission::ForgetSubject,  [WHO,   NO_,  YES,  YES,  YES,  NO_,  YES,  NO_]),
    (Permission::SuspendSubject, [WHO,   NO_,  YES,  YES,  YES,  NO_,  NO_,  NO_]),
    (Permission::RestoreSubject, [WHO,   NO_,  YES,  YES,  YES,  NO_,  NO_,  NO_]),
    (Permission::PutObject,      [WHO,   NO_,  YES,  YES,  YES,  NO_,  NO_,  NO_]),
    (Permission::GetObject,      [WHO,   YES,  YES,  YES,  YES,  NO_,  NO_,  NO_]),
    (Permission::DeleteObject,   [WHO,   NO_,  YES,  YES,  YES,  NO_,  NO_,  NO_]),
    (Permission::ReadJob,        [WHO,   YES,  YES,  YES,  YES,  NO_,  YES,  NO_]),
    (Permission::Verify,         [WHO,   NO_,  NO_,  YES,  YES,  NO_,  NO_,  NO_]),
    (Permission::Backup,         [WHO,   NO_,  NO_,  YES,  YES,  NO_,  NO_,  NO_]),
    (Permission::ManageKeys,     [WHO,   NO_,  NO_,  YES,  YES,  NO_,  NO_,  NO_]),
    (Permission::Metrics,        [WHO,   YES,  YES,  YES,  YES,  NO_,  NO_,  NO_]),
    (Permission::Health,         [YES,   YES,  YES,  YES,  YES,  YES,  YES,  YES]),
    (Permission::Docs,           [YES,   YES,  YES,  YES,  YES,  YES,  YES,  YES]),
];

/// Why something is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// 401: nobody has said who they are.
    #[error("an API key or a user's token is needed: Authorization: Bearer …")]
    Unauthenticated,
    /// 403: the key's role is too small.
    #[error("this API key's role does not allow it")]
    Role,
    /// 403: users act as themselves, on what they may see.
    #[error("a user's token does not allow it")]
    User,
    /// 403: a page that could be anybody's.
    #[error(
        "with --dev a page without an origin, such as a file, may write and read relations and counts and follow them, no \
         more: any site can make one; serve the page from http://localhost, or ask without a browser"
    )]
    Page,
}

/// Whether `principal` may make `call`, which is about `target` (if about one subject) in a relation with
/// `read_policy` (if it reads one). What the caller leaves out counts against the principal, so that
/// something forgotten is refused rather than allowed.
pub fn authorize(
    principal: Option<&Principal>,
    call: Permission,
    target: Option<&str>,
    read_policy: Option<ReadPolicy>,
) -> Result<(), Denied> {
    let who = match principal {
        None => Who::Nobody,
        Some(Principal::Dev) => Who::Dev,
        Some(Principal::DevPage) => Who::DevPage,
        Some(Principal::Key { role: Role::Read, .. }) => Who::ReadKey,
        Some(Principal::Key { role: Role::Service, .. }) => Who::ServiceKey,
        Some(Principal::Key { role: Role::Admin, .. }) => Who::AdminKey,
        Some(Principal::User { subject, .. }) if target == Some(subject.as_str()) => Who::UserSelf,
        Some(Principal::User { .. }) => Who::UserOther,
    };
    let (_, verdicts) = &TABLE[call as usize];
    let allowed = match verdicts[who as usize] {
        Verdict::Allow => true,
        Verdict::SignIn | Verdict::Forbid => false,
        Verdict::IfPublic => read_policy == Some(ReadPolicy::Public),
        Verdict::IfReadable => matches!(read_policy, Some(ReadPolicy::Public | ReadPolicy::Own)),
    };
    match who {
        _ if allowed => Ok(()),
        Who::Nobody => Err(Denied::Unauthenticated),
        Who::UserSelf | Who::UserOther => Err(Denied::User),
        Who::DevPage => Err(Denied::Page),
        Who::ReadKey | Who::ServiceKey | Who::AdminKey | Who::Dev => Err(Denied::Role),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const POLICIES: [Option<ReadPolicy>; 4] =
        [None, Some(ReadPolicy::Public), Some(ReadPolicy::Own), Some(ReadPolicy::None)];

    /// The rules again, from the prose and without the table: what each principal may do.
    fn expected(who: &str, call: Permission, about_self: bool, read: Option<ReadPolicy>) -> Result<(), Denied> {
        use Permission::*;
        let open = [Health, Docs];
        let counted = [ReadCounter, ReadUnique, ReadDay, ReadBoard];
        let reads = [ReadEdge, ReadObject, ReadFeed, ListSubjects, ListObjects, Live, GetObject, ReadJob, Metrics];
        let reads = [&reads[..], &counted, &[ReadAttendance, ReadLimit]].concat();
        let admin_only = [Verify, Backup, ManageKeys];
        if open.contains(&call) {
            return Ok(());
        }
        let allowed = match who {
            "nobody" => return Err(Denied::Unauthenticated),
            "dev" | "admin" => true,
            "service" => !admin_only.contains(&call),
            "read" => reads.contains(&call),
            // What an app's page does: nothing that moderates, destroys or looks behind the scenes.
            "page" => {
                let behind = [
                    ForgetSubject,
                    SuspendSubject,
                    RestoreSubject,
                    PutObject,
                    GetObject,
                    DeleteObject,
                    ReadJob,
                    Metrics,
                ];
                !behind.contains(&call) && !admin_only.contains(&call)
            }
            _ => match call {
                // Users act as themselves only.
                Relate | Unrelate | Toggle | ForgetSubject | ReadJob | Attend | ReadAttendance => about_self,
                // What is counted is for all to see; limits and what changes the others are for servers.
                _ if counted.contains(&call) => true,
                // What is public is everyone's, what is own is one's own, what is none is nobody's.
                ReadEdge | ReadObject | ReadFeed | ListObjects => {
                    read == Some(ReadPolicy::Public) || (about_self && read == Some(ReadPolicy::Own))
                }
                // A list of other people.
                ListSubjects => read == Some(ReadPolicy::Public),
                // Counts are for all, unless the relation is hidden.
                Live => matches!(read, Some(ReadPolicy::Public | ReadPolicy::Own)),
                _ => false,
            },
        };
        let refusal = match who {
            "user" => Denied::User,
            "page" => Denied::Page,
            _ => Denied::Role,
        };
        if allowed { Ok(()) } else { Err(refusal) }
    }

    #[test]
    fn the_whole_table_is_as_the_rules_say() {
        let key = |role| Some(Principal::Key { id: "k".into(), role });
        let alice = SubjectId::new("alice").unwrap();
        let principals = [
            ("nobody", None),
            ("read", key(Role::Read)),
            ("service", key(Role::Service)),
            ("admin", key(Role::Admin)),
            ("dev", Some(Principal::Dev)),
            ("page", Some(Principal::DevPage)),
            ("user", Some(Principal::User { subject: alice, auth: Arc::default() })),
        ];
        let mut walked = 0;
        for (call, _) in TABLE {
            for (who, principal) in &principals {
                for target in [None, Some("alice"), Some("bob"), Some("Alice"), Some("alice "), Some("")] {
                    for read in POLICIES {
                        let got = authorize(principal.as_ref(), call, target, read);
                        let about_self = target == Some("alice");
                        assert_eq!(got, expected(who, call, about_self, read), "{who} {call:?} {target:?} {read:?}");
                        walked += 1;
                    }
                }
            }
        }
        assert_eq!(walked, 33 * 7 * 6 * 4);
    }

    #[test]
    fn rows_and_columns_stand_where_they_are_looked_up() {
        for (index, (call, _)) in TABLE.iter().enumerate() {
            assert_eq!(*call as usize, index, "{call:?}");
        }
        // The last of each, so that a longer enum fails here rather than at a caller.
        assert_eq!(Permission::Docs as usize + 1, TABLE.len());
        assert_eq!(Who::UserOther as usize + 1, TABLE[0].1.len());
    }
}
