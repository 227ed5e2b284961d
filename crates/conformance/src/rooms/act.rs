//! What the holder of a ticket does, and what becomes of the ticket.

use tally_core::Code;
use tally_core::rows::TicketState::{self, Admitted, BeforeOpen, Done, Left, Ready, Waiting};

/// What a holder does.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Act {
    Beat,
    Leave,
    Claim,
    Finish,
}

impl Act {
    /// What becomes of a ticket.
    pub(super) fn on(self, was: TicketState) -> Result<TicketState, Code> {
        match (self, was) {
            (Self::Beat, state) => Ok(state),
            (Self::Leave, Waiting | BeforeOpen | Ready) => Ok(Left),
            (Self::Leave, Admitted) => Ok(Done),
            (Self::Leave, state) => Ok(state),
            (Self::Claim, Ready | Admitted) => Ok(Admitted),
            (Self::Finish, Ready | Admitted | Done) => Ok(Done),
            (Self::Claim | Self::Finish, Waiting | BeforeOpen) => Err(Code::NotReady),
            (Self::Claim | Self::Finish, _) => Err(Code::TicketGone),
        }
    }
}
