//! The store in Redis or Valkey, on one node or a Cluster.
