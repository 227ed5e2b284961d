//! Objects: what can be related to.

use serde_json::json;
use tally_core::ObjectId;
use tally_core::command::{JobReply, ObjectReply};
use tally_core::meta::Meta;

use crate::{Call, Client};

impl Client {
    /// Registers an object, or changes what it is registered with.
    pub fn put_object(&self, object: &ObjectId, status: Option<&str>, attributes: &Meta) -> Call<ObjectReply> {
        let body = json!({"status": status, "attributes": attributes});
        self.put(&["v1", "objects", object.as_str()]).json(&body)
    }

    /// What an object is registered with.
    pub fn object(&self, object: &ObjectId) -> Call<ObjectReply> {
        self.get(&["v1", "objects", object.as_str()])
    }

    /// Deletes an object; a job removes its edges.
    pub fn delete_object(&self, object: &ObjectId) -> Call<JobReply> {
        self.delete(&["v1", "objects", object.as_str()])
    }
}
