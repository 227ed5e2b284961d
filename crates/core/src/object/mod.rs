//! Registered objects: what edges may have to point to.

pub mod read;
pub mod rows;
mod rule;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::decide::Context;
use crate::id::ObjectId;
use crate::job::JobReply;
use crate::meta::Meta;
use crate::operation::{About, Operation, operations};
use crate::permission::Permission;
use crate::reply::{Answered, NamesMut, Told};
use crate::rows::JobKind;
use crate::time::Timestamp;
use crate::view::{Stop, View};

pub use read::{Answer, Query};
pub(crate) use rule::read;
pub use rule::{facts, is_owned_by, show};

/// Registers an object, or changes what it was registered with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PutObject {
    /// The object.
    pub object: ObjectId,
    /// Its status.
    pub status: Option<String>,
    /// Its attributes.
    pub attributes: Meta,
}

/// Removes an object, and begins to remove its edges.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeleteObject {
    /// The object.
    pub object: ObjectId,
}

operations!(Object: PutObject, DeleteObject; counts nothing);

impl Operation for PutObject {
    type Reply = ObjectReply;

    fn decide(&self, context: &Context<'_>, view: &mut View) -> Result<ObjectReply, Stop> {
        rule::put(&self.object, self.status.as_deref(), &self.attributes, context, view)
    }

    fn about(&self) -> About<'_> {
        About::caller(Permission::PutObject).object(&self.object)
    }
}

impl Operation for DeleteObject {
    type Reply = JobReply;

    fn decide(&self, context: &Context<'_>, view: &mut View) -> Result<JobReply, Stop> {
        rule::delete(&self.object, context, view)
    }

    fn about(&self) -> About<'_> {
        About::caller(Permission::DeleteObject).object(&self.object).begins(JobKind::Clear, self.object.as_str())
    }
}

/// An object after a write.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ObjectReply {
    /// The object.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub object: ObjectId,
    /// Its status.
    pub status: Option<String>,
    /// Its attributes.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub attributes: Meta,
    /// When it was registered.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// When it last changed.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub updated_at: Timestamp,
    /// Whether this write altered anything; absent on reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<bool>,
}

impl Answered for ObjectReply {
    fn correct(&mut self, _told: &mut Told<'_>) {}

    fn names_mut(&mut self) -> NamesMut<'_> {
        NamesMut::default()
    }
}
