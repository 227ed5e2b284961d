//! Bytes in a row that is written as JSON.

/// Writes a value by its `to_bytes`, in base64, and reads it by its `from_bytes`.
macro_rules! as_base64 {
    ($name:ident) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                use base64::Engine as _;
                to.serialize_str(&base64::engine::general_purpose::STANDARD.encode(self.to_bytes()))
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                use base64::Engine as _;
                use serde::de::Error as _;
                let text = String::deserialize(from)?;
                let bytes = base64::engine::general_purpose::STANDARD.decode(text).map_err(D::Error::custom)?;
                Self::from_bytes(&bytes).ok_or_else(|| D::Error::custom("these bytes cannot be read"))
            }
        }
    };
}
pub(crate) use as_base64;
