//! Tally over HTTP: a [`Client`] of a running server, which knows what its contract offers except for live streams.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use tally_client::Client;
//! use tally_client::core::{Name, ObjectId, SubjectId};
//!
//! let client = Client::builder("https://tally.example.com").key("tally_…").build()?;
//! let (like, post, alice) = (Name::new("like")?, ObjectId::new("post:42")?, SubjectId::new("alice")?);
//! let edge = client.relate(&like, &post, &alice, None, None).await?;
//! println!("{} likes", edge.count);
//! # Ok(())
//! # }
//! ```
//!
//! A method makes a [`Call`] and sends nothing yet: `.await` sends it and gives what the contract promises, and
//! [`Call::answer`] gives the server's own text. No call is sent twice by itself; only who asks knows whether twice is
//! once. [`Problem::is_not_now`] tells which refusals are worth another try.

mod attendance;
mod batch;
mod boards;
mod call;
mod client;
mod counters;
mod error;
mod follow;
mod keys;
mod limits;
mod objects;
mod relations;
mod request;
mod rooms;
mod running;
mod subjects;
mod trust;
mod uniques;

pub use batch::{BatchAnswer, BatchItem};
pub use boards::BoardPage;
pub use call::{Answer, Call};
pub use client::{Builder, Client, DEFAULT_URL};
pub use error::{CaError, Error, Problem, Unsigned, is_not_now};
pub use follow::{FailedJob, verification};
pub use keys::{KeyMade, KeyRevoked};
pub use relations::Page;
pub use request::Request;
pub use rooms::{Admission, RoomDeleted};
pub use running::BackupMade;
pub use tally_core as core;
