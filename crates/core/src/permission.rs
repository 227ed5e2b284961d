//! Who may do what: one table.

/// The columns of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// Nobody has said who they are.
    Nobody,
    /// A key with the role `read`.
    ReadKey,
    /// A key with the role `service`.
    ServiceKey,
    /// A key with the role `admin`.
    AdminKey,
    /// Anybody, where authentication is off.
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
pub enum Verdict {
    /// Allowed.
    Allow,
    /// Refused until they say who they are.
    SignIn,
    /// Refused.
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

macro_rules! permissions {
    ($($(#[$doc:meta])* $permission:ident = [$($verdict:ident),*],)*) => {
        /// Everything that can be asked for, as far as permission goes. It follows from the command or the query.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Permission {
            $($(#[$doc])* $permission,)*
        }

        impl Permission {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$permission),*];

            /// A column each for [`Who`], in its order.
            fn verdicts(self) -> [Verdict; 8] {
                match self {
                    $(Self::$permission => [$($verdict),*],)*
                }
            }
        }
    };
}

#[rustfmt::skip]
permissions! {
    //                nobody read  serv. admin dev   page  self  other
    /// Make an edge of a subject.
    Relate          = [WHO,   NO_,  YES,  YES,  YES,  YES,  YES,  NO_],
    /// Remove an edge of a subject.
    Unrelate        = [WHO,   NO_,  YES,  YES,  YES,  YES,  YES,  NO_],
    /// Flip an edge of a subject.
    Toggle          = [WHO,   NO_,  YES,  YES,  YES,  YES,  YES,  NO_],
    /// Whether a subject has an edge.
    ReadEdge        = [WHO,   YES,  YES,  YES,  YES,  YES,  OWN,  PUB],
    /// An object's count, and whether a viewer is in it. A user who names no viewer is the viewer.
    ReadObject      = [WHO,   YES,  YES,  YES,  YES,  YES,  OWN,  PUB],
    /// Counts of many objects, and whether a viewer is in each; asked once for every relation.
    ReadFeed        = [WHO,   YES,  YES,  YES,  YES,  YES,  OWN,  PUB],
    /// Who has edges to an object.
    ListSubjects    = [WHO,   YES,  YES,  YES,  YES,  YES,  PUB,  PUB],
    /// What a subject has edges to.
    ListObjects     = [WHO,   YES,  YES,  YES,  YES,  YES,  OWN,  PUB],
    /// Counts as they change.
    Live            = [WHO,   YES,  YES,  YES,  YES,  YES,  OWN,  OWN],
    /// Add to a counter.
    Count           = [WHO,   NO_,  YES,  YES,  YES,  YES,  NO_,  NO_],
    /// A counter's value.
    ReadCounter     = [WHO,   YES,  YES,  YES,  YES,  YES,  YES,  YES],
    /// Note who was seen.
    Observe         = [WHO,   NO_,  YES,  YES,  YES,  YES,  NO_,  NO_],
    /// How many different ones there were.
    ReadUnique      = [WHO,   YES,  YES,  YES,  YES,  YES,  YES,  YES],
    /// Say that a subject was there on a day, or was not.
    Attend          = [WHO,   NO_,  YES,  YES,  YES,  YES,  YES,  NO_],
    /// How many were there on a day, or on several.
    ReadDay         = [WHO,   YES,  YES,  YES,  YES,  YES,  YES,  YES],
    /// On which days a subject was there.
    ReadAttendance  = [WHO,   YES,  YES,  YES,  YES,  YES,  YES,  NO_],
    /// Change a member's score.
    Score           = [WHO,   NO_,  YES,  YES,  YES,  YES,  NO_,  NO_],
    /// Who leads, and where a member stands.
    ReadBoard       = [WHO,   YES,  YES,  YES,  YES,  YES,  YES,  YES],
    /// Use some of a limit.
    Take            = [WHO,   NO_,  YES,  YES,  YES,  YES,  NO_,  NO_],
    /// How a limit stands.
    ReadLimit       = [WHO,   YES,  YES,  YES,  YES,  YES,  NO_,  NO_],
    /// Join a room; what the room lets join is decided there.
    JoinRoom        = [YES,   NO_,  YES,  YES,  YES,  YES,  YES,  NO_],
    /// Whatever a ticket's holder may do: the ticket itself is the credential.
    HoldTicket      = [YES,   YES,  YES,  YES,  YES,  YES,  YES,  YES],
    /// How a room is; without a credential only of those that anybody may join.
    ReadRoom        = [YES,   YES,  YES,  YES,  YES,  YES,  YES,  YES],
    /// Make, change and delete rooms, let in by hand.
    ManageRoom      = [WHO,   NO_,  YES,  YES,  YES,  NO_,  NO_,  NO_],
    /// Remove everything of a subject.
    ForgetSubject   = [WHO,   NO_,  YES,  YES,  YES,  NO_,  YES,  NO_],
    /// Hide everything of a subject.
    SuspendSubject  = [WHO,   NO_,  YES,  YES,  YES,  NO_,  NO_,  NO_],
    /// Show it again.
    RestoreSubject  = [WHO,   NO_,  YES,  YES,  YES,  NO_,  NO_,  NO_],
    /// Register an object.
    PutObject       = [WHO,   NO_,  YES,  YES,  YES,  NO_,  NO_,  NO_],
    /// What an object was registered with.
    GetObject       = [WHO,   YES,  YES,  YES,  YES,  NO_,  NO_,  NO_],
    /// Remove an object with its edges.
    DeleteObject    = [WHO,   NO_,  YES,  YES,  YES,  NO_,  NO_,  NO_],
    /// How far a job is; the subject is whom the job is about.
    ReadJob         = [WHO,   YES,  YES,  YES,  YES,  NO_,  YES,  NO_],
    /// Recount, and repair.
    Verify          = [WHO,   NO_,  NO_,  YES,  YES,  NO_,  NO_,  NO_],
    /// Copy the store.
    Backup          = [WHO,   NO_,  NO_,  YES,  YES,  NO_,  NO_,  NO_],
    /// Make, list and revoke API keys.
    ManageKeys      = [WHO,   NO_,  NO_,  YES,  YES,  NO_,  NO_,  NO_],
    /// Figures about the server.
    Metrics         = [WHO,   YES,  YES,  YES,  YES,  NO_,  NO_,  NO_],
    /// Whether the server is alive and ready.
    Health          = [YES,   YES,  YES,  YES,  YES,  YES,  YES,  YES],
    /// OpenAPI, the readable page, the console's own files.
    Docs            = [YES,   YES,  YES,  YES,  YES,  YES,  YES,  YES],
}

impl Permission {
    /// What the table says.
    pub fn verdict(self, who: Who) -> Verdict {
        self.verdicts()[who as usize]
    }
}
