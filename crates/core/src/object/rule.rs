//! The registry of objects: what exists, in which state, owned by whom.

use serde_json::json;

use super::ObjectReply;
use crate::decide::Context;
use crate::error::Refusal;
use crate::id::{ObjectId, SubjectId};
use crate::job::{self, JobReply};
use crate::limits::LABEL_BYTES_MAX;
use crate::meta::{self, Meta};
use crate::rows::{Key, Object, Row, Work};
use crate::subject::forget;
use crate::view::{Stop, View};

/// Registers an object, or changes what it was registered with.
pub(super) fn put(
    id: &ObjectId,
    status: Option<&str>,
    attributes: &Meta,
    context: &Context<'_>,
    view: &mut View,
) -> Result<ObjectReply, Stop> {
    if status.is_some_and(|text| text.is_empty() || text.len() > LABEL_BYTES_MAX) {
        return Err(Refusal::bad_request(format!("status has 1 to {LABEL_BYTES_MAX} bytes")).into());
    }
    if status.is_some_and(|text| text.chars().any(char::is_control)) {
        return Err(Refusal::bad_request("status has no control characters").into());
    }
    meta::check_bounds(attributes, "attributes")?;
    let existing = read(id, view)?;
    let same =
        existing.as_ref().is_some_and(|object| object.status.as_deref() == status && object.attributes == *attributes);
    let object = match existing {
        Some(object) if same => object,
        other => {
            let created_at = other.map_or(context.now(), |object| object.created_at);
            let object = Object {
                status: status.map(str::to_owned),
                attributes: attributes.clone(),
                created_at,
                updated_at: context.now(),
            };
            view.set(Key::Object(id.clone()), Some(Row::Object(object.clone())))?;
            object
        }
    };
    Ok(ObjectReply { changed: Some(!same), ..show(id, object) })
}

/// Removes an object at once, and its edges by a job. Also for an object that was never
/// registered, since its edges may be there all the same.
pub(super) fn delete(id: &ObjectId, context: &Context<'_>, view: &mut View) -> Result<JobReply, Stop> {
    let existing = read(id, view)?;
    forget::counted_of(id.as_str(), context, view)?;
    let (job, row) = job::begin(Work::Clear { object: id.clone() }, context, view)?;
    if existing.is_some() {
        view.set(Key::Object(id.clone()), None)?;
    }
    Ok(JobReply::new(job, &row))
}

/// Reads an object.
pub(crate) fn read(id: &ObjectId, view: &mut View) -> Result<Option<Object>, Stop> {
    view.kept_counted(&Key::Object(id.clone()), Row::into_object)
}

/// Shows an object.
pub fn show(id: &ObjectId, object: Object) -> ObjectReply {
    ObjectReply {
        object: id.clone(),
        status: object.status,
        attributes: object.attributes,
        created_at: object.created_at,
        updated_at: object.updated_at,
        changed: None,
    }
}

/// A subject owns what names it as `attributes.owner`, and the user object that is itself.
pub fn is_owned_by(id: &ObjectId, object: Option<&Object>, subject: &SubjectId) -> bool {
    let owner = object.and_then(|object| object.attributes.get("owner")).and_then(|owner| owner.as_str());
    owner == Some(subject.as_str()) || (id.kind() == "user" && id.id() == subject.as_str())
}

/// The object as a condition sees it.
pub fn facts(id: &ObjectId, object: Option<&Object>) -> serde_json::Value {
    json!({
        "id": id.id(),
        "type": id.kind(),
        "exists": object.is_some(),
        "status": object.and_then(|object| object.status.clone()),
        "attributes": object.map(|object| (*object.attributes).clone()).unwrap_or_default(),
    })
}
