//! Who may do what: the one function that reads the table.

use tally::core::catalog::ReadPolicy;
use tally::core::permission::{Verdict, Who};
use tally::core::rows::Role;

use super::Principal;

pub use tally::core::permission::Permission;

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
        None | Some(Principal::Nobody) => Who::Nobody,
        Some(Principal::Dev) => Who::Dev,
        Some(Principal::DevPage) => Who::DevPage,
        Some(Principal::Key { role: Role::Read, .. }) => Who::ReadKey,
        Some(Principal::Key { role: Role::Service, .. }) => Who::ServiceKey,
        Some(Principal::Key { role: Role::Admin, .. }) => Who::AdminKey,
        Some(Principal::User { subject, .. }) if target == Some(subject.as_str()) => Who::UserSelf,
        Some(Principal::User { .. }) => Who::UserOther,
    };
    let allowed = match call.verdict(who) {
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

    use tally::core::SubjectId;

    use super::*;

    const POLICIES: [Option<ReadPolicy>; 4] =
        [None, Some(ReadPolicy::Public), Some(ReadPolicy::Own), Some(ReadPolicy::None)];

    /// The rules again, from the prose and without the table: what each principal may do.
    fn expected(who: &str, call: Permission, about_self: bool, read: Option<ReadPolicy>) -> Result<(), Denied> {
        use Permission::*;
        // What a room says itself decides on who joins and reads it; a ticket is a credential.
        let open = [Health, Docs, HoldTicket, ReadRoom];
        let counted = [ReadCounter, ReadUnique, ReadDay, ReadBoard];
        let reads = [ReadEdge, ReadObject, ReadFeed, ListSubjects, ListObjects, Live, GetObject, ReadJob, Metrics];
        let reads = [&reads[..], &counted, &[ReadAttendance, ReadLimit]].concat();
        let admin_only = [Verify, Backup, ManageKeys];
        if open.contains(&call) {
            return Ok(());
        }
        let allowed = match who {
            "nobody" if call == JoinRoom => true,
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
                    ManageRoom,
                    Metrics,
                ];
                !behind.contains(&call) && !admin_only.contains(&call)
            }
            _ => match call {
                // Users act as themselves only.
                Relate | Unrelate | Toggle | ForgetSubject | ReadJob | Attend | ReadAttendance | JoinRoom => about_self,
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
        for call in Permission::ALL.iter().copied() {
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
        assert_eq!(walked, Permission::ALL.len() * 7 * 6 * 4);
    }
}
