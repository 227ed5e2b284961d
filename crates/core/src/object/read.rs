//! Reading registered objects.

pub use super::ObjectReply;
use super::show;
use crate::error::Refusal;
use crate::id::ObjectId;
use crate::permission::Permission;
use crate::query::{Ask, Question, questions};
use crate::read::{Halt, Sight};
use crate::rows::{Key, Row};

/// A registered object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectQuery {
    /// The object.
    pub object: ObjectId,
}

questions!(Object: Object(ObjectQuery) -> ObjectReply);

impl Question for ObjectQuery {
    type Answer = ObjectReply;

    fn asks(&self, ask: &mut dyn FnMut(Ask<'_>)) {
        ask(Ask::of(Permission::GetObject));
    }

    fn read(&self, sight: &mut Sight<'_>) -> Result<ObjectReply, Halt> {
        match sight.row(|| Key::Object(self.object.clone()))?.and_then(Row::into_object) {
            Some(found) => Ok(show(&self.object, found)),
            None => Err(Refusal::ObjectNotFound(self.object.clone()).into()),
        }
    }
}
