//! What has a call of its own.

use crate::{Call, Client};

/// A command or a question of the library, as a call. What you ask with decides what you get.
pub trait Request {
    /// What the contract promises for it.
    type Answer;

    /// The call.
    fn call(&self, client: &Client) -> Call<Self::Answer>;
}

impl Client {
    /// Asks for something.
    pub fn ask<R: Request>(&self, request: &R) -> Call<R::Answer> {
        request.call(self)
    }
}

/// How each of them is called.
macro_rules! requests {
    ($($asked:ident => $answer:ty: |$ask:ident, $client:ident| $call:expr;)+) => {$(
        impl $crate::Request for $asked {
            type Answer = $answer;

            fn call(&self, $client: &$crate::Client) -> $crate::Call<$answer> {
                let $ask = self;
                $call
            }
        }
    )+};
}

pub(crate) use requests;
