//! Registered objects.

use serde::{Deserialize, Serialize};

use crate::meta::Meta;
use crate::rows::{Kind, columns, declare, kind};
use crate::time::Timestamp;

/// A registered object.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Object {
    /// Free text such as `published`.
    pub status: Option<String>,
    /// Free-form attributes; `owner` is what `allow_self` looks at.
    pub attributes: Meta,
    /// When it was registered.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

columns!(Object { status, attributes, created_at, updated_at });

impl Kind for kind::Object {
    declare!(Object = b'b' "object" in "object"
        ("object" Text) => ("status" Text, "attributes" Json, "created_at" Time, "updated_at" Time)
        Changed With(0));
}
